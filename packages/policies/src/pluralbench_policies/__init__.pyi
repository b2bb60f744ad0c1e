from .description import Algorithm, OptimizeOptions, OptimizeSettings, Task
from .embedded import embedded_folder
from .errors import PolicyError
from .generation import Generation, chat_model_of
from .optimization import optimize
from .planner import train_planner
from .planner_options import PlanExample, PlannerOptions, PlannerSettings
from .planner_prompts import plan_text, planner_messages, read_plan
from .verl import VerlOptions, run_verl, verl_files

__all__ = [
    "Algorithm",
    "Generation",
    "OptimizeOptions",
    "OptimizeSettings",
    "PlanExample",
    "PlannerOptions",
    "PlannerSettings",
    "PolicyError",
    "Task",
    "VerlOptions",
    "chat_model_of",
    "embedded_folder",
    "optimize",
    "plan_text",
    "planner_messages",
    "read_plan",
    "run_verl",
    "train_planner",
    "verl_files",
]
