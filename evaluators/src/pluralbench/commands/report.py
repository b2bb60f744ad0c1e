"""`pluralbench report`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pluralbench_runs import plural, step
from pluralbench_runs.options import Flag

from pluralbench.commands.printing import WIDTH, File, Format, console, print_report

PROPOSED = {
    "opened": "Opened a pull request to",
    "updated": "Updated the open pull request to",
    "unchanged": "Found the same results in",
}


def report(
    runs: Annotated[Sequence[Path], Flag(metavar="PATH...")],
    *,
    form: Format = "table",
    out: Path | None = None,
    plots: Path | None = None,
    html: File = None,
    family: Annotated[Mapping[str, str] | None, Flag(metavar="NAME=MODELS", example="Qwen=Qwen*")] = None,
    push: Annotated[str | None, Flag(metavar="ORG/NAME")] = None,
    model_card: Annotated[str | None, Flag(metavar="MODEL")] = None,
    create_pr: Annotated[str | None, Flag(metavar="ORG/MODEL")] = None,
    without: File = None,
    private: bool = False,
    create: bool = False,
    notes: bool = False,
    detail: bool = False,
    wide: bool = False,
) -> None:
    """Report runs in a table per benchmark with a row per model, and in figures (--plots).

    If models were run with and without user context (--profile), a table compares the two.

    Args:
        runs: Run directories, or directories that contain them.
        form: Output format: table, markdown and latex for people, json and csv for programs.
        out: Write to this file instead of the terminal.
        plots: Directory for figures (PNG and SVG).
        html: Write a self-contained HTML page with tables, figures and items.
        family: Group these models in the figure of profile modes, such as Qwen=Qwen*; repeatable.
        push: Add the runs to this dataset on the Hub.
        model_card: Add the results to the card and the evaluation file of this model (directory or ORG/NAME on the
            Hub).
        create_pr: Open a pull request with the evaluation file to this model on the Hub.
        without: Also show the overall numbers without these items, such as those of `contamination --out`.
        private: Make a new repository private.
        create: Create the repository if it does not exist.
        notes: Define the headings and rows of the tables below them, as files and pages do.
        detail: Add a row for each config, section, subset and category, and further notes.
        wide: Use as many columns as needed instead of 80, and show intervals of the parts.

    Examples:
        pluralbench report runs
        pluralbench report runs/a runs/b --format latex --out table.tex
        pluralbench report runs --format csv --detail --out metrics.csv
        pluralbench report runs/multilingual-* --plots figures
        pluralbench report runs --html report.html
        pluralbench report runs --without contaminated.jsonl
        pluralbench report runs --push my-organization/rewards-results --create
        pluralbench report runs/personalized-my-model --model-card my-organization/my-model
        pluralbench report runs/personalized-their-model --create-pr their-organization/their-model
        pluralbench report runs --plots figures --family "Skywork=Skywork-Reward-*" --family "InternLM=internlm2-*"
    """
    from pluralbench.reports.figures.files import write
    from pluralbench.reports.figures.report import font_notes
    from pluralbench.reports.kinds import figures_of_found, reports_of
    from pluralbench.results.finding import find_runs

    runs_read = find_runs(runs)
    with step("Computing the report"):
        reports = reports_of(runs_read, detail=detail, wide=wide, without=without)
    reports = [one._replace(notes=one.texts, definitions={}) if notes else one for one in reports]
    for place, one in enumerate(reports if form == "table" else reports[:1]):
        if place:
            console.print()
        print_report(one, form, None if place else out, width=None if wide else WIDTH)
    if html is not None:
        from pluralbench.reports.html.page import write_html

        for note in write_html(runs_read, html):
            console.print(note)
        console.print(f"Wrote {html}")
    if plots is not None:
        for path in write(figures_of_found(runs_read, family or {}), plots, "no run has a number"):
            console.print(f"Wrote {path}")
        for note in font_notes(runs_read.runs):
            console.print(note)
    if push is not None or model_card is not None or create_pr is not None:
        from pluralbench.publishing import propose_results, push_results, write_model_card

        source = None
        if push is not None:
            pushed = push_results(runs, push, create=create, private=private)
            console.print(
                f"{push} has {plural(len(pushed.names), 'run')}, {len(pushed.new)} of them new: {pushed.address}"
            )
            source = pushed.address
        if model_card is not None:
            written = write_model_card(runs_read.runs, model_card, source)
            console.print(f"Wrote the results to the card of {model_card}: {', '.join(written)}")
        if create_pr is not None:
            proposal = propose_results(runs_read.runs, create_pr, source)
            console.print(f"{PROPOSED[proposal.state]} {create_pr}: {proposal.address}")
