"""Accuracies with intervals, from single subsets up to the overall number.

Accuracy is strict: the share of wins among wins, losses, ties and invalid decisions, or the mean credit of items if the
benchmark has a rule of `credit` (see `pluralbench.metrics.credits`). Decisions that were dropped for their length and
pairs that the benchmark calls equal are excluded; each has its own count.

`resampled_accuracies` computes all accuracies of a benchmark, so that the metrics of a run and the comparison of two
runs have the same sections, weights and means.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from pluralbench_measures import rankings
from pluralbench_measures.bootstrap import Array, Estimate, Resampled, Sums, mean_of, sums_of
from pluralbench_measures.intervals import Perturbed, Strata, perturb

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.decisions import OUTCOMES
from pluralbench.metrics.credits import COUNTED, PHRASES
from pluralbench.metrics.decided import Decided, Leaf
from pluralbench.metrics.metric import OUTCOME_COUNTS, Metric, MetricKey, Numbers, finest_dimension

LEAF = {"config": pl.String, "subset": pl.String}
Counts = Mapping[str, Sums]
"""Sums by cluster and leaf: `decisions`; for rankings by category also `pairs`, and `exact` (of prompts)."""
Drawn = Mapping[str, Resampled]
"""`Counts` as measured, and perturbed, resampled or exchanged."""


@dataclass(frozen=True)
class ResampledAccuracy:
    """An accuracy in each row of perturbed or resampled counts.

    Attributes:
        key: Name of the number.
        values: Accuracy as measured (row 0) and in each further row. Shape (rows,).
        strata: Leaves that the accuracy is computed from, by stratum; see `Perturbed.share`.
        n: Number of its decisions.
        clusters: Number of clusters of its decisions.
    """

    key: MetricKey
    values: Array
    strata: Strata
    n: int
    clusters: int


def overall_rule(benchmark: Benchmark) -> str:
    """Return the rule of the overall number, as a phrase."""
    return "; ".join([_mean_rule(benchmark), *_credit_rules(benchmark)])


def _mean_rule(benchmark: Benchmark) -> str:
    if benchmark.overall == "items":
        return mean_over_all(benchmark)
    if benchmark.by_category:
        exact = "exact match" if benchmark.ties_break_exact_match else "exact match by the legacy rules"
        return f"mean of accuracy and {exact}, each an unweighted mean over categories; unweighted over configs"
    if benchmark.join_configs and benchmark.sections:
        return "unweighted mean of the sections"
    inner = ", each the unweighted mean of its sections" if benchmark.sections else ""
    return f"unweighted mean of the configs{inner}"


def mean_over_all(benchmark: Benchmark) -> str:
    """Return the words for a mean without weights: over items, or pairs where each pair of a ranking counts."""
    pairs = benchmark.is_ranking and benchmark.credit_of(None) == "pairs"
    return f"mean over all {'pairs of responses' if pairs else 'items'}"


def _credit_rules(benchmark: Benchmark) -> Iterator[str]:
    """Yield how items count, the rule of most subsets first."""
    for pattern in sorted(benchmark.credit, key="*".__ne__):
        phrase = PHRASES[benchmark.credit[pattern]]
        yield phrase if pattern == "*" else f"in {pattern}, {phrase}"


def count(decided: Decided, leaves: Sequence[Leaf] | None = None) -> Counts:
    """Sum decisions by cluster and leaf. `leaves`: default those of the decisions."""
    benchmark, credited, leaves = decided.benchmark, decided.credited, leaves or decided.leaves
    if credited is not None:
        return {"decisions": sums_by_leaf(credited, leaves, credited["credit"])}
    counted = decided.decisions.filter(pl.col("outcome").is_in(COUNTED))
    if not benchmark.by_category:
        return {"decisions": sums_by_leaf(counted, leaves, counted["outcome"] == "win")}
    prompts = prompts_of(benchmark, decided.decisions)
    clusters = pl.concat([counted["cluster"], prompts["cluster"]])
    return {
        "decisions": sums_by_leaf(counted, leaves, counted["outcome"] == "win", clusters=clusters),
        "pairs": sums_by_leaf(prompts, leaves, prompts["right"], prompts["pairs"], clusters=clusters),
        "exact": sums_by_leaf(prompts, leaves, prompts["exact"], clusters=clusters),
    }


def prompts_of(benchmark: Benchmark, decisions: pl.DataFrame) -> pl.DataFrame:
    """Return the counted prompts of rankings by category, as `rankings.by_prompt` computes them."""
    scored = decisions.filter(
        ~pl.col("config").is_in(sorted(benchmark.outside_overall)), pl.col("outcome") != "dropped"
    )
    keys = ["config", "subset", "id", "cluster"]
    return rankings.by_prompt(scored, keys, legacy=not benchmark.ties_break_exact_match).filter(pl.col("counted") == 1)


def sums_by_leaf(
    rows: pl.DataFrame,
    leaves: Sequence[Leaf],
    won: pl.Series,
    of: pl.Series | None = None,
    clusters: pl.Series | None = None,
) -> Sums:
    """Sum wins and counts of rows by cluster and leaf.

    Args:
        rows: Rows with `config`, `subset` and `cluster`.
        leaves: All leaves.
        won: Wins of each row.
        of: Count of each row. Default: 1.
        clusters: Names of all clusters, if there are more than those of the rows.
    """
    names = (rows["cluster"] if clusters is None else clusters).unique().sort()
    place = pl.DataFrame(leaves, LEAF, orient="row").with_row_index("place")
    own = rows.select(pl.col("config", "subset").cast(pl.String))
    leaf = own.join(place, on=list(LEAF), how="left", nulls_equal=True, maintain_order="left")["place"]
    return sums_of(
        leaf.to_numpy().astype(np.int64),
        names.search_sorted(rows["cluster"]).to_numpy().astype(np.int64),
        won.to_numpy().astype(np.float64),
        None if of is None else of.to_numpy().astype(np.float64),
        shape=(len(names), len(leaves)),
    )


def perturb_counts(*sides: Counts) -> tuple[Perturbed, list[Drawn]]:
    """Perturb the counts of runs on the same clusters and leaves; see `Perturbed`."""
    perturbed = perturb(*(sums for counts in sides for sums in counts.values()))
    sources = iter(perturbed.sources)
    return perturbed, [{name: next(sources) for name in counts} for counts in sides]


def accuracy_estimates(decided: Decided) -> Numbers:
    """Yield all accuracies of a benchmark with their intervals, the overall number first."""
    benchmark = decided.benchmark
    perturbed, (source,) = perturb_counts(count(decided))
    for one in resampled_accuracies(benchmark, decided.leaves, source):
        stratified = bool(benchmark.strata)
        yield one.key, perturbed.share(one.values, one.strata, one.n, one.clusters, stratified=stratified)


def accuracy_numbers(decided: Decided) -> Numbers:
    """Yield all accuracies, and the counts of the decisions of each part."""
    parts = parts_of(decided)
    for key, estimate in accuracy_estimates(decided):
        yield key, estimate
        part = key.category if key.subset is None else key.subset
        if key.metric == "pooled_accuracy" or (key.metric == "accuracy" and part is not None):
            yield from outcome_counts(parts[key.config, part], key)
    yield MetricKey("items_counted"), Estimate(float(items_counted(decided.benchmark, decided.decisions)))


def resampled_accuracies(benchmark: Benchmark, leaves: Sequence[Leaf], counts: Drawn) -> list[ResampledAccuracy]:
    """Compute all accuracies of a benchmark in each row of the counts, the overall number first."""
    configs = list(dict.fromkeys(config for config, _ in leaves))
    ours = [config for config in configs if config not in benchmark.outside_overall]
    if benchmark.by_category:
        parts = [*_by_category(leaves, counts, ours)]
    else:
        parts = [one for config in configs for one in _config(benchmark, config, leaves, counts["decisions"])]
        parts.insert(0, _overall(benchmark, parts, ours, leaves, counts["decisions"]))
    return [*parts, *_pooled(benchmark, leaves, counts, configs, ours)]


def _overall(
    benchmark: Benchmark,
    parts: Iterable[ResampledAccuracy],
    ours: Sequence[str],
    leaves: Sequence[Leaf],
    pairs: Resampled,
) -> ResampledAccuracy:
    places, key = leaf_indices(leaves, ours), MetricKey("overall")
    if benchmark.overall == "items":
        return _pooled_number(benchmark, leaves, key, pairs, places)
    configs = [one for one in parts if finest_dimension(one.key) == "config" and one.key.config in ours]
    strata = [inner for one in configs for inner in one.strata]
    return _number(key, mean_of([one.values for one in configs]), pairs, strata)


def _config(benchmark: Benchmark, config: str, leaves: Sequence[Leaf], pairs: Resampled) -> Iterator[ResampledAccuracy]:
    """Yield a config's own number and its sections."""
    places = counted_leaves(benchmark, leaves, [config])
    own = MetricKey("accuracy", config)
    if not benchmark.sections or config in benchmark.excluded_configs:
        yield _pooled_number(benchmark, leaves, own, pairs, places)
        return
    sections = section_values(benchmark, config, leaves, pairs)
    # A missing section makes the mean missing: the mean of fewer sections is another quantity.
    yield _number(own, mean_of(list(sections.values())), pairs, separate_strata(places))
    for name, values in sections.items():
        inner = [place for place in places if leaves[place][1] in benchmark.sections[name]]
        yield _number(MetricKey("accuracy", config, section=name), values, pairs, separate_strata(inner))


def section_values(benchmark: Benchmark, config: str, leaves: Sequence[Leaf], pairs: Resampled) -> dict[str, Array]:
    """Compute a config's sections, each the weighted mean of its subsets. Shape (rows,) each."""
    place = {leaf: number for number, leaf in enumerate(leaves)}
    sections = {}
    for name, weights in benchmark.sections.items():
        present = [(place[config, subset], w) for subset, w in weights.items() if (config, subset) in place]
        sections[name] = pairs.weighted([place for place, _ in present], [weight for _, weight in present])
    return sections


def _by_category(leaves: Sequence[Leaf], counts: Drawn, ours: Sequence[str]) -> Iterator[ResampledAccuracy]:
    """Yield the overall number of rankings by category, and accuracy and exact match as means over categories."""
    pairs, exact = counts["pairs"], counts["exact"]
    means: dict[str, list[ResampledAccuracy]] = {"accuracy": [], "exact_match": []}
    for config in ours:
        places = leaf_indices(leaves, [config])
        for (metric, values), source in zip(means.items(), (pairs, exact), strict=True):
            mean = rankings.category_mean(source.won[:, places], source.counts[:, places])
            values.append(_number(MetricKey(metric, config), mean, source, separate_strata(places)))
    accuracy, matched = ([one.values for one in values] for values in means.values())
    every = separate_strata(leaf_indices(leaves, ours))
    yield _number(MetricKey("overall"), rankings.overall(accuracy, matched), exact, every)
    yield _number(MetricKey("accuracy"), mean_of(accuracy), pairs, every, exact)
    yield _number(MetricKey("exact_match"), mean_of(matched), exact, every)
    for one in zip(*means.values(), strict=True):
        yield from one


def _pooled(
    benchmark: Benchmark, leaves: Sequence[Leaf], counts: Drawn, configs: Sequence[str], ours: Sequence[str]
) -> Iterator[ResampledAccuracy]:
    """Yield accuracy, and exact match of rankings by category, over all decisions of each part."""
    section = benchmark.section_of
    kind = "category" if benchmark.by_category else "subset"
    parts = [(MetricKey("pooled_accuracy"), leaf_indices(leaves, ours))]
    for config in configs:
        own = leaf_indices(leaves, [config])
        parts.append((MetricKey("pooled_accuracy", config), own))
        for leaf in own:
            subset = leaves[leaf][1]
            if subset is not None:
                inner = None if config in benchmark.excluded_configs else section.get(subset)
                parts.append((MetricKey("accuracy", config, section=inner).by(kind, subset), [leaf]))
    for key, inside in parts:
        yield _pooled_number(benchmark, leaves, key, counts["decisions"], inside)
        if benchmark.by_category and key.config not in benchmark.outside_overall:
            exact = key._replace(metric=key.metric.replace("accuracy", "exact_match"))
            yield _pooled_number(benchmark, leaves, exact, counts["exact"], inside)


def pooled(benchmark: Benchmark, leaves: Sequence[Leaf], source: Resampled, places: Sequence[int]) -> Array:
    """Compute the accuracy over all decisions of some leaves. Shape (rows,).

    A leaf of drawn items has the weight of all its decisions, so that rounding in the draw does not change the number.
    """
    if not benchmark.strata:
        return source.pooled(places)
    drawn = {(stratum.config, stratum.subset): stratum.weight for stratum in benchmark.strata}
    weights = [float(source.counts[0, place]) * drawn.get(leaves[place], 1.0) for place in places]
    return source.weighted(places, weights)


def pooled_strata(benchmark: Benchmark, places: Sequence[int]) -> Strata:
    """Return the strata of `pooled`: one, or if the items were drawn by leaf, each leaf."""
    return separate_strata(places) if benchmark.strata else [places]


def _pooled_number(
    benchmark: Benchmark, leaves: Sequence[Leaf], key: MetricKey, source: Resampled, places: Sequence[int]
) -> ResampledAccuracy:
    values = pooled(benchmark, leaves, source, places)
    return _number(key, values, source, pooled_strata(benchmark, places))


def _number(
    key: MetricKey, values: Array, source: Resampled, strata: Strata, clustered: Resampled | None = None
) -> ResampledAccuracy:
    """`clustered`: source of the number of clusters, if not `source`."""
    places = [leaf for leaves in strata for leaf in leaves]
    return ResampledAccuracy(key, values, strata, source.decisions(places), (clustered or source).clusters(places))


def separate_strata(places: Iterable[int]) -> list[list[int]]:
    """Return the strata of a mean over leaves: each leaf is its own stratum."""
    return [[place] for place in places]


def leaf_indices(leaves: Sequence[Leaf], configs: Iterable[str]) -> list[int]:
    """Return the indices of the leaves of some configs."""
    chosen = set(configs)
    return [place for place, (config, _) in enumerate(leaves) if config in chosen]


def counted_leaves(benchmark: Benchmark, leaves: Sequence[Leaf], configs: Iterable[str]) -> list[int]:
    """Return the indices of the leaves that count for some configs; with sections, only leaves in a section."""
    places = leaf_indices(leaves, configs)
    if not benchmark.sections:
        return places
    return [at for at in places if leaves[at][0] in benchmark.excluded_configs or leaves[at][1] in benchmark.section_of]


def item_mean(items: pl.DataFrame, values: pl.Series) -> Estimate:
    """Estimate the mean over items, or over clusters, of values from 0 to 1."""
    perturbed = perturb(sums_by_leaf(items.with_columns(config=pl.lit("all"), subset=None), [("all", None)], values))
    source = perturbed.sources[0]
    return perturbed.share(source.pooled([0]), [[0]], items.height, source.clusters([0]))


def items_counted(benchmark: Benchmark, decisions: pl.DataFrame) -> int:
    """Return the number of items behind the overall number."""
    return of_overall(benchmark, decisions).select("config", "id").n_unique()


def of_overall(benchmark: Benchmark, decisions: pl.DataFrame) -> pl.DataFrame:
    """Return the decisions behind the overall number."""
    # Legacy rules count prompts without a pair as exact matches.
    legacy = benchmark.by_category and not benchmark.ties_break_exact_match
    counted = decisions.filter(
        ~pl.col("config").is_in(sorted(benchmark.outside_overall)),
        pl.col("outcome").is_in([*COUNTED, *(["equal"] if legacy else [])]),
    )
    if benchmark.sections:
        counted = counted.filter(pl.col("subset").is_in(list(benchmark.section_of)))
    return counted


class Part(NamedTuple):
    """Decisions of a part of a benchmark.

    Attributes:
        decisions: The decisions, with the number of their item.
        valid: Credits of the items without an invalid decision; None if each decision counts by itself.
    """

    decisions: pl.DataFrame
    valid: pl.DataFrame | None


def parts_of(decided: Decided) -> dict[tuple[str | None, str | None], Part]:
    """Split decisions by config and subset for `outcome_counts`; (None, None) has those behind the overall number."""
    benchmark = decided.benchmark
    counted = decided.decisions.select(
        "config", "subset", "outcome", "margin", "truncated", item=pl.struct("config", "id").rank("dense")
    )
    valid = None if decided.valid_credits is None else decided.valid_credits.select("config", "subset", "credit")
    credited = {} if valid is None else _split(benchmark, valid)
    none = None if valid is None else valid.clear()
    return {place: Part(part, credited.get(place, none)) for place, part in _split(benchmark, counted).items()}


def _split(benchmark: Benchmark, rows: pl.DataFrame) -> dict[tuple[str | None, str | None], pl.DataFrame]:
    parts: dict[tuple[str | None, str | None], pl.DataFrame] = {
        (None, None): rows.filter(~pl.col("config").is_in(sorted(benchmark.outside_overall)))
    }
    for (config,), own in rows.partition_by("config", as_dict=True).items():
        inner = own.filter(pl.col("subset").is_not_null()).partition_by("subset", as_dict=True)
        parts |= {(config, None): own} | {(config, subset): part for (subset,), part in inner.items()}
    return parts


def outcome_counts(part: Part, key: MetricKey) -> Numbers:
    """Yield the counts of a part from `parts_of`: outcomes, items and truncated items, and the mean margin.

    Outcomes count decisions, that is pairs, also if the benchmark gives credit. The accuracy without invalid scores is
    then the mean credit of the items in which every score or verdict is valid.
    """
    own = part.decisions
    outcomes: Mapping[str, int] = dict(own["outcome"].value_counts().iter_rows())
    yield key._replace(metric="accuracy_of_valid"), _accuracy_of_valid(outcomes, part.valid)
    margins = own["margin"].drop_nulls()
    mean = margins.mean()
    yield key._replace(metric="mean_margin"), Estimate(None if mean is None else float(mean), n=len(margins))  # type: ignore[arg-type]
    counts = {"items": own["item"].n_unique()}
    counts |= {metric: outcomes.get(outcome, 0) for outcome, metric in zip(OUTCOMES, OUTCOME_COUNTS, strict=True)}
    truncated = own["item"].filter(own["truncated"]).n_unique()
    for metric, value in (counts | {"truncated": truncated}).items():
        yield key._replace(metric=metric), Estimate(float(value))


def _accuracy_of_valid(outcomes: Mapping[str, int], valid: pl.DataFrame | None) -> Estimate:
    if valid is not None:
        mean = valid["credit"].mean()
        return Estimate(None if mean is None else float(mean), n=valid.height)  # type: ignore[arg-type]
    n = sum(outcomes.get(outcome, 0) for outcome in COUNTED if outcome != "invalid")
    return Estimate(outcomes.get("win", 0) / n if n else None, n=n)


_POOLED = ("", "config", "config category", "config subset", "config section subset")
_COUNTS = {
    "items": "Items.",
    "wins": "Decisions that are right.",
    "losses": "Decisions that are wrong.",
    "ties": "Decisions with equal scores, or with a verdict that changed with the order.",
    "invalid": "Decisions without a finite score or a readable verdict.",
    "dropped": "Decisions on items that are too long.",
    "equal": "Pairs that the benchmark ranks equally.",
    "truncated": "Items that were truncated.",
}
_OF_METHODS = ("set method condition", "config set method condition", "set method condition measure bin")
METRICS = (
    Metric("overall", "share", "The overall number, by the benchmark's rule.", compute=accuracy_numbers),
    Metric(
        "accuracy",
        "share",
        "Share of right decisions, or mean credit of items; of configs and sections as it enters the overall number.",
        (*_POOLED, "config section", "section", "resource", "joshi_class", "family", "script", "task", *_OF_METHODS),
        part_of_overall=True,
        compute=accuracy_numbers,
        in_tables=True,
    ),
    Metric(
        "exact_match",
        "share",
        "Share of prompts whose pairs are all right; of configs the mean over categories.",
        ("", "config", "config category"),
        part_of_overall=True,
        compute=accuracy_numbers,
        in_tables=True,
    ),
    Metric(
        "pooled_accuracy",
        "share",
        "Accuracy over all decisions, without the weights of the overall number.",
        ("", "config"),
        compute=accuracy_numbers,
    ),
    Metric(
        "pooled_exact_match",
        "share",
        "Exact match over all prompts, without the weights of the overall number.",
        ("", "config"),
        compute=accuracy_numbers,
    ),
    Metric(
        "accuracy_of_valid",
        "share",
        "Accuracy without invalid decisions; of items with a credit, of those without an invalid decision.",
        _POOLED,
        compute=accuracy_numbers,
    ),
    Metric("mean_margin", "number", "Mean margin of scores.", _POOLED, compute=accuracy_numbers),
    Metric("items_counted", "count", "Items behind the overall number.", compute=accuracy_numbers),
    *(Metric(name, "count", text, (*_POOLED, "task"), compute=accuracy_numbers) for name, text in _COUNTS.items()),
)
