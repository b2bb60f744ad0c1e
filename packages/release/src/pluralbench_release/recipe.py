"""Fields that the recipes of all releases have."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pluralbench_runs import FrozenModel, PathName, Recipe, Seed, read_recipe
from pydantic import Field

RECIPE = "provenance/recipe.toml"

ReleaseName = Annotated[PathName, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]

# Fields of a recipe's table that describes a source.
SOURCE_NAME: Any = Field(
    None, min_length=1, description="What the card calls the source.", json_schema_extra={"flag": "--source-name"}
)
LICENSE: Any = Field(
    None,
    description="License of a source that states none, such as cc-by-4.0.",
)


class ReleaseRecipe(Recipe):
    """Base class of recipes of releases."""

    runtime_only: ClassVar[frozenset[str]] = frozenset({"title"})

    name: ReleaseName = Field(description="What the dataset is called, as dist/NAME and on its card.")
    version: str = Field("0.1.0", pattern=r"^\d+\.\d+\.\d+$")
    seed: Seed = Field(42, description="Seed of every draw.")
    title: str | None = Field(
        None,
        pattern=r"^[^\n]*\S[^\n]*$",
        description="Title of the card. Default: the builder's title, or the name.",
    )

    def display_title(self, own: str) -> str:
        """Return the title for the card: `title`, or `own` if the recipe's name is the default, or the name."""
        name = type(self).model_fields["name"]
        return self.title or (own if name.is_required() or self.name == name.default else self.name)


R = TypeVar("R", bound=ReleaseRecipe)


def read_release_recipe(model: type[R], release: Path, overrides: Mapping[str, object] | None = None) -> R:
    """Read the recipe that a release was built from, also where an earlier version wrote it.

    `overrides` are values by dotted key that replace the recipe's.

    Raises:
        RecipeError: The release has no recipe of this class.
    """
    return read_recipe(model, release / RECIPE, overrides)


class PairLimits(FrozenModel):
    """Limits of an audit. A build that exceeds one fails, but keeps its calls. Unset limits are not checked.

    Attributes:
        max_chosen_longer: Share of pairs whose chosen text has more characters; also bounds the share of pairs whose
            rejected text has.
        max_mean_length_gap: Absolute difference of the mean lengths of both sides.
        max_chosen_overlap: Share of pairs whose chosen text repeats more words of the rubric or persona; also bounds
            the share of pairs whose rejected text does.
        max_overlap_gap: Difference between the sides in the mean share of those words that they repeat.
        max_drop_share: Share of the source's rows that did not become a pair.
        max_near_duplicates: Pairs of rows with nearly equal questions or nearly equal chosen texts.
    """

    max_chosen_longer: float | None = Field(None, ge=0.5, le=1)
    max_mean_length_gap: float | None = Field(None, ge=0)
    max_chosen_overlap: float | None = Field(None, ge=0.5, le=1)
    max_overlap_gap: float | None = Field(None, ge=0)
    max_drop_share: float | None = Field(None, ge=0, le=1)
    max_near_duplicates: int | None = Field(None, ge=0)
