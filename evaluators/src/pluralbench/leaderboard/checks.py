"""Check a run: recompute it from its data and its recorded calls, and compare it with its files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pluralbench_runs import UserError
from pluralbench_tables import read_json

from pluralbench.errors import RunError
from pluralbench.evaluation.reloading import DataCache, RunInputs, reload_data
from pluralbench.leaderboard.comparisons import compare_columns, compare_metrics, notes_of, without_texts
from pluralbench.leaderboard.reproduction import compare_with_data
from pluralbench.leaderboard.rescoring import Rescoring, check_rescored
from pluralbench.results.checks import STATES, CheckResult, Finding, State
from pluralbench.results.kinds import numbers_of_run
from pluralbench.results.run_files import files_digest
from pluralbench.results.runs import Run

Checked = tuple[list[Finding], State, str]


def check_submission(
    run: Run[Any, Any],
    *,
    files: RunInputs | None = None,
    rescoring: Rescoring | None = None,
    cache: DataCache | None = None,
) -> CheckResult:
    """Check a run as a leaderboard does.

    The data is read again, and items, metrics, intervals, baselines and the calls behind each verdict are recomputed
    from the data, the recorded scores and the recorded replies; the configuration and the digests are compared. Whether
    scores and replies are the model's own can only be checked with `rescoring`. Of `best-of-n`, `optimize` and
    `personalize` only the numbers are recomputed.

    Args:
        run: Run to check.
        files: Location of the data, and the files of plans or personas that the prompts use. Default: the location
            that the run records.
        rescoring: Score or judge some items again. Default: no.
        cache: Cache that keeps the data for the next run of the same data.

    Returns:
        The state of the run (`refused`, `consistent`, `checked`, `verified`) and the findings, errors first.
    """
    if run.kind.has_overall:
        findings, state, rescored = _check(run, files or RunInputs(), rescoring, cache)
    else:
        text = (
            f"Of a run of {run.verb} only the numbers are recomputed: its data is not read and nothing is scored again."
        )
        findings, state, rescored = [*_check_own_numbers(run), Finding("note", text)], "consistent", ""
    if any(finding.level == "error" for finding in findings):
        state, rescored = "refused", ""
    return CheckResult(state, sorted(findings, key=lambda finding: finding.level), rescored)


def _check(run: Run, files: RunInputs, rescoring: Rescoring | None, cache: DataCache | None) -> Checked:
    if differ := [*compare_columns(run)]:
        return differ, "refused", ""
    notes = [*notes_of(run, files.data)]
    try:
        data = reload_data(run, files, cache)
        differ = [*compare_with_data(run, data)]
    except UserError as error:
        note = Finding("note", f"It was not checked against its data. {error}")
        return [*_check_own_numbers(run), *notes, note], "consistent", ""
    more, rescored = ([], "") if rescoring is None or differ else check_rescored(run, data, rescoring)
    return [*differ, *more, *notes], "verified" if rescored else "checked", rescored


def _check_own_numbers(run: Run[Any, Any]) -> list[Finding]:
    """Compare the metrics with those that the run's own frames give."""
    try:
        again = numbers_of_run(run.config, run.result, run.frame)
    except UserError as error:
        return [Finding("error", f"Its numbers cannot be recomputed. {error}")]
    return [*compare_metrics(without_texts(run.metrics), again, "its own tables")]


def location_override(locations: Mapping[str, str], run: Run[Any, Any]) -> str | None:
    """Return where a run's data is now, if it has moved."""
    return locations.get(run.config.benchmark.name, locations.get(""))


def check_summary(run: Run[Any, Any], checked: CheckResult) -> dict[str, Any]:
    """Return a checked run as plain JSON values; only a run on a benchmark has numbers of items."""
    return {
        "run": str(run.path),
        "digest": files_digest(run.path),
        "state": checked.state,
        "accepted": checked.accepted,
        "rescored": checked.rescored,
        "items_counted": run.items_counted if run.kind.has_overall else None,
        "items": run.items_total if run.kind.has_overall else None,
        "findings": [finding._asdict() for finding in checked.findings],
    }


def read_check_results(path: Path) -> dict[str, CheckResult]:
    """Read the output of `pluralbench check` as JSON.

    Returns:
        The results of the accepted runs, by the digest of their files.
    """
    rows = read_json(path, RunError)
    results = {}
    for row in rows if isinstance(rows, list) else [None]:
        match row:
            case {"digest": str() as name, "state": str() as state, "rescored": str() as rescored} if state in STATES:
                results[name] = CheckResult(state, [], rescored)
            case _:
                raise RunError(f"{path} is not the JSON output of `pluralbench check`.")
    return {name: checked for name, checked in results.items() if checked.accepted}
