"""Settings of a study of human win rates."""

from typing import ClassVar

from pluralbench_runs import Location
from pluralbench_runs.study_options import StudyRecipe
from pydantic import Field


class WinRecipe(StudyRecipe):
    """Settings of a win-rate study.

    Attributes:
        run: Directory of the best-of-n run.
        digest: Digest of the compared answers.
        limit: Default: all prompts.
    """

    runtime_only: ClassVar[frozenset[str]] = StudyRecipe.runtime_only | {"run"}

    run: Location
    digest: str = ""
    limit: int | None = Field(None, ge=1, description="Maximum number of prompts per config, drawn at random.")
