"""Intervals: seeded, by clusters of rows that belong together, never of no width, right as often as they say."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from made_runs import run_of
from pluralbench import find_benchmark
from pluralbench.results.decisions import DECISIONS


def frame(won: Sequence[bool], clusters: Sequence[int], **columns: Any) -> pl.DataFrame:
    rows = {
        "id": [f"q{place}" for place in range(len(won))],
        "cluster": [f"u{cluster}" for cluster in clusters],
        "outcome": ["win" if one else "loss" for one in won],
    }
    constants: dict[str, Any] = {
        "config": "c",
        "subset": None,
        "chosen": "chosen",
        "rejected": "rejected",
        "margin": 0.0,
    }
    constants |= {"truncated": False, "digest": "d"} | columns
    made = pl.DataFrame(rows).with_columns(**{name: pl.lit(value) for name, value in constants.items()})
    return made.select(pl.col(name).cast(kind) for name, kind in DECISIONS.items())


def interval(decisions: pl.DataFrame, *, benchmark: str = "pairs") -> tuple[float, float]:
    found = run_of(decisions, benchmark).headline
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.high <= 1
    return found.low, found.high


def width(decisions: pl.DataFrame) -> float:
    low, high = interval(decisions)
    return high - low


def test_an_interval_is_the_same_whatever_the_seed() -> None:
    won = [place % 3 > 0 for place in range(61)]
    assert len({interval(frame(won, range(61))) for _ in range(3)}) == 1


def test_rows_of_one_cluster_are_no_independent_evidence() -> None:
    won = [place % 3 > 0 for place in range(60)]
    once = frame(won, range(60))
    eight = frame([one for one in won for _ in range(8)], [cluster for cluster in range(60) for _ in range(8)])
    independent = frame([one for one in won for _ in range(8)], range(480))
    assert width(eight) == pytest.approx(width(once), rel=0.05)
    assert width(independent) < width(once) / 2


def test_both_orders_of_a_pair_and_all_pairs_of_a_prompt_are_one_cluster() -> None:
    won = [place % 4 > 0 for place in range(40)]
    pairs = frame([one for one in won for _ in range(10)], [prompt for prompt in range(40) for _ in range(10)])
    assert width(pairs) > 0.2


def test_languages_that_share_a_prompt_are_resampled_together() -> None:
    won = [place % 3 > 0 for place in range(60)]
    one = frame(won, range(60))
    six = pl.concat([frame(won, range(60), config=language) for language in "abcdef"])
    low, high = interval(six, benchmark="personalized")
    assert high - low == pytest.approx(width(one), rel=0.05)


def test_fewer_prompts_make_a_wider_interval() -> None:
    widths = [width(frame([place % 3 > 0 for place in range(size)], range(size))) for size in (15, 60, 240, 960)]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 1.7 * widths[1] > 2.5 * widths[2]


@pytest.mark.parametrize("right", [True, False])
def test_decisions_that_all_came_out_alike_are_not_certain(right: bool) -> None:
    low, high = interval(frame([right] * 20, range(20)))
    # Half of share^20 is 2.5 %.
    edge = 0.05 ** (1 / 20)
    assert (low, high) == pytest.approx((edge, 1.0) if right else (0.0, 1 - edge), abs=1e-4)
    wider = interval(frame([right] * 20, [place % 4 for place in range(20)]))
    assert wider[1] - wider[0] > 0.5, "four clusters say less than twenty"


def test_sections_that_all_came_out_alike_are_not_certain() -> None:
    sections = find_benchmark("reward-bench").sections
    names = [subset for weights in sections.values() for subset in weights]
    decisions = pl.concat([frame([True] * 3, range(n * 3, n * 3 + 3), subset=name) for n, name in enumerate(names)])
    run = run_of(decisions, "reward-bench")
    for found in (*(run.estimate("accuracy", "section", config="c", section=name) for name in sections), run.of("c")):
        assert found.value == 1.0
        assert found.low is not None
        assert found.low < 0.99


def test_exact_matches_that_all_came_out_alike_are_not_certain() -> None:
    decisions = frame([True] * 12, range(12), subset="a")
    run = run_of(decisions, "chinese")
    for found in (run.estimate("exact_match", "pooled", config="c"), run.of("c"), run.of("c", "exact_match")):
        assert found.value == 1.0
        assert found.low is not None
        assert found.low < 0.99


def drawn(generator: np.random.Generator, clusters: int, truth: float) -> pl.DataFrame:
    """Users who differ in how often the model is right about them, with one to five prompts each."""
    rates = generator.beta(3 * truth, 3 * (1 - truth), clusters)
    sizes = generator.integers(1, 6, clusters)
    owner = np.repeat(np.arange(clusters), sizes)
    return frame((generator.random(len(owner)) < rates[owner]).tolist(), owner.tolist())


@pytest.mark.heavy
def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    truth = 0.7
    generator = np.random.default_rng(20260101)
    samples = [drawn(generator, 60, truth) for _ in range(200)]
    covered = [low <= truth <= high for low, high in map(interval, samples)]
    assert 0.90 <= sum(covered) / 200 <= 0.99
    alone = [interval(sample.with_columns(cluster="id")) for sample in samples[:100]]
    assert sum(low <= truth <= high for low, high in alone) / 100 < 0.90, "rows taken as independent promise too much"


def test_a_mean_over_configs_has_the_interval_of_that_mean() -> None:
    generator = np.random.default_rng(3)
    covered = 0
    for _ in range(100):
        parts = [
            frame((generator.random(40) < truth).tolist(), range(offset, offset + 40), config=config)
            for config, truth, offset in (("a", 0.9, 0), ("b", 0.6, 100), ("c", 0.3, 200))
        ]
        low, high = interval(pl.concat(parts), benchmark="personalized")
        covered += low <= 0.6 <= high
    assert 88 <= covered <= 100
