"""Accuracies with intervals, from single subsets up to the overall number.

Accuracy is strict: the share of wins among wins, losses, ties and invalid decisions, or the mean credit of items if the
benchmark has a rule of `credit` (see `pluralbench.data.credits`). Decisions that were dropped for their length and
pairs that the benchmark calls equal are excluded; each has its own count.

`resampled_accuracies` computes all accuracies of a benchmark, so that the metrics of a run and the comparison of two
runs have the same sections, weights and means.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from pluralbench_measures.bootstrap import Estimate, Sums, sums_of
from pluralbench_measures.intervals import Linearization, linearize

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.column_types import OUTCOMES
from pluralbench.data.fields import Cell
from pluralbench.data.metric_key import MetricKey
from pluralbench.data.rules import rule_of
from pluralbench.data.rules.accuracies import (
    Counts,
    Drawn,
    ResampledAccuracy,
    cells_in,
    configs_of,
    in_overall,
    pooled_accuracy,
)
from pluralbench.metrics.decided import Decided
from pluralbench.metrics.metric import OUTCOME_COUNTS, Metric, Numbers, computed_by

LEAF = {"config": pl.String, "subset": pl.String}


def tables_of(decided: Decided) -> dict[str, pl.DataFrame]:
    """Return what a benchmark counts, by name: rows with the share `won` (`of` a number, or of 1)."""
    credited = decided.credited.rename({"credit": "won"})
    return {"decisions": credited} | rule_of(decided.benchmark).tables(decided.benchmark, decided.decisions)


def count(decided: Decided, cells: Sequence[Cell] | None = None) -> Counts:
    """Sum what a benchmark counts by cluster and cell. `cells`: default those of the decisions."""
    return count_tables(tables_of(decided), cells or decided.cells)


def count_tables(tables: Mapping[str, pl.DataFrame], cells: Sequence[Cell]) -> Counts:
    """Sum the rows of tables by cluster and cell."""
    clusters = pl.concat([rows["cluster"] for rows in tables.values()])
    return {
        name: sums_by_cell(rows, cells, rows["won"], rows["of"] if "of" in rows.columns else None, clusters)
        for name, rows in tables.items()
    }


def sums_by_cell(
    rows: pl.DataFrame,
    cells: Sequence[Cell],
    won: pl.Series,
    of: pl.Series | None = None,
    clusters: pl.Series | None = None,
) -> Sums:
    """Sum wins `won` and counts `of` (default: 1) of rows by cluster and cell.

    `clusters` are the names of all clusters, if there are more than those of the rows.
    """
    names = (rows["cluster"] if clusters is None else clusters).unique().sort()
    place = pl.DataFrame(cells, LEAF, orient="row").with_row_index("place")
    own = rows.select(pl.col("config", "subset").cast(pl.String))
    cell = own.join(place, on=list(LEAF), how="left", nulls_equal=True, maintain_order="left")["place"]
    return sums_of(
        cell.to_numpy().astype(np.int64),
        names.search_sorted(rows["cluster"]).to_numpy().astype(np.int64),
        won.to_numpy().astype(np.float64),
        None if of is None else of.to_numpy().astype(np.float64),
        shape=(len(names), len(cells)),
    )


def linearize_counts(*sides: Counts) -> tuple[Linearization, list[Drawn]]:
    """Linearize the counts of runs on the same clusters and cells; see `Linearization`."""
    linearized = linearize(*(sums for counts in sides for sums in counts.values()))
    sources = iter(linearized.sources)
    return linearized, [{name: next(sources) for name in counts} for counts in sides]


def accuracy_estimates(decided: Decided) -> Numbers:
    """Yield all accuracies of a benchmark with their intervals, the overall number first."""
    linearized, (source,) = linearize_counts(count(decided))
    for one in resampled_accuracies(decided.benchmark, decided.cells, source):
        yield one.key, one.estimate(linearized, decided.benchmark)


def accuracy_numbers(decided: Decided) -> Numbers:
    """Yield all accuracies, and the counts of the decisions of each part."""
    benchmark, item = decided.benchmark, pl.struct("config", "id").rank("dense").alias("item")
    decisions = _split(benchmark, decided.decisions.select("config", "subset", "outcome", "margin", "truncated", item))
    valid = _split(benchmark, decided.valid_credits)
    for key, estimate in accuracy_estimates(decided):
        yield key, estimate
        part = key.category if key.subset is None else key.subset
        place = key.config, part
        if key.metric == "pooled_accuracy" or (key.metric == "accuracy" and None not in place):
            yield from _outcome_counts(decisions[place], valid.get(place, decided.valid_credits.clear()), key)
    items = of_overall(benchmark, decided.decisions).select("config", "id").n_unique()
    yield MetricKey("items_counted"), Estimate(float(items))
    rows = decided.responses
    if rows is not None and "threshold" in rows.columns and rows.height:
        yield MetricKey("threshold"), Estimate(float(rows["threshold"][0]))


def resampled_accuracies(benchmark: Benchmark, cells: Sequence[Cell], counts: Drawn) -> list[ResampledAccuracy]:
    """Compute all accuracies of a benchmark in each row of the counts, the overall number first."""
    return [*rule_of(benchmark).accuracies(benchmark, cells, counts), *_pooled_parts(benchmark, cells, counts)]


def _pooled_parts(benchmark: Benchmark, cells: Sequence[Cell], counts: Drawn) -> Iterator[ResampledAccuracy]:
    rule, (configs, ours) = rule_of(benchmark), configs_of(benchmark, cells)
    parts = [(MetricKey("pooled_accuracy"), cells_in(cells, ours))]
    for config in configs:
        own = cells_in(cells, [config])
        parts.append((MetricKey("pooled_accuracy", config), own))
        for cell in own:
            subset = cells[cell][1]
            if subset is not None:
                section = None if config in benchmark.excluded_configs else benchmark.section_of.get(subset)
                parts.append((MetricKey("accuracy", config, section=section).by(rule.part, subset), [cell]))
    for key, inside in parts:
        yield pooled_accuracy(benchmark, cells, key, counts["decisions"], inside)
        for metric, name in rule.pooled.items() if key.config not in benchmark.outside_overall else ():
            other = key._replace(metric=key.metric.replace("accuracy", metric))
            yield pooled_accuracy(benchmark, cells, other, counts[name], inside)


def item_mean(items: pl.DataFrame, values: pl.Series) -> Estimate:
    """Estimate the mean over items, or over clusters, of values from 0 to 1."""
    linearized = linearize(sums_by_cell(items.with_columns(config=pl.lit("all"), subset=None), [("all", None)], values))
    source = linearized.sources[0]
    return linearized.share(source.pooled([0]), [[0]], items.height, source.clusters([0]))


def of_overall(benchmark: Benchmark, decisions: pl.DataFrame) -> pl.DataFrame:
    """Return the decisions behind the overall number."""
    counted = decisions.filter(in_overall(benchmark), pl.col("outcome").is_in(rule_of(benchmark).outcomes(benchmark)))
    return counted.filter(pl.col("subset").is_in(list(benchmark.section_of))) if benchmark.sections else counted


def _split(benchmark: Benchmark, rows: pl.DataFrame) -> dict[tuple[Any, Any], pl.DataFrame]:
    """Split rows by config and subset, and by config; (None, None) has those behind the overall number."""
    parts: dict[tuple[Any, Any], pl.DataFrame] = {(None, None): rows.filter(in_overall(benchmark))}
    for names in (["config", "subset"], ["config"]):
        parts |= {(*key, None)[:2]: part for key, part in rows.partition_by(names, as_dict=True).items()}
    return parts


def _outcome_counts(decisions: pl.DataFrame, valid: pl.DataFrame, key: MetricKey) -> Numbers:
    """Yield the counts of a part: outcomes, items and truncated items, the mean margin, and the accuracy if valid.

    Outcomes count decisions, that is pairs, also if the benchmark gives credit.
    """
    margins = decisions["margin"].drop_nulls()
    for metric, values in (("accuracy_of_valid", valid["credit"]), ("mean_margin", margins)):
        yield key._replace(metric=metric), Estimate(values.sort().mean(), n=len(values))  # type: ignore[arg-type]
    for metric, value in decisions.select(**_COUNTED).row(0, named=True).items():
        yield key._replace(metric=metric), Estimate(float(value))


_COUNTED = {
    "items": pl.col("item").n_unique(),
    **{name: (pl.col("outcome") == outcome).sum() for outcome, name in zip(OUTCOMES, OUTCOME_COUNTS, strict=True)},
    "truncated": pl.col("item").filter("truncated").n_unique(),
}
_POOLED = ("", "config", "config category", "config subset", "config section subset")
_KINDS = ("config section", "section", "resource", "joshi_class", "family", "script", "task")
_OF_METHODS = ("set method condition", "config set method condition", "set method condition measure bin")
_COUNTS = {
    "items": "Items.",
    "wins": "Decisions that are right.",
    "losses": "Decisions that are wrong.",
    "ties": "Decisions with equal scores, or with a verdict that changed with the order.",
    "invalid": "Decisions without a finite score or a readable verdict.",
    "dropped": "Decisions on items that were dropped: too long, or without the user context that the model reads.",
    "equal": "Pairs that the benchmark ranks equally.",
    "truncated": "Items that were truncated.",
}
METRICS = computed_by(
    accuracy_numbers,
    Metric("overall", "share", "The overall number, by the benchmark's rule."),
    Metric(
        "accuracy",
        "share",
        "Share of right decisions, or mean credit of items; of configs and sections as it enters the overall number.",
        (*_POOLED, "subset", *_KINDS, *_OF_METHODS),
        part_of_overall=True,
        in_tables=True,
    ),
    Metric(
        "f1",
        "share",
        "Harmonic mean of the accuracies on erroneous and on correct answers, in which the first wrong step is found.",
        ("config",),
        title="F1",
        part_of_overall=True,
        in_tables=True,
        terms={
            "erroneous": "answers with a wrong step, the first of which is found; correct: without one, where none is "
            "found; means over configs."
        },
    ),
    Metric(
        "exact_match",
        "share",
        "Share of prompts whose pairs are all right; of configs the mean over categories.",
        ("", "config", "config category"),
        part_of_overall=True,
        in_tables=True,
    ),
    Metric("pooled_accuracy", "share", "Accuracy over all decisions, without weights.", ("", "config")),
    Metric("pooled_exact_match", "share", "Exact match over all prompts, without weights.", ("", "config")),
    Metric("accuracy_of_valid", "share", "Accuracy of decisions, or of items, without an invalid decision.", _POOLED),
    Metric("mean_margin", "number", "Mean margin of scores.", _POOLED),
    Metric("items_counted", "count", "Items behind the overall number."),
    Metric("threshold", "number", "Score below which a step of an answer is wrong.", in_tables=True),
    *(Metric(name, "count", text, (*_POOLED, "task")) for name, text in _COUNTS.items()),
)
