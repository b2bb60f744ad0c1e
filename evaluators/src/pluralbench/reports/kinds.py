"""What reports and pages show of each kind of run: tables, sentences, notes and figures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from pluralbench_local.training_config import TRAINING_FILE
from pluralbench_measures.bootstrap import Estimate
from pluralbench_release.markdown import escape_markdown
from pluralbench_runs import plural, write_text
from pluralbench_runs.console import clean
from pluralbench_tables import read_json

from pluralbench.downstream.correlate import Correlation
from pluralbench.downstream.study import PAGE_FILE as STUDY_PAGE
from pluralbench.downstream.study import Study, load_study
from pluralbench.downstream.study_plan import MODELS
from pluralbench.errors import EvaluationError, RunError, UserError
from pluralbench.evaluation.without import read_item_list
from pluralbench.metrics.frame import NUMBERS, key_text
from pluralbench.metrics.table import METRICS
from pluralbench.reports import downstream, personalize
from pluralbench.reports.contamination import add_numbers_without
from pluralbench.reports.correlation import correlation_findings, correlation_notes, correlation_tables, heading
from pluralbench.reports.figures import downstream as figures
from pluralbench.reports.figures.chart import Chart
from pluralbench.reports.figures.files import write
from pluralbench.reports.figures.report import figures_of
from pluralbench.reports.plans import report_plans
from pluralbench.reports.runs import details, overview
from pluralbench.reports.suite import report_suites, suite_section
from pluralbench.reports.tables import Column, Report, Row, Table, long_frame, marks_in
from pluralbench.reports.writing import in_markdown, listed
from pluralbench.results.finding import STUDY_FILE, FoundRuns
from pluralbench.results.numbers import KINDS, three_digits, with_interval
from pluralbench.results.personalize import FIGURES_FOLDER, PAGE_FILE
from pluralbench.results.runs import Downstream, Personalized, Plans, Run

TITLES = {"best-of-n": "Best-of-N", "optimization": "Policy optimization", "optimize": "Policy optimization"}
STUDY_STEPS = f"`pluralbench study` repeats the study by the recipe beside this page (`{STUDY_FILE}`) in a new folder."
PERSONALIZED_STEPS = "`run.json` has the settings, and `models` the models, which `pluralbench score` accepts."
NO_FINDING = "A correlation needs at least two reward models with a benchmark and a downstream result."
ALL_EQUAL = "No correlation: all reward models have the same score on the benchmark, or the same downstream result."


def reports_of(
    runs: FoundRuns, *, detail: bool = False, wide: bool = False, without: Path | None = None
) -> list[Report]:
    """Make a report for each kind of run.

    Args:
        runs: The runs.
        detail: Show every number instead of one row for each model. As JSON or CSV: the rows of `report_frame`.
        wide: Use as many columns as needed, and show the intervals of parts too.
        without: List of items, as `contamination` writes it; the report of benchmark runs also has the overall numbers
            without them. Default: none.

    Raises:
        EvaluationError: There are no runs, or the list cannot be used.
    """
    runs.check_any()
    reports = [details(runs.runs) if detail else overview(runs.runs, wide=wide)] if runs.runs else []
    if without is not None:
        if not runs.runs:
            raise EvaluationError("`without=...` is for runs of benchmarks; there are none.")
        reports = [add_numbers_without(reports[0], runs.runs, read_item_list(without))]
    reports += [GROUPS.get(group, ANY).report(own) for group, own in runs.others.items()]
    return reports + [report_suites(runs.suites)] * bool(runs.suites)


def figures_of_found(runs: FoundRuns, families: Mapping[str, str]) -> dict[str, Chart]:
    """Return the charts of runs of every kind, by file stem; of several runs of a group each has a folder.

    Families are patterns of model names, for the figure of profile modes.
    """
    charts = figures_of(runs.runs, families)
    for group, own in runs.others.items():
        sections = {run.path.name: GROUPS.get(group, ANY).section(run, ()) for run in own}
        drawn = {name: section.charts for name, section in sections.items() if section.charts}
        for name, of_run in drawn.items():
            charts |= {f"{name}/{stem}" if len(drawn) > 1 else stem: chart for stem, chart in of_run.items()}
    return charts


def other_sections(runs: FoundRuns, models: Sequence[str]) -> Iterator[Report]:
    """Yield what a page shows besides benchmark runs; the names of the models on it determine the colors."""
    among = list(dict.fromkeys([*models, *(name for run in runs.downstream for name in run.result.rewards)]))
    if runs.suites:
        yield suite_section(runs.suites)
    yield from map(loaded_study_section, runs.studies)
    for group, own in runs.others.items():
        for run in own:
            # The section of a study shows its steps.
            if not any(run.path.is_relative_to(study) for study in runs.studies):
                yield GROUPS.get(group, ANY).section(run, among)._replace(runs=[run])


def personalized_section(run: Personalized, among: Sequence[str] = ()) -> Report:
    """Return what a page shows of a directory of `personalize`."""
    title = f"With and without a profile: {Path(run.config.backbone.name).name} ({run.path.name})"
    found, charts = [*personalize.findings(run)], figures.personalized(run)
    return personalize.report_personalized([run])._replace(title=title, sentences=found, charts=charts)


def downstream_section(run: Downstream, among: Sequence[str]) -> Report:
    """Return what a page shows of a directory of `best-of-n` or `optimize`."""
    return Report(
        [downstream.curve_table(run)] if downstream.selects(run) else downstream.outcome_tables([run]),
        downstream.downstream_notes(run),
        title=f"{TITLES[run.verb]}: {Path(run.result.policy.name).name} ({run.path.name})",
        sentences=[downstream.finding_of(run)],
        charts=figures.best_of_n(run, among),
    )


def _plans_section(run: Plans, among: Sequence[str]) -> Report:
    return report_plans([run])._replace(title=f"Plans: {Path(run.result.planner.name).name} ({run.path.name})")


def _report_numbers(runs: Sequence[Run[Any, Any]]) -> Report:
    """Every number of each run."""
    tables = []
    for run in runs:
        rows = [
            Row(key_text(row), [with_interval(Estimate(*map(row.get, NUMBERS)), KINDS[METRICS[row["metric"]].unit])])
            for row in run.metrics.iter_rows(named=True)
            if row["value"] is not None
        ]
        tables += [Table(str(run.path), "number", [Column("value")], rows)] if rows else []
    return Report(tables, frame=long_frame((run.path, run.metrics) for run in runs))


def _numbers_section(run: Run[Any, Any], among: Sequence[str]) -> Report:
    return _report_numbers([run])._replace(title=f"{run.verb} ({run.path.name})")


class Shown(NamedTuple):
    """How runs of a group are shown: in a report together, and one in a section of a page with its models' names."""

    report: Callable[[Sequence[Any]], Report]
    section: Callable[[Any, Sequence[str]], Report]


ANY = Shown(_report_numbers, _numbers_section)
GROUPS = {
    "downstream": Shown(downstream.report_downstream, downstream_section),
    "personalized": Shown(personalize.report_personalized, personalized_section),
    "plans": Shown(report_plans, _plans_section),
}
"""How runs that are not on a benchmark are shown, by `RunKind.group`; others by `ANY`."""


def loaded_study_section(path: Path) -> Report:
    """Return what a page shows of a directory of `study`."""
    try:
        study = load_study(path)
    except UserError as error:
        return Report(title=f"Study: {path.name}", sentences=[f"This study is not complete: {error}"])
    return study_section(study)._replace(title=f"Study: {study.recipe.title} ({path.name})")


def study_section(study: Study) -> Report:
    """Return what a page shows of a study."""
    models, parts, sampled = [model.name for model in study.recipe.models], [], study.best_of_n
    if sampled is not None:
        tables, charts = downstream.outcome_tables([sampled]), figures.best_of_n(sampled, models)
        parts.append(Report(tables, downstream.downstream_notes(sampled), title=TITLES["best-of-n"], charts=charts))
    if study.optimized:
        texts = [f"{name}: {downstream.level_note(run)}" for name, run in study.optimized.items()]
        parts.append(Report(downstream.outcome_tables([*study.optimized.values()]), texts, title=TITLES["optimize"]))
    for name, correlation in study.correlations.items():
        title = f"Does the ranking by {correlation.benchmark.source} predict {name}?"
        parts.append(correlation_section(title, correlation, models, f"{name}/"))
    return Report(
        [scores_table(study)],
        [*_step_notes(study)],
        title=study.recipe.title,
        sentences=[
            *filter(None, [study.recipe.about.strip()]),
            *(list(study_findings(study)) or [ALL_EQUAL if study.correlations else NO_FINDING]),
        ],
        charts=figures.study(study),
        parts=parts,
    )


def scores_table(study: Study) -> Table:
    """Make a table with a row for each reward model and a column for each benchmark and downstream result."""
    columns = [Column(name, part=True) for name in study.runs]
    if study.best_of_n is not None:
        columns.append(Column(f"best of {study.best_of_n.result.sampling.sizes[-1]}", three_digits, part=True))
    columns += [Column("optimized policy", three_digits, part=True)] if study.optimized else []
    rows = [Row(model.name, [*study.scores(model.name).values()]) for model in study.recipe.models]
    return Table("Scores of the reward models, in percent, and downstream results", "reward model", columns, rows)


def study_findings(study: Study) -> Iterator[str]:
    """State the results, a sentence for each downstream result and baseline."""
    for name, correlation in study.correlations.items():
        yield from (f"{TITLES[name]}: {finding}" for finding in correlation_findings(correlation))


def _step_notes(study: Study) -> Iterator[str]:
    for name, runs in study.runs.items():
        run = next(iter(runs.values()))
        clusters = run.headline.clusters
        over = f"{run.headline.n:,} decisions" if run.headline.n is not None else "its items"
        among = "" if clusters is None else f" on {clusters:,} prompts or users"
        yield f"{name}: {run.config.benchmark.title}, in percent; {run.config.benchmark.rule}; {over}{among}."
    if study.runs:
        yield "Brackets are 95% intervals over prompts or users."
    for model in study.recipe.models:
        path = study.path / MODELS / model.name / TRAINING_FILE
        if path.exists():
            training: Any = read_json(path, RunError)
            data, asked = training["data"], None if model.train is None else model.train.pairs
            fewer = f", not {asked:,}, since the sample has no more" if asked and data["rankings"] < asked else ""
            items = plural(data["rankings"], "item")
            yield f"{model.name}: trained on {plural(data['pairs'], 'pair')} of {items}{fewer}."


def correlation_section(title: str, correlation: Correlation, models: Sequence[str] = (), stem: str = "") -> Report:
    """Return what a page shows of a correlation; its models determine the colors, and file stems begin with `stem`."""
    sides = [" ".join(line.split()) for line in heading(correlation)]
    tables = [one._replace(title=one.title or "Rank statistics") for one in correlation_tables(correlation)]
    charts = {f"{stem}{name}": chart for name, chart in figures.correlation(correlation, models).items()}
    found = [*correlation_findings(correlation)] or correlation.warnings
    texts = [*sides, *correlation_notes(correlation)]
    sentences = [f"{one[0].upper()}{one[1:]}" for one in found]
    return Report(tables, texts, title=title, sentences=sentences, charts=charts)


def charts_of(section: Report) -> dict[str, Chart]:
    """Return the charts of a section and its parts, by file stem."""
    return {**section.charts, **{stem: chart for part in section.parts for stem, chart in charts_of(part).items()}}


def write_study_page(study: Study) -> None:
    """Write `README.md` and its figures into the study's directory."""
    _write_page(study_section(study), study.path / STUDY_PAGE, STUDY_STEPS)


def write_personalized_page(run: Personalized) -> None:
    """Write `report.md` and its figures into a directory of `personalize`."""
    backbone = Path(run.config.backbone.name).name
    section = personalized_section(run)._replace(title=f"Personalized reward models on {backbone}")
    _write_page(section, run.path / PAGE_FILE, PERSONALIZED_STEPS)


def _write_page(section: Report, page: Path, steps: str) -> None:
    write(charts_of(section), page.parent / FIGURES_FOLDER)
    write_text(page, f"{markdown_page(section)}\n\n## How to reproduce it\n\n{steps}\n")


def markdown_page(section: Report, level: int = 1) -> str:
    """Write a section and its parts in Markdown, below a heading of this level."""
    parts = [f"{'#' * level} {escape_markdown(clean(section.title))}", listed(section.sentences)]
    parts += map(in_markdown, section.tables)
    parts.append(listed([*section.texts, *marks_in(section.tables)]))
    for stem, chart in section.charts.items():
        if not chart.empty:
            parts.append(f"![{escape_markdown(chart.title)}]({quote(f'{FIGURES_FOLDER}/{stem}.png')})")
    parts += [markdown_page(part, level + 1) for part in section.parts]
    return "\n\n".join(filter(None, parts))
