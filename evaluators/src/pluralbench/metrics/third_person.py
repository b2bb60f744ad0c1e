"""Third-person labels: what people answered who were told of somebody else, beside what a judge did.

After "Can LLM be a Personalized Judge?", section 5 and appendix A.4.
"""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pluralbench.data.verdict_tables import certainty_columns, normalize_letter, raise_for_row, read_single_table, texts
from pluralbench.errors import DataError
from pluralbench.metrics.certainty import THRESHOLD, compare_verdicts, verdict_groups, verdict_metrics

DRAWS, SIZE = 1000, 30  # of the paper's bootstrap
NO_ANSWER = -1


def read_labels(location: str) -> pl.DataFrame:
    """The labels of a CSV, JSON Lines or Parquet file, checked by `check_labels`. Raises as that does."""
    return check_labels(read_single_table(location, "labels"), location)


def check_labels(frame: pl.DataFrame, where: str = "The table of labels") -> pl.DataFrame:
    """Labels in one shape: a row for each item and annotator.

    frame: with `annotator`, `answer`, `certainty` and what names the item as in the verdicts, `task` with `row` or
    `id`; `task` may be left out where ids tell all items apart, or there is one task. `truth`, where there is one,
    tells items apart that have the same name and different places of the answers.

    Returns these columns, answer null where it is none of A, B, C and tie, certainty null where it is not 1 to 100.
    Raises `DataError`, naming the row, for a missing column or name, and for an annotator who labeled an item twice.
    """
    item = ["id"] if "id" in frame.columns and "row" not in frame.columns else ["row"]
    frame = texts(frame, (*item, "annotator", "answer", "certainty"), ("task", "truth"), where)
    named = [name for name in ("task", *item, "annotator") if name in frame.columns]
    for name in named:
        raise_for_row(frame, pl.col(name).is_null(), f"has no `{name}`; give one, or take the row out", where)
    twice = "is the second label of {annotator} for the item {" + item[0] + "}; keep one of them"
    raise_for_row(frame, ~pl.struct(named).is_first_distinct(), twice, where)
    letters = {name: normalize_letter(name) for name in ("answer", "truth") if name in frame.columns}
    return frame.with_columns(**letters, **certainty_columns()).sort(named)


def compare_with_people(
    verdicts: pl.DataFrame, labels: pl.DataFrame, *, threshold: float = THRESHOLD, seed: int = 0
) -> list[dict[str, Any]]:
    """Each group of verdicts beside the labels of the same items; groups that have none of the items are left out.

    verdicts, labels: as `check_verdicts` and `check_labels` make them. Each result has the group's names and

    - no_majority: labeled items left out of all that follows but the single labels, since no answer was given by more
      annotators than any other, as where two disagree; items: the others; not_judged: labeled items that the group has
      no verdict on; other_truth: items left out since the labels have another truth;
    - verdicts, majority: what `verdict_metrics` says of each on these items, None where there are none. The majority's
      certainty is the mean over those who gave its answer; single_labels: the same of every label;
    - difference: the judge's accuracy less the majority's, item by item;
    - agrees: items with an answer of both on which they are the same, of how many;
    - agreement: mean and sd over `draws` draws of `size`, 30 where there are so many, without replacement.
      between_annotators: of items with two annotators of each, and whether these agree; with_truth: of single labels.
      The paper describes the former; its figures (.597, sd .087) are also what the latter gives for its labels, of
      which 536 of 899 are right.

    Raises `DataError` where no verdict is on a labeled item, and where the items' names do not go together.
    """
    on = _item_columns(verdicts, labels)
    compared = []
    for names, group in verdict_groups(verdicts):
        one = _compared(group, labels, on, threshold, seed)
        if one is not None:
            compared.append(names | one)
    if not compared:
        raise DataError(
            f"The labels are on no item that there is a verdict on; items go together by {' and '.join(on)}."
        )
    return compared


def _item_columns(verdicts: pl.DataFrame, labels: pl.DataFrame) -> list[str]:
    on: list[str] = [name for name in ("id", "task", "row") if name in labels.columns]
    if "id" in on and "id" not in verdicts.columns:
        raise DataError("The labels name items by `id`, which the verdicts have not; give the labels `task` and `row`.")
    if on == ["row"] and verdicts["task"].n_unique() > 1:
        tasks = ", ".join(verdicts["task"].unique().sort())
        raise DataError(f"The labels do not say of which task they are, and the verdicts have {tasks}; add `task`.")
    return on


def _compared(
    group: pl.DataFrame, labels: pl.DataFrame, on: list[str], threshold: float, seed: int
) -> dict[str, Any] | None:
    ours = labels if "task" not in on else labels.filter(task=group["task"][0])
    told = (
        ours.rename({"truth": "told"}) if "truth" in ours.columns else ours.with_columns(told=pl.lit(None, pl.String))
    )
    known = group.select(*dict.fromkeys([*on, "row"]), "truth", "options", "cluster", "clustered_by")
    joined = told.join(known, on=on, how="inner", maintain_order="left")
    same = joined.filter(pl.col("told").is_null() | (pl.col("told") == pl.col("truth")))
    if same.is_empty():
        return None
    # Where nobody can call a tie, C is no answer; see `check_verdicts`.
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
        "agreement": _agreement(same, seed),
    }


def _majority(labels: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """The items that have a majority, as if it were a judge."""
    votes = labels.drop_nulls("answer").group_by("row", "answer").agg(pl.len().alias("votes"), pl.mean("certainty"))
    most = votes.filter(pl.col("votes") == pl.col("votes").max().over("row"))
    single = most.filter(pl.len().over("row") == 1).select("row", "answer", "certainty")
    none = items.select(pl.exclude("answer", "certainty", "unusable")).with_columns(unusable=pl.lit(value=False))
    return none.join(single, on="row", how="inner", maintain_order="left")


def _agreement(labels: pl.DataFrame, seed: int) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    ordered = labels.sort("row", "annotator").with_columns(
        code=pl.col("answer").replace_strict({"A": 0, "B": 1, "C": 2}, default=NO_ANSWER, return_dtype=pl.Int64)
    )
    right = (ordered["answer"] == ordered["truth"]).fill_null(value=False).to_numpy()
    codes = [part["code"].to_numpy() for part in ordered.partition_by("row", maintain_order=True) if part.height > 1]
    return {
        "draws": DRAWS,
        "between_annotators": _spread(_between(codes, generator), len(codes)) if codes else None,
        "with_truth": _spread(right[_drawn(len(right), generator)].mean(1), len(right)),
    }


def _drawn(number: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Places drawn without replacement, all of them where there are fewer than a draw has: [draws, size]."""
    return generator.random((DRAWS, number)).argsort(axis=1)[:, :SIZE]


def _between(codes: list[NDArray[np.int64]], generator: np.random.Generator) -> NDArray[np.float64]:
    """The share of drawn items on which two drawn annotators of each agree: [draws]."""
    many = np.array([len(one) for one in codes])
    answers = np.full((len(codes), many.max()), NO_ANSWER)
    for place, one in enumerate(codes):
        answers[place, : len(one)] = one
    items = _drawn(len(codes), generator)
    first = (generator.random(items.shape) * many[items]).astype(np.int64)
    second = (generator.random(items.shape) * (many[items] - 1)).astype(np.int64)
    second += second >= first
    one, other = answers[items, first], answers[items, second]
    agreed: NDArray[np.float64] = ((one == other) & (one != NO_ANSWER)).mean(1)
    return agreed


def _spread(shares: NDArray[np.float64], of: int) -> dict[str, Any]:
    return {"mean": float(shares.mean()), "sd": float(shares.std(ddof=1)), "size": min(SIZE, of)}
