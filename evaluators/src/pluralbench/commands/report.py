"""`report`: what runs found, in one table or as figures."""

from pathlib import Path
from typing import Annotated

import typer

from pluralbench.commands.options import Plots
from pluralbench.commands.terminal import console
from pluralbench.reports import Format


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Run directories, or folders with some.")],
    form: Annotated[
        Format, typer.Option("--format", help="How it is printed: for people (table, markdown, latex) or programs.")
    ] = "table",
    out: Annotated[Path | None, typer.Option(help="A file to write instead of the terminal.")] = None,
    plots: Plots = None,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A page to write with tables, figures and items, a single file that needs no network.",
        ),
    ] = None,
    family: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=MODELS",
            help="In the figure of profile modes, one group of bars for these models, such as Qwen=Qwen*; repeatable.",
        ),
    ] = None,
    push: Annotated[
        str | None,
        typer.Option(metavar="ORG/NAME", help="A dataset on the Hub to add the runs to, such as me/results."),
    ] = None,
    model_card: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="A model's folder, or ORG/NAME on the Hub, whose card gets the numbers."),
    ] = None,
    *,
    private: Annotated[
        bool, typer.Option("--private", help="Make it a private repository, if it is a new one.")
    ] = False,
    create: Annotated[bool, typer.Option("--create", help="Make the repository, if it is not there yet.")] = False,
    detail: Annotated[
        bool, typer.Option("--detail", help="Every config, section and category, a row each, and the ids in notes.")
    ] = False,
    wide: Annotated[
        bool, typer.Option("--wide", help="As many columns as it needs rather than 80; intervals of the parts too.")
    ] = False,
) -> None:
    """Show what runs found: a table for each benchmark with a row for each model, and figures with --plots.

    Where models were run with and without something told of the person (--profile), a table holds the two against each
    other.

    Examples:

    pluralbench report runs

    pluralbench report runs/a runs/b --format latex --out table.tex

    pluralbench report runs --format csv --detail --out metrics.csv

    pluralbench report runs/multilingual-* --plots figures

    pluralbench report runs --html report.html

    pluralbench report runs --push my-organisation/rewards-results --create

    pluralbench report runs/personalized-my-model --model-card my-organisation/my-model

    pluralbench report runs --plots figures --family "Skywork=Skywork-Reward-*" --family "InternLM=internlm2-*"
    """
    from pluralbench.commands.console_output import print_runs  # noqa: PLC0415 - `--help` need not wait for tables and figures
    from pluralbench.results.finding import find_runs  # noqa: PLC0415 - the same

    found = find_runs(runs)
    print_runs(found, form, out, detail=detail, wide=wide)
    if plots is not None:
        from pluralbench.reports.figures.best_of_n import draw_best_of_n  # noqa: PLC0415 - the same
        from pluralbench.reports.figures.draw import draw, font_notes  # noqa: PLC0415 - the same
        from pluralbench.reports.figures.personalize import draw_personalized  # noqa: PLC0415 - the same

        sampled = [one for one in found.downstream if one.verb == "best-of-n" and one.result.rewards]
        others = found.personalized or sampled
        drawn = draw(found.runs, plots, _families(family or [])) if found.runs or not others else []
        for done in sampled:
            drawn += draw_best_of_n(done, plots if len(sampled) == 1 else plots / done.path.name)
        for one in found.personalized:
            drawn += draw_personalized(one, plots if len(found.personalized) == 1 else plots / one.path.name)
        for path in drawn:
            console.print(f"Wrote {path}")
        for note in font_notes(found.runs):
            console.print(note)
    if html is not None:
        from pluralbench.reports.html.report import write_html  # noqa: PLC0415 - the same

        for note in write_html(found, html):
            console.print(note)
        console.print(f"Wrote {html}")
    if push is not None or model_card is not None:
        from pluralbench.publishing import push_results, write_model_card  # noqa: PLC0415 - the same

        if push is not None:
            pushed = push_results(runs, push, create=create, private=private)
            console.print(f"{push} has {len(pushed.names)} runs, {len(pushed.new)} of them new: {pushed.address}")
        if model_card is not None:
            console.print(f"Wrote the numbers on the card of {model_card}: {write_model_card(found.runs, model_card)}")


def _families(given: list[str]) -> dict[str, str]:
    pairs = [one.partition("=") for one in given]
    wrong = next((one for one, (name, _, models) in zip(given, pairs, strict=True) if not name or not models), None)
    if wrong is not None:
        raise typer.BadParameter(f"--family {wrong} is not of the form NAME=MODELS, such as Qwen=Qwen*.")
    return {name: models for name, _, models in pairs}
