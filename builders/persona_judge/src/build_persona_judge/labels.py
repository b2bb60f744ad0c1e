"""Third-person labels: people answer for others from a persona alone (paper, section 5, table 5 and A.4)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_release import TablesError, content_digest, read_tables, share_text
from pluralbench_release.errors import BuildError, SourceError
from pluralbench_studies import (
    Answers,
    Form,
    Question,
    Study,
    agreement,
    check_annotators,
    draw_rows,
    first_answers,
    item_ids,
    majority,
    share_over,
    write_study,
)
from polars.exceptions import PolarsError

from build_persona_judge.recipe import LabelRecipe

NEEDED = ("id", "task", "user", "persona", "context", "option_a", "option_b", "truth")
KEY = ("task", "id", "user", "truth")
LEAST, MOST = 1, 100


def _parse_certainty(text: str) -> str:
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = 0.0
    if not (LEAST <= number <= MOST and number.is_integer()):
        raise ValueError(f"the certainty {text!r} is not an integer from {LEAST} to {MOST}")
    return str(int(number))


FORM = Form(
    {"persona": "The person", "context": "What it is about", "option_a": "Option A", "option_b": "Option B"},
    [
        Question("answer", "Which option is this person's?", {"A": "A", "B": "B"}),
        Question("certainty", f"How sure are you, from {LEAST} to {MOST}?", optional=True, parse=_parse_certainty),
        Question("remark", "Remark", optional=True),
    ],
)
GUIDE = Path(__file__).with_name("labels_guide.md")


def export(folder: Path, settings: LabelRecipe, *, fresh: bool = False) -> str:
    """Write the sheets of a study, and return what the folder has (see `pluralbench_studies.write_study`).

    Ties are dropped, since annotators answer A or B. An annotator gets a second item of a person only if all annotators
    have one.

    Raises:
        TablesError: The release or the task does not exist.
        BuildError: The items lack a column, or all are ties.
        UserError: An error of `pluralbench_studies.write_study`.
    """
    check_annotators(settings.annotators)
    items = items_of(settings.data, settings.task)
    settings = settings.model_copy(update={"digest": content_digest(items)})
    drawn = draw_rows(items, settings.limit, settings.seed, "labeled").with_columns(group="user")
    drawn = item_ids(drawn, ["id"], settings.seed, settings.digest)
    return write_study(folder, settings, drawn, KEY, FORM, GUIDE, fresh=fresh)


def items_of(location: str, task: str) -> pl.DataFrame:
    """Read the items of a task without ties, with the persona as text. Raises `TablesError` and `BuildError`."""
    tables = read_tables(location)
    if task not in tables.frames:
        raise TablesError(f"{location} has no task {task}; it has {', '.join(tables.frames)}.")
    frame = tables.frames[task]
    missing = [name for name in NEEDED if name not in frame.columns]
    if missing:
        raise BuildError(f"{tables.paths[task]} has no column `{missing[0]}`; use a release of `build-persona-judge`.")
    sentences = pl.col("persona").list.eval(pl.element().struct.field("sentence").drop_nulls()).list.join("\n")
    strict = frame.filter(pl.col("truth") != "tie").select(*NEEDED).with_columns(persona=sentences)
    if strict.is_empty():
        raise BuildError(f"{tables.paths[task]} has only ties, and annotators answer A or B.")
    return strict


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
    """Read labels of the items from a file or a release (columns of `LABELS`); None: no labels.

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
