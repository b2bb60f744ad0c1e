from .contract import Group, ModelRecord, Person, RewardModel, Scored
from .data.benchmarks import Benchmark, Columns, find_benchmark, known_benchmarks
from .data.items import Items, load_items
from .descriptions import (
    AspectMatching,
    ChatConnection,
    Data,
    DownstreamPrompt,
    Judging,
    LocalModel,
    OptimizeOptions,
    Outcome,
    PersonaData,
    PersonaJudging,
    PlannerOptions,
    Planning,
    Prompt,
    Running,
    Sampling,
    Scoring,
    TrainingOptions,
)
from .downstream.best_of_n import best_of_n
from .downstream.correlate import Correlation, correlate
from .downstream.optimization import optimize
from .downstream.study import Study
from .errors import BenchmarkError, DataError, EvaluationError, RunError
from .evaluation.compare import RunComparison, compare
from .evaluation.judge import judge
from .evaluation.personas import judge_personas
from .evaluation.score import score
from .evaluation.train import train
from .planning.plans import plan
from .planning.training import train_planner
from .reports.report import render, report_frame
from .reports.verdicts import verdict_rows
from .results.downstream import Downstream, DownstreamRecord, read_downstream
from .results.plans import Plans, PlansRecord, read_plans_folder
from .results.record import RunRecord
from .results.runs import Run, read_run
from .studying import study

__all__ = [
    "AspectMatching",
    "Benchmark",
    "BenchmarkError",
    "ChatConnection",
    "Columns",
    "Correlation",
    "Data",
    "DataError",
    "Downstream",
    "DownstreamPrompt",
    "DownstreamRecord",
    "EvaluationError",
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
    "PlannerOptions",
    "Planning",
    "Plans",
    "PlansRecord",
    "Prompt",
    "RewardModel",
    "Run",
    "RunComparison",
    "RunError",
    "RunRecord",
    "Running",
    "Sampling",
    "Scored",
    "Scoring",
    "Study",
    "TrainingOptions",
    "best_of_n",
    "compare",
    "correlate",
    "find_benchmark",
    "judge",
    "judge_personas",
    "known_benchmarks",
    "load_items",
    "optimize",
    "plan",
    "read_downstream",
    "read_plans_folder",
    "read_run",
    "render",
    "report_frame",
    "score",
    "study",
    "train",
    "train_planner",
    "verdict_rows",
]
