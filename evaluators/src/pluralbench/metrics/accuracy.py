"""Accuracies with intervals, from single subsets up to the overall number.

Accuracy is strict: the share of wins among wins, losses, ties and invalid decisions, or the mean credit of items if the
benchmark has a rule of `credit` (see `pluralbench.metrics.credits`). Decisions that were dropped for their length and
pairs that the benchmark calls equal are excluded; each has its own count.

`resampled_accuracies` computes all accuracies of a benchmark, so that the metrics of a run and the comparison of two
runs have the same sections, weights and means.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
from pluralbench_measures import rankings
from pluralbench_measures.bootstrap import Array, Estimate, Resampled, Sums, mean_of, sums_of
from pluralbench_measures.intervals import Linearization, Strata, linearize

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.decisions import OUTCOMES
from pluralbench.data.fields import Cell
from pluralbench.data.layouts.steps import CORRECT, ERRONEOUS
from pluralbench.data.metric_key import MetricKey
from pluralbench.data.thresholds import harmonic_mean
from pluralbench.metrics.credits import COUNTED
from pluralbench.metrics.decided import Decided, in_overall
from pluralbench.metrics.metric import OUTCOME_COUNTS, Metric, Numbers, computed_by

LEAF = {"config": pl.String, "subset": pl.String}
Counts = Mapping[str, Sums]
"""Sums by cluster and cell: `decisions`; for rankings by category also `pairs`, and `exact` (of prompts)."""
Drawn = Mapping[str, Resampled]
"""`Counts` as measured, and perturbed, resampled or exchanged."""


@dataclass(frozen=True)
class ResampledAccuracy:
    """An accuracy in each row of perturbed or resampled counts.

    Attributes:
        key: Name of the number.
        values: Accuracy as measured (row 0) and in each further row. Shape (rows,).
        strata: Cells that the accuracy is computed from, by stratum; see `Linearization.share`.
        n: Number of its decisions.
        clusters: Number of clusters of its decisions.
    """

    key: MetricKey
    values: Array
    strata: Strata
    n: int
    clusters: int

    def estimate(self, linearized: Linearization, benchmark: Benchmark) -> Estimate:
        """Return the accuracy with its interval."""
        stratified = bool(benchmark.strata)
        return linearized.share(self.values, self.strata, self.n, self.clusters, stratified=stratified)


def count(decided: Decided, cells: Sequence[Cell] | None = None) -> Counts:
    """Sum decisions by cluster and cell. `cells`: default those of the decisions."""
    benchmark = decided.benchmark
    prompts = prompts_of(benchmark, decided.decisions) if benchmark.by_category else None
    return count_credits(decided.credited, prompts, cells or decided.cells)


def count_credits(credited: pl.DataFrame, prompts: pl.DataFrame | None, cells: Sequence[Cell]) -> Counts:
    """Sum credits by cluster and cell.

    Args:
        credited: What counts and its credit, as `item_credits` returns it.
        prompts: For rankings by category, what `prompts_of` returns.
        cells: All cells.
    """
    if prompts is None:
        return {"decisions": sums_by_cell(credited, cells, credited["credit"])}
    clusters = pl.concat([credited["cluster"], prompts["cluster"]])
    return {
        "decisions": sums_by_cell(credited, cells, credited["credit"], clusters=clusters),
        "pairs": sums_by_cell(prompts, cells, prompts["right"], prompts["pairs"], clusters=clusters),
        "exact": sums_by_cell(prompts, cells, prompts["exact"], clusters=clusters),
    }


def prompts_of(benchmark: Benchmark, decisions: pl.DataFrame) -> pl.DataFrame:
    """Return the counted prompts of rankings by category, as `rankings.by_prompt` computes them."""
    scored = decisions.filter(in_overall(benchmark), pl.col("outcome") != "dropped")
    keys = ["config", "subset", "id", "cluster"]
    return rankings.by_prompt(scored, keys, legacy=not benchmark.ties_break_exact_match).filter(pl.col("counted") == 1)


def sums_by_cell(
    rows: pl.DataFrame,
    cells: Sequence[Cell],
    won: pl.Series,
    of: pl.Series | None = None,
    clusters: pl.Series | None = None,
) -> Sums:
    """Sum wins and counts of rows by cluster and cell.

    Args:
        rows: Rows with `config`, `subset` and `cluster`.
        cells: All cells.
        won: Wins of each row.
        of: Count of each row. Default: 1.
        clusters: Names of all clusters, if there are more than those of the rows.
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


def resampled_accuracies(benchmark: Benchmark, cells: Sequence[Cell], counts: Drawn) -> list[ResampledAccuracy]:
    """Compute all accuracies of a benchmark in each row of the counts, the overall number first."""
    configs = list(dict.fromkeys(config for config, _ in cells))
    ours = [config for config in configs if config not in benchmark.outside_overall]
    if benchmark.by_category:
        parts = [*_by_category(cells, counts, ours)]
    elif benchmark.in_steps:
        parts = [*_by_first_error(cells, counts["decisions"], configs, ours)]
    else:
        of_configs = {config: config_accuracies(benchmark, config, cells, counts["decisions"]) for config in configs}
        parts = [
            _pooled(benchmark, cells, MetricKey("overall"), counts["decisions"], _cells_of(cells, ours))
            if benchmark.overall == "items"
            else mean_accuracy(MetricKey("overall"), [of_configs[config][0] for config in ours], counts["decisions"]),
            *chain.from_iterable(of_configs.values()),
        ]
    return [*parts, *_pooled_parts(benchmark, cells, counts, configs, ours)]


def config_accuracies(
    benchmark: Benchmark, config: str, cells: Sequence[Cell], pairs: Resampled
) -> list[ResampledAccuracy]:
    """Compute a config's accuracy, and those of its sections: each the weighted mean of its subsets."""
    place = {subset: at for at, (own, subset) in enumerate(cells) if own == config}
    key = MetricKey("accuracy", config)
    if not benchmark.sections or config in benchmark.excluded_configs:
        return [_pooled(benchmark, cells, key, pairs, list(place.values()))]
    sections = []
    for name, weights in benchmark.sections.items():
        present = {place[subset]: weight for subset, weight in weights.items() if subset in place}
        values = pairs.weighted(list(present), list(present.values()))
        sections.append(_accuracy(key._replace(section=name), values, pairs, separate_strata(sorted(present))))
    # A missing section makes the mean missing: the mean of fewer sections is another quantity.
    strata = separate_strata(at for subset, at in place.items() if subset in benchmark.section_of)
    return [_accuracy(key, mean_of([one.values for one in sections]), pairs, strata), *sections]


def mean_accuracy(key: MetricKey, parts: Sequence[ResampledAccuracy], source: Resampled) -> ResampledAccuracy:
    """Compute the unweighted mean of accuracies from one source."""
    strata = [stratum for one in parts for stratum in one.strata]
    return _accuracy(key, mean_of([one.values for one in parts]), source, strata)


def _by_category(cells: Sequence[Cell], counts: Drawn, ours: Sequence[str]) -> Iterator[ResampledAccuracy]:
    """Yield the overall number of rankings by category, and accuracy and exact match as means over categories."""
    pairs, exact = counts["pairs"], counts["exact"]
    means: dict[str, list[ResampledAccuracy]] = {"accuracy": [], "exact_match": []}
    for config in ours:
        places = _cells_of(cells, [config])
        for (metric, values), source in zip(means.items(), (pairs, exact), strict=True):
            mean = rankings.category_mean(source.won[:, places], source.counts[:, places])
            values.append(_accuracy(MetricKey(metric, config), mean, source, separate_strata(places)))
    accuracy, matched = ([one.values for one in values] for values in means.values())
    every = separate_strata(_cells_of(cells, ours))
    yield _accuracy(MetricKey("overall"), rankings.overall(accuracy, matched), exact, every)
    yield _accuracy(MetricKey("accuracy"), mean_of(accuracy), pairs, every, exact)
    yield _accuracy(MetricKey("exact_match"), mean_of(matched), exact, every)
    yield from chain.from_iterable(zip(*means.values(), strict=True))


def _by_first_error(
    cells: Sequence[Cell], source: Resampled, configs: Sequence[str], ours: Sequence[str]
) -> Iterator[ResampledAccuracy]:
    """Yield the mean F1 over configs, the mean accuracies of both kinds of answers, and the F1 of each config."""
    accuracies = {
        subset: {
            config: _accuracy(MetricKey("accuracy", config), source.pooled(places), source, [places])
            for config in configs
            for places in [[place for place, cell in enumerate(cells) if cell == (config, subset)]]
        }
        for subset in (ERRONEOUS, CORRECT)
    }
    f1 = {}
    for config in configs:
        both = [of_configs[config] for of_configs in accuracies.values()]
        strata = [stratum for one in both for stratum in one.strata]
        f1[config] = _accuracy(MetricKey("f1", config), harmonic_mean(*(one.values for one in both)), source, strata)
    yield mean_accuracy(MetricKey("overall"), [f1[config] for config in ours], source)
    for subset, of_configs in accuracies.items():
        yield mean_accuracy(MetricKey("accuracy", subset=subset), [of_configs[config] for config in ours], source)
    yield from f1.values()


def _pooled_parts(
    benchmark: Benchmark, cells: Sequence[Cell], counts: Drawn, configs: Sequence[str], ours: Sequence[str]
) -> Iterator[ResampledAccuracy]:
    """Yield accuracy, and exact match of rankings by category, over all decisions of each part."""
    kind = "category" if benchmark.by_category else "subset"
    parts = [(MetricKey("pooled_accuracy"), _cells_of(cells, ours))]
    for config in configs:
        own = _cells_of(cells, [config])
        parts.append((MetricKey("pooled_accuracy", config), own))
        for cell in own:
            subset = cells[cell][1]
            if subset is not None:
                section = None if config in benchmark.excluded_configs else benchmark.section_of.get(subset)
                parts.append((MetricKey("accuracy", config, section=section).by(kind, subset), [cell]))
    for key, inside in parts:
        yield _pooled(benchmark, cells, key, counts["decisions"], inside)
        if benchmark.by_category and key.config not in benchmark.outside_overall:
            exact = key._replace(metric=key.metric.replace("accuracy", "exact_match"))
            yield _pooled(benchmark, cells, exact, counts["exact"], inside)


def _pooled(
    benchmark: Benchmark, cells: Sequence[Cell], key: MetricKey, source: Resampled, places: Sequence[int]
) -> ResampledAccuracy:
    """Compute the accuracy over all decisions of some cells.

    A cell of drawn items has the weight of all its decisions, so that rounding in the draw does not change the number.
    """
    if not benchmark.strata:
        return _accuracy(key, source.pooled(places), source, [places])
    drawn = {(stratum.config, stratum.subset): stratum.weight for stratum in benchmark.strata}
    weights = [float(source.counts[0, place]) * drawn.get(cells[place], 1.0) for place in places]
    return _accuracy(key, source.weighted(places, weights), source, separate_strata(places))


def _accuracy(
    key: MetricKey, values: Array, source: Resampled, strata: Strata, clustered: Resampled | None = None
) -> ResampledAccuracy:
    """`clustered`: source of the number of clusters, if not `source`."""
    places = [cell for cells in strata for cell in cells]
    return ResampledAccuracy(key, values, strata, source.decisions(places), (clustered or source).clusters(places))


def separate_strata(places: Iterable[int]) -> list[list[int]]:
    """Return the strata of a mean over cells: each cell is its own stratum."""
    return [[place] for place in places]


def _cells_of(cells: Sequence[Cell], configs: Sequence[str]) -> list[int]:
    return [place for place, (config, _) in enumerate(cells) if config in configs]


def item_mean(items: pl.DataFrame, values: pl.Series) -> Estimate:
    """Estimate the mean over items, or over clusters, of values from 0 to 1."""
    linearized = linearize(sums_by_cell(items.with_columns(config=pl.lit("all"), subset=None), [("all", None)], values))
    source = linearized.sources[0]
    return linearized.share(source.pooled([0]), [[0]], items.height, source.clusters([0]))


def of_overall(benchmark: Benchmark, decisions: pl.DataFrame) -> pl.DataFrame:
    """Return the decisions behind the overall number."""
    # Legacy rules count prompts without a pair as exact matches.
    legacy = benchmark.by_category and not benchmark.ties_break_exact_match
    counted = decisions.filter(
        in_overall(benchmark), pl.col("outcome").is_in([*COUNTED, *(["equal"] if legacy else [])])
    )
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
    *(Metric(name, "count", text, (*_POOLED, "task")) for name, text in _COUNTS.items()),
)
