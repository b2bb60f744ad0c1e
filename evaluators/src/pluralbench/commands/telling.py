"""What a command says of the run that it made."""

from pathlib import Path

from pluralbench.commands.terminal import console
from pluralbench.reports.downstream import curve_grid, downstream_notes
from pluralbench.reports.notes import closing, notes
from pluralbench.reports.report import render
from pluralbench.results.downstream import DOWNSTREAM_FILE, POLICY_FOLDER, Downstream
from pluralbench.results.runs import LEDGER_FILE, METRICS_FILE, Run


def tell(done: Run) -> None:
    """Print a run's table, and what a reader has to know of it."""
    console.print()
    console.print(render([done], "table"))
    for line in [*notes([done]), *closing(done)]:
        console.print(line)


def tell_downstream(done: Downstream, plots: Path | None = None) -> None:
    """Print what best-of-n found, draw its curves where they are asked for, and say which files there are."""
    console.print()
    sampled = done.record.verb == "best-of-n" and bool(done.record.rewards)
    if sampled:
        console.print(curve_grid(done))
    for line in downstream_notes(done):
        console.print(line)
    if plots is not None and sampled:
        from pluralbench.reports.figures.best_of_n import draw_best_of_n  # noqa: PLC0415 - figures are drawn by few

        for path in draw_best_of_n(done, plots):
            console.print(f"Wrote {path}")
    files = [path.name for path in done.path.glob("*.parquet") if path.name != LEDGER_FILE]
    policy = [] if sampled else [POLICY_FOLDER]
    console.print(f"{done.path}: {', '.join([DOWNSTREAM_FILE, METRICS_FILE, *sorted(files), *policy])}")
