"""What the checks of a run found, as lines for a terminal."""

from collections.abc import Iterator, Sequence

from pluralbench.leaderboard.findings import Finding, is_refused
from pluralbench.reports.layout import clean
from pluralbench.results.runs import Run

SAID = {"refused": "wrong", "unusual": "unusual"}


def verdict_on(findings: Sequence[Finding]) -> str:
    """Whether a run with these findings is accepted, in a few words."""
    if is_refused(findings):
        return "cannot be accepted"
    return f"valid, with {len(findings)} remark{'s' * (len(findings) > 1)}" if findings else "valid"


def lines_of(run: Run, findings: Sequence[Finding]) -> Iterator[str]:
    """A line of what the run is and whether it is accepted, and one for each finding."""
    headline = run.headline.value
    number = "no overall number" if headline is None else f"{headline:.1%}"
    yield f"{run.path}: {clean(run.name)} on {run.record.benchmark.title}, {number}: {verdict_on(findings)}"
    for finding in findings:
        yield f"  {SAID[finding.level]}: {clean(finding.text)}"
