"""The page of `report --html`, and of a leaderboard: tables, figures and items, in a file that needs no network."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup
from pluralbench_runs import plural
from pluralbench_runs.console import clean
from pluralbench_runs.meters import progress

from pluralbench.downstream.correlate import Correlation
from pluralbench.errors import EvaluationError
from pluralbench.reports.figures.files import drawing
from pluralbench.reports.figures.report import figures_of
from pluralbench.reports.figures.series import kind_name
from pluralbench.reports.html.facts import facts_of
from pluralbench.reports.html.figures import inlined_figures
from pluralbench.reports.html.items import BUDGET, browse
from pluralbench.reports.html.parts import page, part, save_page, table
from pluralbench.reports.notes import notes
from pluralbench.reports.profile_modes import MODES_NOTE, mode_table, modes_of
from pluralbench.reports.ranking import MEAN, RANKS, Ranking, overview_sentence, rank_sheet, ranked_table, standings
from pluralbench.reports.runs import run_table
from pluralbench.reports.sections import Result, correlation_result, other_results
from pluralbench.reports.sheets import sheets_of, title_of
from pluralbench.reports.tables import Column, Row, Table, upright
from pluralbench.results.checks import STATES, CheckResult
from pluralbench.results.examples import MOVED
from pluralbench.results.finding import FoundRuns
from pluralbench.results.runs import Run

UNFOLDED = 2  # benchmarks at most that are shown unfolded
SIZES = {1e9: "under 1B", 4e9: "1B to 4B", 15e9: "4B to 15B", 40e9: "15B to 40B", float("inf"): "40B and more"}
"""Size classes by the number of parameters that a model has fewer than."""
CONTEXTS = {None: "none", "raw": "posts"}
FILTERS = {
    "kind": "Kind",
    "size": "Parameters",
    "benchmark": "Benchmark",
    "context": "User context",
    "state": "Check",
}
FILTERED = "Ranks are over all models, including those that the filters hide."
CHECKED = {
    "checked": "Checked: items, outcomes, metrics and intervals were recomputed from its data, scores and recorded "
    "replies, and match. The scores and replies themselves were not reproduced.",
    "verified": "Verified: checked as above, and the model was queried again on some items.",
}
REJECTED = {
    "consistent": "Not checked against their data",
    "refused": "Not accepted: their files contradict each other or their data",
}


class Listed(NamedTuple):
    """A run of a leaderboard.

    Attributes:
        run: The run under the path that the page shows.
        original: The run under its actual path.
    """

    run: Run
    original: Run
    checked: CheckResult


def write_html(runs: FoundRuns, out: Path) -> list[str]:
    """Write the page of runs.

    Returns:
        What the page lacks, such as the texts of items whose data cannot be read; a sentence each.

    Raises:
        EvaluationError: There are no runs, or the file cannot be written.
    """
    if not any(runs):
        raise EvaluationError("There are no runs to report; name at least one run directory.")
    text, missing = html_report(runs)
    save_page(text, out)
    return missing


def write_correlation(correlation: Correlation, out: Path) -> None:
    """Write a page of a correlation.

    Raises:
        EvaluationError: The file cannot be written.
    """
    sides = correlation.benchmark, correlation.downstream
    benchmark, downstream = (replace(side, source=Path(side.source).name or side.source) for side in sides)
    shown = replace(correlation, benchmark=benchmark, downstream=downstream)
    result = correlation_result(f"Does {benchmark.source} predict {downstream.source}?", shown)
    with drawing():
        sections = {"correlation": (result.title, result_section("correlation", result))}
    save_page(page("PluralBench correlation", sections), out)


def html_report(runs: FoundRuns, checked: Sequence[Listed] = ()) -> tuple[str, list[str]]:
    """Render the page of runs.

    Args:
        checked: Runs of a leaderboard, shown instead of the first argument's evaluation runs. Their items are not on
            the page, and of those that are not accepted it shows only the reasons.

    Returns:
        The page, and what it lacks, a sentence each.
    """
    shown = [one.run for one in checked if one.checked.accepted] if checked else runs.runs
    sections: dict[str, tuple[str, Markup]] = {}
    blocks, missing = [], []
    if shown:
        board = Board(shown, {one.run.path: one for one in checked})
        sections["overview"] = ("Overview", board.overview())
        with drawing():
            benchmarks = board.benchmarks()
        sections["benchmarks"] = ("Benchmarks", part("section", "Benchmarks", "benchmarks", benchmarks))
        sections["runs"] = ("Runs", part("section", "Runs", "runs", [*board.details()]))
        blocks, missing = board.blocks, board.missing
    sections |= {key: (title, _rejected(key, title, checked)) for key, title in REJECTED.items() if checked}
    among = list(dict.fromkeys(run.name for run in shown))
    with drawing():
        results = {f"results-{place}": result for place, result in enumerate(other_results(runs, among))}
        sections |= {key: (result.title, result_section(key, result)) for key, result in results.items()}
    sections = {key: (title, content) for key, (title, content) in sections.items() if content}
    lead = _lead(runs, shown)
    title = "PluralBench leaderboard" if checked else "PluralBench report"
    return page(title, sections, lead, blocks), missing


class Board:
    """The benchmark runs of a page.

    Attributes:
        blocks: Data of the item browsers.
        missing: What these lack, a sentence each.
    """

    def __init__(self, runs: Sequence[Run], checked: Mapping[Path, Listed]) -> None:
        self.runs = runs
        self.checked = checked
        self.sheets = sheets_of(runs)
        self.rankings: list[Ranking] = []
        with progress("Comparing models", len(self.sheets)) as meter:
            for sheet in self.sheets:
                self.rankings.append(rank_sheet(sheet))
                meter.advance()
        self.keys = {run.path: f"run-{place}" for place, run in enumerate(runs, start=1)}
        self.blocks: list[Markup] = []
        self.missing: list[str] = []

    def link(self, row: Row) -> str:
        """Return the address of the first run of a row."""
        return f"#{self.keys[row.runs[0].path]}" if row.runs else ""

    def facets(self, row: Row) -> dict[str, list[str]]:
        """Return the values of a row by filter."""
        facets: dict[str, dict[str, None]] = {name: {} for name in FILTERS}
        for run in row.runs:
            parameters = run.result.model.parameters
            size = "unknown" if parameters is None else next(name for most, name in SIZES.items() if parameters < most)
            profile, variables = run.config.prompt.profile, run.config.judge_setting("variables")
            context = CONTEXTS.get(profile, profile) if variables in {None, "none"} else f"persona: {variables}"
            state = STATES[self.checked[run.path].checked.state] if self.checked else "not checked"
            values = (kind_name(run.result.model.kind), size, clean(run.config.benchmark.title), context, state)
            for name, value in zip(FILTERS, values, strict=True):
                facets[name][str(value)] = None
        return {name: list(values) for name, values in facets.items()}

    def table(self, key: str, source: Table, texts: Sequence[str]) -> Markup:
        """Render a table whose rows are runs."""
        return table(key, source, notes=texts, link=self.link, facets=self.facets)

    def overview(self) -> Markup:
        """Say which model is best on each benchmark, and show the filters and the table of all models."""
        parts: list[Markup] = []
        summary, ranking = standings(self.sheets, self.rankings)
        several = len(summary.rows) > 1
        places = [at for at, sheet in enumerate(self.sheets) if not sheet.other]
        lines = [
            (self.sheets[at].title, f"#table-{at}", " ".join(overview_sentence(self.sheets[at], self.rankings[at])))
            for at in places
        ]
        if ranking is not None and several:
            lines.insert(0, ("Mean", "#standings", ranking.sentence))
        parts.append(part("findings", lines))
        facets = self.facets(Row("", [], runs=self.runs))
        sizes = ["unknown", *SIZES.values()]
        choices = {
            name: (FILTERS[name], sorted(values, key=sizes.index if name == "size" else str.casefold))
            for name, values in facets.items()
            if len(values) > 1
        }
        if choices and several:
            parts.append(part("filters", choices, FILTERED))
        if len(self.sheets) > 1:
            whole = summary if several else upright(summary, "benchmark")
            below = [] if ranking is None or not several else [RANKS, MEAN]
            parts.append(self.table("standings", whole, below))
        return part("section", "Overview", "overview", parts)

    def benchmarks(self) -> list[Markup]:
        """Make the tables, figures and items of each benchmark; the sheets share the budget for item texts."""
        by_benchmark: dict[str, list[int]] = {}
        for at, sheet in enumerate(self.sheets):
            by_benchmark.setdefault(sheet.runs[0].config.benchmark.name, []).append(at)
        every, budget, folds = self._originals(self.runs), BUDGET, []
        with progress("Writing the page", len(self.sheets)) as meter:
            for benchmark, places in by_benchmark.items():
                parts: list[Markup] = []
                items: list[Markup] = []
                for nth, at in enumerate(places, start=1):
                    parts += self._tables(at)
                    if not self.checked:
                        name = benchmark if nth == 1 else f"{benchmark}-{nth}"
                        browsed = browse(f"items-{at}", name, self.sheets[at], budget // (len(self.sheets) - at))
                        budget -= browsed.size
                        items.append(browsed.shown)
                        self.blocks += browsed.blocks
                        self.missing += [browsed.note] if browsed.note else []
                    meter.advance()
                own = [run for at in places for run in self.sheets[at].runs]
                readable = [run for run in self._originals(own) if not run.unreadable]
                charts = figures_of(readable, among=every) if readable else {}
                parts += inlined_figures(f"benchmark-{places[0]}", charts)
                size = f"{self.sheets[places[0]].size}, {plural(len({run.name for run in own}), 'model')}"
                heading = f"{clean(title_of(own))}: {size}"
                unfolded = len(by_benchmark) <= UNFOLDED
                folds.append(part("details", heading, [*parts, *items], "", "fold", unfolded))
        return folds

    def _tables(self, at: int) -> Iterator[Markup]:
        """The table of a sheet, and that of its profile modes."""
        sheet, ranking = self.sheets[at], self.rankings[at]
        texts = [*notes([sheet]), ranking.problem or RANKS]
        yield self.table(f"table-{at}", ranked_table(sheet, ranking), texts)
        if models := modes_of(sheet.runs):
            yield table(f"modes-{at}", mode_table(sheet, models), notes=[MODES_NOTE])

    def _originals(self, runs: Iterable[Run]) -> list[Run]:
        return [self.checked[run.path].original if self.checked else run for run in runs]

    def details(self) -> Iterator[Markup]:
        """Make a fold for each run, with all its numbers, the result of its check, and its provenance."""
        for run in self.runs:
            key = self.keys[run.path]
            parts = [table(f"{key}-table", run_table(run))]
            if self.checked:
                checked = self.checked[run.path].checked
                parts.append(part("paragraph", f"{CHECKED[checked.state]} {checked.rescored}".strip()))
                parts.append(part("list", [clean(finding.text) for finding in checked.findings]))
            parts.append(part("facts", facts_of(run)))
            yield part("details", clean(f"{run.path}: {run.name}, {run.config.benchmark.title}"), parts, key)


def _rejected(state: str, title: str, runs: Sequence[Listed]) -> Markup:
    """The runs in a state, with the reasons why their numbers are not shown."""
    rows = [
        Row(run.path.as_posix(), [clean(run.name), run.config.benchmark.title, clean(reasons)])
        for run, _, checked in runs
        for reasons in [" ".join(finding.text.removesuffix(MOVED) for finding in checked.rejection_reasons)]
        if checked.state == state
    ]
    columns = [Column("model"), Column("benchmark"), Column("reason")]
    return (
        part("section", title, state, [table(f"{state}-table", Table(title, "run", columns, rows))])
        if rows
        else Markup()
    )


def result_section(key: str, result: Result, level: int = 2) -> Markup:
    """Render a result with its parts, one below the other. Call it within `figures.files.drawing`."""
    parts = [part("list", list(result.sentences))] if result.sentences else []
    last = len(result.tables) - 1
    for place, one in enumerate(result.tables):
        parts.append(table(f"{key}-table-{place}", one, notes=result.notes if place == last else ()))
    parts += [part("list", list(result.notes), "notes")] if result.notes and not result.tables else []
    parts += inlined_figures(key, result.charts)
    parts += [result_section(f"{key}-{place}", one, 3) for place, one in enumerate(result.parts)]
    parts += [
        part("details", f"Provenance of {run.path}", [part("facts", facts_of(run))], "", "sources")
        for run in result.runs
    ]
    return part("section", clean(result.title), key, parts, level)


def _lead(results: FoundRuns, runs: Sequence[Run]) -> str:
    """The counts of what the page shows, as a sentence."""
    counts = {
        "run": len(runs),
        "model": len({run.name for run in runs}),
        "benchmark": len({run.config.benchmark.name for run in runs}),
        "personalization": len(results.personalized),
        "policy": len(results.downstream),
        "plan run": len(results.plans),
        "study": len(results.studies),
    }
    shown = [
        plural(count, name, {"policy": "policies", "study": "studies"}.get(name, ""))
        for name, count in counts.items()
        if count
    ]
    return f"{', '.join(shown) or 'No runs were accepted'}."
