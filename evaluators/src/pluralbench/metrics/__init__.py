"""What decisions and verdicts amount to, as the long frame of `pluralbench.results.metrics_frame`.

A metric is a function from decisions to numbers at their places; `measure` puts them together.
"""

from itertools import chain

import polars as pl
from pluralbench_measures.bootstrap import Estimate

from pluralbench.data.benchmarks import Benchmark
from pluralbench.metrics.accuracy import accuracy_estimates, items_counted, leaves_of, outcome_counts, parts_of
from pluralbench.metrics.calibration import calibration_numbers
from pluralbench.metrics.certainty import THRESHOLD, all_verdict_metrics, verdict_numbers
from pluralbench.metrics.languages import language_accuracies, language_numbers
from pluralbench.metrics.position import position_of_options, position_of_pairs
from pluralbench.metrics.references import persona_references, reference_numbers
from pluralbench.results.metrics_frame import Numbers, Place, metrics_frame


def measure(benchmark: Benchmark, decisions: pl.DataFrame, items: pl.DataFrame | None = None) -> pl.DataFrame:
    """All metrics of a run's decisions: accuracies, counts, and what the benchmark's kind adds to them.

    decisions: as `pluralbench.results.decisions.decide` makes them; with `verdict_chosen_first` and
    `verdict_rejected_first` (see `metrics.position`) where a judge compared responses. items: of the
    benchmark, which the references are made of (see `metrics.references`); without them there are none.
    """
    references = () if items is None else reference_numbers(benchmark, items)
    return metrics_frame(chain(_measured(benchmark, decisions), references))


def measure_personas(
    benchmark: Benchmark,
    decisions: pl.DataFrame,
    verdicts: pl.DataFrame,
    *,
    threshold: float = THRESHOLD,
    items: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """All metrics of a persona judge's run: those of `measure`, and by task those of its verdicts with certainty.

    decisions: with `said` and `said_swapped` (see `metrics.position`). verdicts: of the same items, as `check_verdicts`
    makes them. threshold: what a high certainty is. items: the same ones, with `option_a` and `option_b`, which the
    references are made of.
    """

    def found() -> Numbers:
        yield from _measured(benchmark, decisions)
        yield from position_of_options(decisions)
        for metrics in all_verdict_metrics(verdicts, threshold=threshold):
            yield from verdict_numbers(metrics)
        if items is not None:
            yield from persona_references(benchmark, decisions, items, options=int(verdicts["options"][0]))

    return metrics_frame(found())


def _measured(benchmark: Benchmark, decisions: pl.DataFrame) -> Numbers:
    leaves = leaves_of(decisions)
    parts = parts_of(benchmark, decisions)
    for place, found in accuracy_estimates(benchmark, leaves, decisions):
        yield place, found
        if place.group in {"pooled", "subset", "category"} and place.metric == "accuracy":
            yield from outcome_counts(parts[place.config, place.subset], place)
    yield Place("overall", "items"), Estimate(float(items_counted(benchmark, decisions)))
    del parts  # which are as large as the decisions, several times
    yield from language_numbers(benchmark, decisions)
    yield from language_accuracies(benchmark, decisions)
    yield from calibration_numbers(benchmark, decisions)
    if "verdict_chosen_first" in decisions.columns:
        yield from position_of_pairs(decisions)
