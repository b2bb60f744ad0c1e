"""Best-of-N that stops halfway, goes on, is asked for again, or is asked for under other settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from chat_server import serve
from downstream_runs import World, asked_of, by_length, by_letter, sampled
from pluralbench import Downstream, Group, ModelRecord, Scored
from pluralbench_calls import CallsError
from pluralbench_rewards import FunctionModel, OnScored
from pluralbench_runs import OutputError

Row = dict[str, Any]


@pytest.fixture(scope="module")
def whole(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Downstream:
    """A run that nothing stopped."""
    with serve(World()) as server:
        return sampled(server, sample, tmp_path_factory.mktemp("runs") / "run", limit=1)


def same(found: Downstream, other: Downstream) -> None:
    """Assert that two runs found the same."""
    for name in ("candidates", "rewards", "selected", "outcomes"):
        assert found.frame(name).equals(other.frame(name)), name
    assert found.metrics.equals(other.metrics)


@pytest.mark.parametrize(("dying", "dies"), [("policy", 7), ("judge", 4)])
def test_a_server_that_dies_loses_and_repeats_nothing(
    whole: Downstream, sample: Path, tmp_path: Path, dying: str, dies: int
) -> None:
    world = World(dies=dies, dying=dying)
    with serve(world) as server, pytest.raises(CallsError) as caught:
        sampled(server, sample, tmp_path / "run", limit=1)
    what = "candidates" if dying == "policy" else "rubrics"
    assert f"{dies} of 15 {what} are recorded; run the same command again to go on." in str(caught.value)
    assert not (tmp_path / "run").exists()
    world.dies = None
    with serve(world) as mended:  # at another port
        found = sampled(mended, sample, tmp_path / "run", limit=1)
    assert asked_of(world.answered) == (15, 15), "nothing is asked twice"
    same(found, whole)


@dataclass
class Counted:
    """A reward model that counts what it computes."""

    function: Any
    stops: bool = False
    computed: list[int] = field(default_factory=list)

    def record(self) -> ModelRecord:
        return ModelRecord(name=self.function.__name__, kind="table")

    def score(
        self,
        groups: Sequence[Group],
        *,
        known: Mapping[int, list[float]] | None = None,
        on_scored: OnScored | None = None,
    ) -> Scored:
        self.computed.append(len(groups) - len(known or {}))
        if self.stops:
            raise KeyboardInterrupt
        return FunctionModel(self.function).score(groups, known=known, on_scored=on_scored)


def test_what_one_reward_model_scored_is_not_scored_again(whole: Downstream, sample: Path, tmp_path: Path) -> None:
    world, first, second = World(), Counted(by_length), Counted(by_letter, stops=True)
    models = {"length": first, "letter": second}
    with serve(world) as server:
        with pytest.raises(KeyboardInterrupt):
            sampled(server, sample, tmp_path / "run", models, limit=1)
        second.stops = False
        found = sampled(server, sample, tmp_path / "run", models, limit=1)
    assert (first.computed, second.computed) == ([3, 0], [3, 3])
    assert asked_of(world.answered) == (15, 15)
    same(found, whole)


def test_a_finished_directory_is_read_and_its_calls_serve_another(
    whole: Downstream, sample: Path, tmp_path: Path
) -> None:
    with serve(World()) as server:
        again = sampled(server, sample, whole.path, limit=1)
        assert (again.config, again.result, again.provenance) == (whole.config, whole.result, whole.provenance)
        same(again, whole)
        other = sampled(server, sample, tmp_path / "run", [by_length], limit=1, reuse_from=whole.path)
        assert server.requests == []
    assert other.frame("candidates").equals(whole.frame("candidates"))
    assert other.frame("outcomes").equals(whole.frame("outcomes"))
    assert list(other.result.rewards) == ["by_length"]
    assert other.result.outcome == whole.result.outcome


CHANGES: list[tuple[Row, str]] = [
    ({"n": 6}, "n 5, now 6"),
    ({"k": (1, 5)}, "k [1, 2, 4], now [1, 5]"),
    ({"temperature": 0.5}, "other settings (temperature 1.0, now 0.5);"),
    ({"rewards": {"length": by_length}}, "rewards.letter.kind function, now none; "),
    ({"judged": "selected"}, "judged all, now selected"),
    ({"seed": 1}, "seed 0, now 1"),
]


@pytest.mark.parametrize(("changed", "named"), CHANGES)
def test_another_setting_is_refused_by_name(whole: Downstream, sample: Path, changed: Row, named: str) -> None:
    with serve(World()) as server, pytest.raises(OutputError) as caught:
        sampled(server, sample, whole.path, limit=1, **changed)
    assert named in str(caught.value)
    assert server.requests == []
