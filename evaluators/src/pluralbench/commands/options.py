"""Options of several verbs that are no fields."""

from pathlib import Path
from typing import Annotated

import typer
from pluralbench_runs.options import RESULT

BENCHMARKS = (
    "personalized, multilingual, reward-bench, chinese, pandalm, arena-personalized, prism-personalized, "
    "personalized-training, pairs, rankings, prompts (which a policy answers), or a TOML file."
)
FOUND = f"{BENCHMARKS} Without it what the manifest of --data says, else personalized."
Benchmark = Annotated[str, typer.Option("--benchmark", help=BENCHMARKS, rich_help_panel="Data")]
FoundBenchmark = Annotated[str | None, typer.Option("--benchmark", help=FOUND, rich_help_panel="Data")]
Out = Annotated[str | None, typer.Option(help="Run directory; without it under runs/.", rich_help_panel=RESULT)]
Plots = Annotated[Path | None, typer.Option(help="A folder for figures, as PNG and SVG.")]
DataNow = Annotated[
    str | None,
    typer.Option(metavar="DIR|FILE|ORG/NAME[@REVISION]", help="Where the run's data is now, if it has moved."),
]
Shard = Annotated[
    str | None,
    typer.Option(
        metavar="I/N",
        help="Only the I-th of N shares of the items, from 1 to N, which `pluralbench merge` joins.",
        rich_help_panel="Data",
    ),
]
