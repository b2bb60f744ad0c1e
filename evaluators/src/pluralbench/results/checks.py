"""Findings of `check`, the state of a checked run, and both as lines for a terminal."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from pluralbench_runs.console import clean

from pluralbench.results.runs import Run

State = Literal["refused", "consistent", "checked", "verified"]
STATES: dict[State, str] = {
    "refused": "cannot be accepted",
    "consistent": "not checked against its data",
    "checked": "checked against its data",
    "verified": "verified by scoring again",
}
"""States of a checked run.

refused: the files contradict each other or the data. consistent: the numbers follow from the items, but the data was
not read. checked: the files follow from the data, the scores and the recorded replies. verified: in addition, some
items were scored again with the same result."""


class Finding(NamedTuple):
    """An error in a run, or a note on what was not checked."""

    level: Literal["error", "note"]
    text: str


class CheckResult(NamedTuple):
    """Result of the check of a run.

    Attributes:
        rescored: How many items were scored or judged again, as a phrase; empty if none.
    """

    state: State
    findings: list[Finding]
    rescored: str = ""

    @property
    def accepted(self) -> bool:
        """Whether a leaderboard can list the run: its numbers were recomputed from its data."""
        return self.state in {"checked", "verified"}

    @property
    def rejection_reasons(self) -> list[Finding]:
        """The findings because of which the run is not accepted."""
        return [] if self.accepted else [one for one in self.findings if one.level == "error"] or self.findings


def finding_lines(run: Run[Any, Any], checked: CheckResult) -> Iterator[str]:
    """Yield a line with run, number and state, and one for each finding."""
    subject = f"{run.verb} on {clean(run.config.benchmark.title)}"
    if run.kind.has_overall:
        headline = run.headline.value
        number = "no overall number" if headline is None else f"{headline:.1%}"
        number = f"unreadable ({run.unreadable} invalid)" if run.unreadable else number
        about = [run.config.benchmark.title, run.size, number, *filter(None, [run.close_margins])]
        subject = f"{clean(run.name)} on {', '.join(about)}"
    yield f"{run.path}: {subject}: {STATES[checked.state]}"
    if checked.rescored:
        yield f"  {checked.rescored}"
    for finding in checked.findings:
        yield f"  {finding.level}: {clean(finding.text)}"
