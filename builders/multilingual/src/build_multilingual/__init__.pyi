from .build import build
from .errors import BuildError
from .recipe import MultilingualRecipe

__all__ = ["BuildError", "MultilingualRecipe", "build"]
