from .config import (
    AspectMatchingConfig,
    ClusterConfig,
    ConnectionConfig,
    DataConfig,
    DownstreamPromptConfig,
    JudgeConfig,
    LocalModel,
    OptimizeConfig,
    OutcomeConfig,
    PersonaDataConfig,
    PersonaJudgeConfig,
    PersonalConfig,
    PersonalizeConfig,
    PlanConfig,
    PlannerConfig,
    PromptConfig,
    RuntimeConfig,
    SamplingConfig,
    ScoringConfig,
    ServedModel,
    ServingConfig,
    SynthesizeConfig,
    TrainingConfig,
)
from .contract import Group, ModelRecord, Person, RewardModel, Scored
from .data.benchmarks import Benchmark, Columns, find_benchmark, known_benchmarks
from .data.items import Items, load_items
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
from .leaderboard.checks import check_submission
from .leaderboard.findings import Finding
from .leaderboard.site import write_site
from .personalizing.run import personalize
from .planning.plans import plan
from .planning.training import train_planner
from .reports.report import render, report_frame
from .reports.verdicts import verdict_rows
from .results.runs import Downstream, Personalized, Plans, Run, Synthesis, load_run
from .studying import study

__all__ = [
    "AspectMatchingConfig",
    "Benchmark",
    "BenchmarkError",
    "ClusterConfig",
    "Columns",
    "ConnectionConfig",
    "Correlation",
    "DataConfig",
    "DataError",
    "Downstream",
    "DownstreamPromptConfig",
    "EvaluationError",
    "Finding",
    "Group",
    "Items",
    "JudgeConfig",
    "LocalModel",
    "ModelRecord",
    "OptimizeConfig",
    "OutcomeConfig",
    "Person",
    "PersonaDataConfig",
    "PersonaJudgeConfig",
    "PersonalConfig",
    "PersonalizeConfig",
    "Personalized",
    "PlanConfig",
    "PlannerConfig",
    "Plans",
    "PromptConfig",
    "RewardModel",
    "Run",
    "RunComparison",
    "RunError",
    "RuntimeConfig",
    "SamplingConfig",
    "Scored",
    "ScoringConfig",
    "ServedModel",
    "ServingConfig",
    "Study",
    "Synthesis",
    "SynthesizeConfig",
    "TrainingConfig",
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
