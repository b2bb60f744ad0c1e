"""`pluralbench judge-metrics`."""

from typing import Annotated, Literal

import typer
from pluralbench_runs import log_status

from pluralbench.commands.options import Plots
from pluralbench.commands.terminal import console, errors


def judge_metrics(
    verdicts: Annotated[
        list[str],
        typer.Argument(
            metavar="VERDICTS...",
            help="CSV, JSON Lines or Parquet with task, judge, setting, persona_variables, row, answer, certainty and "
            "truth; an optional column `user` gives the clusters of intervals.",
        ),
    ],
    threshold: Annotated[float, typer.Option(min=1, max=100, help="Smallest certainty that counts as high.")] = 80,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Third-person labels of the items: task and row or id, annotator, answer, certainty.",
        ),
    ] = None,
    plots: Plots = None,
    form: Annotated[
        Literal["table", "markdown", "latex", "json"], typer.Option("--format", help="Output format.")
    ] = "table",
) -> None:
    """Measure verdicts with certainty: accuracy, calibration, and accuracy above a threshold of certainty.

    Examples:

    pluralbench judge-metrics verdicts.csv

    pluralbench judge-metrics runs/judge-all/verdicts.csv runs/judge-key/verdicts.csv

    pluralbench judge-metrics verdicts.csv --threshold 90 --labels labels.csv --plots figures

    pluralbench judge-metrics verdicts.parquet --format json > metrics.json
    """
    log_status("Reading verdicts...")
    from pluralbench.commands.console_output import print_report  # noqa: PLC0415 - `--help` need not wait for it
    from pluralbench.data.verdict_tables import answer_notes, read_verdicts  # noqa: PLC0415 - the same
    from pluralbench.metrics.third_person import read_labels  # noqa: PLC0415 - the same
    from pluralbench.reports.verdicts import report_verdicts, verdict_rows  # noqa: PLC0415 - the same

    table = read_verdicts(*verdicts)
    rows = verdict_rows(table, threshold=threshold, labels=None if labels is None else read_labels(labels))
    print_report(report_verdicts(rows), form, width=console.width)
    for note in answer_notes(table):
        (console if form == "table" else errors).print(note)
    if plots is not None:
        from pluralbench.reports.figures.verdicts import draw  # noqa: PLC0415 - only needed for figures

        for path in draw(rows, plots):
            (console if form == "table" else errors).print(f"Wrote {path}")
