from .build import build
from .recipe import MultilingualRecipe

__all__ = ["MultilingualRecipe", "build"]
