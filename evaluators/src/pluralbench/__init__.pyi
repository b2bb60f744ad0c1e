from .config import ConnectionConfig, DataConfig, JudgeConfig, LocalModel, PromptConfig, ServedModel
from .data.benchmarks import find_benchmark, known_benchmarks
from .data.items import load_items
from .errors import UserError
from .evaluation.compare import compare
from .leaderboard.checks import check_submission
from .leaderboard.site import write_site
from .reports.notebook import html, plot
from .results import results
from .results.runs import load_run
from .studying import study
from .verbs.evaluate import judge, judge_personas, merge, score, suite, synthesize
from .verbs.policies import best_of_n, optimize
from .verbs.read import correlate
from .verbs.train import personalize, plan, train, train_planner

__all__ = [
    "ConnectionConfig",
    "DataConfig",
    "JudgeConfig",
    "LocalModel",
    "PromptConfig",
    "ServedModel",
    "UserError",
    "best_of_n",
    "check_submission",
    "compare",
    "correlate",
    "find_benchmark",
    "html",
    "judge",
    "judge_personas",
    "known_benchmarks",
    "load_items",
    "load_run",
    "merge",
    "optimize",
    "personalize",
    "plan",
    "plot",
    "results",
    "score",
    "study",
    "suite",
    "synthesize",
    "train",
    "train_planner",
    "write_site",
]
