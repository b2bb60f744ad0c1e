"""Score reward models on benchmarks in which better depends on who is asking.

`score`, `judge` and `judge_personas` make a run directory, `read_run` reads one, `compare` and `report_frame` say what
runs found, and `verdict_rows` what verdicts with certainty amount to. What is scored and how is said by descriptions:
`LocalModel`, `Data`, `Prompt`, `Scoring`, `Judging`, `ChatConnection`, `PersonaData`, `PersonaJudging`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pluralbench_calls.chat import ChatConnection
    from pluralbench_local import LocalModel
    from pluralbench_rewards import Group, ModelRecord, Person, RewardModel, Scored, Scoring

    from pluralbench.data.benchmarks import Benchmark, Columns, find_benchmark, known_benchmarks
    from pluralbench.data.items import Items, load_items
    from pluralbench.descriptions import Data, Judging, PersonaData, PersonaJudging, Prompt
    from pluralbench.errors import BenchmarkError, DataError, EvaluationError, RunError
    from pluralbench.evaluation.compare import RunComparison, compare
    from pluralbench.evaluation.judge import judge
    from pluralbench.evaluation.personas import judge_personas
    from pluralbench.evaluation.score import score
    from pluralbench.reports.report import render, report_frame
    from pluralbench.reports.verdicts import verdict_rows
    from pluralbench.results.record import RunRecord
    from pluralbench.results.runs import Run, read_run

# Imported when they are asked for, so that a command's `--help` is quick and judging imports no torch.
_LATER = {
    "pluralbench.reports.verdicts": ("verdict_rows",),
    "pluralbench.data.benchmarks": ("Benchmark", "Columns", "find_benchmark", "known_benchmarks"),
    "pluralbench.data.items": ("Items", "load_items"),
    "pluralbench.descriptions": ("Data", "Judging", "PersonaData", "PersonaJudging", "Prompt"),
    "pluralbench.errors": ("BenchmarkError", "DataError", "EvaluationError", "RunError"),
    "pluralbench.evaluation.compare": ("RunComparison", "compare"),
    "pluralbench.evaluation.judge": ("judge",),
    "pluralbench.evaluation.personas": ("judge_personas",),
    "pluralbench.evaluation.score": ("score",),
    "pluralbench.reports.report": ("render", "report_frame"),
    "pluralbench.results.record": ("RunRecord",),
    "pluralbench.results.runs": ("Run", "read_run"),
    "pluralbench_calls.chat": ("ChatConnection",),
    "pluralbench_local": ("LocalModel",),
    "pluralbench_rewards": ("Group", "ModelRecord", "Person", "RewardModel", "Scored", "Scoring"),
}
_MODULES = {name: module for module, names in _LATER.items() for name in names}

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
    "verdict_rows",
]


def __getattr__(name: str) -> Any:
    """A public name, imported when it is asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value
