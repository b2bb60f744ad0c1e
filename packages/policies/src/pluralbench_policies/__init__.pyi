from .config import Algorithm, OptimizeConfig, OptimizeSettings, Task
from .embedded import embedded_folder
from .errors import PolicyError
from .generation import Generation, generation_backend
from .language_models import LanguageModel, chat_model_of
from .optimization import check_installed, optimize
from .planner import train_planner
from .planner_options import PlanExample, PlannerConfig, PlannerSettings, plan_text, planner_messages, read_plan

__all__ = [
    "Algorithm",
    "Generation",
    "LanguageModel",
    "OptimizeConfig",
    "OptimizeSettings",
    "PlanExample",
    "PlannerConfig",
    "PlannerSettings",
    "PolicyError",
    "Task",
    "chat_model_of",
    "check_installed",
    "embedded_folder",
    "generation_backend",
    "optimize",
    "plan_text",
    "planner_messages",
    "read_plan",
    "train_planner",
]
