from .build import build
from .errors import BuildError
from .recipe import PersonaJudgeRecipe

__all__ = ["BuildError", "PersonaJudgeRecipe", "build"]
