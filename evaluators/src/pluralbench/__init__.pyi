from .contract import Group, ModelRecord, Person, RewardModel, Scored
from .data.benchmarks import Benchmark, Columns, find_benchmark, known_benchmarks
from .data.items import Items, load_items
from .descriptions import (
    ChatConnection,
    Data,
    Judging,
    LocalModel,
    PersonaData,
    PersonaJudging,
    Prompt,
    Scoring,
    TrainingOptions,
)
from .errors import BenchmarkError, DataError, EvaluationError, RunError
from .evaluation.compare import RunComparison, compare
from .evaluation.judge import judge
from .evaluation.personas import judge_personas
from .evaluation.score import score
from .evaluation.train import train
from .reports.report import render, report_frame
from .reports.verdicts import verdict_rows
from .results.record import RunRecord
from .results.runs import Run, read_run

__all__ = [
    "Benchmark",
    "BenchmarkError",
    "ChatConnection",
    "Columns",
    "Data",
    "DataError",
    "EvaluationError",
    "Group",
    "Items",
    "Judging",
    "LocalModel",
    "ModelRecord",
    "Person",
    "PersonaData",
    "PersonaJudging",
    "Prompt",
    "RewardModel",
    "Run",
    "RunComparison",
    "RunError",
    "RunRecord",
    "Scored",
    "Scoring",
    "TrainingOptions",
    "compare",
    "find_benchmark",
    "judge",
    "judge_personas",
    "known_benchmarks",
    "load_items",
    "read_run",
    "render",
    "report_frame",
    "score",
    "train",
    "verdict_rows",
]
