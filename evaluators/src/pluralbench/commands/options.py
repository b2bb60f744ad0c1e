"""Options that several verbs share and that are not fields of a configuration."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from pluralbench_runs.options import RESULT

BENCHMARKS = (
    "Name, such as personalized, multilingual, chinese, reward-bench-2 or pairs (`pluralbench list` shows all), or a "
    "TOML file."
)
DETECTED = f"{BENCHMARKS} Default: the benchmark in the manifest of --data, else personalized."
Benchmark = Annotated[str, typer.Option("--benchmark", help=BENCHMARKS, rich_help_panel="Data")]
DetectedBenchmark = Annotated[str | None, typer.Option("--benchmark", help=DETECTED, rich_help_panel="Data")]
Out = Annotated[str | None, typer.Option(help="Run directory. Default: a name under runs/.", rich_help_panel=RESULT)]
Plots = Annotated[Path | None, typer.Option(help="Directory for figures (PNG and SVG).")]
DataNow = Annotated[
    str | None,
    typer.Option(metavar="DIR|FILE|ORG/NAME[@REVISION]", help="Current location of the run's data, if it has moved."),
]
Without = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Also show the overall numbers without these items, such as those of `contamination --out`.",
    ),
]
RESCORING = "Rescoring"
CurrentModel = Annotated[
    str | None,
    typer.Option(help="Current directory or name of the model, if it has moved.", rich_help_panel=RESCORING),
]
TrustRemoteCode = Annotated[
    bool,
    typer.Option(
        "--trust-remote-code",
        help="Run Python code that comes with a model, with your permissions.",
        rich_help_panel=RESCORING,
    ),
]
DataPlaces = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        metavar="[BENCHMARK=]DIR|FILE|ORG/NAME[@REVISION]",
        help="Current location of the runs' data, if it has moved; BENCHMARK= limits it to one benchmark. Repeatable.",
    ),
]
DRAW = ("items", "items_seed")
"""Fields of `DataConfig` that only verbs with a benchmark's number have."""

Shard = Annotated[
    str | None,
    typer.Option(
        metavar="I/N",
        help="Process only shard I of N (from 1); `pluralbench merge` joins the shards.",
        rich_help_panel="Data",
    ),
]


def parse_location_overrides(arguments: Sequence[str] | None) -> dict[str, str]:
    """Parse locations of data: LOCATION for all runs, or BENCHMARK=LOCATION for those of one benchmark."""
    split = [
        ("", "", text) if Path(text).exists() or "=" not in text else text.partition("=") for text in arguments or ()
    ]
    return {name: location for name, _, location in split}
