"""How far annotators agree: with each other, and with the known answers of check items."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import polars as pl

VALUES = (-1, 0, 1)
RESAMPLES = 2000


def agreement(marks: pl.DataFrame, checks: pl.DataFrame | None = None, *, seed: int = 0) -> dict[str, Any]:
    """Statistics of marks (columns of `annotations.MARKS`), as plain JSON values.

    A unit is a pair of responses that more than one annotator marked; where somebody marked a pair in two tasks, the
    first counts. `pairs`: how many units, how many pairs of marks on them by two annotators, the share of these that
    are the same with a 95 % interval (bootstrap over prompts), and the share that prefer opposite responses. `alpha`:
    Krippendorff's, nominal and on the scale worse, same, better (ordinal and interval); None where it is not defined,
    as where all marks are the same. `annotators`, by name: tasks, marks, how many of the pairs of marks with others
    are the same, how many marks on check items (columns of `annotations.CHECKS`) are right, and how often the response
    shown first is preferred where one is; each of these as `count`, `of`, `share`, and `low` and `high`, Wilson's
    95 % interval.
    """
    values = _values(marks)
    judged = values.unique(["prompt", "pair", "annotator"], keep="first", maintain_order=True)
    units = judged.group_by("prompt", "pair").agg(
        pl.len(), *((pl.col("value") == value).sum().alias(str(value)) for value in VALUES)
    )
    units = units.filter(pl.col("len") > 1).sort("prompt", "pair")
    met = judged.join(judged, on=["prompt", "pair"]).filter(pl.col("annotator") != pl.col("annotator_right"))
    met = met.with_columns(same=pl.col("value") == pl.col("value_right"))
    by_prompt = met.group_by("prompt").agg(pl.col("same").sum() // 2, of=pl.len() // 2).sort("prompt")
    same, of = by_prompt["same"].to_list(), by_prompt["of"].to_list()
    opposite = met.filter(pl.col("value") * pl.col("value_right") == -1).height // 2
    return {
        "pairs": {
            "units": units.height,
            "compared": sum(of),
            "agreeing": sum(same),
            "share": sum(same) / sum(of) if of else None,
            **_bootstrap(same, of, seed),
            "opposite": opposite / sum(of) if of else None,
        },
        "alpha": _alpha(units.select(map(str, VALUES)).rows()),
        "annotators": _by_annotator(marks, met, checks),
    }


def _values(marks: pl.DataFrame) -> pl.DataFrame:
    """Marks as -1, 0 or 1, for the response of a pair whose id comes first."""
    swapped = pl.col("first") > pl.col("second")
    value = pl.col("mark").replace_strict({"1": 1, "s": 0, "2": -1}, return_dtype=pl.Int8)
    return marks.select(
        "prompt",
        "annotator",
        pair=pl.when(swapped).then(pl.concat_list("second", "first")).otherwise(pl.concat_list("first", "second")),
        value=pl.when(swapped).then(-value).otherwise(value),
    )


def _bootstrap(same: Sequence[int], of: Sequence[int], seed: int) -> dict[str, float | None]:
    from scipy.stats import bootstrap  # noqa: PLC0415 - half a second that other verbs save

    if len(of) < 2:
        return {"low": None, "high": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an interval of no width, where all prompts agree alike
        found = bootstrap(
            (same, of),
            lambda hits, total, axis: hits.sum(axis=axis) / total.sum(axis=axis),
            n_resamples=RESAMPLES,
            batch=100,
            vectorized=True,
            paired=True,
            method="percentile",
            rng=seed,
        ).confidence_interval
    return {"low": float(found.low), "high": float(found.high)}


def _alpha(counts: Sequence[tuple[int, ...]]) -> dict[str, float | None]:
    from krippendorff import alpha  # noqa: PLC0415 - imports numpy, which other verbs do not need

    levels: tuple[Literal["nominal", "ordinal", "interval"], ...] = ("nominal", "ordinal", "interval")
    used = [value for value, *each in zip(VALUES, *counts, strict=True) if any(each)]
    if len(used) < 2:
        return dict.fromkeys(levels)
    return {
        level: float(alpha(value_counts=counts, value_domain=VALUES, level_of_measurement=level)) for level in levels
    }


def _by_annotator(marks: pl.DataFrame, met: pl.DataFrame, checks: pl.DataFrame | None) -> dict[str, Any]:
    strict = marks.filter(pl.col("mark") != "s").select("annotator", hit=pl.col("mark") == "1")
    shares = {"agreeing": met.select("annotator", hit="same"), "first_preferred": strict}
    if checks is not None:
        known = marks.join(checks, on=["task", "first", "second"], suffix="_known")
        shares["checks_right"] = known.select("annotator", hit=pl.col("mark") == pl.col("mark_known"))
    counts = {
        name: {annotator: (hits, of) for annotator, hits, of in _counted(frame)} for name, frame in shares.items()
    }
    work = marks.group_by("annotator").agg(pl.col("task").n_unique(), pl.len()).sort("annotator")
    return {
        annotator: {
            "tasks": tasks,
            "marks": number,
            **{name: share_of(*found.get(annotator, (0, 0))) for name, found in counts.items()},
        }
        for annotator, tasks, number in work.iter_rows()
    }


def _counted(frame: pl.DataFrame) -> list[tuple[str, int, int]]:
    return frame.group_by("annotator").agg(pl.col("hit").sum(), pl.len()).rows()


def share_of(count: int, of: int) -> Mapping[str, float | None]:
    """A share with Wilson's 95 % interval; None for all of these where there is nothing to share."""
    from scipy.stats import binomtest  # noqa: PLC0415 - half a second that other verbs save

    if not of:
        return {"count": 0, "of": 0, "share": None, "low": None, "high": None}
    interval = binomtest(count, of).proportion_ci(method="wilson")
    low, high = float(interval.low), float(interval.high)
    return {"count": count, "of": of, "share": count / of, "low": low, "high": high}
