"""Metrics of decisions and verdicts, as the long frame of `pluralbench.results.metrics_frame`.

A metric is a function that maps decisions to numbers at their places; `measure` collects them.
"""

from itertools import chain

import polars as pl
from pluralbench_measures.bootstrap import Estimate

from pluralbench.data.benchmarks import Benchmark
from pluralbench.metrics.accuracy import accuracy_estimates, items_counted, leaves_of, outcome_counts, parts_of
from pluralbench.metrics.calibration import calibration_numbers
from pluralbench.metrics.certainty import THRESHOLD, all_verdict_metrics, verdict_numbers
from pluralbench.metrics.languages import language_accuracies, language_numbers
from pluralbench.metrics.position import position_of_options, position_of_pairs, position_of_picks
from pluralbench.metrics.references import persona_references, reference_numbers
from pluralbench.metrics.responses import response_numbers
from pluralbench.results.metrics_frame import Numbers, Place, metrics_frame


def measure(
    benchmark: Benchmark,
    decisions: pl.DataFrame,
    items: pl.DataFrame | None = None,
    responses: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Compute all metrics of a run's decisions: accuracies, counts, and those of the benchmark's kind.

    Args:
        benchmark: Description of the benchmark.
        decisions: Decisions as `pluralbench.data.decisions.decide` returns them. A judge that compares responses
            adds `verdict_chosen_first` and `verdict_rejected_first`; see `metrics.position`.
        items: Items of the benchmark, for the baselines; see `metrics.references`. Default: no baselines.
        responses: Rows of `items.parquet`, for metrics of all responses; see `metrics.responses`. Default: without.

    Returns:
        The metrics frame.
    """
    references = () if items is None else reference_numbers(benchmark, items)
    further = response_numbers(benchmark, decisions, responses)
    return metrics_frame(chain(_common_numbers(benchmark, decisions), further, references))


def measure_personas(
    benchmark: Benchmark,
    decisions: pl.DataFrame,
    verdicts: pl.DataFrame,
    *,
    threshold: float = THRESHOLD,
    items: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Compute all metrics of a persona judge's run: those of `measure`, and by task those of verdicts with certainty.

    Args:
        benchmark: Description of the benchmark.
        decisions: Decisions with the letters of both orders; see `metrics.position`.
        verdicts: Verdicts on the same items, as `check_verdicts` returns them.
        threshold: Smallest certainty that counts as high, from 1 to 100.
        items: The items with `option_a` and `option_b`, for the baselines. Default: no baselines.

    Returns:
        The metrics frame.
    """

    def all_numbers() -> Numbers:
        yield from _common_numbers(benchmark, decisions)
        yield from position_of_options(decisions)
        for metrics in all_verdict_metrics(verdicts, threshold=threshold):
            yield from verdict_numbers(metrics)
        if items is not None:
            yield from persona_references(benchmark, decisions, items, options=int(verdicts["options"][0]))

    return metrics_frame(all_numbers())


def _common_numbers(benchmark: Benchmark, decisions: pl.DataFrame) -> Numbers:
    leaves = leaves_of(decisions)
    parts = parts_of(benchmark, decisions)
    for place, estimate in accuracy_estimates(benchmark, leaves, decisions):
        yield place, estimate
        if place.group in {"pooled", "subset", "category"} and place.metric == "accuracy":
            yield from outcome_counts(parts[place.config, place.subset], place)
    yield Place("overall", "items"), Estimate(float(items_counted(benchmark, decisions)))
    del parts  # several times as large as the decisions
    yield from language_numbers(benchmark, decisions)
    yield from language_accuracies(benchmark, decisions)
    yield from calibration_numbers(benchmark, decisions)
    if "verdict_chosen_first" in decisions.columns:
        yield from position_of_pairs(decisions)
    if "position" in decisions.columns:
        yield from position_of_picks(decisions)
