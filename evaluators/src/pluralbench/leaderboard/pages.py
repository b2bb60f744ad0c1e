"""The pages of a leaderboard's site: the index, and one for each benchmark and each model."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup
from pluralbench_runs import digest

from pluralbench.leaderboard.submissions import Submission, choices_of, facets_of, size_of, told_of
from pluralbench.reports.figures.kinds import kind_name
from pluralbench.reports.html.components import (
    Cell,
    Head,
    Link,
    Row,
    details,
    facts,
    filters,
    items,
    number,
    page,
    paragraph,
    scale_of,
    section,
    table,
)
from pluralbench.reports.html.leaderboard import Board, leaderboard
from pluralbench.reports.html.models import part_tables
from pluralbench.reports.html.report import benchmark_figures
from pluralbench.reports.html.sources import facts_of
from pluralbench.reports.html.tables import modes_table, rank_cell, sheet_table
from pluralbench.reports.layout import clean
from pluralbench.reports.ranking import Ranked
from pluralbench.reports.sheets import Sheet
from pluralbench.results.runs import Run

TITLE = "Leaderboard: what reward models decide where people differ"
INDEX = "index.html"
FOOT = "Made by pluralbench leaderboard. These pages need no server and ask nothing of any network."
LONGEST = 60  # characters of a file's name
RANKED_TOGETHER = "Ranks are among all models, also those that are filtered out."


class Site(NamedTuple):
    """What a site is of. sheets: of the accepted runs. models, benchmarks: the files of their pages, by name."""

    submissions: Sequence[Submission]
    sheets: Sequence[Sheet]
    ranks: Sequence[Ranked]
    models: Mapping[str, str]
    benchmarks: Mapping[str, str]

    def of(self, run: Run) -> Submission:
        """The submission that a row of a sheet is of."""
        return next(one for one in self.submissions if one.run.path == run.path)

    def called(self, at: int) -> str:
        """What a sheet is called: its benchmark, with what tells it apart where there are several of it."""
        sheet = self.sheets[at]
        alone = len(self.sheets_of(sheet.runs[0].record.benchmark.name)) == 1
        return clean(f"{sheet.title}, {sheet.items:,} item{'s' * (sheet.items != 1)}" if alone else sheet.heading)

    def sheets_of(self, benchmark: str) -> list[int]:
        """The numbers of a benchmark's sheets."""
        return [at for at, sheet in enumerate(self.sheets) if sheet.runs[0].record.benchmark.name == benchmark]


def file_names(names: Iterable[str], folder: str) -> dict[str, str]:
    """A file for each name, below a folder; unlike also where a file system knows no capitals."""
    found: dict[str, str] = {}
    for name in sorted(set(names)):
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:LONGEST]
        taken = {path.casefold() for path in found.values()}
        path = f"{folder}/{plain}.html"
        if not plain or path.casefold() in taken:
            path = f"{folder}/{plain}-{digest(name)[:8]}.html".replace("/-", "/")
        found[name] = path
    return found


def index_page(site: Site) -> str:
    """The first page: the leaderboard over all benchmarks, the benchmarks, all runs, and those that were refused."""
    accepted = [one for one in site.submissions if one.accepted]
    refused = [one for one in site.submissions if not one.accepted]
    parts: list[Markup] = []
    if accepted:
        board = Board(site.sheets, site.ranks, [_place_of(site, at) for at in range(len(site.sheets))])
        shown = leaderboard(
            "leaderboard-table", board, site.models, lambda runs: facets_of(site.of(run) for run in runs)
        )
        choices = choices_of(accepted)
        chosen = [filters(choices, RANKED_TOGETHER)] if choices else []
        parts.append(section("Leaderboard", "leaderboard", *chosen, shown))
        parts.append(section("Benchmarks", "benchmarks", _benchmarks(site)))
        parts.append(section("Runs", "runs", _runs("runs-table", site, accepted, up="")))
    if refused:
        parts.append(section("Not accepted", "refused", _refused(refused)))
    links = [("leaderboard", "Leaderboard"), ("benchmarks", "Benchmarks"), ("runs", "Runs")] if accepted else []
    links += [("refused", "Not accepted")] if refused else []
    models = len({one.run.name for one in accepted})
    lead = f"{_many(len(accepted), 'run')} of {_many(models, 'model')} on {_many(len(site.benchmarks), 'benchmark')}."
    return _page(TITLE, parts, lead=lead, navigation=[Link(f"#{key}", text) for key, text in links])


def benchmark_page(site: Site, benchmark: str, among: Sequence[Run]) -> str:
    """The page of a benchmark: its tables, figures and runs. among: all runs at their places, for the colours."""
    places = site.sheets_of(benchmark)
    own = [site.of(run) for at in places for run in site.sheets[at].runs]
    parts: list[Markup] = []
    for at in places:
        sheet = site.sheets[at]
        links = [_up(site.models[row.run.name]) for row in sheet.rows]
        parts.append(sheet_table(f"table-{at}", sheet, site.ranks[at], links))
        modes = modes_table(f"modes-{at}", sheet)
        parts += [] if modes is None else [modes]
    drawn = list(benchmark_figures("figure", [one.original for one in own], among))
    choices = {name: choice for name, choice in choices_of(own).items() if name != "benchmark"}
    chosen = [filters(choices)] if choices else []
    body = [section("Results", "results", *parts)]
    body += [section("Figures", "figures", *drawn)] if drawn else []
    body.append(section("Runs", "runs", *chosen, _runs("runs-table", site, own, up="../")))
    links = [("results", "Results"), ("figures", "Figures"), ("runs", "Runs")]
    title = clean(site.sheets[places[0]].title)
    rule = own[0].run.record.benchmark.rule
    return _page(
        title,
        body,
        lead=f"Overall: {rule}.",
        navigation=[_home(), *_links(link for link in links if drawn or link[0] != "figures")],
    )


def model_page(site: Site, model: str) -> str:
    """The page of a model: its numbers on each benchmark, and each run with its parts, checks and origin."""
    own = [one for one in site.submissions if one.accepted and one.run.name == model]
    record = own[0].run.record.model
    parameters = "" if record.parameters is None else f", {record.parameters:,} parameters"
    body = [section("Runs", "runs", _runs("runs-table", site, own, up="../", of_a_model=True))]
    headings: dict[str, str] = {}
    for one in own:
        at, row = _row(site, one)
        sheet = site.sheets[at]
        tables = list(part_tables(one.key, sheet, sheet.rows[row]))
        told = told_of(one.run)
        headings[one.key] = site.called(at) if told == "nothing" else f"{site.called(at)}, told {told}"
        body.append(section(headings[one.key], one.key, *tables, *_checks(one), _origin(one)))
    links = [("runs", "Runs"), *headings.items()]
    lead = f"Kind: {kind_name(record.kind).lower()}{parameters}."
    return _page(clean(model), body, lead=lead, navigation=[_home(), *_links(links)])


def _page(title: str, parts: Sequence[Markup], *, lead: str, navigation: Sequence[Link]) -> str:
    body = Markup("\n").join(parts)
    more = ["filters"]
    return page(title, body, lead=lead, navigation=navigation, foot=paragraph(FOOT), scripts=more, styles=more)


def _home() -> Link:
    return Link(_up(INDEX), "All benchmarks")


def _links(keys: Iterable[tuple[str, str]]) -> list[Link]:
    return [Link(f"#{key}", text) for key, text in keys]


def _up(path: str) -> str:
    return f"../{path}"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _place_of(site: Site, at: int) -> str:
    return f"{site.benchmarks[site.sheets[at].runs[0].record.benchmark.name]}#table-{at}"


def _row(site: Site, one: Submission) -> tuple[int, int]:
    """The number of the sheet that a run stands in, and that of its row."""
    return next(
        (at, place)
        for at, sheet in enumerate(site.sheets)
        for place, run in enumerate(sheet.runs)
        if run.path == one.run.path
    )


def _benchmarks(site: Site) -> Markup:
    """A row a benchmark, with where it is told of."""
    rows = []
    for name, path in site.benchmarks.items():
        places = site.sheets_of(name)
        runs = [run for at in places for run in site.sheets[at].runs]
        items_of = max(site.sheets[at].items for at in places)
        models = len({run.name for run in runs})
        rows.append(
            Row(
                (
                    Cell(clean(site.sheets[places[0]].title), link=path),
                    Cell(f"{items_of:,}", items_of),
                    Cell(f"{models:,}", models),
                    Cell(f"{len(runs):,}", len(runs)),
                    Cell(runs[0].record.benchmark.rule),
                )
            )
        )
    heads = [
        Head("benchmark", number=False),
        Head("items"),
        Head("models"),
        Head("runs"),
        Head("overall number", number=False),
    ]
    return table("benchmarks-table", "A page for each benchmark, with its parts and figures.", heads, rows)


def _runs(key: str, site: Site, runs: Sequence[Submission], *, up: str, of_a_model: bool = False) -> Markup:
    """A row a run, with what it is, its overall number, its rank, and what its checks found."""
    scale = scale_of(one.run.headline for one in runs)
    rows = []
    for one in runs:
        at, place = _row(site, one)
        record = one.run.record
        here = f"#{one.key}" if of_a_model else f"{up}{site.models[one.run.name]}#{one.key}"
        cells = [
            Cell(clean(one.run.path.as_posix()), link=here),
            *([] if of_a_model else [Cell(clean(one.run.name))]),
            Cell(site.called(at), link=f"{up}{_place_of(site, at)}"),
            number(one.run.headline, scale=scale),
            rank_cell(site.ranks[at].ranks[place]),
            Cell(told_of(one.run)),
            *([] if of_a_model else [Cell(kind_name(record.model.kind)), Cell(size_of(one.run))]),
            Cell(one.checked),
            _day(record.provenance.finished),
        ]
        rows.append(Row(cells, facets=facets_of([one])))
    names = ["run", *([] if of_a_model else ["model"]), "benchmark", "overall", "rank", "told of the person"]
    names += [*([] if of_a_model else ["kind", "parameters"]), "checks", "finished"]
    heads = [Head(name, number=name in {"overall", "rank", "finished"}) for name in names]
    caption = f"{_many(len(runs), 'run')}: the overall number in %, with its 95% interval."
    return table(key, caption, heads, rows)


def _day(finished: str) -> Cell:
    """A day, which sorts as a number so that it stays on one line."""
    day = finished[:10]
    return Cell(day, float(day.replace("-", "")) if re.fullmatch(r"\d{4}-\d\d-\d\d", day) else "")


def _refused(runs: Sequence[Submission]) -> Markup:
    """Runs whose files do not agree, with the reasons."""
    heads = [Head(name, number=False) for name in ("run", "model", "benchmark", "why")]
    rows = [
        Row(
            (
                Cell(clean(one.run.path.as_posix())),
                Cell(clean(one.run.name)),
                Cell(clean(one.run.record.benchmark.title)),
                Cell(clean(" ".join(found.text for found in one.findings if found.level == "refused"))),
            )
        )
        for one in runs
    ]
    return table("refused-table", "Runs that stand in no other table, since their files do not agree.", heads, rows)


def _checks(one: Submission) -> Iterator[Markup]:
    """What the checks of a run found, a line each."""
    if one.findings:
        yield paragraph("Valid: all its files agree. What is unusual about it:")
        yield items(clean(found.text) for found in one.findings)
    else:
        yield paragraph("Valid: all its files agree, and nothing about it is unusual.")


def _origin(one: Submission) -> Markup:
    pairs = [("Run", one.run.path.as_posix()), *facts_of(one.run).items()]
    return details("Where these numbers come from", facts(pairs), kind="sources")
