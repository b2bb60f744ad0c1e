"""Check whether a leaderboard can accept a run, and what is unusual about the run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pluralbench_calls import CallsError
from pluralbench_runs import UserError, digest, file_digest
from pluralbench_tables import read_json

from pluralbench.errors import DataError, RunError
from pluralbench.leaderboard.consistency import (
    check_columns,
    check_items,
    check_metrics,
    check_record,
    check_replies,
)
from pluralbench.leaderboard.findings import (
    UNREAD,
    CheckResult,
    Finding,
    State,
    error_finding,
    is_refused,
    warning_finding,
)
from pluralbench.leaderboard.records import (
    check_benchmark_record,
    check_data_record,
    check_persona_config,
    check_result,
    check_score_prompts,
    missing_context,
)
from pluralbench.leaderboard.reproduction import (
    DataCache,
    OtherPrompts,
    RunData,
    RunInputs,
    check_items_again,
    check_rows,
    reproduce_run,
    run_data,
)
from pluralbench.leaderboard.rescoring import Rescoring, check_lengths, check_rescored
from pluralbench.leaderboard.unusual import (
    check_answering_model,
    check_benchmark_data,
    check_duplicates,
    check_margins,
    check_model,
    check_outcomes,
    check_selection,
    check_settings,
    check_software,
)
from pluralbench.results.evaluations import EvaluationRunConfig
from pluralbench.results.finding import FoundRuns, find_runs
from pluralbench.results.runs import LEDGER_FILE, Downstream, Personalized, Run

CONSISTENCY_CHECKS = (check_items, check_record, check_benchmark_record, check_replies)
REMARK_CHECKS = (
    check_selection,
    check_benchmark_data,
    check_settings,
    check_model,
    check_answering_model,
    check_software,
    check_outcomes,
    check_margins,
)


def find_benchmark_runs(paths: Sequence[Path]) -> FoundRuns:
    """Find the runs at some paths and below them.

    Raises:
        RunError: A path has no run, or no run is of a benchmark.
    """
    found_runs = find_runs(paths)
    if not found_runs.runs:
        raise RunError(
            f"{', '.join(map(str, paths))} contains only runs of best-of-n, optimize or personalize; a leaderboard "
            "needs benchmark runs, which `pluralbench score` and `judge` write."
        )
    return found_runs


def check_submission(
    run: Run,
    others: Sequence[Run] = (),
    *,
    files: RunInputs | None = None,
    rescoring: Rescoring | None = None,
    cache: DataCache | None = None,
) -> CheckResult:
    """Check a run as a leaderboard does.

    The files of the run's directory must agree with each other. Then the data is read again, and items, metrics,
    intervals, baselines and the calls behind each verdict are recomputed from the data, the recorded scores and the
    recorded replies. Whether scores and replies are the model's own can only be checked with `rescoring`.

    Args:
        run: Run to check.
        others: All runs of the leaderboard. Their data and scores are compared with those of this run.
        files: Location of the data, and the files of plans or personas that the prompts use. Default: the location
            that the run records.
        rescoring: Score or judge some items again. Default: no.
        cache: Cache that keeps the data for the next run of the same data.

    Returns:
        The state of the check (`refused`, `consistent`, `checked`, `verified`) and the findings, errors first.
    """
    state: State = "consistent"
    rescored = ""
    if findings := [*check_columns(run)]:
        return CheckResult("refused", findings)
    findings = [finding for check in CONSISTENCY_CHECKS for finding in check(run)]
    files = files or RunInputs()
    if not findings:
        try:
            source = run_data(run, files, cache)
            findings, state, rescored = _check_data(run, source, rescoring, moved=files.data is not None)
        except CallsError as error:
            findings = [error_finding("replies", f"{LEDGER_FILE} lacks calls that its data needs. {error}")]
        except UserError as error:
            findings = [*check_metrics(run), warning_finding(UNREAD, f"It was not checked against its data. {error}")]
    if is_refused(findings):
        state, rescored = "refused", ""
    findings += [finding for check in REMARK_CHECKS for finding in check(run)]
    findings += check_duplicates(run, others)
    return CheckResult(state, sorted(findings, key=lambda finding: finding.level), rescored)


def _check_data(
    run: Run, source: RunData, rescoring: Rescoring | None, *, moved: bool
) -> tuple[list[Finding], State, str]:
    """Check a run against its data. Raises a `UserError` if that is impossible."""
    findings = [*check_rows(run, source), *check_data_record(run, source, moved=moved)]
    findings += check_persona_config(run, source)
    if not is_refused(findings):
        try:
            again = reproduce_run(run, source)
        except OtherPrompts:
            raise
        except DataError as error:
            return [*findings, missing_context(error)], "checked", ""
        findings += [*check_items_again(run, again.items, source.place), *check_metrics(run, again.metrics)]
        findings += [*check_result(run, again), *check_score_prompts(run, source)]
    if not is_refused(findings):
        findings += check_lengths(run, source)
    if is_refused(findings) or rescoring is None:
        return findings, "checked", ""
    more_findings, rescored = check_rescored(run, source, rescoring)
    return [*findings, *more_findings], "verified" if rescored else "checked", rescored


def files_digest(path: Path) -> str:
    """Return the SHA-256 over names and bytes of the files in a run's directory."""
    return digest({file.name: file_digest(file) for file in sorted(path.iterdir()) if file.is_file()})


def location_override(locations: Mapping[str, str], run: Run | Downstream | Personalized) -> str | None:
    """Return where a run's data is now, if it has moved.

    Args:
        locations: Locations by the benchmark's name; the key "" is for all other benchmarks.
        run: The run.
    """
    return locations.get(run.config.benchmark.name, locations.get(""))


def parse_location_overrides(arguments: Sequence[str]) -> dict[str, str]:
    """Parse locations of data: LOCATION for all runs, or BENCHMARK=LOCATION for those of one benchmark."""
    split = [("", "", text) if Path(text).exists() or "=" not in text else text.partition("=") for text in arguments]
    return {name: location for name, _, location in split}


def check_summary(run: Run[Any, Any], checked: CheckResult) -> dict[str, Any]:
    """Return a checked run as plain JSON values; only a run on a benchmark has numbers of items."""
    is_counted = isinstance(run.config, EvaluationRunConfig)
    return {
        "run": str(run.path),
        "digest": files_digest(run.path),
        "state": checked.state,
        "accepted": checked.accepted,
        "rescored": checked.rescored,
        "items_counted": run.items_counted if is_counted else None,
        "items": run.items_total if is_counted else None,
        "findings": [finding._asdict() for finding in checked.findings],
    }


def read_check_results(path: Path) -> dict[str, CheckResult]:
    """Read the output of `pluralbench check` as JSON.

    Returns:
        The results of the runs that were checked against their data, by the digest of their files.

    Raises:
        RunError: The file is not such an output.
    """
    rows = read_json(path, RunError)
    results: dict[str, CheckResult] = {}
    for row in rows if isinstance(rows, list) else [None]:
        match row:
            case {"digest": str() as name, "state": "checked" | "verified" as state, "rescored": str() as rescored}:
                results[name] = CheckResult(state, [], rescored)
            case {"digest": str(), "state": "refused" | "consistent"}:
                pass
            case _:
                raise RunError(f"{path} is not the JSON output of `pluralbench check`.")
    return results
