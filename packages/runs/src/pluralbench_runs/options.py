"""Options that every builder's command has, named and explained the same way."""

from pathlib import Path
from typing import Annotated

import typer

Out = Annotated[Path | None, typer.Option(help="Release directory; without it dist/NAME.")]
Name = Annotated[
    str | None,
    typer.Option(help="What the dataset is called, as dist/NAME and on its card."),
]
Seed = Annotated[int | None, typer.Option(help="Seed of every random draw.")]
MaxCost = Annotated[
    float | None, typer.Option(min=0, help="Spending ceiling in US dollars, by --price or the recipe's.")
]
ReplayFrom = Annotated[Path | None, typer.Option(help="Take every answer from this ledger or release; send nothing.")]
ReuseFrom = Annotated[Path | None, typer.Option(help="Take what this ledger or release knows; ask for the rest.")]
RetryErrors = Annotated[bool, typer.Option("--retry-errors", help="Ask again what the server rejected.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Start over, and replace what another recipe made.")]
