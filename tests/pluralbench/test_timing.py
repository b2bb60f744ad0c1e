"""What a run took is measured over all its parts, and costs what its calls cost."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pluralbench import ConnectionConfig
from pluralbench.evaluation import work
from pluralbench.evaluation.work import TIMES, cost_of_calls, stopwatch
from pluralbench.results import Run
from written_tables import write


class Clock:
    """Both clocks of `time`, which go on only when told."""

    now = 1000.0

    def time(self) -> float:
        """Now."""
        return self.now

    monotonic = time


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(work, "time", made)
    return made


def part(work: Path, clock: Clock, seconds: float, *, killed: bool = False) -> float:
    """A part of work that records something; one that is killed does not say how long it took."""
    with stopwatch(work) as so_far:
        clock.now += seconds
        (work / "scores.jsonl").write_text("[[0, [1.0]]]\n", encoding="utf-8")
        os.utime(work / "scores.jsonl", (clock.now, clock.now))
        began = (work / TIMES).read_bytes()
        found = so_far()
    if killed:
        (work / TIMES).write_bytes(began)
    return found


def test_parts_add_up_whatever_ended_them_and_pauses_count_for_nothing(clock: Clock, tmp_path: Path) -> None:
    part(tmp_path, clock, 10)
    clock.now += 5000
    part(tmp_path, clock, 20, killed=True)
    clock.now += 5000
    assert part(tmp_path, clock, 3) == pytest.approx(33)


def test_a_run_records_its_time_and_one_that_did_nothing_is_in_no_ones_way(
    score: Callable[..., Run], pairs: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    def interrupted(_: Any) -> Any:
        raise KeyboardInterrupt

    data, out = write(tmp_path / "p.jsonl", pairs(5)), tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        score("pairs", data, by=interrupted, out=out)
    assert not out.with_name("run.work").exists()
    run = score("pairs", data, out=out)
    assert run.result.cost is not None
    assert run.result.cost.seconds > 0
    assert {path.name for path in out.iterdir()} == {"items.parquet", "metrics.json", "run.json"}


def test_calls_cost_what_their_connection_says() -> None:
    free = cost_of_calls(3.0, ConnectionConfig(), 10, 10)
    assert (free.seconds, free.dollars, free.price) == (3.0, None, None)
    paid = cost_of_calls(3.0, ConnectionConfig(price="0.25/2"), 4_000_000, 500_000)
    assert paid.dollars == pytest.approx(2.0)
    assert paid.price is not None
    assert (paid.price.input, paid.price.output) == (0.25, 2)
