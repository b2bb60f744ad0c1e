from .build import build, rebuild
from .errors import AuditFailed, BuildError, NothingLeft, SourceError
from .recipe import PersonalizedRecipe

__all__ = [
    "AuditFailed",
    "BuildError",
    "NothingLeft",
    "PersonalizedRecipe",
    "SourceError",
    "build",
    "rebuild",
]
