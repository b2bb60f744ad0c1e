"""What the checks of a run found, how far it was checked, and both as lines for a terminal."""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from pluralbench.reports.layout import clean
from pluralbench.results.runs import Run, items_text

Level = Literal["refused", "unusual"]
State = Literal["refused", "consistent", "checked", "verified"]
"""How far a run was checked. refused: its files do not agree with each other, or with the data. consistent: they agree
with each other, and the data was not read. checked: they are what the data, the scores and the recorded replies give.
verified: some items were scored again, with the same scores."""

STATES: dict[State, str] = {
    "refused": "cannot be accepted",
    "consistent": "not checked against its data",
    "checked": "checked against its data",
    "verified": "verified by scoring again",
}
LEVELS = {"refused": "wrong", "unusual": "unusual"}
UNREAD = "unread"
"""What a finding is about that says why a run was not checked against its data."""


class Finding(NamedTuple):
    """One thing that is wrong with a run, or that a reader should know of it.

    level: "refused" where the run's files do not agree with each other or with the data, so that it cannot be accepted;
    "unusual" where it is valid but made in another way than most. about: in a word what it is of, such as "metrics".
    text: the sentence.
    """

    level: Level
    about: str
    text: str


class CheckResult(NamedTuple):
    """What the checks of a run came to. findings: what refuses it first. rescored: how many items were scored again."""

    state: State
    findings: list[Finding]
    rescored: str = ""

    @property
    def accepted(self) -> bool:
        """Whether its numbers can stand among those of others: they are what its data gives."""
        return self.state in {"checked", "verified"}

    @property
    def rejection_reasons(self) -> list[Finding]:
        """The findings for which the run is not accepted."""
        return [found for found in self.findings if found.level == "refused" or found.about == UNREAD]

    @property
    def said(self) -> str:
        """How far the run was checked, and how many remarks there are, in a few words."""
        remarks = sum(finding.level == "unusual" for finding in self.findings)
        more = f", with {remarks} remark{'s' * (remarks > 1)}" if remarks and self.state != "refused" else ""
        return STATES[self.state] + more


def error_finding(about: str, text: str) -> Finding:
    """A finding for which a run cannot be accepted."""
    return Finding("refused", about, text)


def warning_finding(about: str, text: str) -> Finding:
    """A finding that a reader should know of."""
    return Finding("unusual", about, text)


def is_refused(findings: Iterable[Finding]) -> bool:
    """Whether a run with these findings cannot be accepted."""
    return any(found.level == "refused" for found in findings)


def finding_lines(run: Run, checked: CheckResult) -> Iterator[str]:
    """A line of what the run is and how far it was checked, and one for each finding."""
    headline = run.headline.value
    number = "no overall number" if headline is None else f"{headline:.1%}"
    size = items_text([run.items_counted], run.items_total)
    yield f"{run.path}: {clean(run.name)} on {run.config.benchmark.title}, {size}, {number}: {checked.said}"
    if checked.rescored:
        yield f"  {checked.rescored}"
    for finding in checked.findings:
        yield f"  {LEVELS[finding.level]}: {clean(finding.text)}"
