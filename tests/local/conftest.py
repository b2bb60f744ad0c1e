"""Tiny reward models, each made once."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from reward_models import (
    Folders,
    load_classifier,
    load_implicit,
    one_quiet_thread,
    save_classifier,
    save_language_model,
)

if TYPE_CHECKING:
    from pluralbench_local import LocalRewardModel, Trained


@pytest.fixture
def no_gpu() -> None:
    """Skip the test where there is one."""
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")


def _once(root: Path, save: Folders) -> Folders:
    made: dict[str, str] = {}

    def folder(architecture: str = "llama", **settings: Any) -> str:
        template = getattr(settings.get("tokenizer"), "chat_template", None)  # which is not in a tokenizer's repr
        key = repr((architecture, sorted(settings.items()), template))
        if key not in made:
            made[key] = save(root / str(len(made)), architecture, **settings)
        return made[key]

    return folder


@pytest.fixture(scope="session", autouse=True)
def _quiet() -> Iterator[None]:
    with one_quiet_thread():
        yield


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    """`written("{{ messages }}")`: a file with this template."""
    numbers = itertools.count()

    def write(text: str) -> Path:
        path = tmp_path / f"{next(numbers)}.jinja"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def classifiers(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """`classifiers("gemma2", seed=1)`: the folder of a classifier, not to be changed."""
    return _once(tmp_path_factory.mktemp("classifiers"), save_classifier)


@pytest.fixture(scope="session")
def language_models(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """`language_models("gemma2", seed=1)`: the folder of a language model, not to be changed."""
    return _once(tmp_path_factory.mktemp("language_models"), save_language_model)


@pytest.fixture(scope="session")
def llama(classifiers: Folders) -> "LocalRewardModel":
    """A classifier that can be packed, in float32."""
    return load_classifier(classifiers())


@pytest.fixture(scope="session")
def bert(classifiers: Folders) -> "LocalRewardModel":
    """A classifier that can only be padded."""
    return load_classifier(classifiers("bert"))


@pytest.fixture(scope="session")
def implicit(language_models: Folders) -> "LocalRewardModel":
    """A language model with a reference, in float32."""
    return load_implicit(language_models(), language_models(seed=1))


@pytest.fixture(scope="session")
def small(language_models: Folders) -> str:
    """The folder of a language model to train, not to be changed; untrained it is wrong more often than right."""
    from training_runs import SMALL

    return language_models(seed=1, **SMALL)


@pytest.fixture(scope="session")
def trained(small: str, tmp_path_factory: pytest.TempPathFactory) -> "Trained":
    """A model that was trained without interruption; not to be changed."""
    from pluralbench_local import train
    from training_runs import HELD_OUT, QUICK, RANKINGS

    out = tmp_path_factory.mktemp("trained") / "out"
    return train(small, RANKINGS, out, held_out=HELD_OUT, options=QUICK, device="cpu")
