from .errors import PolicyError

__all__ = ["PolicyError"]
