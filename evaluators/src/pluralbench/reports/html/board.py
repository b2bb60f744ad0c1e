"""The content of a page: runs with their checks, their sheets and ranks, ids and filters."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from pluralbench_runs.console import clean

from pluralbench.reports.figures.series import kind_name
from pluralbench.reports.ranking import Ranking
from pluralbench.reports.sheets import Sheet
from pluralbench.results.checks import STATES, CheckResult
from pluralbench.results.runs import Run

SIZES = (
    (1e9, "under 1B"),
    (4e9, "1B to 4B"),
    (15e9, "4B to 15B"),
    (40e9, "15B to 40B"),
    (float("inf"), "40B and more"),
)
"""Size classes: the number of parameters that a model has fewer than, and the name of the class."""

NO_CONTEXT = "none"
CONTEXTS = {None: NO_CONTEXT, "none": NO_CONTEXT, "raw": "posts"}
FEW_ITEMS = 10
"""Benchmarks and parts with fewer items or decisions are shown folded."""
LABELS = {
    "kind": "Kind",
    "size": "Parameters",
    "benchmark": "Benchmark",
    "context": "User context",
    "state": "Check",
}


class Listed(NamedTuple):
    """A run of a page.

    Attributes:
        key: Id of the run on the page.
        run: The run under the path that the page shows.
        original: The run under its actual path.
        checked: Result of the leaderboard's checks; None in a report of your own runs.
    """

    key: str
    run: Run
    original: Run
    checked: CheckResult | None = None

    @property
    def accepted(self) -> bool:
        """Whether the page shows its numbers."""
        return self.checked is None or self.checked.accepted


@dataclass(frozen=True)
class Board:
    """The content of a page.

    Attributes:
        listed: All runs of the page.
        sheets: The sheets of the accepted runs.
        ranks: The ranks of each sheet's rows.
    """

    listed: Sequence[Listed]
    sheets: Sequence[Sheet]
    ranks: Sequence[Ranking]

    @property
    def accepted(self) -> list[Listed]:
        """The runs whose numbers are shown."""
        return [item for item in self.listed if item.accepted]

    @cached_property
    def models(self) -> dict[str, str]:
        """The ids of the models' sections, by name."""
        names = dict.fromkeys(row.run.name for sheet in self.sheets for row in sheet.rows)
        return {name: f"model-{number}" for number, name in enumerate(names)}

    @cached_property
    def rows(self) -> dict[Path, tuple[int, int]]:
        """The indices of a run's sheet and row, by the run's path."""
        return {run.path: (at, place) for at, sheet in enumerate(self.sheets) for place, run in enumerate(sheet.runs)}

    @cached_property
    def by_path(self) -> dict[Path, Listed]:
        """The listed runs by path."""
        return {item.run.path: item for item in self.listed}

    def facets(self, runs: Iterable[Run]) -> Mapping[str, Sequence[str]]:
        """Return the filter values of runs; see `facets_of`."""
        return facets_of(self.by_path[run.path] for run in runs)

    def sheet_title(self, at: int) -> str:
        """Return the title of a sheet, with qualifiers if its benchmark has several sheets."""
        sheet = self.sheets[at]
        names = [other.runs[0].config.benchmark.name for other in self.sheets]
        unique = names.count(names[at]) == 1
        return clean(f"{sheet.title}, {sheet.size}" if unique else sheet.heading)


def benchmark_key(board: Board, at: int) -> str:
    """Return the id of the section of a sheet's benchmark."""
    names = [sheet.runs[0].config.benchmark.name for sheet in board.sheets]
    return f"benchmark-{list(dict.fromkeys(names)).index(names[at])}"


def table_key(at: int) -> str:
    """Return the id of the table of a sheet."""
    return f"table-{at}"


def size_of(run: Run) -> str:
    """Return the size class of a run's model."""
    parameters = run.result.model.parameters
    return "unknown" if parameters is None else next(name for limit, name in SIZES if parameters < limit)


def user_context_of(run: Run) -> str:
    """Describe the user context of a run's prompts in a few words."""
    prompt, variables = run.config.prompt, run.config.judge_setting("variables")
    if variables is not None:
        return f"persona: {variables}" if variables != "none" else NO_CONTEXT
    return CONTEXTS.get(prompt.profile, prompt.profile or NO_CONTEXT)


def facets_of(listed: Iterable[Listed]) -> Mapping[str, Sequence[str]]:
    """Return the values that any of the runs has, by filter."""
    facets: dict[str, dict[str, None]] = {name: {} for name in LABELS}
    for item in listed:
        values = {
            "kind": kind_name(item.run.result.model.kind),
            "size": size_of(item.run),
            "benchmark": clean(item.run.config.benchmark.title),
            "context": user_context_of(item.run),
        }
        if item.checked is not None:
            values["state"] = STATES[item.checked.state]
        for name, value in values.items():
            facets[name][value] = None
    return {name: list(values) for name, values in facets.items()}


def choices_of(listed: Sequence[Listed]) -> dict[str, tuple[str, Sequence[str]]]:
    """Return the filters in which runs differ: label and values by name."""
    facets = facets_of(listed)
    sizes = [name for _, name in SIZES]
    order = {"size": lambda name: sizes.index(name) if name in sizes else len(sizes)}
    return {
        name: (LABELS[name], sorted(values, key=order.get(name, str.casefold)))
        for name, values in facets.items()
        if len(values) > 1
    }
