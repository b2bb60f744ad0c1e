from .description import Algorithm, OptimizeOptions, OptimizeSettings, Task
from .errors import PolicyError
from .optimization import optimize
from .progress_files import Optimized

__all__ = [
    "Algorithm",
    "OptimizeOptions",
    "OptimizeSettings",
    "Optimized",
    "PolicyError",
    "Task",
    "optimize",
]
