"""Print runs, reports and tables to the terminal."""

from collections.abc import Iterable
from pathlib import Path

import typer
from pluralbench_runs import log_status, output_file, shell_command, step

from pluralbench.commands.terminal import console
from pluralbench.errors import EvaluationError
from pluralbench.evaluation.without import ItemList, emptied_subsets, suite_without_items
from pluralbench.reports import Format
from pluralbench.reports.contamination import emptied_note
from pluralbench.reports.downstream import curve_table, downstream_notes
from pluralbench.reports.layout import WIDTH, wrapped
from pluralbench.reports.overview import overview
from pluralbench.reports.personalize import report_personalized
from pluralbench.reports.report import reports_of
from pluralbench.reports.run_header import run_header
from pluralbench.reports.suite import report_suites
from pluralbench.reports.tables import Table
from pluralbench.reports.writing import Report, format_report, render_tables
from pluralbench.results.downstream import POLICY_FOLDER
from pluralbench.results.finding import FoundRuns
from pluralbench.results.personalize import PAGE_FILE
from pluralbench.results.run_files import ITEMS_FILE, LEDGER_FILE, METRICS_FILE, RUN_FILE
from pluralbench.results.runs import Downstream, Personalized, Run
from pluralbench.results.suite import SuiteRun


def print_run(done: Run) -> None:
    """Print a run's header, its row of the report, and the notes. A shard has only the header."""
    console.print()
    for line in run_header(done):
        console.print(line)
    if done.config.data.shard is not None:
        return
    console.print()
    print_report(overview([done]))


def print_suite(done: SuiteRun, form: Format, html: Path | None = None, without: ItemList | None = None) -> None:
    """Print the row of a suite; of shards, how to join them.

    Args:
        done: The suite.
        form: Output format.
        html: File of the page of all runs. Default: none is written.
        without: Items without which a second row is computed. Default: there is none.
    """
    if done.shard is not None:
        total = done.shard.partition("/")[2]
        console.print(
            f"Shard {done.shard} of {len(done.runs):,} benchmarks is in {done.path}. With all {total}, join the "
            "shards of each benchmark by `pluralbench merge`, and rerun this command without --shard for the row."
        )
        return
    suites = [done, *([suite_without_items(done, without.items)] if without else [])]
    emptied = {name: emptied_subsets(run, suites[-1].runs[name]) for name, run in done.runs.items()}
    report = report_suites(suites)
    notes = [emptied_note(name, subsets) for name, subsets in emptied.items() if subsets]
    print_report(report._replace(notes=[*report.notes, *notes]), form)
    if html is not None:
        from pluralbench.reports.html.report import write_html  # noqa: PLC0415 - only needed for the page
        from pluralbench.results.finding import find_runs  # noqa: PLC0415 - the same

        for note in write_html(find_runs([done.path]), html):
            log_status(note)
        log_status(f"Wrote {html}")


def print_downstream(done: Downstream, plots: Path | None = None) -> None:
    """Print the results of best-of-n or optimize and the names of the files.

    Args:
        done: The run.
        plots: Directory for figures. Default: none are drawn.
    """
    console.print()
    sampled = done.verb == "best-of-n" and bool(done.result.rewards)
    if sampled:
        print_tables([curve_table(done)])
    for line in downstream_notes(done):
        console.print(line)
    if plots is not None and sampled:
        from pluralbench.reports.figures.downstream import best_of_n  # noqa: PLC0415 - only needed for figures
        from pluralbench.reports.figures.files import write  # noqa: PLC0415 - the same

        for path in write(best_of_n(done), plots):
            console.print(f"Wrote {path}")
    files = [path.name for path in done.path.glob("*.parquet") if path.name != LEDGER_FILE]
    policy = [] if sampled else [POLICY_FOLDER]
    console.print(f"{done.path}: {', '.join([RUN_FILE, METRICS_FILE, *sorted(files), *policy])}")


def print_personalized(done: Personalized) -> None:
    """Print the results of personalize, and how to score one of the models."""
    console.print()
    print_report(report_personalized([done]))
    console.print(f"{done.path}: {', '.join([PAGE_FILE, RUN_FILE, METRICS_FILE, ITEMS_FILE])}")
    model = done.result.models[-1]
    profile = "none" if model.condition == "without" else model.user_context
    words = ["score", done.path / model.folder, "--profile", profile, "--benchmark", "...", "--data", "..."]
    console.print(f"Next:\n  {shell_command('pluralbench', *words)}")


def print_runs(
    runs: FoundRuns, form: Format, out: Path | None, *, detail: bool, wide: bool, without: Path | None = None
) -> None:
    """Print the report of runs, or write it to a file.

    Directories of `personalize`, `best-of-n` and `optimize` have reports of their own; formats other than tables have
    only the first report.

    Args:
        runs: The runs.
        form: Output format.
        out: File to write. Default: the terminal.
        detail: Add a row for each config, section and category.
        wide: Use as many columns as needed, instead of 80.
        without: List of items; the overall numbers without them are added. Default: none.

    Raises:
        EvaluationError: If there is no run, the file cannot be written, or the list of items cannot be used.
    """
    with step("Computing the report"):
        reports = reports_of(runs, detail=detail, wide=wide, without=without)
    for place, report in enumerate(reports if form == "table" else reports[:1]):
        print_report(report, form, None if place else out, width=None if wide else WIDTH)


def print_report(report: Report, form: Format = "table", out: Path | None = None, *, width: int | None = WIDTH) -> None:
    """Print a report, or write it to a file, in which tables are Markdown.

    Args:
        report: The report.
        form: Output format.
        out: File to write. Default: the terminal.
        width: Maximum number of columns; None for no maximum.

    Raises:
        EvaluationError: If the file cannot be written.
    """
    form = "markdown" if out is not None and form == "table" else form
    text = format_report(report, form, None if width is None else min(width, console.width))
    if out is not None:
        try:
            with output_file(out) as new:
                new.write_text(f"{str(text).rstrip()}\n", encoding="utf-8", newline="")
        except OSError as error:
            raise EvaluationError(f"{out} cannot be written: {error.strerror}; choose another file.") from None
        console.print(f"Wrote {out}")
    elif isinstance(text, str):
        typer.echo(text.rstrip())
    else:
        console.print(text)


def print_tables(tables: Iterable[Table]) -> None:
    """Print tables in at most 80 columns."""
    console.print(*render_tables([*tables], min(WIDTH, console.width)), sep="\n")


def print_lines(lines: Iterable[str]) -> None:
    """Print lines wrapped at 80 columns, as reports do. Indented lines start with a path and are not wrapped."""
    for line in lines:
        console.print(line if line.startswith(" ") else wrapped(line, min(WIDTH, console.width)))
