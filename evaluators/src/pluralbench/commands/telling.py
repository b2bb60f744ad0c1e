"""What a command says of the run that it made."""

from pathlib import Path

from pluralbench.commands.terminal import console
from pluralbench.reports.downstream import curve_grid, downstream_notes
from pluralbench.reports.notes import closing, notes
from pluralbench.reports.report import render
from pluralbench.results.downstream import POLICY_FOLDER, Downstream
from pluralbench.results.runs import Run


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
    files = (
        "candidates.parquet, rewards.parquet, selected.parquet" if sampled else f"candidates.parquet, {POLICY_FOLDER}"
    )
    console.print(f"{done.path}: downstream.json, metrics.json, {files}")
