"""`report`: what runs found, a row a model, for people and for programs; or every number in detail."""

from collections.abc import Sequence

from rich.console import Group

from pluralbench.errors import EvaluationError
from pluralbench.reports import Format
from pluralbench.reports.detail import details, report_frame
from pluralbench.reports.domains import report_downstream
from pluralbench.reports.layout import WIDTH
from pluralbench.reports.overview import overview
from pluralbench.reports.personalize import report_personalized
from pluralbench.reports.writing import Report, written
from pluralbench.results.finding import FoundRuns
from pluralbench.results.runs import Run

__all__ = ["render", "report_frame"]


def render(
    runs: Sequence[Run], form: Format, *, detail: bool = False, wide: bool = False, width: int = WIDTH
) -> str | Group:
    """The report of some runs, with what a reader has to know; in the terminal something that rich prints.

    detail: every number rather than a row a model; as JSON or CSV the long frame of `report_frame`. wide: as many
    columns as it needs, and intervals of parts too. width: columns of the terminal. Raises `EvaluationError` for none.
    """
    report = next(iter(reports_of(FoundRuns([*runs], [], []), detail=detail, wide=wide)))
    return written(report, form, None if wide else width)


def reports_of(found: FoundRuns, *, detail: bool = False, wide: bool = False) -> list[Report]:
    """A report for each kind of run among these. detail, wide: see `render`. Raises `EvaluationError` for none."""
    if not any(found):
        raise EvaluationError("There is no run to report; give one or more run directories.")
    reports = [details(found.runs) if detail else overview(found.runs, wide=wide)] if found.runs else []
    reports += [report_personalized(found.personalized)] if found.personalized else []
    return reports + ([report_downstream(found.downstream)] if found.downstream else [])
