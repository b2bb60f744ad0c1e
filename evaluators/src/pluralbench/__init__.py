"""Score reward models on benchmarks in which better depends on who is asking.

`score`, `judge` and `judge_personas` make a run directory, `read_run` reads one, `compare` and `report_frame` say what
runs found, and `verdict_rows` what verdicts with certainty amount to. What a name needs is imported when it is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pluralbench.data.benchmarks import Benchmark, Columns, find_benchmark, known_benchmarks
    from pluralbench.data.items import Items, load_items
    from pluralbench.errors import BenchmarkError, DataError, EvaluationError, RunError
    from pluralbench.evaluation.compare import RunComparison, compare
    from pluralbench.evaluation.judge import judge
    from pluralbench.evaluation.personas import judge_personas
    from pluralbench.evaluation.score import score
    from pluralbench.reports.report import render, report_frame
    from pluralbench.reports.verdicts import verdict_rows
    from pluralbench.results.record import RunRecord
    from pluralbench.results.runs import Run, read_run

_PLACES = {
    "Benchmark": "data.benchmarks",
    "BenchmarkError": "errors",
    "Columns": "data.benchmarks",
    "DataError": "errors",
    "EvaluationError": "errors",
    "Items": "data.items",
    "Run": "results.runs",
    "RunComparison": "evaluation.compare",
    "RunError": "errors",
    "RunRecord": "results.record",
    "compare": "evaluation.compare",
    "find_benchmark": "data.benchmarks",
    "judge": "evaluation.judge",
    "judge_personas": "evaluation.personas",
    "known_benchmarks": "data.benchmarks",
    "load_items": "data.items",
    "read_run": "results.runs",
    "render": "reports.report",
    "report_frame": "reports.report",
    "score": "evaluation.score",
    "verdict_rows": "reports.verdicts",
}

__all__ = [
    "Benchmark",
    "BenchmarkError",
    "Columns",
    "DataError",
    "EvaluationError",
    "Items",
    "Run",
    "RunComparison",
    "RunError",
    "RunRecord",
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
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
