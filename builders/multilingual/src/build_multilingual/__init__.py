"""Builds M-RewardBench: an English benchmark in other languages, and pairs of better and worse translations."""

from build_multilingual.build import build
from build_multilingual.errors import BuildError
from build_multilingual.recipe import MultilingualRecipe

__all__ = ["BuildError", "MultilingualRecipe", "build"]
