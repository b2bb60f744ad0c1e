"""The runs of a leaderboard: each checked, at a path that names no machine, and what it can be filtered by."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pluralbench_runs.progress import progress

from pluralbench.leaderboard.findings import Finding, is_refused
from pluralbench.leaderboard.submission import check_submission
from pluralbench.leaderboard.telling import verdict_on
from pluralbench.reports.figures.kinds import kind_name
from pluralbench.reports.layout import clean
from pluralbench.results.runs import Run

SIZES = (
    (1e9, "under 1B"),
    (4e9, "1B to 4B"),
    (15e9, "4B to 15B"),
    (40e9, "15B to 40B"),
    (float("inf"), "40B and more"),
)
"""By how many parameters a model has fewer than, what its size is called."""

TOLD = {None: "nothing", "none": "nothing", "raw": "posts"}
CLEAN, REMARKS = "without remarks", "with remarks"
LABELS = {
    "kind": "Kind",
    "size": "Parameters",
    "benchmark": "Benchmark",
    "told": "Told of the person",
    "checks": "Checks",
}


class Submission(NamedTuple):
    """A run of a leaderboard. run: at its path below the leaderboard's folder. original: where it lies.

    key: its id on a page.
    """

    key: str
    run: Run
    original: Run
    findings: Sequence[Finding]

    @property
    def accepted(self) -> bool:
        """Whether its numbers can be shown."""
        return not is_refused(self.findings)

    @property
    def checked(self) -> str:
        """What the checks came to, in few words."""
        return verdict_on(self.findings)


def checked_runs(runs: Sequence[Run], folder: Path) -> list[Submission]:
    """The runs of a folder with what their checks found, in the order of their paths."""
    found = []
    with progress("Checking runs", len(runs)) as meter:
        for run in runs:
            inside = run.path.relative_to(folder)
            shown = replace(run, path=inside if inside.name else Path(folder.resolve().name))
            found.append((shown, run, check_submission(run, runs)))
            meter.advance()
    found.sort(key=lambda one: one[0].path.as_posix())
    return [Submission(f"run-{place}", *one) for place, one in enumerate(found, 1)]


def size_of(run: Run) -> str:
    """What the size of a run's model is called."""
    parameters = run.record.model.parameters
    return "not known" if parameters is None else next(said for most, said in SIZES if parameters < most)


def told_of(run: Run) -> str:
    """What a run tells of the person, in few words."""
    prompt = run.record.prompt
    if prompt.setting is not None:
        return f"persona: {prompt.variables}" if prompt.variables != "none" else "nothing"
    return TOLD.get(prompt.profile, prompt.profile or "nothing")


def facets_of(submissions: Iterable[Submission]) -> Mapping[str, Sequence[str]]:
    """What some runs can be filtered by: the values that any of them has."""
    found: dict[str, dict[str, None]] = {name: {} for name in LABELS}
    for one in submissions:
        values = {
            "kind": kind_name(one.run.record.model.kind),
            "size": size_of(one.run),
            "benchmark": clean(one.run.record.benchmark.title),
            "told": told_of(one.run),
            "checks": REMARKS if one.findings else CLEAN,
        }
        for name, value in values.items():
            found[name][value] = None
    return {name: list(values) for name, values in found.items()}


def choices_of(submissions: Sequence[Submission]) -> dict[str, tuple[str, Sequence[str]]]:
    """The filters in which some runs differ, with their labels and values."""
    found = facets_of(submissions)
    sizes = [said for _, said in SIZES]
    order = {"size": lambda said: sizes.index(said) if said in sizes else len(sizes)}
    return {
        name: (LABELS[name], sorted(values, key=order.get(name, str.casefold)))
        for name, values in found.items()
        if len(values) > 1
    }
