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
from .errors import BenchmarkError, DataError, EvaluationError, RunError
from .evaluation.compare import RunComparison, compare
from .evaluation.judge import judge
from .evaluation.merge import merge
from .evaluation.personas import judge_personas
from .evaluation.score import score
from .evaluation.synthesize import Synthesis, synthesize
from .evaluation.train import train
from .leaderboard.findings import Finding
from .leaderboard.site import write_site
from .leaderboard.submission import check_submission
from .personalizing.run import personalize
from .planning.plans import plan
from .planning.training import train_planner
from .reports.report import render, report_frame
from .reports.verdicts import verdict_rows
from .results.downstream import Downstream, DownstreamRecord, read_downstream
from .results.personalize import Personalized, PersonalizeRecord, read_personalized
from .results.plans import Plans, PlansRecord, read_plans_folder
from .results.record import RunRecord
from .results.runs import Run, read_run
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
    "DownstreamRecord",
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
    "PersonalizeRecord",
    "Personalized",
    "Personalizing",
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
    "ServedModel",
    "Serving",
    "Study",
    "Synthesis",
    "Synthesizing",
    "TrainingOptions",
    "best_of_n",
    "check_submission",
    "compare",
    "correlate",
    "find_benchmark",
    "judge",
    "judge_personas",
    "known_benchmarks",
    "load_items",
    "merge",
    "optimize",
    "personalize",
    "plan",
    "read_downstream",
    "read_personalized",
    "read_plans_folder",
    "read_run",
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
