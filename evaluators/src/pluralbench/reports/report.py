"""`report`: what runs found, a row a model, for people and for programs; or every number in detail."""

from collections.abc import Sequence

from rich.console import Group

from pluralbench.errors import EvaluationError
from pluralbench.reports import Format
from pluralbench.reports.detail import details, report_frame
from pluralbench.reports.layout import WIDTH
from pluralbench.reports.overview import overview
from pluralbench.reports.writing import written
from pluralbench.results.runs import Run

__all__ = ["render", "report_frame"]


def render(
    runs: Sequence[Run], form: Format, *, detail: bool = False, wide: bool = False, width: int = WIDTH
) -> str | Group:
    """The report of some runs, with what a reader has to know; in the terminal something that rich prints.

    detail: every number rather than a row a model; as JSON or CSV the long frame of `report_frame`. wide: as many
    columns as it needs, and intervals of parts too. width: columns of the terminal. Raises `EvaluationError` for none.
    """
    if not runs:
        raise EvaluationError("There is no run to report; give one or more run directories.")
    content = details(runs) if detail else overview(runs, wide=wide)
    return written(content, form, None if wide else width)
