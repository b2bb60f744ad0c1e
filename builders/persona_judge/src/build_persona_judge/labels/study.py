"""Annotation sheets for third-person labels (paper, section 5)."""

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

Each row describes a person and shows two options. One of them is theirs: what they preferred, answered or wrote. Choose
that one, for this person and not for yourself. Work alone.

- `answer`: A or B, always one of the two.
- `certainty`: how sure you are, a whole number from 1 to 100.
  - 1 to 20: almost nothing supports it
  - 21 to 40: something supports it, but it could well be the other one
  - 41 to 60: good reasons, but not conclusive
  - 61 to 80: strong reasons, little doubt
  - 81 to 100: the description of the person states it directly
- `remark`: optional.

In a sheet, leave `item`, `annotator` and the texts as they are, and save it as CSV in UTF-8.
"""


class LabelRecipe(StudyRecipe):
    """Settings of a study of third-person labels.

    Attributes:
        data: Location of the items.
        task: Their config.
        digest: Digest of the items.
        limit: Maximum number of items, sampled at random. The default is the paper's.
        annotators_per_item: The default is the paper's.
    """

    runtime_only: ClassVar[frozenset[str]] = StudyRecipe.runtime_only | {"data"}

    data: Location
    task: str
    digest: str = ""
    limit: int = Field(ITEMS, ge=1)
    annotators_per_item: int = Field(EACH, ge=1)


def export(folder: Path, settings: LabelRecipe, *, fresh: bool = False) -> tuple[LabelRecipe, int, bool]:
    """Write the sheets of a study.

    Ties are dropped, since annotators answer A or B. An annotator gets a second item of a person only if all annotators
    have one.

    Args:
        folder: Folder of the study.
        settings: Items and annotators.
        fresh: Replace an existing study.

    Returns:
        The settings with the digest, the number of items, and whether the study is new.

    Raises:
        TablesError: The release or the task does not exist.
        BuildError: The items lack a column, or all are ties.
        UserError: An error of `pluralbench_studies.write_study`.
    """
    check_annotators(settings.annotators)
    items = items_of(settings.data, settings.task)
    settings = settings.model_copy(update={"digest": content_digest(items)})
    sampled = draw(items["id"].to_list(), settings.limit, settings.seed, "labeled")
    drawn = items.filter(pl.col("id").is_in(sampled))
    names = [digest([settings.seed, settings.digest, row_id])[:12] for row_id in drawn["id"]]
    drawn = drawn.with_columns(item=pl.Series(names, dtype=pl.String))
    assignments = assign(
        drawn.select("item", group="user"),
        sorted(settings.annotators),
        seed=settings.seed,
        annotators_per_item=settings.annotators_per_item,
        check_share=0.0,
    )
    key, shown = drawn.select(KEY), drawn.select("item", *FORM.fields)
    new = write_study(folder, settings, assignments, key, shown, FORM, GUIDE, fresh=fresh)
    return settings, drawn.height, new


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
