"""Options and settings of verbs that run an annotation study: write sheets, and read the filled-in ones."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import Field

from pluralbench_runs.canonical import Seed
from pluralbench_runs.errors import RecipeError
from pluralbench_runs.recipe import FrozenModel, Recipe, check_recipe

ReturnedFiles = Annotated[
    Sequence[Path],
    Field(description="Filled-in files for --import: sheets (.csv), a Label Studio export (.json) or JSONL."),
]
RELEASE: Any = Field(
    description="Data of the study: a release, a table or `ORG/NAME@REVISION`.", json_schema_extra={"flag": "--release"}
)
"""The field of a study's settings with the location of its data."""


class StudyRecipe(Recipe):
    """The settings of a study.

    Attributes:
        key_digest: Digest of `key.csv`, by which `pluralbench_studies.read_study` recognizes it.
    """

    runtime_only: ClassVar[frozenset[str]] = frozenset({"key_digest"})

    annotators: list[str] = Field(
        min_length=1, description="Name of an annotator; repeatable.", json_schema_extra={"flag": "--annotator"}
    )
    annotators_per_item: int = Field(2, ge=1, description="Annotators per item.")
    seed: Seed = Field(0, description="Random seed.")
    key_digest: str = ""


class ReadOptions(FrozenModel):
    """How returned files name the annotators."""

    account: dict[str, str] | None = Field(
        None,
        description="Annotator of a Label Studio account (number or e-mail); repeatable.",
        json_schema_extra={"metavar": "ACCOUNT=ANNOTATOR"},
    )
    assigned: bool = Field(
        False, description="Attribute each answer to the annotator assigned to its task, not to the account."
    )


class StudyOptions(ReadOptions):
    """Options of a verb that writes and reads a study."""

    export: Path | None = Field(None, description="Write the sheets of a study to this folder.")
    import_: Path | None = Field(
        None,
        description="Read the study in this folder (default: its own sheets; see FILES).",
        json_schema_extra={"flag": "--import"},
    )
    fresh: bool = Field(False, description="Start over, and replace existing output.")

    def check(self, files: Sequence[Path], **others: object) -> None:
        """Raise `RecipeError` unless exactly one action is chosen, or if there are files without --import."""
        actions = {f"--{name}": value for name, value in others.items()}
        actions |= {"--export FOLDER": self.export, "--import FOLDER": self.import_}
        count = sum(map(bool, actions.values()))
        if count != 1:
            given = "both" if count == 2 else count or "none"
            raise RecipeError(f"Give one of {', '.join(actions)}; {given} given.")
        if files and not self.import_:
            raise RecipeError(f"Only --import FOLDER reads files, such as {files[0]}; leave it out, or import it.")


R = TypeVar("R", bound=StudyRecipe)


def study_settings(model: type[R], values: Mapping[str, object], origin: str) -> R:
    """Validate the settings of a study to export. Raises `RecipeError`, also if a required option is missing."""
    for name, field in model.model_fields.items():
        if field.is_required() and not values.get(name):
            extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
            raise RecipeError(f"--export also needs {extra.get('flag', f'--{name}')}.")
    return check_recipe(model, values, origin)
