"""Findings of the checks of a run, the state of the check, and both as lines for a terminal."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

from pluralbench_runs import plural
from pluralbench_runs.console import clean

from pluralbench.results.evaluations import EvaluationRunConfig
from pluralbench.results.runs import Downstream, Personalized, Run

Level = Literal["refused", "unusual"]
State = Literal["refused", "consistent", "checked", "verified"]
"""State of a checked run.

refused: the files contradict each other or the data. consistent: the files agree with each other, but the data was not
read. checked: the files can be reproduced from the data, the scores and the recorded replies. verified: in addition,
some items were scored again with the same result."""

STATES: dict[State, str] = {
    "refused": "cannot be accepted",
    "consistent": "not checked against its data",
    "checked": "checked against its data",
    "verified": "verified by scoring again",
}
LEVELS = {"refused": "wrong", "unusual": "unusual"}
UNREAD = "unread"
"""Subject of a finding that explains why a run was not checked against its data."""


class Finding(NamedTuple):
    """An error in a run, or a remark that readers of its numbers should know.

    Attributes:
        level: `refused`: the files contradict each other or the data, so the run cannot be accepted. `unusual`: the run
            is valid, but its settings differ from most runs.
        about: Subject in one word, such as `metrics`.
        text: The finding as a sentence.
    """

    level: Level
    about: str
    text: str


class CheckResult(NamedTuple):
    """Result of the checks of a run.

    Attributes:
        state: State of the checked run.
        findings: Errors and remarks, errors first.
        rescored: How many items were scored or judged again, as a phrase; empty if none.
    """

    state: State
    findings: list[Finding]
    rescored: str = ""

    @property
    def accepted(self) -> bool:
        """Whether a leaderboard can list the run: its numbers were reproduced from its data."""
        return self.state in {"checked", "verified"}

    @property
    def rejection_reasons(self) -> list[Finding]:
        """The findings because of which the run is not accepted."""
        return [finding for finding in self.findings if finding.level == "refused" or finding.about == UNREAD]

    @property
    def summary(self) -> str:
        """State of the check and number of remarks, as a phrase."""
        remarks = sum(finding.level == "unusual" for finding in self.findings)
        more = f", with {plural(remarks, 'remark')}" if remarks and self.state != "refused" else ""
        return STATES[self.state] + more


def error_finding(about: str, text: str) -> Finding:
    """Return a finding because of which a run cannot be accepted."""
    return Finding("refused", about, text)


def warning_finding(about: str, text: str) -> Finding:
    """Return a remark that readers should know."""
    return Finding("unusual", about, text)


def is_refused(findings: Iterable[Finding]) -> bool:
    """Whether a run with these findings cannot be accepted."""
    return any(finding.level == "refused" for finding in findings)


def finding_lines(run: Run | Downstream | Personalized, checked: CheckResult) -> Iterator[str]:
    """Yield a line with run, number and state, and one for each finding."""
    yield f"{run.path}: {_summary(run)}: {checked.summary}"
    if checked.rescored:
        yield f"  {checked.rescored}"
    for finding in checked.findings:
        yield f"  {LEVELS[finding.level]}: {clean(finding.text)}"


def _summary(run: Run[Any, Any]) -> str:
    if not isinstance(run.config, EvaluationRunConfig):
        return f"{run.verb} on {clean(run.config.benchmark.title)}"
    headline = run.headline.value
    number = "no overall number" if headline is None else f"{headline:.1%}"
    number = f"unreadable ({run.unreadable} invalid)" if run.unreadable else number
    about = [run.config.benchmark.title, run.size, number, *filter(None, [run.close_margins])]
    return f"{clean(run.name)} on {', '.join(about)}"
