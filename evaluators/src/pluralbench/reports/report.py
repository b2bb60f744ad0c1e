"""Reports of runs of any kind: one row for each model, or every number in detail."""

from pathlib import Path

from pluralbench.errors import EvaluationError
from pluralbench.evaluation.without import read_item_list
from pluralbench.reports.contamination import add_numbers_without
from pluralbench.reports.downstream import report_downstream
from pluralbench.reports.personalize import report_personalized
from pluralbench.reports.plans import report_plans
from pluralbench.reports.runs import details, overview
from pluralbench.reports.suite import report_suites
from pluralbench.reports.writing import Report
from pluralbench.results.finding import FoundRuns


def reports_of(
    runs: FoundRuns, *, detail: bool = False, wide: bool = False, without: Path | None = None
) -> list[Report]:
    """Make a report for each kind of run.

    Args:
        detail: Show every number instead of one row for each model. As JSON or CSV: the rows of `report_frame`.
        wide: Use as many columns as needed, and show the intervals of parts too.
        without: List of items, as `contamination` writes it; the report of benchmark runs also has the overall numbers
            without them. Default: none.

    Raises:
        EvaluationError: There are no runs, or the list cannot be used.
    """
    runs.check_any()
    reports = [details(runs.runs) if detail else overview(runs.runs, wide=wide)] if runs.runs else []
    if without is not None:
        if not runs.runs:
            raise EvaluationError("`without=...` is for runs of benchmarks; there are none.")
        reports = [add_numbers_without(reports[0], runs.runs, read_item_list(without))]
    reports += [report_personalized(runs.personalized)] if runs.personalized else []
    reports += [report_downstream(runs.downstream)] if runs.downstream else []
    reports += [report_plans(runs.plans)] if runs.plans else []
    return reports + ([report_suites(runs.suites)] if runs.suites else [])
