"""`submit`: whether a run can be accepted, and what is unusual about it."""

from collections.abc import Sequence
from pathlib import Path

from pluralbench.errors import DataError, RunError
from pluralbench.leaderboard.agreement import check_items, check_metrics, check_record, check_replies
from pluralbench.leaderboard.findings import Finding, named, refused, unusual
from pluralbench.leaderboard.unusual import (
    check_among,
    check_data_asked,
    check_model,
    check_outcomes,
    check_settings,
    check_software,
)
from pluralbench.results.examples import read_texts
from pluralbench.results.finding import Found, find_runs
from pluralbench.results.runs import Run

CHECKS = (
    check_items,
    check_metrics,
    check_record,
    check_replies,
    check_data_asked,
    check_settings,
    check_model,
    check_software,
    check_outcomes,
)


def runs_at(paths: Sequence[Path]) -> Found:
    """The runs at some paths and below them; at least one of them is of a benchmark. Raises `RunError` without any."""
    found = find_runs(paths)
    if not found.runs:
        raise RunError(
            f"{', '.join(map(str, paths))} has runs of best-of-n, optimize or personalize alone; a leaderboard is of "
            "runs of benchmarks, which `pluralbench score` and `judge` make."
        )
    return found


def check_submission(run: Run, among: Sequence[Run] = ()) -> list[Finding]:
    """What is wrong with a run and what is unusual about it, from its directory alone; those that refuse it first.

    Outcomes are made again from scores, verdicts and recorded replies, metrics from the items; run.json, settings.toml
    and the ledger have to agree. among: all runs of the leaderboard, from whose data that of this run may differ.
    """
    found = [finding for check in CHECKS for finding in check(run)] + [*check_among(run, among)]
    return sorted(found, key=lambda finding: finding.level)


def check_data(run: Run, data: str | None = None) -> list[Finding]:
    """Whether the run's items are those of its data, which is read again.

    data: where it is now, if it is not where the run found it. What cannot be read is no reason to refuse the run.
    """
    try:
        texts = read_texts(run, data)
    except DataError as error:
        return [unusual("data", f"The data was not checked. {error}")]
    other = [
        name
        for name, digest in run.items.select("id", "digest").unique(maintain_order=True).iter_rows()
        if (name, digest) not in texts.items
    ]
    if other:
        return [
            refused(
                "data",
                f"{texts.place} does not have the texts of {len(other):,} items (ids {named(other, len(other))}).",
            )
        ]
    if not texts.same:
        return [
            refused(
                "data",
                f"{texts.place} has other content than what was scored, which is {run.record.data.digest[:12]}.",
            )
        ]
    return []
