"""`check`: whether a run can be accepted, how far that was checked, and what is unusual about it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
from pluralbench.leaderboard.findings import UNREAD, CheckResult, Finding, State, is_refused, warning_finding
from pluralbench.leaderboard.reproduction import DataCache, RunData, RunInputs, check_reproduced, run_data
from pluralbench.leaderboard.rescoring import Rescoring, check_lengths, check_rescored
from pluralbench.leaderboard.unusual import (
    check_among,
    check_benchmark_data,
    check_margins,
    check_model,
    check_outcomes,
    check_settings,
    check_software,
)
from pluralbench.results.finding import FoundRuns, find_runs
from pluralbench.results.runs import Run

AGREEMENT = (check_items, check_record, check_replies)
REMARKS = (check_benchmark_data, check_settings, check_model, check_software, check_outcomes, check_margins)


def find_benchmark_runs(paths: Sequence[Path]) -> FoundRuns:
    """The runs at some paths and below them; at least one of them is of a benchmark. Raises `RunError` without any."""
    found = find_runs(paths)
    if not found.runs:
        raise RunError(
            f"{', '.join(map(str, paths))} has runs of best-of-n, optimize or personalize alone; a leaderboard is of "
            "runs of benchmarks, which `pluralbench score` and `judge` make."
        )
    return found


def check_submission(
    run: Run,
    among: Sequence[Run] = (),
    *,
    files: RunInputs | None = None,
    rescoring: Rescoring | None = None,
    last: DataCache | None = None,
) -> CheckResult:
    """Check a run as a leaderboard does: what is wrong with it, what is unusual, and how far that is known.

    First the files of its directory have to agree with each other. Then its data is read again, and its items, its
    metrics, intervals and references and the calls behind its verdicts are made again from that, its scores and its
    replies. That the scores and replies are the model's own only `rescoring` shows, which asks the model again.

    among: all runs of the leaderboard, from whose data and scores those of this run may differ. files: where its
    data is now, and what its prompts tell from. last: keeps data that several runs are of.
    """
    state: State = "consistent"
    said = ""
    if found := [*check_columns(run)]:
        return CheckResult("refused", found)
    found = [finding for check in AGREEMENT for finding in check(run)]
    if not found:
        try:
            source = run_data(run, files or RunInputs(), last)
        except UserError as error:
            found = [*check_metrics(run), warning_finding(UNREAD, f"The data was not read. {error}")]
        else:
            found, state, said = _check_data(run, source, rescoring)
    if is_refused(found):
        state, said = "refused", ""
    found += [finding for check in REMARKS for finding in check(run)]
    found += check_among(run, among)
    return CheckResult(state, sorted(found, key=lambda finding: finding.level), said)


def _check_data(run: Run, source: RunData, rescoring: Rescoring | None) -> tuple[list[Finding], State, str]:
    try:
        found, metrics = check_reproduced(run, source)
    except DataError as error:
        return (
            [*check_metrics(run), warning_finding(UNREAD, f"The run was not made again from its data. {error}")],
            "consistent",
            "",
        )
    if metrics is not None:
        found += check_metrics(run, metrics)
    if is_refused(found):
        return found, "refused", ""
    try:
        found += check_lengths(run, source)
    except UserError as error:
        return (
            [*found, warning_finding(UNREAD, f"What was cut or dropped was not found again. {error}")],
            "consistent",
            "",
        )
    if rescoring is None:
        return found, "checked", ""
    again, said = check_rescored(run, source, rescoring)
    return [*found, *again], "verified" if said else "checked", said


def files_digest(path: Path) -> str:
    """SHA-256 over the files of a run's directory, names and bytes."""
    return digest({one.name: file_digest(one) for one in sorted(path.iterdir()) if one.is_file()})


def location_override(places: Mapping[str, str], run: Run) -> str | None:
    """Where a run's data is now. places: by the benchmark's name, with "" for all others."""
    return places.get(run.config.benchmark.name, places.get(""))


def parse_location_overrides(given: Sequence[str]) -> dict[str, str]:
    """Places of data as they are given: PLACE for all runs, or BENCHMARK=PLACE for those of one."""
    split = [("", "", one) if Path(one).exists() or "=" not in one else one.partition("=") for one in given]
    return {name: place for name, _, place in split}


def check_summary(run: Run, checked: CheckResult) -> dict[str, Any]:
    """What is known of a run after its checks, as JSON takes it."""
    findings = [finding._asdict() for finding in checked.findings]
    return {
        "run": str(run.path),
        "digest": files_digest(run.path),
        "state": checked.state,
        "accepted": checked.accepted,
        "rescored": checked.rescored,
        "items_counted": run.items_counted,
        "items": run.items_total,
        "findings": findings,
    }


def read_check_results(path: Path) -> dict[str, CheckResult]:
    """Runs by the digest of their files that were checked against their data, from what `check --json` printed.

    Raises `RunError` for another file.
    """
    rows = read_json(path, RunError)
    found: dict[str, CheckResult] = {}
    for row in rows if isinstance(rows, list) else [None]:
        match row:
            case {"digest": str() as name, "state": "checked" | "verified" as state, "rescored": str() as said}:
                found[name] = CheckResult(state, [], said)
            case {"digest": str(), "state": "refused" | "consistent"}:
                pass
            case _:
                raise RunError(f"{path} is not what `pluralbench check --json` prints.")
    return found
