"""The text of a report of runs."""

from collections.abc import Sequence

from pluralbench.reports import Format
from pluralbench.reports.kinds import reports_of
from pluralbench.reports.writing import format_report
from pluralbench.results.finding import FoundRuns
from pluralbench.results.runs import Run
from rich.console import Group


def render(
    runs: Sequence[Run], form: Format, *, detail: bool = False, wide: bool = False, width: int = 80
) -> str | Group:
    """The report in a format; `table` is an object that rich prints."""
    report = next(iter(reports_of(FoundRuns([*runs]), detail=detail, wide=wide)))
    return format_report(report, form, None if wide else width)
