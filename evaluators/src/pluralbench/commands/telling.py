"""What a command says of the run that it made."""

from pluralbench.commands.terminal import console
from pluralbench.reports.notes import closing, notes
from pluralbench.reports.report import render
from pluralbench.results.runs import Run


def tell(done: Run) -> None:
    """Print a run's table, and what a reader has to know of it."""
    console.print()
    console.print(render([done], "table"))
    for line in [*notes([done]), *closing(done)]:
        console.print(line)
