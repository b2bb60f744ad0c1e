"""Sections of a page for studies, plans, best of k, optimized policies and personalized reward models."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from markupsafe import Markup
from pluralbench_runs.console import clean

from pluralbench.downstream.correlate import Correlation
from pluralbench.downstream.study import Study, load_study
from pluralbench.errors import UserError
from pluralbench.reports.correlation import correlation_findings, correlation_notes, heading
from pluralbench.reports.correlation import tables as correlation_tables
from pluralbench.reports.domains import tables_of as outcome_tables
from pluralbench.reports.downstream import curve_table, downstream_notes, finding_of, level_note
from pluralbench.reports.figures import downstream as figures
from pluralbench.reports.figures.files import drawing
from pluralbench.reports.html.components import NOTHING, details, items, page, paragraph, save_page, section
from pluralbench.reports.html.figures import inlined_figures
from pluralbench.reports.html.sources import Facts, data_facts, provenance_of, software_facts
from pluralbench.reports.html.tables import plain_table
from pluralbench.reports.personalize import findings as personalize_findings
from pluralbench.reports.personalize import notes, tables_of
from pluralbench.reports.plans import plan_findings, report_plans
from pluralbench.reports.study import TITLES, findings, scores_table
from pluralbench.reports.tables import Table, marks_in
from pluralbench.results.runs import Downstream, Personalized, Plans

VERBS = {"best-of-n": "Best-of-N", "optimize": "Optimized policy"}
NO_FINDING = (
    "A correlation needs at least two reward models with a benchmark and a downstream result; this study has none."
)


def study_section(key: str, path: Path) -> Markup:
    """Make the section of a directory of `study`. Call it within `style.drawing`."""
    try:
        study = load_study(path)
    except UserError as error:
        return section(f"Study: {path.name}", key, paragraph(f"This study is not complete: {error}"))
    return section(f"Study: {clean(study.recipe.title)} ({path.name})", key, *_study_parts(key, study))


def _study_parts(key: str, study: Study) -> Iterator[Markup]:
    models = [model.name for model in study.recipe.models]
    yield from map(paragraph, filter(None, [study.recipe.about.strip()]))
    yield items(list(findings(study)) or [NO_FINDING])
    title = "Scores of the reward models, in percent, and their downstream results"
    yield from _tables(f"{key}-scores", [scores_table(study)._replace(title=title)])
    yield from inlined_figures(key, figures.study(study))
    for place, (name, correlation) in enumerate(study.correlations.items()):
        own, question = f"{key}-correlation-{place}", f"Does {correlation.benchmark.source} predict {name}?"
        yield section(question, own, *correlation_parts(own, name, correlation, models), level=3)
    if study.best_of_n is not None:
        parts = [*_tables(f"{key}-best-of-n", outcome_tables([study.best_of_n]), downstream_notes(study.best_of_n))]
        parts += inlined_figures(key, figures.best_of_n(study.best_of_n, models))
        yield section(TITLES["best-of-n"], f"{key}-best-of-n-section", *parts, level=3)
    if study.optimized:
        tables = outcome_tables([*study.optimized.values()])
        sentences = [f"{name}: {level_note(run)}" for name, run in study.optimized.items()]
        parts = [*_tables(f"{key}-optimization", tables, sentences)]
        yield section(TITLES["optimization"], f"{key}-optimization-section", *parts, level=3)


def correlation_parts(key: str, name: str, correlation: Correlation, among: Sequence[str]) -> Iterator[Markup]:
    """Make the figures of a correlation, and its statistics behind a summary. Call it within `style.drawing`.

    Args:
        name: Name of the downstream result.
        among: All models of the page, which determine the colors.
    """
    yield from inlined_figures(key, figures.correlation(correlation, among))
    tables = [
        one._replace(title=one.title or f"Rank statistics of {correlation.benchmark.source} and {name}")
        for one in correlation_tables(correlation)
    ]
    yield details(f"All statistics: {name}", *_tables(f"{key}-table", tables, [*correlation_notes(correlation)]))


def write_correlation(correlation: Correlation, out: Path) -> None:
    """Write a page of a correlation.

    Raises:
        EvaluationError: The file cannot be written.
    """
    sides = correlation.benchmark, correlation.downstream
    benchmark, downstream = (replace(side, source=Path(side.source).name or side.source) for side in sides)
    shown = replace(correlation, benchmark=benchmark, downstream=downstream)
    sentences = [f"{one[0].upper()}{one[1:]}" for one in correlation_findings(shown)] or [*correlation.warnings]
    with drawing():
        parts = [*correlation_parts("correlation", downstream.source, shown, ())]
    origins = items(" ".join(line.split()) for line in heading(correlation))
    title = f"Does {benchmark.source} predict {downstream.source}?"
    body = section(title, "correlation", items(sentences), *parts, origins)
    save_page(page("PluralBench correlation", body), out)


def _tables(
    key: str, tables: Sequence[Table], texts: Sequence[str] = (), provenance: Markup = NOTHING
) -> Iterator[Markup]:
    """Tables, with the notes and the provenance below the last one."""
    last = len(tables) - 1
    below = [*texts, *marks_in(tables)]
    for place, one in enumerate(tables[:-1]):
        yield plain_table(f"{key}-{place}", one, provenance=NOTHING)
    yield from (plain_table(f"{key}-{last}", one, notes=below, provenance=provenance) for one in tables[-1:])


def plans_section(key: str, runs: Sequence[Plans]) -> Markup:
    """Make the section of directories of `plan`."""
    (table,) = report_plans(runs).tables
    names = [row.name for row in table.rows]
    rows = [(name, run.path, _plan_facts(run)) for name, run in zip(names, runs, strict=True)]
    sentences = [sentence for name, run in zip(names, runs, strict=True) for sentence in plan_findings(name, run)]
    lead = [items(sentences)] if sentences else []
    return section("Plans", key, *lead, *_tables(key, [table], report_plans(runs).notes, provenance_of(rows)))


def _plan_facts(run: Plans) -> Facts:
    yield "Planner", run.result.planner.name
    yield from data_facts(run.config.data)
    yield "Seed", str(run.config.seed)
    yield from software_facts(run.provenance)


def downstream_section(key: str, run: Downstream, among: Sequence[str]) -> Markup:
    """Make the section of a directory of `best-of-n` or `optimize`. Call it within `style.drawing`.

    Args:
        among: All models of the page, which determine the colors.
    """
    policy, texts = clean(Path(run.result.policy.name).name), downstream_notes(run)
    provenance = provenance_of([(run.path.name, run.path, _downstream_facts(run))])
    parts: list[Markup] = [paragraph(finding_of(run))]
    if run.verb == "best-of-n" and run.result.rewards:
        table = curve_table(run)._replace(title=f"Outcome by the number of candidates, {run.config.benchmark.title}")
        parts.append(plain_table(f"{key}-table", table, notes=texts, provenance=provenance))
        parts += inlined_figures(key, figures.best_of_n(run, among))
    else:
        tables = outcome_tables([run])
        parts += _tables(key, tables, texts, provenance) if tables else [*map(paragraph, texts), provenance]
    return section(f"{VERBS[run.verb]}: {policy} ({run.path.name})", key, *parts)


def _downstream_facts(run: Downstream) -> Facts:
    config, result = run.config, run.result
    yield "Policy", result.policy.name
    yield "Reward models", ", ".join(result.rewards)
    yield "Judge", "" if result.outcome is None else result.outcome.judge.name
    yield from data_facts(config.data)
    yield "Seed", str(config.seed)
    yield from software_facts(run.provenance)


def personalized_section(key: str, run: Personalized) -> Markup:
    """Make the section of a directory of `personalize`. Call it within `style.drawing`."""
    provenance = provenance_of([(run.path.name, run.path, _personalized_facts(run))])
    tables = _tables(key, [*tables_of(run)], [*notes(run)], provenance)
    drawn = inlined_figures(key, figures.personalized(run))
    sentences = [*personalize_findings(run)]
    backbone = clean(Path(run.config.backbone.name).name)
    title = f"With and without a profile: {backbone} ({run.path.name})"
    return section(title, key, *([items(sentences)] if sentences else []), *tables, *drawn)


def _personalized_facts(run: Personalized) -> Facts:
    config = run.config
    yield "Backbone", config.backbone.name
    yield "Seeds", str(config.personalizing.seeds)
    for data in config.data.values():
        yield from data_facts(data)
    yield from software_facts(run.provenance)
