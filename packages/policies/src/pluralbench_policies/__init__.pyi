from .description import Algorithm, OptimizeOptions, OptimizeSettings, Task
from .errors import PolicyError
from .optimization import optimize
from .progress_files import Optimized
from .verl import VerlOptions, run_verl, verl_files

__all__ = [
    "Algorithm",
    "OptimizeOptions",
    "OptimizeSettings",
    "Optimized",
    "PolicyError",
    "Task",
    "VerlOptions",
    "optimize",
    "run_verl",
    "verl_files",
]
