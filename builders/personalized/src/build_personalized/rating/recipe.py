"""Settings of a rating study, and assumptions of its plan."""

from typing import Any, ClassVar

from pluralbench_runs import Location, Recipe
from pluralbench_runs.study_options import RELEASE, StudyRecipe
from pydantic import Field

PLANNING = "Planning"


def _points(default: float, description: str, flag: str, **bounds: float) -> Any:
    """A field in points of the scale from 1 to 5."""
    extra = {"flag": flag, "metavar": "POINTS", "panel": PLANNING}
    return Field(default, description=description, json_schema_extra=extra, **bounds)  # type: ignore[call-overload]


class RatingRecipe(StudyRecipe):
    """Settings of a rating study, fixed before it starts.

    Attributes:
        digests: Content digest of the fields that the sheets show, by config.
        limit: Default: all pairs.
    """

    runtime_only: ClassVar[frozenset[str]] = StudyRecipe.runtime_only | {"data"}

    data: Location = RELEASE
    digests: dict[str, str] = Field(default_factory=dict)
    limit: int | None = Field(None, ge=1, description="Maximum number of pairs per config, drawn by the seed.")
    checks: int = Field(
        4,
        ge=0,
        description="Attention checks: answers to another question, hidden in every rater's sheet.",
        json_schema_extra={"flag": "--check-items"},
    )
    margin: float = Field(
        0.5,
        gt=0,
        lt=4,
        description="Mean ratings that differ by less are equivalent; fixed by --export.",
        json_schema_extra={"flag": "--equivalence-margin", "metavar": "POINTS"},
    )
    alpha: float = Field(0.05, gt=0, lt=0.5, description="Level of every test; fixed by --export.")


class PlanAssumptions(Recipe):
    """Assumptions of a plan, in points of the scale from 1 to 5.

    Attributes:
        margin: Equivalence margin.
        power: Probability that all four tests of the claim succeed.
        alpha: Level of each test.
    """

    margin: float = Field(0.5, gt=0, lt=4)
    alpha: float = Field(0.05, gt=0, lt=0.5)
    power: float = Field(
        0.8,
        ge=0.05,
        lt=1,
        description="Minimum probability that all tests succeed.",
        json_schema_extra={"panel": PLANNING},
    )
    difference: float = _points(0, "Chosen minus rejected in general quality.", "--quality-difference", ge=0, lt=4)
    rubric: float = _points(1, "Chosen minus rejected in the rubric.", "--rubric-difference", gt=0, le=4)
    sd_pairs: float = _points(
        0.5, "Standard deviation of differences between pairs. With --pilot: the pilot's.", "--sd-pairs", ge=0, le=4
    )
    sd_raters: float = _points(
        1,
        "Standard deviation of differences between raters of a pair. With --pilot: the pilot's.",
        "--sd-raters",
        ge=0,
        le=4,
    )
