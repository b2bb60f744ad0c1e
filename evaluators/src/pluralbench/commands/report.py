"""`report`: what runs found, in one table or as figures."""

from pathlib import Path
from typing import Annotated

import typer

from pluralbench.reports import Format

EXAMPLES = """\
Examples:

pluralbench report runs/*

pluralbench report runs/a runs/b --format csv --out metrics.csv

pluralbench report runs/multilingual-* --plots figures
"""


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run directories.")],
    form: Annotated[
        Format,
        typer.Option("--format", help="How it is printed."),
    ] = "table",
    out: Annotated[Path | None, typer.Option(help="A file to write instead of the terminal.")] = None,
    plots: Annotated[Path | None, typer.Option(help="A folder for figures, as PNG and SVG.")] = None,
) -> None:
    """Show what runs found, in one table, and draw what there is to see by language or category."""
    from pluralbench.commands.terminal import console  # noqa: PLC0415 - `--help` need not wait for tables and figures
    from pluralbench.errors import EvaluationError  # noqa: PLC0415 - the same
    from pluralbench.reports.notes import notes  # noqa: PLC0415 - the same
    from pluralbench.reports.report import render  # noqa: PLC0415 - the same
    from pluralbench.results.runs import read_run  # noqa: PLC0415 - the same

    # A shell's `runs/*` has the working directories of unfinished runs among its paths.
    read = [read_run(path) for path in runs if path.suffix != ".work"]
    rendered = render(read, "markdown" if out is not None and form == "table" else form)
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
        for note in notes(read):
            console.print(note)
    if plots is not None:
        from pluralbench.reports.figures.draw import draw, font_notes  # noqa: PLC0415 - figures are drawn by few

        for path in draw(read, plots):
            console.print(f"Wrote {path}")
        for note in font_notes(read):
            console.print(note)
