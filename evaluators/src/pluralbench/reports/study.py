"""The page of a study: results with confidence intervals, in Markdown, and its figures."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
from pluralbench_local.config import TRAINING_FILE
from pluralbench_measures.bootstrap import Estimate
from pluralbench_release.markdown import escape_markdown
from pluralbench_runs import plural, write_text
from pluralbench_tables import csv_text, read_json

from pluralbench.downstream.study import CORRELATIONS_FILE, FIGURES, MODELS, PAGE_FILE, SCORES_FILE, Study
from pluralbench.errors import RunError
from pluralbench.reports.correlation import correlation_findings, correlation_notes, correlation_tables
from pluralbench.reports.downstream import downstream_notes, level_note, of_rewards, outcome_tables
from pluralbench.reports.figures import downstream as figures
from pluralbench.reports.figures.files import write
from pluralbench.reports.tables import Column, Row, Table
from pluralbench.reports.writing import in_markdown
from pluralbench.results.downstream import POLICY_FOLDER
from pluralbench.results.finding import STUDY_FILE
from pluralbench.results.numbers import three_digits

TITLES = {"best-of-n": "Best-of-N", "optimization": "Policy optimization", "optimize": "Policy optimization"}


def write_page(study: Study) -> Path:
    """Write `README.md`, its figures, `scores.csv` and `correlations.json` into the study's directory.

    Returns:
        The path of the page.
    """
    pictures = _draw_figures(study)
    write_text(study.path / SCORES_FILE, csv_text(scores_of(study)))
    if study.correlations:
        numbers = {name: correlation.as_dict() for name, correlation in study.correlations.items()}
        text = json.dumps(numbers, indent=2, ensure_ascii=False, allow_nan=False)
        write_text(study.path / CORRELATIONS_FILE, text + "\n")
    page = study.path / PAGE_FILE
    write_text(page, "\n\n".join(_sections(study, pictures)) + "\n")
    return page


def scores_of(study: Study) -> pl.DataFrame:
    """Make a frame with a row for each reward model: its score on each benchmark, and the outcomes."""
    names = [*study.runs, *(["best-of-n"] if study.best_of_n else []), *(["optimization"] if study.optimized else [])]
    rows = [
        {"model": model.name} | dict(zip(names, (score.value for score in _scores(study, model.name)), strict=True))
        for model in study.recipe.models
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def scores_table(study: Study) -> Table:
    """Make a table with a row for each reward model and a column for each benchmark and downstream result."""
    columns = [Column(name, part=True) for name in study.runs]
    if study.best_of_n is not None:
        columns.append(Column(f"best of {study.best_of_n.result.sampling.sizes[-1]}", three_digits, part=True))
    columns += [Column("optimized policy", three_digits, part=True)] if study.optimized else []
    rows = [Row(model.name, _scores(study, model.name)) for model in study.recipe.models]
    return Table("", "reward model", columns, rows)


def _scores(study: Study, name: str) -> list[Estimate]:
    """The scores of a reward model on each benchmark and downstream."""
    scores = [runs[name].headline for runs in study.runs.values()]
    scores += [of_rewards(study.best_of_n, "outcome")[name]] if study.best_of_n is not None else []
    return scores + ([study.optimized[name].estimate("outcome")] if study.optimized else [])


def findings(study: Study) -> Iterator[str]:
    """State the results, a sentence for each downstream result and baseline."""
    for name, correlation in study.correlations.items():
        yield from (f"{TITLES[name]}: {finding}" for finding in correlation_findings(correlation))


def _sections(study: Study, pictures: dict[str, Path]) -> Iterator[str]:
    recipe = study.recipe
    yield f"# {escape_markdown(recipe.title)}"
    if recipe.about:
        yield recipe.about.strip()
    sentences = list(findings(study))
    if sentences:
        yield "## Results"
        yield _listed(sentences)
    yield "## Scores"
    yield in_markdown(scores_table(study))
    yield from _benchmark_notes(study)
    yield from _training_notes(study)
    yield from _picture(study, pictures, "axis", f"Scores by {recipe.axis}")
    if study.best_of_n is not None:
        yield "## Best-of-N"
        yield from _picture(study, pictures, "best_of_n", "Outcome by the number of candidates")
        yield from map(in_markdown, outcome_tables([study.best_of_n]))
        yield _listed(downstream_notes(study.best_of_n))
    if study.optimized:
        yield "## Policy optimization"
        yield from map(in_markdown, outcome_tables([*study.optimized.values()]))
        yield "\n".join(_optimization_notes(study))
    for name, correlation in study.correlations.items():
        yield f"## Does the ranking by {escape_markdown(correlation.benchmark.source)} predict {name}?"
        for table in correlation_tables(correlation):
            yield from [escape_markdown(table.title)] if table.title else []
            yield in_markdown(table)
        yield from _picture(study, pictures, f"{name}/scores", "Score against score")
        yield _listed(correlation_notes(correlation))
    yield "## How to reproduce it"
    yield (
        f"`pluralbench study` repeats the study with the recipe next to this page (`{STUDY_FILE}`) and a new folder. "
        "Each step has a directory here with its settings, per-item results and recorded calls."
    )


def _benchmark_notes(study: Study) -> Iterator[str]:
    notes = []
    for name, runs in study.runs.items():
        run = next(iter(runs.values()))
        clusters = run.headline.clusters
        over = f"{run.headline.n:,} decisions" if run.headline.n is not None else "its items"
        among = "" if clusters is None else f" on {clusters:,} prompts or users"
        notes.append(f"{name}: {run.config.benchmark.title}, in percent; {run.config.benchmark.rule}; {over}{among}.")
    if notes:
        yield _listed([*notes, "Brackets are 95% intervals over prompts or users."])


def _training_notes(study: Study) -> Iterator[str]:
    notes = []
    for model in study.recipe.models:
        path = study.path / MODELS / model.name / TRAINING_FILE
        if path.exists():
            training: Any = read_json(path, RunError)
            data = training["data"]
            notes.append(
                f"{model.name}: trained on {plural(data['pairs'], 'pair')} of {plural(data['rankings'], 'item')}."
            )
    if notes:
        yield _listed(notes)


def _optimization_notes(study: Study) -> Iterator[str]:
    for name, run in study.optimized.items():
        curves = run.path / POLICY_FOLDER / "curves.png"
        yield f"- {escape_markdown(f'{name}: {level_note(run)}')} [Curves]({_link(study, curves)})"


def _picture(study: Study, pictures: dict[str, Path], name: str, title: str) -> Iterator[str]:
    if name in pictures:
        yield f"![{escape_markdown(title)}]({_link(study, pictures[name])})"


def _listed(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {escape_markdown(sentence)}" for sentence in sentences)


def _link(study: Study, path: Path) -> str:
    """The target of a Markdown link to a file of the study; names of models may have spaces."""
    return quote(path.relative_to(study.path).as_posix())


def _draw_figures(study: Study) -> dict[str, Path]:
    """Draw the figures; returns the PNG of each by its name."""
    folder, models = study.path / FIGURES, [model.name for model in study.recipe.models]
    charts = {} if study.best_of_n is None else figures.best_of_n(study.best_of_n, models)
    charts |= figures.study(study)
    for name, correlation in study.correlations.items():
        charts |= {f"{name}/{stem}": chart for stem, chart in figures.correlation(correlation, models).items()}
    pictures = [path for path in write(charts, folder) if path.suffix == ".png"]
    return {path.relative_to(folder).with_suffix("").as_posix(): path for path in pictures}
