"""Results of third-person labels: accuracy of the majority, and agreement of annotators (paper, table 5, A.4)."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from pluralbench_release import read_tables, share_text
from pluralbench_release.errors import SourceError
from pluralbench_studies import Answers, Study, agreement, first_answers, majority, share_over
from polars.exceptions import PolarsError

from build_persona_judge.recipe import LabelRecipe

LABELS = pl.Schema(
    dict.fromkeys(("task", "id", "annotator", "answer"), pl.String)
    | {"certainty": pl.Int64, "truth": pl.String, "user": pl.String}
)
"""`certainty` is from 1 to 100, null if it is missing. `pluralbench judge-metrics` reads this table."""
LABELS_FILE = "labels.csv"
ITEM = ["task", "id", "truth", "user"]
COUNTS = {"items": "items", "annotators": "annotators", "labels": "labels", "no_majority": "no majority"}
SHARES = {
    "majority": "majority right",
    "high": "  certainty of 80 or more",
    "low": "  lower certainty",
    "single": "single labels right",
    "agreeing": "pairs that agree",
}
HIGH = 80  # smallest high certainty, as in the paper


def labels_of(study: Study[LabelRecipe], returned: Answers) -> pl.DataFrame:
    """Return the labels of a study (columns of `LABELS`)."""
    own = first_answers(returned.answers)
    certainties = own.filter(question="certainty").select("item", "annotator", certainty=pl.col("answer").cast(int))
    answers = own.filter(question="answer").drop("question")
    labels = answers.join(certainties, on=["item", "annotator"], how="left").join(study.key, on="item")
    return labels.select(LABELS.names()).sort("task", "id", "annotator")


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


def figures_of(labels: pl.DataFrame) -> list[dict[str, Any]]:
    """Compute the figures of labels by task, serializable as JSON. Intervals are over people (`user`).

    Returns:
        For each task: `items` with an answer, `annotators`, `labels`; `no_majority`, the items whose answers have
        equally many votes, which are excluded from the next three; `majority`, the accuracy of the majority answer;
        `high` and `low`, the same for majorities with a mean certainty of at least 80, and a lower one; `single`, the
        accuracy of single answers; `agreeing`, the share of pairs of answers to one item that are the same; and
        Krippendorff's `alpha`, nominal.
    """
    parts = labels.partition_by("task", as_dict=True, maintain_order=True)
    return [_figures(str(task), part) for (task,), part in parts.items()]


def _figures(task: str, labels: pl.DataFrame) -> dict[str, Any]:
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
    return {
        "task": task,
        "items": votes.height,
        "annotators": labels["annotator"].n_unique(),
        "labels": labels.height,
        "no_majority": votes.height - decided.height,
        "majority": share_over(decided, "user", right),
        "high": share_over(decided.filter(high), "user", right),
        "low": share_over(decided.filter(~high), "user", right),
        "single": share_over(labels, "user", right),
        "agreeing": {"count": pairs["agreeing"], "of": pairs["compared"]}
        | {name: pairs[name] for name in ("share", "low", "high")},
        "alpha": statistics["alpha"]["nominal"],
    }


def figures_table(figures: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Format the figures as a table with a column for each task."""
    rows = {"": [*COUNTS.values(), *SHARES.values(), "Krippendorff's alpha"]}
    for entry in figures:
        counts, shares = (f"{entry[name]:,}" for name in COUNTS), (share_text(entry[name]) for name in SHARES)
        rows[entry["task"]] = [*counts, *shares, "none" if entry["alpha"] is None else f"{entry['alpha']:.2f}"]
    return pl.DataFrame(rows)
