"""Tiny models with random weights, each made once, and a card that is pretended."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from reward_models import Folders, save_classifier, save_language_model
from transformers.utils import logging

library: Any = logging


@pytest.fixture(scope="session", autouse=True)
def _one_quiet_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    library.set_verbosity_error()
    library.disable_progress_bar()
    yield
    library.enable_progress_bar()
    library.set_verbosity_warning()
    torch.set_num_threads(threads)


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
