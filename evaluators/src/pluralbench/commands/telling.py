"""What a command says of the run that it made."""

import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path

import typer
from rich.console import Group

from pluralbench.commands.terminal import console
from pluralbench.errors import EvaluationError
from pluralbench.reports import Format
from pluralbench.reports.downstream import curve_grid, downstream_notes, line_of
from pluralbench.reports.layout import WIDTH
from pluralbench.reports.notes import closing
from pluralbench.reports.personalize import render_personalized
from pluralbench.reports.report import render
from pluralbench.results.downstream import DOWNSTREAM_FILE, POLICY_FOLDER, Downstream
from pluralbench.results.finding import Found
from pluralbench.results.personalize import PAGE_FILE, PERSONALIZE_FILE, Personalized
from pluralbench.results.runs import ITEMS_FILE, LEDGER_FILE, METRICS_FILE, Run


def tell(done: Run) -> None:
    """Print where a run lies and how it was made, then its row, what a reader has to know of it, and what it took."""
    console.print()
    for line in closing(done):
        console.print(line)
    if done.record.data.shard is not None:  # which has no row
        return
    console.print()
    console.print(render([done], "table", width=min(WIDTH, console.width)))


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


def tell_personalized(done: Personalized) -> None:
    """Print what personalized reward models decide with and without a profile, and how to score one of them."""
    console.print()
    console.print(render_personalized([done], "table", width=min(WIDTH, console.width)))
    console.print(f"{done.path}: {', '.join([PAGE_FILE, PERSONALIZE_FILE, METRICS_FILE, ITEMS_FILE])}")
    model = done.record.models[-1]
    told = "none" if model.condition == "without" else model.told
    folder = shlex.quote(str(done.path / model.folder))
    console.print(f"Score a model: pluralbench score {folder} --profile {told} --benchmark ... --data ...")


def tell_found(found: Found, form: Format, out: Path | None, *, detail: bool, wide: bool) -> None:
    """Print the report of some runs, or write it to a file. Raises `EvaluationError` where there is no run.

    Directories of `personalize` have tables of their own, in another form than a table only where there is no other
    run. Directories of `best-of-n` and `optimize` have a line each, and no row.
    """
    width = min(WIDTH, console.width)
    if found.runs or not (found.downstream or found.personalized):
        _print_or_write(partial(render, found.runs, detail=detail, wide=wide, width=width), form, out)
    if found.personalized and (form == "table" or not found.runs):
        tables = partial(render_personalized, found.personalized, width=None if wide else width)
        _print_or_write(tables, form, None if found.runs else out)
    if form == "table":
        for one in found.downstream:
            console.print(line_of(one))


def _print_or_write(rendered_as: Callable[[Format], str | Group], form: Format, out: Path | None) -> None:
    rendered = rendered_as("markdown" if out is not None and form == "table" else form)
    if out is not None:
        try:
            out.write_text(f"{str(rendered).rstrip()}\n", encoding="utf-8")
        except OSError as error:
            raise EvaluationError(f"{out} cannot be written: {error.strerror}.") from None
        console.print(f"Wrote {out}")
    elif isinstance(rendered, str):
        typer.echo(rendered.rstrip())
    else:
        console.print(rendered)
