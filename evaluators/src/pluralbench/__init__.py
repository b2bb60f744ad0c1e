"""Score reward models on benchmarks in which better depends on who is asking.

`score`, `judge` and `judge_personas` make a run directory, `read_run` reads one, `compare` and `report_frame` say what
runs found, and `verdict_rows` what verdicts with certainty amount to.
"""

from pluralbench.data.benchmarks import Benchmark, Columns, find_benchmark, known_benchmarks
from pluralbench.evaluation.compare import Comparison, compare
from pluralbench.errors import BenchmarkError, DataError, EvaluationError, RunError
from pluralbench.data.items import Items, load_items
from pluralbench.evaluation.judge import judge
from pluralbench.commands.judge_metrics import verdict_rows
from pluralbench.evaluation.personas import judge_personas
from pluralbench.reports.report import render, report_frame
from pluralbench.results.runs import Run, read_run
from pluralbench.evaluation.score import score

__all__ = [
    "Benchmark",
    "BenchmarkError",
    "Columns",
    "Comparison",
    "DataError",
    "EvaluationError",
    "Items",
    "Run",
    "RunError",
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
