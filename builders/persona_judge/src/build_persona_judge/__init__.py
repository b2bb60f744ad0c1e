"""Builds persona judge: items that ask which of two options belongs to a person known by a persona alone."""

from build_persona_judge.build import build
from build_persona_judge.errors import BuildError
from build_persona_judge.recipe import PersonaJudgeRecipe

__all__ = ["BuildError", "PersonaJudgeRecipe", "build"]
