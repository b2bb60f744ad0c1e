"""A tiny policy, and one finished run of each algorithm."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from optimized_runs import LETTERS, TASKS, quick
from pluralbench_local import Trained
from pluralbench_policies import optimize
from reward_models import save_language_model
from transformers.utils import logging

library: Any = logging


@pytest.fixture(scope="session", autouse=True)
def _one_quiet_thread() -> Iterator[None]:
    """Models this small lose more to waiting threads than they win."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    library.disable_progress_bar()
    yield
    library.enable_progress_bar()
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def _undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """To draw its curves takes half the time of a run of a second, so one test alone does."""
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda _, path, **__: path.touch())


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a tiny language model, not to be changed."""
    return save_language_model(tmp_path_factory.mktemp("policy") / "base", num_hidden_layers=1)


@pytest.fixture(scope="session")
def optimized(base: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Trained]:
    """`optimized("rloo")`: a finished run of the algorithm, not to be changed."""
    root, made = tmp_path_factory.mktemp("optimized"), dict[str, Trained]()

    def run(algorithm: str) -> Trained:
        if algorithm not in made:
            options = quick(algorithm)
            made[algorithm] = optimize(base, LETTERS, TASKS, root / algorithm, options=options, device="cpu")
        return made[algorithm]

    return run
