from .build import build
from .recipe import PersonaJudgeRecipe

__all__ = ["PersonaJudgeRecipe", "build"]
