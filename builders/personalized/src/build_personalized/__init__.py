"""Builds Personalized RewardBench: pairs that differ in whether they keep to one user's rubric."""

from build_personalized.build import Built, build, rebuild
from build_personalized.errors import AuditFailed, BuildError, NothingLeft, SourceError
from build_personalized.recipe import PersonalizedRecipe

__all__ = [
    "AuditFailed",
    "BuildError",
    "Built",
    "NothingLeft",
    "PersonalizedRecipe",
    "SourceError",
    "build",
    "rebuild",
]
