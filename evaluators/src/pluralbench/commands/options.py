"""Options of several verbs that are no fields."""

from typing import Annotated

import typer
from pluralbench_runs.options import RESULT

Out = Annotated[str | None, typer.Option(help="Run directory; without it under runs/.", rich_help_panel=RESULT)]
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
