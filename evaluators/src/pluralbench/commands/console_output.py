"""What a command says of the run that it made."""

import shlex
from collections.abc import Iterable
from pathlib import Path

import typer
from pluralbench_runs import write_text
from pluralbench_runs.console import sanitize

from pluralbench.commands.terminal import console
from pluralbench.errors import EvaluationError
from pluralbench.reports import Format
from pluralbench.reports.downstream import curve_table, downstream_notes
from pluralbench.reports.layout import WIDTH
from pluralbench.reports.overview import overview
from pluralbench.reports.personalize import report_personalized
from pluralbench.reports.report import reports_of
from pluralbench.reports.run_header import run_header
from pluralbench.reports.tables import Table
from pluralbench.reports.writing import Report, shown, written
from pluralbench.results.downstream import POLICY_FOLDER
from pluralbench.results.finding import FoundRuns
from pluralbench.results.personalize import PAGE_FILE
from pluralbench.results.runs import ITEMS_FILE, LEDGER_FILE, METRICS_FILE, RUN_FILE, Downstream, Personalized, Run


def print_run(done: Run) -> None:
    """Print where a run lies and how it was made, then its row, what a reader has to know of it, and what it took."""
    console.print()
    for line in run_header(done):
        console.print(line)
    if done.config.data.shard is not None:  # which has no row
        return
    console.print()
    print_report(overview([done]))


def print_downstream(done: Downstream, plots: Path | None = None) -> None:
    """Print what best-of-n found, draw its curves where they are asked for, and say which files there are."""
    console.print()
    sampled = done.verb == "best-of-n" and bool(done.result.rewards)
    if sampled:
        print_tables([curve_table(done)])
    for line in downstream_notes(done):
        console.print(line)
    if plots is not None and sampled:
        from pluralbench.reports.figures.best_of_n import draw_best_of_n  # noqa: PLC0415 - figures are drawn by few

        for path in draw_best_of_n(done, plots):
            console.print(f"Wrote {path}")
    files = [path.name for path in done.path.glob("*.parquet") if path.name != LEDGER_FILE]
    policy = [] if sampled else [POLICY_FOLDER]
    console.print(f"{done.path}: {', '.join([RUN_FILE, METRICS_FILE, *sorted(files), *policy])}")


def print_personalized(done: Personalized) -> None:
    """Print what personalized reward models decide with and without a profile, and how to score one of them."""
    console.print()
    print_report(report_personalized([done]))
    console.print(f"{done.path}: {', '.join([PAGE_FILE, RUN_FILE, METRICS_FILE, ITEMS_FILE])}")
    model = done.result.models[-1]
    told = "none" if model.condition == "without" else model.user_context
    folder = shlex.quote(str(done.path / model.folder))
    console.print(f"Score a model: pluralbench score {folder} --profile {told} --benchmark ... --data ...")


def print_runs(found: FoundRuns, form: Format, out: Path | None, *, detail: bool, wide: bool) -> None:
    """Print the report of some runs, or write it to a file. Raises `EvaluationError` where there is no run.

    Directories of `personalize`, and those of `best-of-n` and `optimize`, have tables of their own, in another form
    than a table only where there is nothing before them.
    """
    reports = reports_of(found, detail=detail, wide=wide)
    for place, report in enumerate(reports if form == "table" else reports[:1]):
        print_report(report, form, None if place else out, width=None if wide else WIDTH)


def print_report(report: Report, form: Format = "table", out: Path | None = None, *, width: int | None = WIDTH) -> None:
    """Print a report, or write it to a file, where a table is one in Markdown. width: the most columns it takes."""
    form = "markdown" if out is not None and form == "table" else form
    text = written(report, form, None if width is None else min(width, console.width))
    if out is not None:
        try:
            write_text(out, f"{str(text).rstrip()}\n")
        except OSError as error:
            raise EvaluationError(f"{out} cannot be written: {error.strerror}.") from None
        console.print(f"Wrote {out}")
    elif isinstance(text, str):
        typer.echo(sanitize(text.rstrip(), isolates=True))
    else:
        console.print(text)


def print_tables(tables: Iterable[Table]) -> None:
    """Print tables alone."""
    console.print(*shown([*tables], min(WIDTH, console.width)), sep="\n")
