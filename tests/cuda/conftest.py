"""Tiny models with random weights, each made once, and a card that is pretended."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from pluralbench_local import network
from pluralbench_local.attention import PACKED
from reward_models import Folders, one_quiet_thread, save_classifier, save_language_model


@pytest.fixture(scope="session", autouse=True)
def _quiet() -> Iterator[None]:
    with one_quiet_thread():
        yield


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """`folders("gemma2", "implicit")`: the folder of a tiny model, made once. Two layers run the code of more."""
    root, made = tmp_path_factory.mktemp("models"), dict[str, str]()

    def folder(architecture: str = "llama", kind: str = "classifier", **settings: Any) -> str:
        name = f"{architecture} {kind} {sorted(settings.items())}"
        if name not in made:
            save = save_classifier if kind == "classifier" else save_language_model
            made[name] = save(Path(root / str(len(made))), architecture, **({"num_hidden_layers": 2} | settings))
        return made[name]

    return folder


@pytest.fixture(scope="session")
def packable() -> set[Any]:
    """The kinds of models of which is known that a card packs them."""
    return set()


@pytest.fixture(autouse=True)
def _found_out_once(packable: set[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether models can be packed is found out when the first of a kind is loaded."""
    find_out = network._packing_problem

    def once(model: Any, body: Any, default_attention: str) -> str:
        kind = type(model), model.dtype, torch.cuda.get_device_capability()
        if kind in packable:
            model.set_attn_implementation(PACKED)
            return ""
        why = find_out(model, body, default_attention)
        if not why:
            packable.add(kind)
        return why

    monkeypatch.setattr(network, "_packing_problem", once)
