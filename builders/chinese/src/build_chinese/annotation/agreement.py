"""Agreement of annotators with each other, and with the known answers of check items."""

from typing import Any

import polars as pl
from pluralbench_studies import CONSENSUS, agreement, annotator_shares, answer_pairs

VALUES = (-1, 0, 1)


def mark_agreement(
    marks: pl.DataFrame, checks: pl.DataFrame | None = None, *, thirds: pl.DataFrame | None = None
) -> dict[str, Any]:
    """Compute agreement statistics of marks.

    A unit is a pair of responses that several annotators marked, in any task; if an annotator marked a pair in two
    tasks, the first mark counts. The scale is worse, same, better. Prompts are the clusters. Marks that come from a
    discussion do not count. Neither of two responses is the first by itself, so alpha takes each pair both ways: a mark
    is better from one side and worse from the other.

    Args:
        marks: Columns of `annotations.MARKS`.
        checks: Known answers of check items, columns of `annotations.MARKS`.
        thirds: Result of `rounds.third_annotators`. Their marks exist only where others differ, so they do not enter
            the agreement.

    Returns:
        Plain JSON values. `pairs` and `alpha` are those of `pluralbench_studies.agreement`, and `opposite` in `pairs`
        is the share of pairs of marks that prefer opposite responses. `annotators` has for each name the tasks, the
        marks, and as shares with Wilson's 95 % intervals: `agreeing`, the pairs of marks with other annotators that are
        the same; `first_preferred`, how often the response shown first wins if one wins; `checks_right`, the marks on
        check items that are right.
    """
    marks = marks.filter(pl.col("annotator") != CONSENSUS)
    values = _values(marks if thirds is None else marks.join(thirds, on=thirds.columns, how="anti"))
    statistics = agreement(values, VALUES, cluster="prompt")
    reverse = values.with_columns(pl.col("pair").list.reverse(), -pl.col("answer"))
    statistics["alpha"] = agreement(pl.concat([values, reverse]), VALUES, cluster="prompt")["alpha"]
    both = answer_pairs(values)
    opposite = both.filter(pl.col("answer") * pl.col("answer_other") == -1).height
    statistics["pairs"]["opposite"] = opposite / both.height if both.height else None
    statistics["annotators"] = _by_annotator(marks, statistics["annotators"], checks)
    return statistics


def _values(marks: pl.DataFrame) -> pl.DataFrame:
    """Marks as -1, 0 or 1, from the view of the pair's response whose id sorts first."""
    swapped = pl.col("first") > pl.col("second")
    value = pl.col("mark").replace_strict({"1": 1, "s": 0, "2": -1}, return_dtype=pl.Int8)
    return marks.select(
        "prompt",
        "annotator",
        pair=pl.when(swapped).then(pl.concat_list("second", "first")).otherwise(pl.concat_list("first", "second")),
        answer=pl.when(swapped).then(-value).otherwise(value),
    )


def _by_annotator(marks: pl.DataFrame, agreeing: dict[str, Any], checks: pl.DataFrame | None) -> dict[str, Any]:
    work = marks.group_by("annotator").agg(tasks=pl.col("task").n_unique(), marks=pl.len()).sort("annotator")
    strict, names = marks.filter(pl.col("mark") != "s"), work["annotator"]
    none = annotator_shares(marks.clear(), pl.lit(value=True), names)
    shares = {"agreeing": none | agreeing, "first_preferred": annotator_shares(strict, pl.col("mark") == "1", names)}
    if checks is not None:
        checked = marks.join(checks, on=["task", "first", "second"], suffix="_known")
        shares["checks_right"] = annotator_shares(checked, pl.col("mark") == pl.col("mark_known"), names)
    return {
        row["annotator"]: {"tasks": row["tasks"], "marks": row["marks"]}
        | {name: by_name[row["annotator"]] for name, by_name in shares.items()}
        for row in work.iter_rows(named=True)
    }
