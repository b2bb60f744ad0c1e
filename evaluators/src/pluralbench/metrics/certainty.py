"""Metrics of verdicts with certainty: accuracy, coverage and calibration of a persona judge.

Settings, certainty scale and threshold are those of "Can LLM be a Personalized Judge?" (sections 3 and 5). Unlike
there, invalid answers count as wrong, both readings of the threshold are reported, and all numbers have intervals.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pluralbench_measures.bootstrap import Array, Estimate, Resampled, sums_of
from pluralbench_measures.intervals import EFFECTIVE, STUDENT, Linearization, linearize

from pluralbench.data.metric_key import MetricKey
from pluralbench.data.verdict_tables import GROUP, TIE
from pluralbench.metrics.accuracy import sums_by_cell
from pluralbench.metrics.decided import THRESHOLD, Decided
from pluralbench.metrics.metric import Metric, Numbers, computed_by

DECILES = 10
WITHOUT = "none"
ORDER = ("all", "key", "least", WITHOUT)  # sets of persona variables; other sets come before the last
NO_SHARES = ("calibration_error", "risk_coverage_area")
SETTINGS = ("standard", "certainty")  # without a persona, in order of preference as a substitute
Mask = NDArray[np.bool_]


def all_verdict_metrics(verdicts: pl.DataFrame, *, threshold: float = THRESHOLD) -> list[dict[str, Any]]:
    """Compute `verdict_metrics` of each task, setting, set of persona variables and judge, with these four names."""
    return [names | verdict_metrics(rows, threshold=threshold) for names, rows in verdict_groups(verdicts)]


def verdict_groups(verdicts: pl.DataFrame) -> list[tuple[dict[str, str], pl.DataFrame]]:
    """Split verdicts by task, setting, set of persona variables and judge, sorted, with these names."""
    groups = [
        (dict(zip(GROUP, map(str, names), strict=True)), rows)
        for names, rows in verdicts.partition_by(GROUP, as_dict=True).items()
    ]
    return sorted(groups, key=lambda group: group_order(group[0]))


def group_order(names: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the sort key of a group."""
    variables = names["persona_variables"]
    place = ORDER.index(variables) if variables in ORDER else len(ORDER) - 2
    return names["task"], names["setting"], place, variables, names["judge"]


def verdict_metrics(verdicts: pl.DataFrame, *, threshold: float = THRESHOLD) -> dict[str, Any]:
    """Compute the metrics of one group of verdicts.

    Intervals are clustered (see `pluralbench_measures.intervals`). They are None with fewer clusters than its
    `MIN_CLUSTERS`, and for the calibration error and the area if all rows have the same outcome.

    Args:
        verdicts: Verdicts of one group, as `check_verdicts` returns them.
        threshold: Smallest certainty that counts as high.

    Returns:
        A dictionary with these keys. Shares are from 0 to 1; `NAME_interval` has the bounds of the 95 % interval.

        - `n`, `correct`, `accuracy`: over all rows; an invalid answer is wrong. `parsed`, `parsed_accuracy`: over the
          valid answers.
        - `high`, `low`: counts of the valid answers with a certainty of at least the threshold, and below it.
          `coverage`: share of high ones among all rows. `above`: the same with "more than" instead of "at least".
          `without_certainty`: valid answers without a certainty. `unusable_certainty`: rows with a certainty off the
          scale.
        - `calibration_error`: valid answers with a certainty c are binned into deciles, floor(c / 10), with 100 in the
          last one; the error is the mean of |accuracy - mean c / 100| over deciles, weighted by rows. An answer is
          right if it equals the truth; C is a tie if there are three options. The scale is not a probability: a blind
          guess is right with probability `chance` (1/2 or 1/3), so smaller certainties count as errors even if they
          mean "I cannot tell".
        - `risk_coverage_area`: mean over k of the share of errors among the k most certain answers. It is averaged over
          all orders of equally certain answers, so it does not depend on the order of the rows.
        - `share_of_a`: share of A among the valid answers.
        - `by_certainty`, `deciles`: the counts behind these numbers.
    """
    linearized, kinds = _linearize_verdicts(verdicts)
    certainty = kinds["certainty"].fill_null(np.nan).to_numpy()
    parsed, first = (kinds[name].to_numpy() for name in ("parsed", "first"))
    every, rated = np.ones_like(parsed), parsed & ~np.isnan(certainty)
    high, low = rated & (certainty >= threshold), rated & (certainty < threshold)
    above, not_above = rated & (certainty > threshold), rated & (certainty <= threshold)
    n, valid = _count(linearized, every), _count(linearized, parsed)
    return {
        "n": n["total"],
        "correct": n["correct"],
        "invalid": n["total"] - valid["total"],
        **_named("accuracy", _share(linearized, every)),
        "parsed": valid["total"],
        **_named("parsed_accuracy", _share(linearized, parsed)),
        "without_certainty": valid["total"] - _count(linearized, rated)["total"],
        "unusable_certainty": int(verdicts["unusable"].sum()),
        "threshold": threshold,
        **_by_threshold(linearized, every, high, low),
        "above": _by_threshold(linearized, every, above, not_above),
        **_spread("calibration_error", linearized, _calibration_error(linearized.sources[0], certainty, rated)),
        **_spread("risk_coverage_area", linearized, _area(linearized.sources[0], certainty, rated)),
        **_named("share_of_a", _share(linearized, parsed, first)),
        "chance": 1 / int(verdicts["options"][0]),
        "clusters": verdicts["cluster"].n_unique(),
        "clustered_by": verdicts["clustered_by"][0],
        "deciles": _deciles(linearized, certainty, rated),
        "by_certainty": [
            {"certainty": float(value), "n": one["total"], "correct": one["correct"]}
            for value in np.unique(certainty[rated])[::-1]
            for one in (_count(linearized, rated & (certainty == value)),)
        ],
    }


def _by_threshold(linearized: Linearization, every: Mask, high: Mask, low: Mask) -> dict[str, Any]:
    return {
        "high": _count(linearized, high),
        "low": _count(linearized, low),
        **_named("high_accuracy", _share(linearized, high)),
        **_named("low_accuracy", _share(linearized, low)),
        **_named("coverage", _share(linearized, every & (high | low).any(), high)),
    }


def against_none(verdicts: pl.DataFrame) -> list[dict[str, Any]]:
    """Compare, for each task and judge, the accuracy with each set of persona variables and without a persona.

    Returns:
        For each comparison the names of the group and:

        - `setting_without`: setting of the verdicts without a persona; the same setting if available.
        - `same_items`: whether both groups are about the same items, i.e. all shared rows have the same truth. Then
          shared rows count and the difference is paired; otherwise all rows count and the groups are independent.
        - `n`, `n_without`, `left_out`: number of counted rows with and without a persona, and of rows left out.
        - `accuracy`, `accuracy_without`, `difference`: accuracy with and without a persona, and the first minus the
          second, from -1 to 1.
    """
    groups = verdict_groups(verdicts)
    compared = []
    for names, rows in groups:
        without = {
            other["setting"]: part
            for other, part in groups
            if other | {"setting": ""} == names | {"setting": "", "persona_variables": WITHOUT}
        }
        setting = None if names["persona_variables"] == WITHOUT else _comparable(names["setting"], without)
        if setting is not None:
            compared.append(names | {"setting_without": setting} | compare_verdicts(rows, without[setting]))
    return compared


def _comparable(setting: str, available: Collection[str]) -> str | None:
    """Return the same setting, or another one; the setting with ties is comparable with no other."""
    if setting in available:
        return setting
    others = [name for name in (*SETTINGS, *sorted(available)) if name in available and TIE not in {name, setting}]
    return next(iter(others), None)


def compare_verdicts(first: pl.DataFrame, second: pl.DataFrame) -> dict[str, Any]:
    """Compare the accuracies of two groups of verdicts; see `against_none`."""
    both = first.join(second.select("row", other="truth"), on="row")
    same = both.height > 0 and bool((both["truth"] == both["other"]).all())
    left_out = first.height + second.height - 2 * both.height if same else 0
    sides = [side.filter(pl.col("row").is_in(both["row"].implode())) if same else side for side in (first, second)]
    rows = [
        # If the items differ, row numbers do not identify clusters, but names of persons do.
        side.select(
            config=pl.lit("all"),
            subset=pl.lit(None, pl.String),
            won=(pl.col("answer") == pl.col("truth")).fill_null(value=False),
            cluster=pl.col("cluster")
            if same or side["clustered_by"][0] != "row"
            else pl.format("{} {}", pl.lit(number), "cluster"),
        )
        for number, side in enumerate(sides)
    ]
    clusters_of = pl.concat([one["cluster"] for one in rows])
    linearized = linearize(*(sums_by_cell(one, [("all", None)], one["won"], clusters=clusters_of) for one in rows))
    accuracies = [source.pooled([0]) for source in linearized.sources]
    clusters = [source.clusters([0]) for source in linearized.sources]
    difference = linearized.difference(accuracies[0] - accuracies[1], [[0]], None, min(clusters))
    return {
        "same_items": same,
        "n": sides[0].height,
        "n_without": sides[1].height,
        "left_out": left_out,
        **_named("accuracy", linearized.share(accuracies[0], [[0]], None, clusters[0])),
        **_named("accuracy_without", linearized.share(accuracies[1], [[0]], None, clusters[1])),
        **_named("difference", difference),
    }


def _linearize_verdicts(verdicts: pl.DataFrame) -> tuple[Linearization, pl.DataFrame]:
    rows = verdicts.select(
        "certainty",
        cluster=pl.col("cluster").rank("dense") - 1,
        parsed=pl.col("answer").is_not_null(),
        first=(pl.col("answer") == "A").fill_null(value=False),
        won=(pl.col("answer") == pl.col("truth")).fill_null(value=False).cast(pl.Float64),
    )
    names = ["parsed", "first", "certainty"]
    kinds = rows.select(names).unique().sort(names)
    rows = rows.join(kinds.with_row_index("place"), on=names, how="left", nulls_equal=True, maintain_order="left")
    cell, cluster = (rows[name].cast(pl.Int64).to_numpy() for name in ("place", "cluster"))
    return linearize(sums_of(cell, cluster, rows["won"].to_numpy())), kinds


def _count(linearized: Linearization, mask: Mask) -> dict[str, int]:
    source = linearized.sources[0]
    return {"correct": int(source.won[0, mask].sum()), "total": int(source.counts[0, mask].sum())}


def _share(linearized: Linearization, mask: Mask, won: Mask | None = None) -> Estimate:
    """Return the share of right rows among the kinds in `mask`, or of rows whose kind is in `won`."""
    source, kinds = linearized.sources[0], np.flatnonzero(mask).tolist()
    counted = source if won is None else replace(source, won=source.counts * won)
    return linearized.share(counted.pooled(kinds), [kinds], None, source.clusters(kinds))


def _named(name: str, estimate: Estimate) -> dict[str, Any]:
    bounds = None if estimate.low is None else [estimate.low, estimate.high]
    return {name: estimate.value, f"{name}_interval": bounds}


def _spread(name: str, linearized: Linearization, values: Array) -> dict[str, Any]:
    """Return a value from 0 to 1 that is not a share of rows, with its interval."""
    kinds = range(linearized.sums[0].counts.shape[1])
    clusters = linearized.sources[0].clusters(kinds)
    return _named(name, linearized.estimate(values, [kinds], None, clusters, within=(0.0, 1.0)))


def _decile(certainty: Array) -> NDArray[np.int64]:
    return np.minimum(np.nan_to_num(certainty) // 10, DECILES - 1).astype(np.int64)


def _sums(columns: Array, masks: Iterable[Mask]) -> Array:
    """Sum columns by mask: shape (rows, cells) to (rows, masks)."""
    return np.stack([columns[:, mask].sum(1) for mask in masks], axis=1)


def _over(sums: Array, counts: Array) -> Array:
    """Divide all sums by all counts, NaN without counts: shape (rows, parts) to (rows,)."""
    return Resampled(sums, counts, np.empty((0, 0), dtype=np.bool_)).pooled(range(sums.shape[1]))


def _calibration_error(source: Resampled, certainty: Array, rated: Mask) -> Array:
    masks = [rated & (_decile(certainty) == decile) for decile in range(DECILES)]
    stated = source.counts * np.nan_to_num(certainty) / 100
    return _over(np.abs(_sums(source.won, masks) - _sums(stated, masks)), _sums(source.counts, masks))


def _area(source: Resampled, certainty: Array, rated: Mask) -> Array:
    """Compute the area under the risk-coverage curve in each row.

    Let N answers with E errors precede a block of n equally certain answers with e errors. The expected number of
    errors up to the k-th answer overall is E + (k - N) e / n. Divided by k and summed over the block, this is
    e + (E - N e / n) (H(N + n) - H(N)), where H are the harmonic numbers. They are computed as the digamma function of
    one more, up to a constant, which is also defined between integers.
    """
    from scipy.special import digamma

    values = np.unique(certainty[rated])[::-1]
    if not len(values):
        return np.full(len(source.counts), np.nan)
    masks = [rated & (certainty == value) for value in values]
    n = _sums(source.counts, masks)
    e = n - _sums(source.won, masks)
    up_to = np.cumsum(n, axis=1)
    before, errors = up_to - n, np.cumsum(e, axis=1) - e
    passed = digamma(up_to + 1) - digamma(before + 1)
    rate = np.divide(e, n, out=np.zeros_like(e), where=n > 0)
    return _over(e + (errors - before * rate) * passed, n)


def _deciles(linearized: Linearization, certainty: Array, rated: Mask) -> list[dict[str, Any]]:
    deciles = []
    for decile in np.unique(_decile(certainty)[rated]).tolist():
        mask = rated & (_decile(certainty) == decile)
        count = _count(linearized, mask)
        mean = float((linearized.sources[0].counts[0, mask] * certainty[mask]).sum()) / count["total"]
        row = {"from": 10 * decile, "n": count["total"], "correct": count["correct"], "certainty": mean}
        deciles.append(row | _named("accuracy", _share(linearized, mask)))
    return deciles


def verdict_numbers(decided: Decided) -> Numbers:
    """Yield the values of `verdict_metrics` as numbers of a run, by task; nothing without verdicts."""
    if decided.verdicts is not None:
        for metrics in all_verdict_metrics(decided.verdicts, threshold=decided.threshold):
            yield from _of_task(metrics)


def _of_task(metrics: Mapping[str, Any]) -> Numbers:
    task = metrics["task"]
    rated = metrics["high"]["total"] + metrics["low"]["total"]
    above = {f"above_{name}": value for name, value in metrics["above"].items()}
    total, parsed = metrics["n"], metrics["parsed"]
    of = {"accuracy": total, "parsed_accuracy": parsed}
    of |= {f"{side}_accuracy": metrics[side]["total"] for side in ("high", "low")} | {"coverage": total}
    of |= {f"above_{side}_accuracy": metrics["above"][side]["total"] for side in ("high", "low")}
    of |= {"above_coverage": total, "calibration_error": rated, "risk_coverage_area": rated, "share_of_a": parsed}
    every = {**metrics, **above}
    for name, n in of.items():
        low, high = every[f"{name}_interval"] or (None, None)
        clusters = metrics["clusters"] if name == "accuracy" else None
        method = None if low is None else STUDENT if name in NO_SHARES else EFFECTIVE
        yield MetricKey(name, task=task), Estimate(every[name], low, high, n, clusters, method)
    for name in ("correct", "invalid", "without_certainty", "unusable_certainty"):
        yield MetricKey(name, task=task), Estimate(float(metrics[name]))
    yield MetricKey("chance", task=task), Estimate(metrics["chance"])
    for decile in metrics["deciles"]:
        low, high = decile["accuracy_interval"] or (None, None)
        key = MetricKey("accuracy_by_certainty", task=task, decile=decile["from"])
        yield key, Estimate(decile["accuracy"], low, high, decile["n"], method=None if low is None else EFFECTIVE)
        yield key._replace(metric="mean_certainty"), Estimate(decile["certainty"], n=decile["n"])
    for one in metrics["by_certainty"]:
        key = MetricKey("accuracy_by_certainty", task=task, certainty=one["certainty"])
        yield key, Estimate(one["correct"] / one["n"], n=one["n"])
        yield key._replace(metric="mean_certainty"), Estimate(one["certainty"], n=one["n"])


_BY_CERTAINTY = ("task decile", "task certainty")
METRICS = computed_by(
    verdict_numbers,
    Metric("parsed_accuracy", "share", "Share of right verdicts among the valid ones.", ("task",)),
    Metric("high_accuracy", "share", "Accuracy of verdicts with at least the threshold's certainty.", ("task",)),
    Metric("low_accuracy", "share", "Accuracy of verdicts below the threshold of certainty.", ("task",)),
    Metric("coverage", "share", "Share of verdicts with at least the threshold's certainty.", ("task",)),
    Metric("above_high_accuracy", "share", "Accuracy of verdicts above the threshold of certainty.", ("task",)),
    Metric("above_low_accuracy", "share", "Accuracy of verdicts with at most the threshold's certainty.", ("task",)),
    Metric("above_coverage", "share", "Share of verdicts above the threshold of certainty.", ("task",)),
    Metric("calibration_error", "share", "Distance of accuracy and certainty, mean over deciles.", ("task",)),
    Metric("risk_coverage_area", "share", "Area under the risk-coverage curve.", ("task",)),
    Metric("share_of_a", "share", "Share of A among the valid verdicts.", ("task",)),
    Metric("correct", "count", "Right verdicts.", ("task",)),
    Metric("without_certainty", "count", "Valid verdicts without a certainty.", ("task",)),
    Metric("unusable_certainty", "count", "Verdicts with a certainty that is off the scale.", ("task",)),
    Metric("chance", "share", "Share of right verdicts by chance.", ("task",)),
    Metric("accuracy_by_certainty", "share", "Accuracy of verdicts by certainty, or its decile.", _BY_CERTAINTY),
    Metric("mean_certainty", "number", "Mean certainty of the same.", _BY_CERTAINTY),
)
