"""What verdicts with certainty amount to: how often a judge is right, and whether it is surer where it is.

The settings, the certainty scale and the threshold are those of "Can LLM be a Personalized Judge?" (sections 3 and 5);
unlike there, every invalid answer counts, both readings of the threshold are given, and everything has an interval.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pluralbench_measures.bootstrap import Array, Estimate, Resampled, Sums, sums_of
from pluralbench_measures.intervals import EFFECTIVE, STUDENT, Perturbed, perturb

from pluralbench.data.verdict_tables import GROUP, TIE
from pluralbench.results.metrics_frame import Numbers, Place

THRESHOLD = 80
DECILES = 10
WITHOUT = "none"
ORDER = ("all", "key", "least", WITHOUT)  # of persona variables; others stand before the last
NO_SHARES = ("calibration_error", "risk_coverage_area")
SETTINGS = ("standard", "certainty")  # without a persona, in the order in which they stand in for a missing one
Mask = NDArray[np.bool_]


def all_verdict_metrics(verdicts: pl.DataFrame, *, threshold: float = THRESHOLD) -> list[dict[str, Any]]:
    """The metrics of each task, setting, set of persona variables and judge, whatever the order of the rows.

    verdicts: as `check_verdicts` makes them. Each result has the four names and what `verdict_metrics` says.
    """
    return [names | verdict_metrics(rows, threshold=threshold) for names, rows in verdict_groups(verdicts)]


def verdict_groups(verdicts: pl.DataFrame) -> list[tuple[dict[str, str], pl.DataFrame]]:
    """The verdicts of each task, setting, set of persona variables and judge, in this order, with these names."""
    groups = [
        (dict(zip(GROUP, map(str, names), strict=True)), rows)
        for names, rows in verdicts.partition_by(GROUP, as_dict=True).items()
    ]
    return sorted(groups, key=lambda group: place_of(group[0]))


def place_of(names: Mapping[str, Any]) -> tuple[Any, ...]:
    """Where a group stands among others."""
    variables = names["persona_variables"]
    place = ORDER.index(variables) if variables in ORDER else len(ORDER) - 2
    return names["task"], names["setting"], place, variables, names["judge"]


def verdict_metrics(verdicts: pl.DataFrame, *, threshold: float = THRESHOLD) -> dict[str, Any]:
    """The metrics of one group of verdicts. Shares are from 0 to 1; `NAME_interval` has the 95 % bounds of NAME.

    - n, correct, accuracy: over all rows, an invalid answer being wrong; parsed, parsed_accuracy: over the valid ones.
    - high, low: right answers with a certainty of at least the threshold and below it, among valid ones that have a
      certainty; coverage: the share of high ones among all rows. above: the same with "more than" for "at least".
      without_certainty: valid answers that have none; unusable_certainty: rows of any answer with one off the scale.
    - calibration_error: valid answers with a certainty c in ten deciles, floor(c / 10) with 100 in the last; the mean
      of |accuracy - mean c / 100| over them, weighted by their rows. Right is what equals the truth, with C for a tie
      where there are three options. The scale is no probability: a blind guess is right with `chance` (1/2 or 1/3), so
      certainties below it count as errors even where they are meant as "I cannot tell".
    - risk_coverage_area: the mean, over k from 1 to the number of these answers, of the share of errors among the k
      surest. Answers that are equally sure come in any order, and the mean over all these orders is taken, so that of
      the rows does not matter.
    - share_of_a: among valid answers.
    - by_certainty, deciles: the counts behind these.

    Intervals take clusters as drawn (see `pluralbench_measures.intervals`); they are None of fewer than its
    `MIN_CLUSTERS`, and for the error and the area where every row came out alike.
    """
    found, kinds = _perturbed(verdicts)
    certainty = kinds["certainty"].fill_null(np.nan).to_numpy()
    parsed, first = (kinds[name].to_numpy() for name in ("parsed", "first"))
    every, rated = np.ones_like(parsed), parsed & ~np.isnan(certainty)
    high, low = rated & (certainty >= threshold), rated & (certainty < threshold)
    above, not_above = rated & (certainty > threshold), rated & (certainty <= threshold)
    n, valid = _count(found, every), _count(found, parsed)
    return {
        "n": n["total"],
        "correct": n["correct"],
        "invalid": n["total"] - valid["total"],
        **_named("accuracy", _share(found, every)),
        "parsed": valid["total"],
        **_named("parsed_accuracy", _share(found, parsed)),
        "without_certainty": valid["total"] - _count(found, rated)["total"],
        "unusable_certainty": int(verdicts["unusable"].sum()),
        "threshold": threshold,
        **_by_threshold(found, every, high, low),
        "above": _by_threshold(found, every, above, not_above),
        **_spread("calibration_error", found, _calibration_error(found.sources[0], certainty, rated)),
        **_spread("risk_coverage_area", found, _area(found.sources[0], certainty, rated)),
        **_named("share_of_a", _share(found, parsed, first)),
        "chance": 1 / int(verdicts["options"][0]),
        "clusters": verdicts["cluster"].n_unique(),
        "clustered_by": verdicts["clustered_by"][0],
        "deciles": _deciles(found, certainty, rated),
        "by_certainty": [
            {"certainty": float(value), "n": one["total"], "correct": one["correct"]}
            for value in np.unique(certainty[rated])[::-1]
            for one in (_count(found, rated & (certainty == value)),)
        ],
    }


def _by_threshold(found: Perturbed, every: Mask, high: Mask, low: Mask) -> dict[str, Any]:
    """The answers of high and of low certainty, and the share of high ones where any has a certainty."""
    return {
        "high": _count(found, high),
        "low": _count(found, low),
        **_named("high_accuracy", _share(found, high)),
        **_named("low_accuracy", _share(found, low)),
        **_named("coverage", _share(found, every & (high | low).any(), high)),
    }


def against_none(verdicts: pl.DataFrame) -> list[dict[str, Any]]:
    """For each task and judge, accuracy with each set of persona variables against accuracy without any.

    setting_without: the setting of the latter, the same where there is one. same_items: whether both are about the same
    items, which is so where all rows that they share have the same truth; then only these rows count and the
    difference is taken item by item, else all rows of both, each by itself. n, n_without: rows that count; left_out:
    those that are not shared.
    accuracy, accuracy_without: with and without a persona, and difference, the first less the second, from -1 to 1.
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


def _comparable(setting: str, known: Collection[str]) -> str | None:
    """The same setting, else another; that with a tie as an answer asks another question than all others."""
    if setting in known:
        return setting
    others = [name for name in (*SETTINGS, *sorted(known)) if name in known and TIE not in {name, setting}]
    return next(iter(others), None)


def compare_verdicts(first: pl.DataFrame, second: pl.DataFrame) -> dict[str, Any]:
    """The accuracies of two groups of verdicts and their difference; see `against_none`."""
    both = first.join(second.select("row", other="truth"), on="row")
    same = both.height > 0 and bool((both["truth"] == both["other"]).all())
    left_out = first.height + second.height - 2 * both.height if same else 0
    sides = [side.filter(pl.col("row").is_in(both["row"].implode())) if same else side for side in (first, second)]
    together = pl.concat(
        # Without the same items, a row's number says nothing; a person's name does.
        side.select(
            side=pl.lit(number),
            won=(pl.col("answer") == pl.col("truth")).fill_null(value=False),
            cluster=pl.col("cluster")
            if same or side["clustered_by"][0] != "row"
            else pl.format("{} {}", pl.lit(number), "cluster"),
        )
        for number, side in enumerate(sides)
    )
    perturbed = perturb(*_by_side(together))
    accuracies = [source.pooled([0]) for source in perturbed.sources]
    clusters = [source.clusters([0]) for source in perturbed.sources]
    difference = perturbed.difference(accuracies[0] - accuracies[1], [[0]], None, min(clusters))
    return {
        "same_items": same,
        "n": sides[0].height,
        "n_without": sides[1].height,
        "left_out": left_out,
        **_named("accuracy", perturbed.share(accuracies[0], [[0]], None, clusters[0])),
        **_named("accuracy_without", perturbed.share(accuracies[1], [[0]], None, clusters[1])),
        **_named("difference", difference),
    }


def _by_side(together: pl.DataFrame) -> list[Sums]:
    """Right answers of either side, on the clusters of both."""
    cluster, won = _numbered(together["cluster"]), together["won"].to_numpy().astype(np.float64)
    shape = int(cluster.max()) + 1, 1
    sides = [(together["side"] == number).to_numpy() for number in (0, 1)]
    return [sums_of(np.zeros(int(on.sum()), dtype=np.int64), cluster[on], won[on], shape=shape) for on in sides]


def _perturbed(verdicts: pl.DataFrame) -> tuple[Perturbed, pl.DataFrame]:
    """Right answers and rows by kind of answer: whether it is valid, whether it is A, and its certainty."""
    rows = verdicts.select(
        "cluster",
        "certainty",
        parsed=pl.col("answer").is_not_null(),
        first=(pl.col("answer") == "A").fill_null(value=False),
        won=(pl.col("answer") == pl.col("truth")).fill_null(value=False).cast(pl.Float64),
    )
    names = ["parsed", "first", "certainty"]
    kinds = rows.select(names).unique().sort(names)
    rows = rows.join(kinds.with_row_index("place"), on=names, how="left", nulls_equal=True, maintain_order="left")
    leaf = rows["place"].cast(pl.Int64).to_numpy()
    return perturb(sums_of(leaf, _numbered(rows["cluster"]), rows["won"].to_numpy())), kinds


def _numbered(names: pl.Series) -> NDArray[np.int64]:
    """A number for each name, from 0."""
    return names.rank("dense").cast(pl.Int64).to_numpy() - 1


def _count(found: Perturbed, mask: Mask) -> dict[str, int]:
    source = found.sources[0]
    return {"correct": int(source.won[0, mask].sum()), "total": int(source.counts[0, mask].sum())}


def _share(found: Perturbed, mask: Mask, won: Mask | None = None) -> Estimate:
    """How many of the rows of some kinds are right, or are of the kinds that `won` says."""
    source, places = found.sources[0], np.flatnonzero(mask).tolist()
    counted = source if won is None else replace(source, won=source.counts * won)
    return found.share(counted.pooled(places), [places], None, source.clusters(places))


def _named(name: str, found: Estimate) -> dict[str, Any]:
    bounds = None if found.low is None else [found.low, found.high]
    return {name: found.value, f"{name}_interval": bounds}


def _spread(name: str, perturbed: Perturbed, values: Array) -> dict[str, Any]:
    """A value from 0 to 1 that is no share of rows, and its interval."""
    kinds = range(perturbed.sums[0].counts.shape[1])
    clusters = perturbed.sources[0].clusters(kinds)
    return _named(name, perturbed.estimate(values, [kinds], None, clusters, within=(0.0, 1.0)))


def _decile(certainty: Array) -> NDArray[np.int64]:
    return np.minimum(np.nan_to_num(certainty) // 10, DECILES - 1).astype(np.int64)


def _sums(columns: Array, masks: Iterable[Mask]) -> Array:
    """[rows, leaves] to [rows, masks]."""
    return np.stack([columns[:, mask].sum(1) for mask in masks], axis=1)


def _over(sums: Array, counts: Array) -> Array:
    """All sums over all counts, NaN where there are none: [rows, parts] to [rows]."""
    return Resampled(sums, counts, np.empty((0, 0), dtype=np.bool_)).pooled(range(sums.shape[1]))


def _calibration_error(found: Resampled, certainty: Array, rated: Mask) -> Array:
    masks = [rated & (_decile(certainty) == decile) for decile in range(DECILES)]
    said = found.counts * np.nan_to_num(certainty) / 100
    return _over(np.abs(_sums(found.won, masks) - _sums(said, masks)), _sums(found.counts, masks))


def _area(found: Resampled, certainty: Array, rated: Mask) -> Array:
    """The area under the risk-coverage curve in each row.

    Of a block of n equally sure answers with e errors, after N surer ones with E errors, the k-th answer overall is
    expected to have E + (k - N) e / n errors at or before it. The sum of that over k, each divided by k, is
    e + (E - N e / n) (H(N + n) - H(N)), with H the harmonic numbers: the digamma function of one more, less a constant,
    which is also defined between whole numbers.
    """
    from scipy.special import digamma  # noqa: PLC0415 - two seconds that `--help` saves

    values = np.unique(certainty[rated])[::-1]
    if not len(values):
        return np.full(len(found.counts), np.nan)
    masks = [rated & (certainty == value) for value in values]
    n = _sums(found.counts, masks)
    e = n - _sums(found.won, masks)
    up_to = np.cumsum(n, axis=1)
    before, errors = up_to - n, np.cumsum(e, axis=1) - e
    passed = digamma(up_to + 1) - digamma(before + 1)
    rate = np.divide(e, n, out=np.zeros_like(e), where=n > 0)
    return _over(e + (errors - before * rate) * passed, n)


def _deciles(found: Perturbed, certainty: Array, rated: Mask) -> list[dict[str, Any]]:
    """The deciles that are not empty, by their lower bound: 0, 10, ..., 90; certainty: the mean."""
    deciles = []
    for decile in np.unique(_decile(certainty)[rated]).tolist():
        mask = rated & (_decile(certainty) == decile)
        count = _count(found, mask)
        said = float((found.sources[0].counts[0, mask] * certainty[mask]).sum()) / count["total"]
        cell = {"from": 10 * decile, "n": count["total"], "correct": count["correct"], "certainty": said}
        deciles.append(cell | _named("accuracy", _share(found, mask)))
    return deciles


def verdict_numbers(metrics: Mapping[str, Any]) -> Numbers:
    """What `verdict_metrics` says of a task, as numbers of a run: each share under its name, and the counts."""
    task = metrics["task"]
    rated = metrics["high"]["total"] + metrics["low"]["total"]
    above = {f"above_{name}": value for name, value in metrics["above"].items()}
    of = {
        "accuracy": metrics["n"],
        "parsed_accuracy": metrics["parsed"],
        "high_accuracy": metrics["high"]["total"],
        "low_accuracy": metrics["low"]["total"],
        "coverage": metrics["n"],
        "above_high_accuracy": metrics["above"]["high"]["total"],
        "above_low_accuracy": metrics["above"]["low"]["total"],
        "above_coverage": metrics["n"],
        "calibration_error": rated,
        "risk_coverage_area": rated,
        "share_of_a": metrics["parsed"],
    }
    every = {**metrics, **above}
    for name, n in of.items():
        low, high = every[f"{name}_interval"] or (None, None)
        clusters = metrics["clusters"] if name == "accuracy" else None
        method = None if low is None else STUDENT if name in NO_SHARES else EFFECTIVE
        yield Place("task", name, task), Estimate(every[name], low, high, n, clusters, method)
    for name in ("correct", "invalid", "without_certainty", "unusable_certainty"):
        yield Place("task", name, task), Estimate(float(metrics[name]))
    yield Place("task", "chance", task), Estimate(metrics["chance"])
    for decile in metrics["deciles"]:
        low, high = decile["accuracy_interval"] or (None, None)
        place = Place("decile", "accuracy", task, subset=str(decile["from"]))
        yield place, Estimate(decile["accuracy"], low, high, decile["n"], method=None if low is None else EFFECTIVE)
        yield place._replace(metric="certainty"), Estimate(decile["certainty"], n=decile["n"])
    for one in metrics["by_certainty"]:
        place = Place("certainty", "accuracy", task, subset=f"{one['certainty']:g}")
        yield place, Estimate(one["correct"] / one["n"], n=one["n"])
        yield place._replace(metric="certainty"), Estimate(one["certainty"], n=one["n"])
