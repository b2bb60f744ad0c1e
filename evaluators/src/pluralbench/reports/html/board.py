"""What a page is of: runs with their checks, the sheets they stand in, their ids, and what rows can be filtered by."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from pluralbench.leaderboard.findings import STATES, CheckResult
from pluralbench.reports.figures.kinds import kind_name
from pluralbench.reports.layout import clean
from pluralbench.reports.ranking import Ranked
from pluralbench.reports.sheets import Sheet
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
    "state": "Checked",
}


class Listed(NamedTuple):
    """A run of a page. key: its id there. run: at the path that the page names. original: where it lies.

    checked: how far it was checked, and what was found; None where it was not, as in a report of one's own runs.
    """

    key: str
    run: Run
    original: Run
    checked: CheckResult | None = None

    @property
    def accepted(self) -> bool:
        """Whether its numbers can be shown among others."""
        return self.checked is None or self.checked.accepted


@dataclass(frozen=True)
class Board:
    """What a page is of. listed: its runs. sheets: of those that are accepted. ranks: of each sheet's rows."""

    listed: Sequence[Listed]
    sheets: Sequence[Sheet]
    ranks: Sequence[Ranked]

    @property
    def accepted(self) -> list[Listed]:
        """The runs whose numbers are shown."""
        return [one for one in self.listed if one.accepted]

    @cached_property
    def models(self) -> dict[str, str]:
        """The ids of the models' profiles, by the models' names."""
        names = dict.fromkeys(row.run.name for sheet in self.sheets for row in sheet.rows)
        return {name: f"model-{place}" for place, name in enumerate(names)}

    @cached_property
    def rows(self) -> dict[Path, tuple[int, int]]:
        """The number of the sheet that a run stands in and that of its row, by the run's path."""
        return {run.path: (at, place) for at, sheet in enumerate(self.sheets) for place, run in enumerate(sheet.runs)}

    @cached_property
    def by_path(self) -> dict[Path, Listed]:
        """What the page knows of each run, by its path."""
        return {one.run.path: one for one in self.listed}

    def facets(self, runs: Iterable[Run]) -> Mapping[str, Sequence[str]]:
        """What some runs can be filtered by; see `facets_of`."""
        return facets_of(self.by_path[run.path] for run in runs)

    def called(self, at: int) -> str:
        """What a sheet is called: its benchmark, with what tells it apart where there are several of it."""
        sheet = self.sheets[at]
        names = [other.runs[0].config.benchmark.name for other in self.sheets]
        alone = names.count(names[at]) == 1
        return clean(f"{sheet.title}, {sheet.size}" if alone else sheet.heading)


def table_key(at: int) -> str:
    """The id of the table of a sheet, by its number."""
    return f"table-{at}"


def many(count: int, what: str, plural: str = "") -> str:
    """So many of something, in words."""
    return f"{count:,} {what if count == 1 else plural or f'{what}s'}"


def size_of(run: Run) -> str:
    """What the size of a run's model is called."""
    parameters = run.result.model.parameters
    return "not known" if parameters is None else next(said for most, said in SIZES if parameters < most)


def told_of(run: Run) -> str:
    """What a run tells of the person, in few words."""
    prompt, variables = run.config.prompt, run.config.judge_setting("variables")
    if variables is not None:
        return f"persona: {variables}" if variables != "none" else "nothing"
    return TOLD.get(prompt.profile, prompt.profile or "nothing")


def facets_of(listed: Iterable[Listed]) -> Mapping[str, Sequence[str]]:
    """What some runs can be filtered by: the values that any of them has."""
    found: dict[str, dict[str, None]] = {name: {} for name in LABELS}
    for one in listed:
        values = {
            "kind": kind_name(one.run.result.model.kind),
            "size": size_of(one.run),
            "benchmark": clean(one.run.config.benchmark.title),
            "told": told_of(one.run),
        }
        if one.checked is not None:
            values |= {"checks": REMARKS if one.checked.findings else CLEAN, "state": STATES[one.checked.state]}
        for name, value in values.items():
            found[name][value] = None
    return {name: list(values) for name, values in found.items()}


def choices_of(listed: Sequence[Listed]) -> dict[str, tuple[str, Sequence[str]]]:
    """The filters in which some runs differ, with their labels and values."""
    found = facets_of(listed)
    sizes = [said for _, said in SIZES]
    order = {"size": lambda said: sizes.index(said) if said in sizes else len(sizes)}
    return {
        name: (LABELS[name], sorted(values, key=order.get(name, str.casefold)))
        for name, values in found.items()
        if len(values) > 1
    }
