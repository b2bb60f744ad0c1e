"""Comparison of a judge with third-person labels: annotators' answers for personas that are not their own.

"Can LLM be a Personalized Judge?", section 5 and appendix A.4.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import polars as pl

from pluralbench.data.verdict_tables import certainty_columns, normalize_letter, raise_for_row, read_single_table, texts
from pluralbench.errors import DataError
from pluralbench.metrics.certainty import compare_verdicts, verdict_groups, verdict_metrics
from pluralbench.metrics.decided import THRESHOLD

SIZE = 30  # of a draw in the paper's bootstrap


def read_labels(location: str) -> pl.DataFrame:
    """Read labels from a CSV, JSON Lines or Parquet file, and check them with `check_labels`."""
    return check_labels(read_single_table(location, "labels"), location)


def check_labels(frame: pl.DataFrame, where: str = "The table of labels") -> pl.DataFrame:
    """Check and normalize labels: one row per item and annotator.

    `answer` becomes null unless it is A, B, C or tie, and `certainty` unless it is from 1 to 100.

    Args:
        frame: Labels with `annotator`, `answer`, `certainty` and the item: `row` or `id`, and `task`, which is optional
            if the ids are unique or there is one task. An optional `truth` distinguishes items that differ only in the
            order of the answers.
        where: Name of the table, for error messages.

    Raises:
        DataError: A column or name is missing, or an annotator labeled an item twice.
    """
    item = ["id"] if "id" in frame.columns and "row" not in frame.columns else ["row"]
    frame = texts(frame, (*item, "annotator", "answer", "certainty"), ("task", "truth"), where)
    key = [name for name in ("task", *item, "annotator") if name in frame.columns]
    for name in key:
        raise_for_row(frame, pl.col(name).is_null(), f"has no `{name}`; add one, or remove the row", where)
    problem = "is the second label of {annotator} for the item {" + item[0] + "}; keep one of them"
    raise_for_row(frame, ~pl.struct(key).is_first_distinct(), problem, where)
    letters = {name: normalize_letter(name) for name in ("answer", "truth") if name in frame.columns}
    return frame.with_columns(**letters, **certainty_columns()).sort(key)


def compare_with_people(
    verdicts: pl.DataFrame, labels: pl.DataFrame, *, threshold: float = THRESHOLD
) -> list[dict[str, Any]]:
    """Compare each group of verdicts with the annotators' labels of the same items.

    Returns:
        For each group with labeled items its names and:

        - `no_majority`: labeled items without a most frequent answer, for example if two annotators disagree. They are
          excluded from everything below except `single_labels`. `items`: the other labeled items. `not_judged`: labeled
          items without a verdict. `other_truth`: items left out because the labels have another truth.
        - `verdicts`, `majority`: `verdict_metrics` of each on these items, or None without items. The certainty of the
          majority is the mean over annotators who gave its answer. `single_labels`: the same over all labels.
        - `difference`: accuracy of the judge minus that of the majority, paired by item.
        - `agrees`: number of items on which the two agree, and of items that both answered.
        - `agreement`: mean and standard deviation over all draws of `size` (at most 30) without replacement, of which
          the paper takes 1,000. `between_annotators` draws items and two annotators of each; `with_truth` draws single
          labels. The paper
          describes the former; its numbers (.597, sd .087) also equal the latter on its labels, of which 536 of 899 are
          right.

    Raises:
        DataError: No verdict is on a labeled item, or the items of the two tables cannot be matched.
    """
    on = _item_columns(verdicts, labels)
    compared = []
    for names, group in verdict_groups(verdicts):
        one = _compared(group, labels, on, threshold)
        if one is not None:
            compared.append(names | one)
    if not compared:
        raise DataError(f"No labeled item has a verdict; items are matched by {' and '.join(on)}.")
    return compared


def _item_columns(verdicts: pl.DataFrame, labels: pl.DataFrame) -> list[str]:
    on: list[str] = [name for name in ("id", "task", "row") if name in labels.columns]
    if "id" in on and "id" not in verdicts.columns:
        raise DataError(
            "The labels name items by `id`, but the verdicts have no `id`; give the labels `task` and `row`."
        )
    if on == ["row"] and verdicts["task"].n_unique() > 1:
        tasks = ", ".join(verdicts["task"].unique().sort())
        raise DataError(f"The labels have no `task`, but the verdicts are of several tasks ({tasks}); add `task`.")
    return on


def _compared(group: pl.DataFrame, labels: pl.DataFrame, on: list[str], threshold: float) -> dict[str, Any] | None:
    ours = labels if "task" not in on else labels.filter(task=group["task"][0])
    ours = (
        ours.rename({"truth": "label_truth"})
        if "truth" in ours.columns
        else ours.with_columns(label_truth=pl.lit(None, pl.String))
    )
    judged = group.select(*dict.fromkeys([*on, "row"]), "truth", "options", "cluster", "clustered_by")
    joined = ours.join(judged, on=on, how="inner", maintain_order="left")
    same = joined.filter(pl.col("label_truth").is_null() | (pl.col("label_truth") == pl.col("truth")))
    if same.is_empty():
        return None
    # C is an answer only if ties are allowed; see `check_verdicts`.
    same = same.with_columns(pl.when((pl.col("answer") != "C") | (pl.col("options") == 3)).then("answer"))
    labeled = group.join(same.select("row").unique(), on="row", how="semi")
    majority = _majority(same, labeled)
    judge = labeled.join(majority, on="row", how="semi")
    compared = compare_verdicts(judge, majority) if judge.height else {"difference": None, "difference_interval": None}
    both = judge.join(majority.select("row", people="answer"), on="row").drop_nulls(["answer", "people"])
    return {
        "no_majority": labeled.height - judge.height,
        "items": judge.height,
        "not_judged": ours.select(on).n_unique() - joined["row"].n_unique(),
        "other_truth": joined["row"].n_unique() - labeled.height,
        "annotators": same["annotator"].n_unique(),
        **{
            name: verdict_metrics(rows, threshold=threshold) if rows.height else None
            for name, rows in (("verdicts", judge), ("majority", majority), ("single_labels", same))
        },
        "difference": compared["difference"],
        "difference_interval": compared["difference_interval"],
        "agrees": {"items": int((both["answer"] == both["people"]).sum()), "of": both.height},
        "agreement": _agreement(same),
    }


def _majority(labels: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    votes = labels.drop_nulls("answer").group_by("row", "answer").agg(pl.len().alias("votes"), pl.mean("certainty"))
    most = votes.filter(pl.col("votes") == pl.col("votes").max().over("row"))
    single = most.filter(pl.len().over("row") == 1).select("row", "answer", "certainty")
    unanswered = items.select(pl.exclude("answer", "certainty", "unusable")).with_columns(unusable=pl.lit(value=False))
    return unanswered.join(single, on="row", how="inner", maintain_order="left")


def _agreement(labels: pl.DataFrame) -> dict[str, Any]:
    right = (labels["answer"] == labels["truth"]).fill_null(value=False).cast(pl.Float64).to_list()
    agreeing = [_agreeing(answers) for answers in labels.group_by("row").agg("answer")["answer"].to_list()]
    pairs = [share for share in agreeing if share is not None]
    return {"between_annotators": _spread(pairs) if pairs else None, "with_truth": _spread(right)}


def _agreeing(answers: Sequence[str | None]) -> float | None:
    """Return the share of an item's pairs of annotators who give the same answer; None for a single annotator."""
    equal = sum(count * (count - 1) for answer, count in Counter(answers).items() if answer is not None)
    number = len(answers)
    return equal / (number * (number - 1)) if number > 1 else None


def _spread(shares: Sequence[float]) -> dict[str, Any]:
    """Return mean and standard deviation of the share of hits in a draw without replacement, by the units' chances."""
    number = len(shares)
    size, mean = min(SIZE, number), math.fsum(shares) / number
    within = math.fsum(share * (1 - share) for share in shares) / number
    between = math.fsum((share - mean) ** 2 for share in shares) / max(number - 1, 1) * (1 - size / number)
    return {"mean": mean, "sd": math.sqrt((within + between) / size), "size": size}
