from .description import Algorithm, OptimizeOptions, OptimizeSettings, Task
from .embedded import embedded_folder
from .errors import PolicyError
from .generation import Generation, chat_model_of
from .optimization import optimize
from .progress_files import Optimized
from .verl import VerlOptions, run_verl, verl_files

__all__ = [
    "Algorithm",
    "Generation",
    "OptimizeOptions",
    "OptimizeSettings",
    "Optimized",
    "PolicyError",
    "Task",
    "VerlOptions",
    "chat_model_of",
    "embedded_folder",
    "optimize",
    "run_verl",
    "verl_files",
]
