"""A tiny policy, and one finished run of each algorithm."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from optimized_runs import LETTERS, TASKS, quick
from reward_models import one_quiet_thread, save_language_model

if TYPE_CHECKING:
    from pluralbench_local import Trained


@pytest.fixture(scope="session", autouse=True)
def _quiet() -> Iterator[None]:
    with one_quiet_thread():
        yield


@pytest.fixture(autouse=True)
def _undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """To draw its curves takes half the time of a run of a second, so one test alone does."""
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda _, path, **__: path.touch())


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a tiny language model, not to be changed."""
    return save_language_model(tmp_path_factory.mktemp("policy") / "base", num_hidden_layers=1)


@pytest.fixture(scope="session")
def optimized(base: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], "Trained"]:
    """`optimized("rloo")`: a finished run of the algorithm, not to be changed."""
    from pluralbench_policies import optimize

    root, made = tmp_path_factory.mktemp("optimized"), dict[str, "Trained"]()

    def run(algorithm: str) -> "Trained":
        if algorithm not in made:
            options = quick(algorithm)
            made[algorithm] = optimize(base, LETTERS, TASKS, root / algorithm, options=options, device="cpu")
        return made[algorithm]

    return run
