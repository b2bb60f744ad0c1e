"""`pluralbench report`."""

from pathlib import Path
from typing import Annotated

import typer
from pluralbench_runs import log_status, plural

from pluralbench.commands.options import Plots, Without
from pluralbench.commands.terminal import console
from pluralbench.reports import Format


def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Run directories, or directories that contain them.")
    ],
    form: Annotated[
        Format,
        typer.Option(
            "--format", help="Output format: table, markdown and latex for people, json and csv for programs."
        ),
    ] = "table",
    out: Annotated[Path | None, typer.Option(help="Write to this file instead of the terminal.")] = None,
    plots: Plots = None,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a self-contained HTML page with tables, figures and items.",
        ),
    ] = None,
    family: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=MODELS",
            help="Group these models in the figure of profile modes, such as Qwen=Qwen*; repeatable.",
        ),
    ] = None,
    push: Annotated[
        str | None,
        typer.Option(metavar="ORG/NAME", help="Add the runs to this dataset on the Hub."),
    ] = None,
    model_card: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL", help="Add the results to the card of this model (directory or ORG/NAME on the Hub)."
        ),
    ] = None,
    without: Without = None,
    *,
    private: Annotated[bool, typer.Option("--private", help="Make a new repository private.")] = False,
    create: Annotated[bool, typer.Option("--create", help="Create the repository if it does not exist.")] = False,
    detail: Annotated[
        bool,
        typer.Option(
            "--detail", help="Add a row for each config, section, subset and category, and list ids in notes."
        ),
    ] = False,
    wide: Annotated[
        bool,
        typer.Option("--wide", help="Use as many columns as needed instead of 80, and show intervals of the parts."),
    ] = False,
) -> None:
    """Report runs in a table per benchmark with a row per model, and in figures (--plots).

    If models were run with and without user context (--profile), a table compares the two.

    Examples:

    pluralbench report runs

    pluralbench report runs/a runs/b --format latex --out table.tex

    pluralbench report runs --format csv --detail --out metrics.csv

    pluralbench report runs/multilingual-* --plots figures

    pluralbench report runs --html report.html

    pluralbench report runs --without contaminated.jsonl

    pluralbench report runs --push my-organization/rewards-results --create

    pluralbench report runs/personalized-my-model --model-card my-organization/my-model

    pluralbench report runs --plots figures --family "Skywork=Skywork-Reward-*" --family "InternLM=internlm2-*"
    """
    log_status("Reading runs...")
    from pluralbench.commands.console_output import print_runs  # noqa: PLC0415 - `--help` need not wait for it
    from pluralbench.results.finding import find_runs  # noqa: PLC0415 - the same

    runs_read = find_runs(runs)
    print_runs(runs_read, form, out, detail=detail, wide=wide, without=without)
    if plots is not None:
        from pluralbench.reports.figures import downstream  # noqa: PLC0415 - the same
        from pluralbench.reports.figures.files import write  # noqa: PLC0415 - the same
        from pluralbench.reports.figures.report import draw, font_notes  # noqa: PLC0415 - the same

        best_of_n_runs = [run for run in runs_read.downstream if run.verb == "best-of-n" and run.result.rewards]
        personalized = runs_read.personalized
        others = personalized or best_of_n_runs
        figures = draw(runs_read.runs, plots, _families(family or [])) if runs_read.runs or not others else []
        for sampled in best_of_n_runs:
            folder = plots if len(best_of_n_runs) == 1 else plots / sampled.path.name
            figures += write(downstream.best_of_n(sampled), folder)
        for trained in personalized:
            folder = plots if len(personalized) == 1 else plots / trained.path.name
            figures += write(downstream.personalized(trained), folder)
        for path in figures:
            console.print(f"Wrote {path}")
        for note in font_notes(runs_read.runs):
            console.print(note)
    if html is not None:
        from pluralbench.reports.html.report import write_html  # noqa: PLC0415 - the same

        for note in write_html(runs_read, html):
            console.print(note)
        console.print(f"Wrote {html}")
    if push is not None or model_card is not None:
        from pluralbench.publishing import push_results, write_model_card  # noqa: PLC0415 - the same

        if push is not None:
            pushed = push_results(runs, push, create=create, private=private)
            console.print(
                f"{push} has {plural(len(pushed.names), 'run')}, {len(pushed.new)} of them new: {pushed.address}"
            )
        if model_card is not None:
            console.print(
                f"Wrote the results to the card of {model_card}: {write_model_card(runs_read.runs, model_card)}"
            )


def _families(values: list[str]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    wrong = next(
        (value for value, (name, _, models) in zip(values, pairs, strict=True) if not name or not models), None
    )
    if wrong is not None:
        raise typer.BadParameter(f"--family {wrong} does not have the form NAME=MODELS, such as Qwen=Qwen*.")
    return {name: models for name, _, models in pairs}
