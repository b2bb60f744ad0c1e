"""The page of `report --html`, and of a leaderboard: tables, figures and items, in a file that needs no network."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup
from pluralbench_runs import plural
from pluralbench_runs.console import clean
from pluralbench_runs.meters import progress

from pluralbench.downstream.correlate import Correlation
from pluralbench.reports.costs import cost_summary
from pluralbench.reports.figures.files import drawing
from pluralbench.reports.figures.report import figures_of
from pluralbench.reports.figures.series import kind_name
from pluralbench.reports.html.items import BUDGET, Browsed, browse
from pluralbench.reports.html.parts import RunLink, inlined_figures, page, part, save_page, table
from pluralbench.reports.kinds import correlation_section, other_sections
from pluralbench.reports.notes import notes
from pluralbench.reports.profile_modes import MODES_TERMS
from pluralbench.reports.ranking import MEAN, RANKS, Ranking, overview_sentence, rank_sheet, ranked_table, standings
from pluralbench.reports.runs import run_table, vote_tables
from pluralbench.reports.sheets import Sheet, Subject, definitions_of, modes_table, sheets_of, subject_of, title_of
from pluralbench.reports.tables import Column, Report, Row, Table, in_sentences, upright
from pluralbench.results.checks import STATES, CheckResult
from pluralbench.results.examples import MOVED
from pluralbench.results.finding import FoundRuns
from pluralbench.results.runs import Run

UNFOLDED = 2  # benchmarks at most that are shown unfolded
SIZES = {1e9: "under 1B", 4e9: "1B to 4B", 15e9: "4B to 15B", 40e9: "15B to 40B", float("inf"): "40B and more"}
"""Size classes by the number of parameters that a model has fewer than."""
CONTEXTS = {None: "none", "raw": "posts"}
FILTERS = {"kind": "Kind", "size": "Parameters", "benchmark": "Benchmark", "context": "User context", "state": "Check"}
NOUNS = {"downstream": ("policy", "policies"), "personalized": ("personalization", ""), "plans": ("plan run", "")}
"""What the page calls runs, by `RunKind.group`."""
UNKNOWN = "unknown"
FILTERED = "Ranks are over all models, including those that the filters hide."
CHECKED = {
    "checked": "Checked: items, outcomes, metrics and intervals were recomputed from its data, scores and recorded "
    "replies, and match. The scores and replies themselves were not reproduced.",
    "verified": "Verified: checked as above, and the model was queried again on some items.",
}
FACTS = {
    "Directory": "path",
    "Model": "result.model.name",
    "Kind": "result.model.kind",
    "Parameters": "result.model.parameters",
    "Model commit": "result.model.commit",
    "Model digest": "result.model.digest",
    "Provider": "result.model.provider",
    "Device": "result.model.device",
    "Type of numbers": "result.model.dtype",
    "Mode": "config.scoring.mode",
    "Policy": "result.policy.name",
    "Planner": "result.planner.name",
    "Backbone": "config.backbone.name",
    "Judge": "result.outcome.judge.name",
    "Data": "config.data.location",
    "Revision": "config.data.revision",
    "Data digest": "config.data.digest",
    "License": "config.data.license",
    "Split": "config.data.split",
    "Limit per config": "config.data.limit",
    "Drawn items": "config.data.items",
    "Drawn by seed": "config.data.items_seed",
    "Profile": "config.prompt.profile",
    "Prompts": "config.prompts_version",
    "Prompts digest": "config.prompts_digest",
    "Wordings digest": "config.prompt.wordings_digest",
    "Seed": "config.seed",
    "Finished": "provenance.finished",
    "Python": "provenance.python",
    "Platform": "provenance.platform",
    "Commit": "provenance.git.commit",
}
"""Attributes of runs of any kind, by their titles."""
JUDGE = (
    *("prompt", "rubric_model", "reply_format", "orders", "samples", "vote", "criterion"),
    *("temperature", "attempts", "setting", "variables"),
)
REJECTED = {
    "consistent": "Not checked against their data",
    "refused": "Not accepted: their files contradict each other or their data",
}


class Listed(NamedTuple):
    """A run under the path that the page shows and under its own, and on a leaderboard the result of its check."""

    run: Run
    original: Run
    checked: CheckResult | None = None


def write_html(runs: FoundRuns, out: Path) -> list[str]:
    """Write the page of runs, and return what it lacks. Raises `EvaluationError` if there are no runs, or no file."""
    runs.check_any()
    text, missing = html_report(runs)
    save_page(text, out)
    return missing


def write_correlation(correlation: Correlation, out: Path) -> None:
    """Write a page of a correlation."""
    sides = correlation.benchmark, correlation.downstream
    benchmark, downstream = (replace(side, source=Path(side.source).name or side.source) for side in sides)
    shown = replace(correlation, benchmark=benchmark, downstream=downstream)
    section = correlation_section(f"Does {benchmark.source} predict {downstream.source}?", shown)
    with drawing():
        sections = {"correlation": (section.title, _section("correlation", section))}
    save_page(page("PluralBench correlation", sections), out)


def html_report(runs: FoundRuns, checked: Sequence[Listed] = ()) -> tuple[str, list[str]]:
    """Render the page of runs, and say what it lacks, a sentence each.

    Args:
        runs: The runs.
        checked: Runs of a leaderboard, shown instead of the first argument's evaluation runs. Their items are not on
            the page, and of those that are not accepted it shows only the reasons.
    """
    every = checked or [Listed(run, run) for run in runs.runs]
    listed = [one for one in every if one.checked is None or one.checked.accepted]
    sections: dict[str, tuple[str, Markup]] = {}
    browsers: list[Browsed] = []
    with drawing():
        if listed:
            sections, browsers = _benchmark_sections(listed)
        sections |= _rejected(checked)
        for place, one in enumerate(other_sections(runs, list(dict.fromkeys(one.run.name for one in listed)))):
            sections[f"results-{place}"] = (one.title, _section(f"results-{place}", one))
    title = "PluralBench leaderboard" if checked else "PluralBench report"
    blocks = [block for browser in browsers for block in browser.blocks]
    lead = _lead(runs, [one.run for one in listed])
    return page(title, sections, lead, blocks), [one.note for one in browsers if one.note]


def _benchmark_sections(listed: Sequence[Listed]) -> tuple[dict[str, tuple[str, Markup]], list[Browsed]]:
    """The overview, a fold for each benchmark and each run, and the item browsers, which share the budget for texts."""
    links = {one.run.path: RunLink(f"run-{place}", _facets(one)) for place, one in enumerate(listed, start=1)}
    sheets = sheets_of([one.run for one in listed])
    rankings: list[Ranking] = []
    browsers: list[Browsed] = []
    benchmarks: dict[Subject, Benchmark] = {}
    findings, budget = [], BUDGET
    with progress("Comparing models", len(sheets)) as meter:
        for at, sheet in enumerate(sheets):
            name = sheet.runs[0].config.benchmark.name
            benchmark = benchmarks.setdefault(sheet.subject, Benchmark(at, [], [], []))
            ranking = rank_sheet(sheet)
            rankings.append(ranking)
            if not sheet.other:
                findings.append((sheet.title, f"#table-{at}", " ".join(overview_sentence(sheet, ranking))))
            texts = [*notes([sheet]), *in_sentences(definitions_of([sheet])), ranking.problem or RANKS]
            benchmark.tables.append(table(f"table-{at}", ranked_table(sheet, ranking), notes=texts, links=links))
            if sheet.modes:
                benchmark.tables.append(table(f"modes-{at}", modes_table(sheet), notes=in_sentences(MODES_TERMS)))
            votes, terms = vote_tables([sheet])
            for place, one in enumerate(votes):
                # The last of these tables has the definitions of all.
                texts = in_sentences(terms) if place == len(votes) - 1 else []
                benchmark.tables.append(table(f"votes-{at}-{place}", one, notes=texts))
            benchmark.sheets.append(sheet)
            if listed[0].checked is None:
                place = sum(other.runs[0].config.benchmark.name == name for other in sheets[: at + 1])
                unique = name if place == 1 else f"{name}-{place}"
                browsers.append(browse(f"items-{at}", unique, sheet, budget // (len(sheets) - at)))
                budget -= browsers[-1].size
                benchmark.items.append(browsers[-1].shown)
            meter.advance()
    originals = {one.run.path: one.original for one in listed}
    unfolded, folds = len(benchmarks) <= UNFOLDED, []
    with progress("Drawing figures", len(benchmarks)) as meter:
        for benchmark in benchmarks.values():
            folds.append(_benchmark_fold(benchmark, originals, unfolded=unfolded))
            meter.advance()
    parts = {
        "Overview": _overview(findings, *standings(sheets, rankings), len(sheets), links),
        "Benchmarks": folds,
        "Runs": [_run_fold(one, links[one.run.path].key) for one in listed],
    }
    sections = {title.lower(): (title, part("section", title, title.lower(), own)) for title, own in parts.items()}
    return sections, browsers


class Benchmark(NamedTuple):
    """The sheets of a benchmark with their tables and item browsers; `at` is the number of the first sheet."""

    at: int
    sheets: list[Sheet]
    tables: list[Markup]
    items: list[Markup]


def _facets(one: Listed) -> dict[str, str]:
    model, config = one.run.result.model, one.run.config
    profile, variables = config.prompt.profile, config.judge_setting("variables")
    few = (name for most, name in SIZES.items() if model.parameters is not None and model.parameters < most)
    return {
        "kind": kind_name(model.kind),
        "size": next(few, UNKNOWN),
        "benchmark": clean(config.benchmark.title),
        "context": str(CONTEXTS.get(profile, profile) if variables in {None, "none"} else f"persona: {variables}"),
        "state": STATES[one.checked.state] if one.checked else "not checked",
    }


def _overview(
    findings: list[tuple[str, str, str]],
    summary: Table,
    means: Ranking | None,
    sheets: int,
    links: Mapping[Path, RunLink],
) -> Iterator[Markup]:
    """Which model is best on each benchmark, the filters, and the table of all models."""
    several = len(summary.rows) > 1
    if means is not None and several:
        findings = [("Mean", "#standings", means.sentence), *findings]
    yield part("findings", findings)
    order = [UNKNOWN, *SIZES.values()]
    values = {name: dict.fromkeys(one.facets[name] for one in links.values()) for name in FILTERS}
    choices = {
        name: (FILTERS[name], sorted(own, key=order.index if name == "size" else str.casefold))
        for name, own in values.items()
        if len(own) > 1
    }
    if choices and several:
        yield part("filters", choices, FILTERED)
    if sheets > 1:
        whole = summary if several else upright(summary, "benchmark")
        yield table("standings", whole, notes=[RANKS, MEAN] if means is not None and several else [], links=links)


def _benchmark_fold(benchmark: Benchmark, originals: Mapping[Path, Run], *, unfolded: bool) -> Markup:
    own = [run for sheet in benchmark.sheets for run in sheet.runs]
    readable = [originals[run.path] for run in own if not run.unreadable]
    sheets = benchmark.sheets if len(readable) == len(own) else None
    charts = figures_of(readable, among=[*originals.values()], sheets=sheets) if readable else {}
    figures = inlined_figures(f"benchmark-{benchmark.at}", charts)
    size = f"{benchmark.sheets[0].size}, {plural(len({run.name for run in own}), 'model')}"
    heading = f"{clean(title_of(own))}: {size}"
    return part("details", heading, [*benchmark.tables, *figures, *benchmark.items], "", "fold", unfolded)


def _run_fold(one: Listed, key: str) -> Markup:
    run, checked = one.run, one.checked
    parts = [table(f"{key}-table", run_table(run))]
    if checked is not None:
        parts.append(part("paragraph", f"{CHECKED[checked.state]} {checked.rescored}".strip()))
        parts.append(part("list", [clean(finding.text) for finding in checked.findings]))
    parts.append(part("facts", _facts(run)))
    return part("details", clean(f"{run.path}: {run.name}, {run.config.benchmark.title}"), parts, key)


def _rejected(runs: Sequence[Listed]) -> Iterator[tuple[str, tuple[str, Markup]]]:
    """Sections of runs that are not accepted, with the reasons why their numbers are not shown."""
    columns = [Column("model"), Column("benchmark"), Column("reason")]
    for state, title in REJECTED.items():
        rows = []
        for run, _, checked in runs:
            if checked is not None and checked.state == state:
                reasons = " ".join(finding.text.removesuffix(MOVED) for finding in checked.rejection_reasons)
                rows.append(Row(run.path.as_posix(), [clean(run.name), run.config.benchmark.title, clean(reasons)]))
        if rows:
            shown = table(f"{state}-table", Table(title, "run", columns, rows))
            yield state, (title, part("section", title, state, [shown]))


def _section(key: str, report: Report, level: int = 2) -> Markup:
    """A section with its parts, one below the other. Call it within `figures.files.drawing`."""
    parts = [part("list", list(report.sentences))] if report.sentences else []
    last = len(report.tables) - 1
    for place, one in enumerate(report.tables):
        parts.append(table(f"{key}-table-{place}", one, notes=report.texts if place == last else ()))
    parts += [part("list", report.texts, "notes")] if report.texts and not report.tables else []
    parts += inlined_figures(key, report.charts)
    parts += [_section(f"{key}-{place}", one, 3) for place, one in enumerate(report.parts)]
    parts += [
        part("details", f"Provenance of {run.path}", [part("facts", _facts(run))], "", "sources") for run in report.runs
    ]
    return part("section", clean(report.title), key, parts, level)


def _facts(run: Run[Any, Any]) -> list[tuple[str, str]]:
    facts: dict[str, Any] = {title: _value_at(run, path) for title, path in FACTS.items()}
    facts["Reward models"] = ", ".join(getattr(run.result, "rewards", ()))
    if run.kind.has_overall:
        facts |= {name.replace("_", " ").capitalize(): run.config.judge_setting(name) for name in JUDGE}
        facts["Cost"] = cost_summary([run])
    made = run.provenance
    facts["Command"] = " ".join((Path(made.command[0]).name, *made.command[1:])) if made.command else ""
    facts["Software"] = ", ".join(f"{name} {version}" for name, version in made.packages.items())
    # The data of several benchmarks is a dictionary, which has methods of these names.
    return [
        (name, str(value)) for name, value in facts.items() if value and isinstance(value, str | int | float | Path)
    ]


def _value_at(run: Any, path: str) -> Any:
    return reduce(lambda value, name: getattr(value, name, None), path.split("."), run)


def _lead(results: FoundRuns, runs: Sequence[Run]) -> str:
    counts = [
        (len(runs), "run", ""),
        (len({run.name for run in runs}), "model", ""),
        (len({subject_of(run) for run in runs}), "benchmark", ""),
        *((len(own), *NOUNS.get(group, ("other run", ""))) for group, own in results.others.items()),
        (len(results.studies), "study", "studies"),
    ]
    shown = [plural(*one) for one in counts if one[0]]
    return f"{', '.join(shown) or 'No runs were accepted'}."
