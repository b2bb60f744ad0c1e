"""`pluralbench judge-metrics`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pluralbench_runs.options import Flag
from pydantic import Field

from pluralbench.commands.printing import TableFormat, console, errors, print_report


def judge_metrics(
    verdicts: Annotated[Sequence[str], Flag(metavar="VERDICTS...")],
    *,
    threshold: Annotated[float, Field(ge=1, le=100)] = 80,
    labels: Annotated[str | None, Flag(metavar="FILE")] = None,
    plots: Path | None = None,
    form: TableFormat = "table",
) -> None:
    """Measure verdicts with certainty: accuracy, calibration, and accuracy above a threshold of certainty.

    Args:
        verdicts: CSV, JSON Lines or Parquet with task, judge, setting, persona_variables, row, answer, certainty and
            truth; an optional column `user` gives the clusters of intervals.
        threshold: Smallest certainty that counts as high.
        labels: Third-person labels of the items: task and row or id, annotator, answer, certainty.
        plots: Directory for figures (PNG and SVG).
        form: Output format.

    Examples:
        pluralbench judge-metrics verdicts.csv
        pluralbench judge-metrics runs/judge-all/verdicts.csv runs/judge-key/verdicts.csv
        pluralbench judge-metrics verdicts.csv --threshold 90 --labels labels.csv --plots figures
        pluralbench judge-metrics verdicts.parquet --format json > metrics.json
    """
    from pluralbench.data.verdict_tables import answer_notes, read_verdicts
    from pluralbench.metrics.third_person import read_labels
    from pluralbench.reports.verdicts import report_verdicts, verdict_rows

    table = read_verdicts(*verdicts)
    rows = verdict_rows(table, threshold=threshold, labels=None if labels is None else read_labels(labels))
    print_report(report_verdicts(rows), form, width=console.width)
    notes = list(answer_notes(table))
    if plots is not None:
        from pluralbench.reports.figures.files import write
        from pluralbench.reports.figures.verdicts import figures_of

        notes += [f"Wrote {path}" for path in write(figures_of(rows), plots, "no verdict has a certainty")]
    for note in notes:
        (console if form == "table" else errors).print(note)
