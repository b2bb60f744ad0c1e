"""What every recipe of a release has."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pluralbench_runs import FrozenModel, PathName, Recipe, read_recipe
from pydantic import Field

# Keys that recipes and manifests of earlier releases have, and what they are called now.
RENAMED_KEYS = {"licence": "license", "unlabelled": "unlabeled"}

RECIPE = "provenance/recipe.toml"

ReleaseName = Annotated[PathName, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]

# Fields of a table of a recipe that names a source.
SOURCE_NAME: Any = Field(
    None, min_length=1, description="What the card calls the source.", json_schema_extra={"flag": "--source-name"}
)
LICENSE: Any = Field(
    None,
    description="License of the source, where it states none, such as cc-by-4.0.",
)


class ReleaseRecipe(Recipe):
    """A recipe of which a release is made."""

    runtime_only: ClassVar[frozenset[str]] = frozenset({"title"})

    name: ReleaseName = Field(description="What the dataset is called, as dist/NAME and on its card.")
    version: str = Field("0.1.0", pattern=r"^\d+\.\d+\.\d+$")
    seed: int = Field(42, description="Seed of every draw.")
    title: str | None = Field(
        None,
        pattern=r"^[^\n]*\S[^\n]*$",
        description="Title on the card; without it the builder's own, or the name.",
    )

    def titled(self, own: str) -> str:
        """What the card calls the release: its title, or `own` under the name that its builder gives, or its name."""
        name = type(self).model_fields["name"]
        return self.title or (own if name.is_required() or self.name == name.default else self.name)


R = TypeVar("R", bound=ReleaseRecipe)


def read_release_recipe(model: type[R], release: Path, overrides: Mapping[str, object] | None = None) -> R:
    """Read the recipe that a release was built from, also where an earlier version wrote it.

    Args:
        model: The class of the recipe.
        release: The directory of the release.
        overrides: Values by dotted key that replace the recipe's.

    Raises:
        RecipeError: The release has no recipe of this class.
    """
    return read_recipe(model, release / RECIPE, overrides, renamed=RENAMED_KEYS)


class PairLimits(FrozenModel):
    """Limits of an audit; what is unset is only reported. A build that breaks one fails, its calls kept.

    max_chosen_longer: share of pairs whose chosen text has more characters; one minus it holds for the rejected.
    max_mean_length_gap: by which the two sides differ on average.
    max_chosen_overlap: share of pairs whose chosen text repeats more of what the rubric or the person says; one minus
    it holds for the rejected. max_overlap_gap: difference between the sides in the share of it that they repeat.
    max_drop_share: share of what the source had that did not become a pair.
    max_near_duplicates: pairs of rows with nearly the same question, or nearly the same chosen text.
    """

    max_chosen_longer: float | None = Field(None, ge=0.5, le=1)
    max_mean_length_gap: float | None = Field(None, ge=0)
    max_chosen_overlap: float | None = Field(None, ge=0.5, le=1)
    max_overlap_gap: float | None = Field(None, ge=0)
    max_drop_share: float | None = Field(None, ge=0, le=1)
    max_near_duplicates: int | None = Field(None, ge=0)
