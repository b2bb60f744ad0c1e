"""The page of a study: what was found and how sure it is, in Markdown, with its figures beside it."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import polars as pl
from pluralbench_local.config import TRAINING_FILE
from pluralbench_measures.bootstrap import Estimate
from pluralbench_runs import write_text

from pluralbench.downstream.study import MODELS, PAGE_FILE, RECIPE_FILE, Study
from pluralbench.reports.correlation import SMALL, closing, tables
from pluralbench.reports.domains import tables_of
from pluralbench.reports.downstream import downstream_notes, level_note, of_rewards
from pluralbench.reports.figures.axis import draw_axis
from pluralbench.reports.figures.best_of_n import draw_best_of_n
from pluralbench.reports.figures.correlation import draw_correlation
from pluralbench.reports.numbers import three_digits
from pluralbench.reports.tables import Column, Row, Table
from pluralbench.reports.writing import in_markdown
from pluralbench.results.downstream import POLICY_FOLDER
from pluralbench.results.runs import policy_number

FIGURES, CORRELATIONS_FILE, SCORES_FILE = "figures", "correlations.json", "scores.csv"
TITLES = {"best-of-n": "Best-of-N", "optimization": "Policy optimisation"}


def write_page(found: Study) -> Path:
    """Write `README.md`, its figures, `scores.csv` and `correlations.json` into the study's directory; the page."""
    figures = dict(_drawn(found))
    write_text(found.path / SCORES_FILE, scores_of(found).write_csv())
    if found.correlations:
        numbers = {name: one.as_dict() for name, one in found.correlations.items()}
        text = json.dumps(numbers, indent=2, ensure_ascii=False, allow_nan=False)
        write_text(found.path / CORRELATIONS_FILE, text + "\n")
    page = found.path / PAGE_FILE
    write_text(page, "\n\n".join(_sections(found, figures)) + "\n")
    return page


def scores_of(found: Study) -> pl.DataFrame:
    """A row a reward model: its score on each benchmark, and the outcomes, as numbers."""
    names = [*found.runs, *(["best-of-n"] if found.best_of_n else []), *(["optimization"] if found.optimized else [])]
    rows = [
        {"model": model.name} | dict(zip(names, (score.value for score in _scores(found, model.name)), strict=True))
        for model in found.recipe.models
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def scores_table(found: Study) -> Table:
    """A row a reward model, a column for each benchmark and each downstream result."""
    columns = [Column(name, part=True) for name in found.runs]
    if found.best_of_n is not None:
        columns.append(Column(f"best of {found.best_of_n.result.sampling.sizes[-1]}", three_digits, part=True))
    columns += [Column("optimised policy", three_digits, part=True)] if found.optimized else []
    rows = [Row(model.name, _scores(found, model.name)) for model in found.recipe.models]
    return Table("", "reward model", columns, rows)


def _scores(found: Study, name: str) -> list[Estimate]:
    """What a reward model gets on each benchmark and downstream."""
    scores = [runs[name].headline for runs in found.runs.values()]
    scores += [of_rewards(found.best_of_n, "outcome")[name]] if found.best_of_n is not None else []
    return scores + ([policy_number(found.optimized[name], "outcome")] if found.optimized else [])


def findings(found: Study) -> Iterator[str]:
    """What was found, a sentence for each downstream result."""
    for name, one in found.correlations.items():
        rho = one.statistics["spearman"]
        if rho.value is None or rho.p_value is None:
            continue
        sure = "more than chance would often bring" if rho.p_value < SMALL else "what chance brings often enough"
        orders = "of all orders" if one.exact else "of random orders"
        interval = "" if rho.low is None or rho.high is None else f", 95% interval {rho.low:.2f} to {rho.high:.2f}"
        yield (
            f"{TITLES[name]}: over {len(one.names)} reward models, the ranking by {one.benchmark.source} and the "
            f"downstream ranking have a Spearman correlation of {rho.value:+.2f}{interval} (p = {rho.p_value:.3f}, "
            f"one-sided, {orders}): {sure}."
        )
        for other, baseline in one.baselines.items():
            theirs, gap = baseline.statistics["spearman"], baseline.differences["spearman"]
            if theirs.value is not None and gap.p_value is not None:
                yield f"{TITLES[name]}: by {other} it is {theirs.value:+.2f} (p of the difference = {gap.p_value:.3f})."


def _sections(found: Study, figures: dict[str, Path]) -> Iterator[str]:
    recipe = found.recipe
    yield f"# {recipe.title}"
    if recipe.about:
        yield recipe.about.strip()
    said = list(findings(found))
    if said:
        yield "## What was found"
        yield "\n".join(f"- {one}" for one in said)
    yield "## Scores"
    yield in_markdown(scores_table(found))
    yield from _benchmark_notes(found)
    yield from _training_notes(found)
    yield from _picture(found, figures, "axis", f"Scores by {recipe.axis}")
    if found.best_of_n is not None:
        yield "## Best-of-N"
        yield from _picture(found, figures, "best_of_n", "Outcome by the number of candidates")
        yield from map(in_markdown, tables_of([found.best_of_n]))
        yield "\n".join(f"- {note}" for note in downstream_notes(found.best_of_n))
    if found.optimized:
        yield "## Policy optimisation"
        yield from map(in_markdown, tables_of([*found.optimized.values()]))
        yield "\n".join(_optimization_notes(found))
    for name, one in found.correlations.items():
        yield f"## Does the ranking by {one.benchmark.source} predict {name}?"
        for table in tables(one):
            yield from [table.title] if table.title else []
            yield in_markdown(table)
        for stem, title in (("ranks", "Rank against rank"), ("scores", "Score against score")):
            yield from _picture(found, figures, f"{name}/{stem}", title)
        yield "\n".join(f"- {note}" for note in closing(one))
    yield "## How to repeat it"
    yield (
        f"`pluralbench study {RECIPE_FILE} --out ELSEWHERE` with the file beside this page makes all of it again. "
        "Every step has a directory here with its settings, its per-item results and its recorded calls."
    )


def _benchmark_notes(found: Study) -> Iterator[str]:
    notes = []
    for name, runs in found.runs.items():
        run = next(iter(runs.values()))
        clusters = run.headline.clusters
        over = f"{run.headline.n:,} decisions" if run.headline.n is not None else "its items"
        among = "" if clusters is None else f" on {clusters:,} prompts or users"
        notes.append(
            f"- {name}: {run.config.benchmark.title}, in per cent; {run.config.benchmark.rule}; {over}{among}."
        )
    if notes:
        yield "\n".join([*notes, "- Brackets are 95% intervals over prompts or users."])


def _training_notes(found: Study) -> Iterator[str]:
    notes = []
    for model in found.recipe.models:
        path = found.path / MODELS / model.name / TRAINING_FILE
        if path.exists():
            data = json.loads(path.read_text(encoding="utf-8"))["data"]
            notes.append(f"- {model.name}: trained on {data['pairs']:,} pairs of {data['rankings']:,} items.")
    if notes:
        yield "\n".join(notes)


def _optimization_notes(found: Study) -> Iterator[str]:
    for name, one in found.optimized.items():
        curves = one.path / POLICY_FOLDER / "curves.png"
        yield f"- {name}: {level_note(one)} [Curves]({_link(found, curves)})"


def _picture(found: Study, figures: dict[str, Path], name: str, title: str) -> Iterator[str]:
    if name in figures:
        yield f"![{title}]({_link(found, figures[name])})"


def _link(found: Study, path: Path) -> str:
    """A file of the study as Markdown links to it from the page; names of models may have spaces."""
    return quote(path.relative_to(found.path).as_posix())


def _drawn(found: Study) -> Iterator[tuple[str, Path]]:
    """The PNG of each figure by its name."""
    folder, models = found.path / FIGURES, [model.name for model in found.recipe.models]
    if found.best_of_n is not None:
        yield "best_of_n", draw_best_of_n(found.best_of_n, folder, models)[0]
    for name, one in found.correlations.items():
        for path in draw_correlation(one, folder / name, models):
            if path.suffix == ".png":
                yield f"{name}/{path.stem}", path
    if found.recipe.axis is not None and found.runs:
        yield "axis", draw_axis(found, folder)[0]
