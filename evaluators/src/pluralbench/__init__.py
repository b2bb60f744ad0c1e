"""Score reward models on benchmarks in which better depends on who is asking.

`score`, `judge` and `judge_personas` make a run directory, `read_run` reads one, `compare` and `report_frame` say what
runs found, and `verdict_rows` what verdicts with certainty amount to.
"""

from pluralbench.benchmarks import Benchmark, Columns, find_benchmark, known_benchmarks
from pluralbench.compare import Comparison, compare
from pluralbench.errors import BenchmarkError, DataError, EvaluationError, RunError
from pluralbench.items import Items, load_items
from pluralbench.judge import judge
from pluralbench.judge_metrics import verdict_rows
from pluralbench.persona_judge import judge_personas
from pluralbench.report import render, report_frame
from pluralbench.rundirs import Run, read_run
from pluralbench.score import score

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
