"""Results of third-person labels: accuracy of the majority, and agreement of annotators (paper, table 5, A.4)."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from pluralbench_release import read_tables, share_text, text_table
from pluralbench_release.errors import SourceError
from pluralbench_runs import FrozenModel
from pluralbench_studies import (
    Answers,
    ProportionRecord,
    Study,
    agreement,
    annotator_progress,
    check_cells,
    first_answers,
    majority,
    share_over,
)
from polars.exceptions import PolarsError

from build_persona_judge.labels.study import LEAST, MOST, LabelRecipe

LABELS = pl.Schema(
    dict.fromkeys(("task", "id", "annotator", "answer"), pl.String)
    | {"certainty": pl.Int64, "truth": pl.String, "user": pl.String}
)
"""`certainty` is from 1 to 100, null if it is missing. `pluralbench judge-metrics` reads this table."""
LABELS_FILE = "labels.csv"
ITEM = ["task", "id", "truth", "user"]
ROWS = (
    "items",
    "annotators",
    "labels",
    "no majority",
    "majority right",
    "  certainty of 80 or more",
    "  lower certainty",
    "single labels right",
    "pairs that agree",
    "Krippendorff's alpha",
)
HIGH = 80  # smallest high certainty, as in the paper


class LabelFigures(FrozenModel):
    """Figures of the answers to a task's items. Intervals are over people (`user`).

    Attributes:
        items: Items with an answer.
        no_majority: Items whose answers have equally many votes; they are excluded from `majority`, `high` and `low`.
        majority: Accuracy of the majority answer.
        high: Accuracy of majorities with a mean certainty of at least 80.
        low: Accuracy of majorities with a lower mean certainty.
        single: Accuracy of single answers.
        agreeing: Share of pairs of answers to one item that are the same.
        alpha: Krippendorff's alpha, nominal.
    """

    task: str
    items: int
    annotators: int
    labels: int
    no_majority: int
    majority: ProportionRecord
    high: ProportionRecord
    low: ProportionRecord
    single: ProportionRecord
    agreeing: ProportionRecord
    alpha: float | None


def labels_of(study: Study[LabelRecipe], returned: Answers) -> pl.DataFrame:
    """Return the labels of a study (columns of `LABELS`). Raises `AnswersError` for an invalid certainty."""
    own = first_answers(returned.answers)
    certainties = own.filter(question="certainty").select("item", "annotator", certainty="answer")
    number = pl.col("certainty").str.strip_chars().str.strip_suffix("%").cast(pl.Float64, strict=False)
    wrong = certainties.filter(~(number.is_between(LEAST, MOST) & (number % 1 == 0)).fill_null(False))
    check_cells(
        [
            f"{annotator}'s certainty {text!r} on the item {item} is not an integer from {LEAST} to {MOST}."
            for item, annotator, text in wrong.iter_rows()
        ]
    )
    answers = own.filter(question="answer").drop("question")
    joined = answers.join(certainties.with_columns(number.cast(pl.Int64)), on=["item", "annotator"], how="left")
    labels = joined.join(study.key, on="item").select(LABELS.names())
    return labels.sort("task", "id", "annotator")


def read_labels(location: str | None, items: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Read labels from a file or a release (columns of `LABELS`).

    Args:
        location: File that `build-persona-judge label` wrote, or release. None: no labels.
        items: Items of the release by task.

    Raises:
        SourceError: The table has other columns, or labels other items.
    """
    if location is None:
        return pl.DataFrame(schema=LABELS)
    frame = next(iter(read_tables(location).frames.values()))
    if frame.columns != LABELS.names():
        raise SourceError(f"{location} holds no labels; use the {LABELS_FILE} of `build-persona-judge label`.")
    try:
        labels = frame.cast(LABELS)
    except PolarsError:
        raise SourceError(f"{location}: a certainty is not an integer.") from None
    expected = pl.concat([frame.select(*ITEM) for frame in items.values()])
    unknown = labels.join(expected, on=ITEM, how="anti")
    if unknown.height:
        raise SourceError(
            f"{location}: the label of {unknown['id'][0]} ({unknown['task'][0]}) matches no item of this build; use "
            "labels of the same sources and seed."
        )
    return labels


def figures_of(labels: pl.DataFrame) -> list[LabelFigures]:
    """Compute the figures of labels by task."""
    parts = labels.partition_by("task", as_dict=True, maintain_order=True)
    return [_figures(str(task), part) for (task,), part in parts.items()]


def figures_table(figures: Sequence[LabelFigures]) -> pl.DataFrame:
    """Format the figures as a table with a column for each task."""
    rows = {"": [*ROWS]}
    for entry in figures:
        counts = (entry.items, entry.annotators, entry.labels, entry.no_majority)
        shares = (entry.majority, entry.high, entry.low, entry.single, entry.agreeing)
        alpha = "none" if entry.alpha is None else f"{entry.alpha:.2f}"
        rows[entry.task] = [
            *(f"{count:,}" for count in counts),
            *(share_text(share.model_dump()) for share in shares),
            alpha,
        ]
    return pl.DataFrame(rows)


def progress_table(study: Study[LabelRecipe], returned: Answers) -> pl.DataFrame:
    """Format the number of answers of each annotator."""
    rows = [
        (name, f"{answered:,} of {assigned:,}" + ("" if answered else ": nothing yet"))
        for name, assigned, answered in annotator_progress(study.assigned, returned.answers).iter_rows()
    ]
    return text_table(["annotator", "answered"], rows)


def _figures(task: str, labels: pl.DataFrame) -> LabelFigures:
    answers = labels.select("id", "user", "annotator", "answer")
    votes = majority(answers)
    in_majority = labels.join(votes.select("id", majority="answer"), on="id").filter(
        pl.col("answer") == pl.col("majority")
    )
    certainty = in_majority.group_by("id").agg(pl.col("certainty").mean())
    truth = labels.select("id", "truth").unique("id")
    decided = votes.drop_nulls("answer").join(truth, on="id").join(certainty, on="id", how="left").sort("id")
    right, high = pl.col("answer") == pl.col("truth"), pl.col("certainty") >= HIGH
    statistics = agreement(answers, ["A", "B"], cluster="user")
    pairs = statistics["pairs"]
    return LabelFigures(
        task=task,
        items=votes.height,
        annotators=labels["annotator"].n_unique(),
        labels=labels.height,
        no_majority=votes.height - decided.height,
        majority=ProportionRecord(**share_over(decided, "user", right)),
        high=ProportionRecord(**share_over(decided.filter(high), "user", right)),
        low=ProportionRecord(**share_over(decided.filter(~high), "user", right)),
        single=ProportionRecord(**share_over(labels, "user", right)),
        agreeing=ProportionRecord(count=pairs["agreeing"], of=pairs["compared"], **_interval(pairs)),
        alpha=statistics["alpha"]["nominal"],
    )


def _interval(pairs: dict[str, Any]) -> dict[str, float | None]:
    return {name: pairs[name] for name in ("share", "low", "high")}
