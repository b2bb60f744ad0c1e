from .description import Algorithm, OptimizeOptions, OptimizeSettings, Task
from .embedded import embedded_folder
from .errors import PolicyError
from .generation import Generation, chat_model_of
from .optimization import optimize
from .progress_files import Optimized

__all__ = [
    "Algorithm",
    "Generation",
    "OptimizeOptions",
    "OptimizeSettings",
    "Optimized",
    "PolicyError",
    "Task",
    "chat_model_of",
    "embedded_folder",
    "optimize",
]
