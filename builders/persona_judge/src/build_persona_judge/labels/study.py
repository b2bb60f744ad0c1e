"""Annotation sheets for third-person labels (paper, section 5)."""

from pathlib import Path

import polars as pl
from pluralbench_release import TablesError, content_digest, read_tables
from pluralbench_release.errors import BuildError
from pluralbench_studies import Form, Question, check_annotators, draw_rows, item_ids, write_study

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
GUIDE = Path(__file__).with_name("guide.md")


def export(folder: Path, settings: LabelRecipe, *, fresh: bool = False) -> str:
    """Write the sheets of a study, and return what the folder has (see `pluralbench_studies.write_study`).

    Ties are dropped, since annotators answer A or B. An annotator gets a second item of a person only if all annotators
    have one.

    Args:
        folder: Folder of the study.
        settings: Items and annotators.
        fresh: Replace an existing study.

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
