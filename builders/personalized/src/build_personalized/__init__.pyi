from .build import build, rebuild
from .recipe import PersonalizedRecipe

__all__ = ["PersonalizedRecipe", "build", "rebuild"]
