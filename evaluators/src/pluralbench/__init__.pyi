from .config import ConnectionConfig, DataConfig, JudgeConfig, LocalModel, PromptConfig, ServedModel
from .data.benchmark_entries import find_benchmark, known_benchmarks
from .data.items import load_items
from .downstream.best_of_n import best_of_n
from .downstream.correlate import correlate
from .downstream.optimization import optimize
from .downstream.reward_functions import as_reward_function
from .downstream.serve import serve
from .downstream.study import study
from .errors import UserError
from .evaluation.compare import compare
from .evaluation.export import export
from .evaluation.judge import judge
from .evaluation.merge import merge
from .evaluation.personas import judge_personas
from .evaluation.score import score
from .evaluation.suite import suite
from .evaluation.synthesize import synthesize
from .evaluation.train import train
from .leaderboard.checks import check_submission
from .leaderboard.site import write_site
from .personalizing.run import personalize
from .planning.plans import plan
from .planning.training import train_planner
from .reports.notebook import html, plot
from .results.finding import load_results
from .results.runs import load_run

__all__ = [
    "ConnectionConfig",
    "DataConfig",
    "JudgeConfig",
    "LocalModel",
    "PromptConfig",
    "ServedModel",
    "UserError",
    "as_reward_function",
    "best_of_n",
    "check_submission",
    "compare",
    "correlate",
    "export",
    "find_benchmark",
    "html",
    "judge",
    "judge_personas",
    "known_benchmarks",
    "load_items",
    "load_results",
    "load_run",
    "merge",
    "optimize",
    "personalize",
    "plan",
    "plot",
    "score",
    "serve",
    "study",
    "suite",
    "synthesize",
    "train",
    "train_planner",
    "write_site",
]
