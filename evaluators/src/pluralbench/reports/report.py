"""`report`: one row for each model, or every number in detail, in a format for reading or for programs."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group

from pluralbench.errors import EvaluationError
from pluralbench.evaluation.without import read_item_list
from pluralbench.reports import Format
from pluralbench.reports.contamination import add_numbers_without
from pluralbench.reports.downstream import report_downstream
from pluralbench.reports.layout import WIDTH
from pluralbench.reports.personalize import report_personalized
from pluralbench.reports.plans import report_plans
from pluralbench.reports.runs import details, overview, report_frame
from pluralbench.reports.suite import report_suites
from pluralbench.reports.writing import Report, format_report
from pluralbench.results.finding import FoundRuns
from pluralbench.results.runs import Run

__all__ = ["render", "report_frame"]


def render(
    runs: Sequence[Run], form: Format, *, detail: bool = False, wide: bool = False, width: int = WIDTH
) -> str | Group:
    """Render the report of runs, with the notes that explain it.

    Args:
        runs: Finished runs.
        form: Output format.
        detail: Show every number instead of one row for each model. As JSON or CSV: the rows of `report_frame`.
        wide: Use as many columns as needed, and show the intervals of parts too.
        width: Columns of the terminal.

    Returns:
        The text, or for the format `table` an object that rich prints.

    Raises:
        EvaluationError: There are no runs.
    """
    report = next(iter(reports_of(FoundRuns([*runs], [], []), detail=detail, wide=wide)))
    return format_report(report, form, None if wide else width)


def reports_of(
    runs: FoundRuns, *, detail: bool = False, wide: bool = False, without: Path | None = None
) -> list[Report]:
    """Make a report for each kind of run.

    Args:
        detail: See `render`.
        wide: See `render`.
        without: List of items, as `contamination` writes it; the report of benchmark runs also has the overall numbers
            without them. Default: none.

    Raises:
        EvaluationError: There are no runs, or the list cannot be used.
    """
    if not any(runs):
        raise EvaluationError("There are no runs to report; name at least one run directory.")
    reports = [details(runs.runs) if detail else overview(runs.runs, wide=wide)] if runs.runs else []
    if without is not None:
        if not runs.runs:
            raise EvaluationError("`without=...` is for runs of benchmarks; there are none.")
        reports = [add_numbers_without(reports[0], runs.runs, read_item_list(without))]
    reports += [report_personalized(runs.personalized)] if runs.personalized else []
    reports += [report_downstream(runs.downstream)] if runs.downstream else []
    reports += [report_plans(runs.plans)] if runs.plans else []
    return reports + ([report_suites(runs.suites)] if runs.suites else [])
