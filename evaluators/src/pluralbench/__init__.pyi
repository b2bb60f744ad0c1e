from .contract import Group, ModelRecord, Person, RewardModel, Scored
from .data.benchmarks import Benchmark, Columns, find_benchmark, known_benchmarks
from .data.items import Items, load_items
from .descriptions import (
    AspectMatching,
    ChatConnection,
    Cluster,
    Data,
    DownstreamPrompt,
    Judging,
    LocalModel,
    OptimizeOptions,
    Outcome,
    PersonaData,
    PersonaJudging,
    Personalizing,
    PersonalOptions,
    PlannerOptions,
    Planning,
    Prompt,
    Running,
    Sampling,
    Scoring,
    ServedModel,
    Serving,
    Synthesizing,
    TrainingOptions,
)
from .downstream.best_of_n import best_of_n
from .downstream.correlate import Correlation, correlate
from .downstream.optimization import optimize
from .downstream.study import Study
from .errors import BenchmarkError, DataError, EvaluationError, RunError, UserError
from .evaluation.compare import RunComparison, compare
from .evaluation.judge import judge
from .evaluation.merge import merge
from .evaluation.personas import judge_personas
from .evaluation.score import score
from .evaluation.synthesize import synthesize
from .evaluation.train import train
from .leaderboard.findings import Finding
from .leaderboard.site import write_site
from .leaderboard.submission import check_submission
from .personalizing.run import personalize
from .planning.plans import plan
from .planning.training import train_planner
from .reports.report import render, report_frame
from .reports.verdicts import verdict_rows
from .results.runs import Downstream, Personalized, Plans, Run, Synthesis, load_run
from .studying import study

__all__ = [
    "AspectMatching",
    "Benchmark",
    "BenchmarkError",
    "ChatConnection",
    "Cluster",
    "Columns",
    "Correlation",
    "Data",
    "DataError",
    "Downstream",
    "DownstreamPrompt",
    "EvaluationError",
    "Finding",
    "Group",
    "Items",
    "Judging",
    "LocalModel",
    "ModelRecord",
    "OptimizeOptions",
    "Outcome",
    "Person",
    "PersonaData",
    "PersonaJudging",
    "PersonalOptions",
    "Personalized",
    "Personalizing",
    "PlannerOptions",
    "Planning",
    "Plans",
    "Prompt",
    "RewardModel",
    "Run",
    "RunComparison",
    "RunError",
    "Running",
    "Sampling",
    "Scored",
    "Scoring",
    "ServedModel",
    "Serving",
    "Study",
    "Synthesis",
    "Synthesizing",
    "TrainingOptions",
    "UserError",
    "best_of_n",
    "check_submission",
    "compare",
    "correlate",
    "find_benchmark",
    "judge",
    "judge_personas",
    "known_benchmarks",
    "load_items",
    "load_run",
    "merge",
    "optimize",
    "personalize",
    "plan",
    "render",
    "report_frame",
    "score",
    "study",
    "synthesize",
    "train",
    "train_planner",
    "verdict_rows",
    "write_site",
]
