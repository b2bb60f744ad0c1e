"""Print what the verbs return."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from pluralbench_runs import log_status, output_file, plural, shell_command
from pluralbench_runs.console import make_console, terminal_json
from pluralbench_runs.options import Flag
from pydantic import Field

from pluralbench.config import DataConfig, PromptConfig

if TYPE_CHECKING:
    from pluralbench_local import Trained

    from pluralbench.downstream.correlate import Correlation
    from pluralbench.evaluation.agree import Agreement
    from pluralbench.evaluation.contamination import Contamination
    from pluralbench.evaluation.export import Exported
    from pluralbench.evaluation.without import ItemList
    from pluralbench.reports.tables import Report, Table
    from pluralbench.results.runs import Downstream, Personalized, Plans, Run, Synthesis
    from pluralbench.results.suite import SuiteRun

console = make_console()
errors = make_console(stderr=True)
WIDTH = 80
Format = Annotated[Literal["table", "markdown", "latex", "json", "csv"], Flag("--format")]
TableFormat = Annotated[Literal["table", "markdown", "latex", "json"], Flag("--format")]
AsJson = Annotated[bool, Flag("--json")]
File = Annotated[Path | None, Flag(metavar="FILE")]


def print_run(run: "Run[Any, Any]") -> None:
    """Print a run's header, its row of the report, and the notes; of a shard the header, of other kinds the report."""
    from pluralbench.reports.kinds import reports_of
    from pluralbench.reports.runs import overview, run_header
    from pluralbench.results.finding import as_found

    console.print()
    if not run.kind.has_overall:
        print_report(reports_of(as_found(run))[0])
        return
    console.print(*run_header(run), sep="\n")
    if run.config.data.shard is None:
        console.print()
        print_report(overview([run]))


def print_suite(
    run: "SuiteRun", *, form: Format = "table", html: Path | None = None, without: "ItemList | None" = None
) -> None:
    """Print the row of a suite; of shards, how to join them.

    Args:
        run: The suite.
        form: Output format: table, markdown and latex for people, json and csv for programs.
        html: Write a self-contained HTML page with tables, figures and items.
        without: Also show the overall numbers without these items, such as those of `contamination --out`.
    """
    from pluralbench.evaluation.without import emptied_subsets, suite_without_items
    from pluralbench.reports.contamination import emptied_note
    from pluralbench.reports.suite import report_suites

    if run.shard is not None:
        total = run.shard.partition("/")[2]
        console.print(
            f"Shard {run.shard} of {len(run.runs):,} benchmarks is in {run.path}. With all {total}, join the shards of "
            "each benchmark by `pluralbench merge`, and rerun this command without --shard for the row."
        )
        return
    suites = [run, *([suite_without_items(run, without.items)] if without else [])]
    emptied = {name: emptied_subsets(one, suites[-1].runs[name]) for name, one in run.runs.items()}
    report = report_suites(suites)
    notes = [emptied_note(name, subsets) for name, subsets in emptied.items() if subsets]
    print_report(report._replace(notes=[*report.notes, *notes]), form)
    if html is not None:
        from pluralbench.reports.html.page import write_html
        from pluralbench.results.finding import find_runs

        for note in write_html(find_runs([run.path]), html):
            log_status(note)
        log_status(f"Wrote {html}")


def print_downstream(run: "Downstream", *, plots: Path | None = None) -> None:
    """Print the results of best-of-n and the names of the files.

    Args:
        run: The run.
        plots: Directory for figures (PNG and SVG).
    """
    from pluralbench.reports.downstream import curve_table, downstream_notes, selects
    from pluralbench.results.downstream import POLICY_FOLDER
    from pluralbench.results.run_files import LEDGER_FILE, METRICS_FILE, RUN_FILE

    console.print()
    if selects(run):
        print_tables([curve_table(run)])
    print_lines(downstream_notes(run))
    if plots is not None:
        from pluralbench.reports.figures.downstream import best_of_n
        from pluralbench.reports.figures.files import write

        for path in write(best_of_n(run), plots):
            console.print(f"Wrote {path}")
    files = [path.name for path in run.path.glob("*.parquet") if path.name != LEDGER_FILE]
    policy = [POLICY_FOLDER] if (run.path / POLICY_FOLDER).exists() else []
    console.print(f"{run.path}: {', '.join([RUN_FILE, METRICS_FILE, *sorted(files), *policy])}")


def print_optimized(run: "Downstream") -> None:
    """Print the results of optimize and the names of the files."""
    print_downstream(run)


def print_personalized(run: "Personalized") -> None:
    """Write the page of personalize, and print its results and how to score one of the models."""
    from pluralbench.reports.kinds import write_personalized_page
    from pluralbench.reports.personalize import report_personalized
    from pluralbench.results.personalize import PAGE_FILE
    from pluralbench.results.run_files import ITEMS_FILE, METRICS_FILE, RUN_FILE

    if not (run.path / PAGE_FILE).exists():
        write_personalized_page(run)
    console.print()
    print_report(report_personalized([run]))
    console.print(f"{run.path}: {', '.join([PAGE_FILE, RUN_FILE, METRICS_FILE, ITEMS_FILE])}")
    model = run.result.models[-1]
    profile = "none" if model.condition == "without" else model.user_context
    print_next("score", run.path / model.folder, "--profile", profile, "--benchmark", "...", "--data", "...")


def print_exported(exported: "Exported") -> None:
    """Print the numbers of rows, what is left out, and the trainer's command."""
    rows = " and ".join(f"{plural(count, 'row')} in {split}" for split, count in exported.rows.items())
    console.print(f"\n{exported.folder}: {rows}.")
    for reason, count in exported.left_out.items():
        console.print(f"Left out: {plural(count, 'item')} with {reason}.")
    _print_unusual_pairs(exported.pairs)
    console.print(f"Train with\n  {exported.command}", soft_wrap=True)


def _print_unusual_pairs(pairs: Mapping[str, int]) -> None:
    if pairs["identical_pairs"]:
        console.print(f"Left out: {plural(pairs['identical_pairs'], 'pair')} of identical responses.")
    if pairs["repeated_pairs"]:
        console.print(f"Kept: {plural(pairs['repeated_pairs'], 'pair')} that repeat an earlier one.")


def print_trained(trained: "Trained", *, benchmark: str | None, prompt: PromptConfig, label_noise: float) -> None:
    """Print what a reward model was trained on, and how to score it."""
    from pluralbench.reports.costs import format_seconds

    record = trained.record
    seconds = record["seconds"] + record.get("encoding_seconds", 0.0)
    training, held_out, origin = record["data"], record["held_out"], record["origin"]
    without_pair, flipped = origin["without_pair"], len(origin["flipped"])
    of_split = f" of the split {origin['split']}" if origin["split"] else ""
    console.print(
        f"\n{trained.folder}: trained on {plural(training['pairs'], 'pair')} of {plural(training['rankings'], 'item')}"
        f"{of_split} in {plural(record['steps'], 'step')} ({format_seconds(seconds)} s)."
    )
    if any(without_pair.values()):
        parts = " and ".join(f"{count:,} {name}" for name, count in without_pair.items() if count)
        console.print(f"Left out, because no training pair has them: {parts}.")
    _print_unusual_pairs(origin)
    if flipped:
        console.print(f"{flipped:,} items were trained in reversed order (--label-noise {label_noise}).")
    for part, name in ((training, "training"), (held_out, "held-out")):
        if part and part["responses_too_long"]:
            items = f", and with them {plural(part['rankings_too_long'], 'item')}" if part["rankings_too_long"] else ""
            console.print(f"{part['responses_too_long']:,} {name} responses were too long and were left out{items}.")
    if held_out:
        console.print(
            f"Accuracy on {plural(held_out['pairs'], 'held-out pair')} of {plural(held_out['rankings'], 'item')}: "
            f"{trained.accuracy:.3f}"
        )
    profile = ["--profile", prompt.profile] if prompt.profile != "none" else []
    words = ("score", trained.folder, "--benchmark", benchmark or origin["benchmark"], *profile, "--data", "...")
    print_next(*words, when="on items that it did not learn")


def print_planner(trained: Any, *, benchmark: str) -> None:
    """Print what a planner was trained on, and how to use it."""
    record = trained.record
    training, held_out = record["examples"], record["held_out"]
    console.print(
        f"\n{trained.folder}: trained in {plural(record['steps'], 'step')} ({record['seconds']:,.0f} s) on "
        f"{plural(training['given'] - training['too_long'], 'item')} for {record['epochs']:.3g} epochs."
    )
    for part, name in ((training, "training"), (held_out, "held-out")):
        if part and part["too_long"]:
            console.print(f"{part['too_long']:,} {name} items were too long and were left out.")
    if held_out:
        console.print(
            f"Loss on {held_out['given'] - held_out['too_long']:,} held-out plans: {trained.held_out_loss:.3f} nats "
            f"per token, before training {record['held_out_loss_of_base']:.3f}"
        )
    print_next("plan", trained.folder, "--benchmark", benchmark, "--data", "...")


def print_plans(plans: "Plans", *, benchmark: str) -> None:
    """Print the evaluation of plans, and how to use them."""
    from pluralbench.reports.plans import plan_notes

    console.print()
    print_lines(plan_notes(plans))
    console.print(f"{plans.path}: plans.jsonl, items.parquet, metrics.json, run.json")
    print_next("score", "MODEL", "--benchmark", benchmark, "--profile", "plan", "--plans", plans.path, "--data", "...")


def print_synthesis(synthesis: "Synthesis", *, model: str, data: DataConfig) -> None:
    """Print how personas were written, and how to judge with them."""
    from pluralbench.data.personas import PERSONAS_FILE
    from pluralbench.reports.plans import synthesis_notes

    console.print()
    print_lines(synthesis_notes(synthesis))
    words = ["judge", model, "--benchmark", synthesis.config.benchmark.name]
    words += ["--data", data.location] if data.location else []
    print_next(*words, "--profile", "persona", "--personas", synthesis.path / PERSONAS_FILE)


def print_contamination(
    result: "Contamination",
    *,
    examples: Annotated[int, Field(ge=0)] = 2,
    form: Format = "table",
    out: File = None,
) -> None:
    """Print what was found, and write the contaminated items.

    Args:
        result: The contaminated items.
        examples: Maximum number of examples per benchmark.
        form: Output format: table, markdown and latex for people, json and csv for programs.
        out: Write the contaminated items to this file (.jsonl or .parquet).
    """
    from pluralbench.evaluation.contamination import write_contaminated
    from pluralbench.reports.contamination import report_contamination

    print_report(report_contamination(result, examples=examples), form)
    if out is not None:
        write_contaminated(result, out)
        (console if form == "table" else errors).print(f"Wrote {out}")


def print_agreement(agreement: "Agreement", *, form: TableFormat = "table") -> None:
    """Print how far scores agree.

    Args:
        agreement: The agreement.
        form: Output format.
    """
    from pluralbench.reports.agreement import report_agreement

    if form == "json":
        typer.echo(terminal_json(agreement.as_dict()))
    else:
        print_report(report_agreement(agreement), form, width=console.width)


def print_correlation(
    correlation: "Correlation", *, plots: Path | None = None, html: File = None, as_json: AsJson = False
) -> None:
    """Print a correlation.

    Args:
        correlation: The correlation.
        plots: Directory for figures (PNG and SVG).
        html: Write a self-contained HTML page with tables, figures and items.
        as_json: Print JSON.
    """
    from pluralbench.reports.correlation import correlation_notes, correlation_tables, heading

    if as_json:
        typer.echo(terminal_json(correlation.as_dict()))
    else:
        console.print(*heading(correlation), sep="\n")
        print_tables(correlation_tables(correlation))
        print_lines(correlation_notes(correlation))
    written: list[Path] = []
    if plots is not None:
        from pluralbench.reports.figures import downstream as figures
        from pluralbench.reports.figures.files import write

        written += write(figures.correlation(correlation), plots)
    if html is not None:
        from pluralbench.reports.html.page import write_correlation

        write_correlation(correlation, html)
        written.append(html)
    for path in written:
        (errors if as_json else console).print(f"Wrote {path}")


def print_next(*words: object, when: str = "") -> None:
    """Print the next command of the evaluator."""
    console.print(f"Next{', ' if when else ''}{when}:\n  {shell_command('pluralbench', *words)}")


def print_report(report: "Report", form: str = "table", out: Path | None = None, *, width: int | None = WIDTH) -> None:
    """Print a report in at most 80 columns, or write it to a file, in which tables are Markdown."""
    from pluralbench.reports.writing import format_report

    form = "markdown" if out is not None and form == "table" else form
    text: Any = format_report(report, form, None if width is None else min(width, console.width))  # type: ignore[arg-type]
    if out is not None:
        with output_file(out) as new:
            new.write_text(f"{str(text).rstrip()}\n", encoding="utf-8", newline="")
        console.print(f"Wrote {out}")
    elif isinstance(text, str):
        typer.echo(text.rstrip())
    else:
        console.print(text)


def print_tables(tables: "Iterable[Table]", *, wide: bool = False) -> None:
    """Print tables in at most 80 columns, or in as many as needed."""
    from pluralbench.reports.writing import render_tables

    console.print(*render_tables([*tables], None if wide else min(WIDTH, console.width)), sep="\n")


def print_lines(lines: Iterable[str]) -> None:
    """Print lines wrapped at 80 columns, as reports do. Indented lines start with a path and are not wrapped."""
    from pluralbench.reports.layout import wrapped

    for line in lines:
        console.print(line if line.startswith(" ") else wrapped(line, min(WIDTH, console.width)))
