"""What third-person labels say: the majority, how often it is right, and how far people agree (paper, table 5, A.4)."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from pluralbench_release import read_tables, share_text, text_table
from pluralbench_release.errors import SourceError
from pluralbench_runs import FrozenModel
from pluralbench_studies import (
    Answers,
    AnswersError,
    ProportionRecord,
    Study,
    agreement,
    annotator_progress,
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
"""certainty: from 1 to 100, null where it was not said. Read by `pluralbench judge-metrics --labels`."""
LABELS_FILE = "labels.csv"
ITEM = ["task", "id", "truth", "user"]
ROWS = (
    "items",
    "annotators",
    "labels",
    "no majority",
    "majority right",
    "  where it is sure",
    "  where it is less so",
    "single labels right",
    "pairs that agree",
    "Krippendorff's alpha",
)
HIGH = 80  # the paper's high certainty, at least


class LabelFigures(FrozenModel):
    """What people answered on the items of a task. Intervals are over people (`user`).

    items: with an answer. no_majority: those left out of `majority` and what follows, since no answer has more votes
    than the other. majority: how often it is right; high, low: the same where the mean certainty of those who gave it
    is at least 80, and where it is less. single: how often one answer is right. agreeing: pairs of answers to an item
    that are the same; alpha: Krippendorff's, nominal.
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


def labels_of(study: Study[LabelRecipe], found: Answers) -> pl.DataFrame:
    """The labels of a study (columns of `LABELS`). Raises `AnswersError` for a certainty that is none."""
    own = first_answers(found.answers)
    said = own.filter(question="certainty").select("item", "annotator", certainty="answer")
    number = pl.col("certainty").str.strip_chars().str.strip_suffix("%").cast(pl.Float64, strict=False)
    wrong = said.filter(~(number.is_between(LEAST, MOST) & (number % 1 == 0)).fill_null(False))
    if wrong.height:
        item, annotator, text = wrong.row(0)
        raise AnswersError(
            f"{annotator}'s certainty {text!r} on the item {item} is no whole number from {LEAST} to {MOST}."
        )
    answers = own.filter(question="answer").drop("question")
    joined = answers.join(said.with_columns(number.cast(pl.Int64)), on=["item", "annotator"], how="left")
    labels = joined.join(study.key, on="item").select(LABELS.names())
    return labels.sort("task", "id", "annotator")


def read_labels(location: str | None, items: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Labels that `label --import` wrote, or that a release records (columns of `LABELS`); none without a location.

    items: of the release, by task. Raises `SourceError` for another table, and for labels of other items.
    """
    if location is None:
        return pl.DataFrame(schema=LABELS)
    frame = next(iter(read_tables(location).frames.values()))
    if frame.columns != LABELS.names():
        raise SourceError(f"{location} holds no labels; give the {LABELS_FILE} that `label --import` wrote.")
    try:
        labels = frame.cast(LABELS)
    except PolarsError:
        raise SourceError(f"{location}: a certainty is no whole number.") from None
    known = pl.concat([frame.select(*ITEM) for frame in items.values()])
    strange = labels.join(known, on=ITEM, how="anti")
    if strange.height:
        raise SourceError(
            f"{location}: the label of {strange['id'][0]} ({strange['task'][0]}) is of no item here, or of one with "
            "another truth; labels are of one release and its seed."
        )
    return labels


def figures_of(labels: pl.DataFrame) -> list[LabelFigures]:
    """The figures of labels, by task."""
    parts = labels.partition_by("task", as_dict=True, maintain_order=True)
    return [_figures(str(task), part) for (task,), part in parts.items()]


def figures_table(figures: Sequence[LabelFigures]) -> pl.DataFrame:
    """The figures as a small table of texts: a row for each, a column for each task."""
    rows = {"": [*ROWS]}
    for one in figures:
        counts = (one.items, one.annotators, one.labels, one.no_majority)
        shares = (one.majority, one.high, one.low, one.single, one.agreeing)
        alpha = "none" if one.alpha is None else f"{one.alpha:.2f}"
        rows[one.task] = [
            *(f"{count:,}" for count in counts),
            *(share_text(share.model_dump()) for share in shares),
            alpha,
        ]
    return pl.DataFrame(rows)


def progress_table(study: Study[LabelRecipe], found: Answers) -> pl.DataFrame:
    """How far each annotator is, as texts."""
    rows = [
        (name, f"{answered:,} of {given:,}" + ("" if answered else ": nothing yet"))
        for name, given, answered in annotator_progress(study.assigned, found.answers).iter_rows()
    ]
    return text_table(["annotator", "answered"], rows)


def _figures(task: str, labels: pl.DataFrame) -> LabelFigures:
    told = labels.select("id", "user", "annotator", "answer")
    voted = majority(told)
    sure = labels.join(voted.select("id", majority="answer"), on="id").filter(pl.col("answer") == pl.col("majority"))
    certainty = sure.group_by("id").agg(pl.col("certainty").mean())
    truth = labels.select("id", "truth").unique("id")
    settled = voted.drop_nulls("answer").join(truth, on="id").join(certainty, on="id", how="left").sort("id")
    right, high = pl.col("answer") == pl.col("truth"), pl.col("certainty") >= HIGH
    found = agreement(told, ["A", "B"], cluster="user")
    pairs = found["pairs"]
    return LabelFigures(
        task=task,
        items=voted.height,
        annotators=labels["annotator"].n_unique(),
        labels=labels.height,
        no_majority=voted.height - settled.height,
        majority=ProportionRecord(**share_over(settled, "user", right)),
        high=ProportionRecord(**share_over(settled.filter(high), "user", right)),
        low=ProportionRecord(**share_over(settled.filter(~high), "user", right)),
        single=ProportionRecord(**share_over(labels, "user", right)),
        agreeing=ProportionRecord(count=pairs["agreeing"], of=pairs["compared"], **_interval(pairs)),
        alpha=found["alpha"]["nominal"],
    )


def _interval(found: dict[str, Any]) -> dict[str, float | None]:
    return {name: found[name] for name in ("share", "low", "high")}
