"""Two runs on the same items: what differs, how sure that is, and what cannot be compared."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pluralbench import Run, RunError, compare
from scipy.stats import binomtest
from written_tables import write

Rows = list[dict[str, Any]]
Command = Callable[..., tuple[int, str, str]]


def made(name: str, outcomes: Sequence[str], clusters: Sequence[int] | None = None, content: str = "d") -> Run:
    """A run of these outcomes, as `read_run` would give it."""
    names = clusters or range(len(outcomes))
    items = pl.DataFrame(
        {
            "config": ["c"] * len(outcomes),
            "id": [f"q{place}" for place in range(len(outcomes))],
            "cluster": [f"u{cluster}" for cluster in names],
            "subset": pl.Series([None] * len(outcomes), dtype=pl.String),
            "digest": [content] * len(outcomes),
            "outcome": list(outcomes),
        }
    )
    record = {"benchmark": {"name": "pairs"}, "data": {"digest": content, "limit": None, "configs": []}}
    return Run(Path(name), items, {}, record)


def contingency(both: int, first: int, second: int, neither: int) -> tuple[Run, Run]:
    ours = ["win"] * both + ["win"] * first + ["loss"] * second + ["tie"] * neither
    theirs = ["win"] * both + ["loss"] * first + ["win"] * second + ["invalid"] * neither
    return made("a", ours), made("b", theirs)


@pytest.mark.parametrize(
    ("both", "first", "second", "neither"), [(40, 6, 18, 20), (10, 5, 5, 3), (60, 1, 9, 0), (5, 3, 0, 0)]
)
def test_a_known_table_gives_its_difference_and_the_sign_tests_probability(
    both: int, first: int, second: int, neither: int
) -> None:
    found = compare(*contingency(both, first, second, neither))
    total = both + first + second + neither
    assert (found.only_first, found.only_second, found.decisions, found.clusters) == (first, second, total, total)
    assert found.accuracy_first == pytest.approx((both + first) / total)
    assert found.accuracy_second == pytest.approx((both + second) / total)
    assert found.difference == pytest.approx((second - first) / total)
    assert found.p_value == pytest.approx(binomtest(second, first + second).pvalue, abs=0.02)
    low, high = found.interval
    assert low <= found.difference <= high
    assert (found.left_out, found.first, found.second) == (0, "a", "b")
    # The normal interval of a paired difference, by a formula of its own.
    spread = 1.96 * np.sqrt((first + second) / total - found.difference**2) / np.sqrt(total)
    assert high - low == pytest.approx(2 * spread, rel=0.35)


def test_the_other_way_round_is_the_same_finding_with_the_other_sign() -> None:
    first, second = contingency(40, 6, 18, 20)
    there, back = compare(first, second), compare(second, first)
    assert there.difference == pytest.approx(-back.difference)
    assert there.p_value == pytest.approx(back.p_value, abs=0.01)


def test_a_run_does_not_differ_from_itself() -> None:
    run = made("a", ["win", "loss", "tie"] * 9)
    found = compare(run, run)
    assert (found.difference, found.p_value, found.interval) == (0.0, 1.0, (0.0, 0.0))
    assert (found.only_first, found.only_second) == (0, 0)


def test_rows_of_one_cluster_are_no_independent_evidence() -> None:
    ours, theirs = ["loss"] * 10 + ["win"] * 30, ["win"] * 10 + ["win"] * 30
    alone = compare(made("a", ours), made("b", theirs))
    users = [0] * 10 + [1 + place % 6 for place in range(30)]
    together = compare(made("a", ours, users), made("b", theirs, users))
    assert alone.p_value < 0.01
    assert together.p_value == 1.0, "one user of seven says nothing"
    assert together.clusters == 7
    assert together.difference == alone.difference


def test_a_comparison_is_a_matter_of_the_seed_alone() -> None:
    first, second = contingency(40, 6, 18, 20)
    assert compare(first, second, seed=4) == compare(first, second, seed=4)
    assert compare(first, second, seed=4).interval != compare(first, second, seed=5).interval


def test_what_only_one_run_decided_is_left_out_and_counted() -> None:
    first = made("a", ["win", "win", "dropped", "loss", "equal"])
    second = made("b", ["loss", "win", "win", "win", "equal"])
    found = compare(first, second)
    assert (found.decisions, found.left_out, found.only_first, found.only_second) == (3, 1, 1, 1)


def test_runs_of_different_things_are_refused() -> None:
    run = made("a", ["win"] * 3)
    disjoint = made("b", ["win"] * 3)
    disjoint.items.replace_column(1, pl.Series("id", ["x", "y", "z"]))
    with pytest.raises(RunError, match="a and b have no item in common"):
        compare(run, disjoint)
    with pytest.raises(RunError, match="share ids, but their items differ in content"):
        compare(run, made("b", ["win"] * 3, content="other"))
    other = made("b", ["win"] * 3)
    other.run["benchmark"]["name"] = "chinese"
    with pytest.raises(RunError, match="a is of the benchmark pairs and b of chinese"):
        compare(run, other)


@pytest.fixture
def data(pairs: Callable[..., Rows], tmp_path: Path) -> Path:
    return write(tmp_path / "p.jsonl", pairs(40))


def test_two_models_are_compared_on_their_decisions(
    score: Callable[..., Run], classifiers: Callable[..., str], data: Path
) -> None:
    first, second = score("pairs", data), score("pairs", data, by=classifiers(seed=1))
    found = compare(first, second)
    won = [run.items["score_chosen"] > run.items["score_rejected"] for run in (first, second)]
    assert found.only_first == (won[0] & ~won[1]).sum()
    assert found.only_second == (~won[0] & won[1]).sum()
    assert 0 < found.p_value <= 1


def test_runs_with_a_limit_are_compared_on_what_they_share(score: Callable[..., Run], data: Path) -> None:
    found = compare(score("pairs", data, limit=9), score("pairs", data, limit=25))
    assert (found.decisions, found.left_out, found.difference) == (9, 16, 0.0)


def test_runs_with_a_limit_on_different_data_are_refused(
    score: Callable[..., Run], pairs: Callable[..., Rows], data: Path, tmp_path: Path
) -> None:
    other = write(tmp_path / "other/p.jsonl", pairs(40, seed=1))
    with pytest.raises(RunError, match="differ in content"):
        compare(score("pairs", data, limit=9), score("pairs", other))


def test_rankings_are_compared_pair_by_pair(
    score: Callable[..., Run], classifiers: Callable[..., str], tmp_path: Path
) -> None:
    rows = [
        {"id": str(n), "prompt": "a hobby", "responses": [f"origami {n}", f"drumming {n}", "x"], "rank": [1, 2, 2]}
        for n in range(12)
    ]
    data = write(tmp_path / "r.jsonl", rows)
    first, second = score("rankings", data), score("rankings", data, by=classifiers(seed=1))
    found = compare(first, second)
    assert (found.decisions, found.clusters) == (24, 12)
    assert found.accuracy_first == pytest.approx(first.metrics["pooled"]["accuracy"])
    assert found.accuracy_second == pytest.approx(second.metrics["pooled"]["accuracy"])


def test_the_command_says_what_differs_in_words_and_in_json(
    score: Callable[..., Run], classifiers: Callable[..., str], data: Path, run: Command
) -> None:
    first, second = score("pairs", data), score("pairs", data, by=classifiers(seed=1))
    found = compare(first, second)
    status, said, _ = run("compare", first.path, second.path)
    assert status == 0
    for part in ("40 decisions on 40 prompts or users", str(first.path), f"{found.only_second:,} that only it"):
        assert part in said
    assert re.search(r"Difference [+-]\d+\.\d points, 95% interval [+-]\d+\.\d to [+-]\d+\.\d, p = \d", said)
    status, said, _ = run("compare", first.path, second.path, "--json")
    assert status == 0
    values = json.loads(said)
    assert values["difference"] == pytest.approx(found.difference)
    assert (values["only_first"], values["p_value"]) == (found.only_first, pytest.approx(found.p_value))
