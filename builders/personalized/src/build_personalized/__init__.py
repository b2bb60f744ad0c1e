"""Builds Personalized RewardBench: pairs that differ in whether they keep to one user's rubric."""

from build_personalized.build import build, rebuild
from build_personalized.errors import AuditFailed, BuildError, NothingLeft, SourceError
from build_personalized.recipe import PersonalizedRecipe

__all__ = [
    "AuditFailed",
    "BuildError",
    "NothingLeft",
    "PersonalizedRecipe",
    "SourceError",
    "build",
    "rebuild",
]
