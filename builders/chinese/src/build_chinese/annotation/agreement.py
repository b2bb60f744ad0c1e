"""How far annotators agree: with each other, and with the known answers of check items."""

from typing import Any

import polars as pl
from pluralbench_measures.agreement import share_of
from pluralbench_studies import CONSENSUS, agreement, answer_pairs

VALUES = (-1, 0, 1)


def mark_agreement(
    marks: pl.DataFrame, checks: pl.DataFrame | None = None, *, thirds: pl.DataFrame | None = None, seed: int = 0
) -> dict[str, Any]:
    """Statistics of marks (columns of `annotations.MARKS`), as plain JSON values.

    `pairs` and `alpha` are those of `pluralbench_studies.agreement`, where a unit is a pair of responses that more than
    one annotator marked, whatever the task (where somebody marked a pair in two tasks, the first counts), the scale is
    worse, same, better, and prompts are the clusters; `opposite` is the share of marks that prefer opposite responses.
    `annotators`, by name: tasks, marks, how many of the pairs of marks with others are the same (`agreeing`), how often
    the response shown first is preferred where one is, and how many marks on check items (columns of
    `annotations.CHECKS`) are right; each of these as a share with Wilson's 95 % interval. What a discussion came to
    does not count, nor, for how far annotators agree, what third annotators marked (`thirds`: of
    `rounds.third_annotators`), which exists only where others differ.
    """
    marks = marks.filter(pl.col("annotator") != CONSENSUS)
    values = _values(marks if thirds is None else marks.join(thirds, on=thirds.columns, how="anti"))
    found = agreement(values, VALUES, cluster="prompt", seed=seed)
    both = answer_pairs(values)
    opposite = both.filter(pl.col("answer") * pl.col("answer_other") == -1).height
    found["pairs"]["opposite"] = opposite / both.height if both.height else None
    found["annotators"] = _by_annotator(marks, found["annotators"], checks)
    return found


def _values(marks: pl.DataFrame) -> pl.DataFrame:
    """Marks as -1, 0 or 1, for the response of a pair whose id comes first."""
    swapped = pl.col("first") > pl.col("second")
    value = pl.col("mark").replace_strict({"1": 1, "s": 0, "2": -1}, return_dtype=pl.Int8)
    return marks.select(
        "prompt",
        "annotator",
        pair=pl.when(swapped).then(pl.concat_list("second", "first")).otherwise(pl.concat_list("first", "second")),
        answer=pl.when(swapped).then(-value).otherwise(value),
    )


def _by_annotator(marks: pl.DataFrame, agreeing: dict[str, Any], checks: pl.DataFrame | None) -> dict[str, Any]:
    shares = {"first_preferred": marks.filter(pl.col("mark") != "s").select("annotator", hit=pl.col("mark") == "1")}
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
            "agreeing": agreeing.get(annotator, share_of(0, 0)),
            **{name: share_of(*found.get(annotator, (0, 0))) for name, found in counts.items()},
        }
        for annotator, tasks, number in work.iter_rows()
    }


def _counted(hits: pl.DataFrame) -> list[tuple[Any, ...]]:
    return hits.group_by("annotator").agg(pl.col("hit").sum(), pl.len()).rows()
