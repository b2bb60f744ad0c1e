"""The sheets of third-person labels: which items, to whom, and what they show (paper, section 5)."""

from pathlib import Path
from typing import ClassVar

import polars as pl
from pluralbench_release import TablesError, content_digest, read_tables
from pluralbench_release.errors import BuildError
from pluralbench_runs import Location, digest
from pluralbench_studies import Form, Question, StudyRecipe, assign, check_annotators, draw, write_study
from pydantic import Field

ITEMS, EACH = 300, 3  # of the paper
NEEDED = ("id", "task", "user", "persona", "context", "option_a", "option_b", "truth")
KEY = ("item", "task", "id", "user", "truth")
LEAST, MOST = 1, 100

FORM = Form(
    {"persona": "The person", "context": "What it is about", "option_a": "Option A", "option_b": "Option B"},
    [
        Question("answer", "Which option is this person's?", {"A": "A", "B": "B"}),
        Question("certainty", f"How sure are you, from {LEAST} to {MOST}?"),
        Question("remark", "Remark"),
    ],
)
GUIDE = """\
# How to answer

Each row tells of a person and shows two options, one of which is theirs: what they preferred, answered or wrote. Say
which one, for this person and not for yourself. Work alone.

- `answer`: A or B, always one of the two.
- `certainty`: how sure you are, a whole number from 1 to 100.
  - 1 to 20: next to nothing speaks for it
  - 21 to 40: something does, and it could well be otherwise
  - 41 to 60: good reasons, which do not settle it
  - 61 to 80: strong reasons, little doubt
  - 81 to 100: what is said of the person says it outright
- `remark`: what you want to say, or nothing.

In a sheet, leave `item`, `annotator` and the texts as they are, and save it as CSV in UTF-8.
"""


class LabelRecipe(StudyRecipe):
    """The settings of a study of third-person labels.

    data: where the items were read from. task: their config. digest: of what the sheets show of them. limit: so many
    items, drawn; the paper's 300.
    """

    runtime_only: ClassVar[frozenset[str]] = StudyRecipe.runtime_only | {"data"}

    data: Location
    task: str
    digest: str = ""
    limit: int = Field(ITEMS, ge=1)
    annotators_per_item: int = Field(EACH, ge=1)


def export(folder: Path, settings: LabelRecipe, *, fresh: bool = False) -> tuple[LabelRecipe, int, bool]:
    """Write the study's sheets to `folder`; the settings with the digest, how many items there are, and whether the
    study was not there before.

    Items whose truth is a tie are left out, since annotators answer A or B. An annotator gets another item of a person
    only where everybody has one. Raises `TablesError`, `BuildError`, and as `pluralbench_studies.write_study` does.
    """
    check_annotators(settings.annotators)
    items = items_of(settings.data, settings.task)
    settings = settings.model_copy(update={"digest": content_digest(items)})
    kept = draw(items["id"].to_list(), settings.limit, settings.seed, "labeled")
    drawn = items.filter(pl.col("id").is_in(kept))
    names = [digest([settings.seed, settings.digest, row_id])[:12] for row_id in drawn["id"]]
    drawn = drawn.with_columns(item=pl.Series(names, dtype=pl.String))
    given = assign(
        drawn.select("item", group="user"),
        sorted(settings.annotators),
        seed=settings.seed,
        annotators_per_item=settings.annotators_per_item,
        check_share=0.0,
    )
    key, shown = drawn.select(KEY), drawn.select("item", *FORM.fields)
    new = write_study(folder, settings, given, key, shown, FORM, GUIDE, fresh=fresh)
    return settings, drawn.height, new


def items_of(location: str, task: str) -> pl.DataFrame:
    """The items of a task that are no tie, with the persona as text. Raises `TablesError` and `BuildError`."""
    read = read_tables(location)
    if task not in read.frames:
        raise TablesError(f"{location} has no task {task}; it has {', '.join(read.frames)}.")
    frame = read.frames[task]
    missing = [name for name in NEEDED if name not in frame.columns]
    if missing:
        raise BuildError(
            f"{read.paths[task]} has no column `{missing[0]}`; labels need items, as a release of build-persona-judge "
            "has them."
        )
    sentences = pl.col("persona").list.eval(pl.element().struct.field("sentence").drop_nulls()).list.join("\n")
    strict = frame.filter(pl.col("truth") != "tie").select(*NEEDED).with_columns(persona=sentences)
    if strict.is_empty():
        raise BuildError(f"{read.paths[task]}: every item is a tie, and annotators answer A or B.")
    return strict
