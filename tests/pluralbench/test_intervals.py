"""Intervals: seeded, by clusters of rows that belong together, never of no width, right as often as they say."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from made_runs import decision, run_of
from pluralbench import find_benchmark
from pluralbench.data.column_types import DECISIONS
from pluralbench.data.metric_key import MetricKey
from pluralbench.metrics.accuracy import accuracy_estimates
from pluralbench.metrics.decided import Decided


def frame(won: Sequence[bool], clusters: Sequence[int], **columns: Any) -> pl.DataFrame:
    both = enumerate(zip(won, clusters, strict=True))
    rows = [decision(n, "win" if one else "loss", cluster=f"u{cluster}", **columns) for n, (one, cluster) in both]
    return pl.DataFrame(rows, schema=DECISIONS)


def interval(decisions: pl.DataFrame, *, benchmark: str = "pairs") -> tuple[float, float]:
    found = dict(accuracy_estimates(Decided(find_benchmark(benchmark), decisions)))[MetricKey("overall")]
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.high <= 1
    return found.low, found.high


def width(decisions: pl.DataFrame) -> float:
    low, high = interval(decisions)
    return high - low


def test_rows_of_one_cluster_are_no_independent_evidence() -> None:
    won = [place % 3 > 0 for place in range(60)]
    once = frame(won, range(60))
    eight = frame([one for one in won for _ in range(8)], [cluster for cluster in range(60) for _ in range(8)])
    independent = frame([one for one in won for _ in range(8)], range(480))
    assert width(eight) == pytest.approx(width(once), rel=0.05)
    assert width(independent) < width(once) / 2


def test_languages_that_share_a_prompt_are_resampled_together() -> None:
    won = [place % 3 > 0 for place in range(60)]
    one = frame(won, range(60))
    six = pl.concat([frame(won, range(60), config=language) for language in "abcdef"])
    low, high = interval(six, benchmark="personalized")
    assert high - low == pytest.approx(width(one), rel=0.05)


@pytest.mark.parametrize("right", [True, False])
def test_decisions_that_all_came_out_alike_are_not_certain(right: bool) -> None:
    low, high = interval(frame([right] * 20, range(20)))
    # Half of share^20 is 2.5 %.
    edge = 0.05 ** (1 / 20)
    assert (low, high) == pytest.approx((edge, 1.0) if right else (0.0, 1 - edge), abs=1e-4)
    wider = interval(frame([right] * 20, [place % 4 for place in range(20)]))
    assert wider[1] - wider[0] > 0.5, "four clusters say less than twenty"


@pytest.mark.parametrize(("benchmark", "metric"), [("reward-bench", "accuracy"), ("chinese", "exact_match")])
def test_means_of_parts_that_all_came_out_alike_are_not_certain(benchmark: str, metric: str) -> None:
    names = [subset for weights in find_benchmark(benchmark).sections.values() for subset in weights] or ["a"] * 4
    decisions = pl.concat([frame([True] * 3, range(n * 3, n * 3 + 3), subset=name) for n, name in enumerate(names)])
    run = run_of(decisions, benchmark)
    sections = [run.estimate(metric, config="c", section=name) for name in run.names("section")]
    for found in (
        *sections,
        run.estimate("accuracy", config="c"),
        run.estimate(metric, config="c"),
        run.estimate(f"pooled_{metric}", config="c"),
    ):
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


@pytest.mark.heavy
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
