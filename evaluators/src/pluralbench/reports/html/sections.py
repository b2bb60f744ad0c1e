"""What a page shows of studies, suites, plans, policies, personalized reward models and correlations."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pluralbench_runs.console import clean

from pluralbench.downstream.correlate import Correlation
from pluralbench.downstream.study import load_study
from pluralbench.errors import UserError
from pluralbench.reports import downstream, personalize, plans
from pluralbench.reports.correlation import correlation_findings, correlation_notes, correlation_tables, heading
from pluralbench.reports.figures import downstream as figures
from pluralbench.reports.figures.chart import Chart
from pluralbench.reports.study import TITLES, findings, scores_table
from pluralbench.reports.suite import suite_tables
from pluralbench.reports.tables import Table
from pluralbench.results.finding import FoundRuns
from pluralbench.results.runs import Downstream, Run

NO_FINDING = (
    "A correlation needs at least two reward models with a benchmark and a downstream result; this study has none."
)


class Result(NamedTuple):
    """A section of a page.

    Attributes:
        sentences: The result in words.
        notes: Sentences below the last table.
        parts: Sections within it.
        runs: Runs whose provenance is shown.
    """

    title: str
    sentences: Sequence[str] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    charts: Mapping[str, Chart] = {}
    parts: Sequence["Result"] = ()
    runs: Sequence[Run[Any, Any]] = ()


def other_results(runs: FoundRuns, models: Sequence[str]) -> Iterator[Result]:
    """Yield what a page shows besides benchmark runs.

    Args:
        models: Names of the models on the page, which determine the colors.
    """
    among = list(dict.fromkeys([*models, *(name for run in runs.downstream for name in run.result.rewards)]))
    if runs.suites:
        tables, texts = suite_tables(runs.suites)
        yield Result("Suites", tables=tables, notes=texts)
    yield from map(study_result, runs.studies)
    if runs.plans:
        report = plans.report_plans(runs.plans)
        yield Result("Plans", plans.plan_findings(runs.plans), report.tables, report.notes, runs=runs.plans)
    for run in runs.personalized:
        title = f"With and without a profile: {Path(run.config.backbone.name).name} ({run.path.name})"
        tables, charts = [*personalize.tables_of(run)], figures.personalized(run)
        yield Result(title, [*personalize.findings(run)], tables, [*personalize.notes(run)], charts, runs=[run])
    # The section of a study shows its steps.
    yield from (
        downstream_result(run, among)
        for run in runs.downstream
        if not any(run.path.is_relative_to(study) for study in runs.studies)
    )


def downstream_result(run: Downstream, among: Sequence[str]) -> Result:
    """Return what a page shows of a directory of `best-of-n` or `optimize`."""
    sampled = run.verb == "best-of-n" and bool(run.result.rewards)
    tables = [downstream.curve_table(run)] if sampled else downstream.outcome_tables([run])
    charts = figures.best_of_n(run, among) if sampled else {}
    title = f"{TITLES[run.verb]}: {Path(run.result.policy.name).name} ({run.path.name})"
    return Result(title, [downstream.finding_of(run)], tables, downstream.downstream_notes(run), charts, runs=[run])


def study_result(path: Path) -> Result:
    """Return what a page shows of a directory of `study`."""
    try:
        study = load_study(path)
    except UserError as error:
        return Result(f"Study: {path.name}", [f"This study is not complete: {error}"])
    models, parts = [model.name for model in study.recipe.models], []
    for name, correlation in study.correlations.items():
        parts.append(correlation_result(f"Does {correlation.benchmark.source} predict {name}?", correlation, models))
    if study.best_of_n is not None:
        steps, texts = [study.best_of_n], downstream.downstream_notes(study.best_of_n)
        charts = figures.best_of_n(study.best_of_n, models)
        parts.append(Result(TITLES["best-of-n"], [], downstream.outcome_tables(steps), texts, charts))
    if study.optimized:
        texts = [f"{name}: {downstream.level_note(run)}" for name, run in study.optimized.items()]
        parts.append(Result(TITLES["optimize"], [], downstream.outcome_tables([*study.optimized.values()]), texts))
    scores = scores_table(study)._replace(title="Scores of the reward models, in percent, and downstream results")
    sentences = [*filter(None, [study.recipe.about.strip()]), *(list(findings(study)) or [NO_FINDING])]
    title = f"Study: {study.recipe.title} ({path.name})"
    return Result(title, sentences, [scores], charts=figures.study(study), parts=parts)


def correlation_result(title: str, correlation: Correlation, models: Sequence[str] = ()) -> Result:
    """Return what a page shows of a correlation."""
    sides = [" ".join(line.split()) for line in heading(correlation)]
    tables = [one._replace(title=one.title or "Rank statistics") for one in correlation_tables(correlation)]
    charts = figures.correlation(correlation, models)
    found = [*correlation_findings(correlation)] or correlation.warnings
    texts = [*sides, *correlation_notes(correlation)]
    return Result(clean(title), [f"{one[0].upper()}{one[1:]}" for one in found], tables, texts, charts)
