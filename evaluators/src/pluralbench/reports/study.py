"""The page of a study: what was found and how sure it is, in Markdown, with its figures beside it."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import polars as pl
from pluralbench_release import markdown_table
from rich import box
from rich.table import Table as Grid

from pluralbench.downstream.correlate import Correlation
from pluralbench.downstream.study import PAGE_FILE, RECIPE_FILE, Study
from pluralbench.reports.correlation import LABELS, closing
from pluralbench.reports.downstream import downstream_notes, level_note
from pluralbench.reports.figures.axis import draw_axis
from pluralbench.reports.figures.best_of_n import draw_best_of_n
from pluralbench.reports.figures.correlation import draw_correlation
from pluralbench.reports.notes import with_interval
from pluralbench.results.downstream import POLICY_FOLDER

FIGURES, CORRELATIONS_FILE, SCORES_FILE = "figures", "correlations.json", "scores.csv"
TITLES = {"best-of-n": "Best-of-N", "optimization": "Policy optimisation"}
SMALL = 0.05


def write_page(found: Study) -> Path:
    """Write `README.md`, its figures, `scores.csv` and `correlations.json` into the study's directory; the page."""
    figures = dict(_drawn(found))
    scores_of(found).write_csv(found.path / SCORES_FILE)
    if found.correlations:
        numbers = {name: one.as_dict() for name, one in found.correlations.items()}
        text = json.dumps(numbers, indent=2, ensure_ascii=False, allow_nan=False)
        (found.path / CORRELATIONS_FILE).write_text(text + "\n", encoding="utf-8")
    page = found.path / PAGE_FILE
    page.write_text("\n\n".join(_sections(found, figures)) + "\n", encoding="utf-8")
    return page


def scores_of(found: Study) -> pl.DataFrame:
    """A row a reward model: its score on each benchmark, and the outcomes, as numbers."""
    rows = []
    for model in found.recipe.models:
        row: dict[str, str | float | None] = {"model": model.name}
        row |= {name: runs[model.name].headline.value for name, runs in found.runs.items()}
        if found.best_of_n is not None:
            row["best-of-n"] = found.best_of_n.estimate("outcome", model=model.name, k=found.best_of_n.sizes[-1]).value
        if found.optimized:
            row["optimization"] = found.optimized[model.name].estimate("outcome").value
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def scores_grid(found: Study) -> Grid:
    """The table of the page for a terminal, intervals below their values."""
    frame = _shown(found)
    grid = Grid(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in frame.columns:
        grid.add_column(name, justify="left" if name == "reward model" else "right", overflow="fold")
    for row in frame.iter_rows():
        grid.add_row(*(cell.replace(" [", "\n[") for cell in row))
    return grid


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
    yield markdown_table(_shown(found))
    yield from _benchmark_notes(found)
    yield from _picture(found, figures, "axis", f"Scores by {recipe.axis}")
    if found.best_of_n is not None:
        yield "## Best-of-N"
        yield from _picture(found, figures, "best_of_n", "Outcome by the number of candidates")
        yield "\n".join(f"- {note}" for note in downstream_notes(found.best_of_n))
    if found.optimized:
        yield "## Policy optimisation"
        yield "\n".join(_optimization_notes(found))
    for name, one in found.correlations.items():
        yield f"## Does the ranking by {one.benchmark.source} predict {name}?"
        yield markdown_table(_statistics(one))
        for stem, title in (("ranks", "Rank against rank"), ("scores", "Score against score")):
            yield from _picture(found, figures, f"{name}/{stem}", title)
        yield "\n".join(f"- {note}" for note in closing(one))
    yield "## How to repeat it"
    yield (
        f"`pluralbench study {RECIPE_FILE} --out ELSEWHERE` with the file beside this page makes all of it again. "
        "Every step has a directory here with its settings, its per-item results and its recorded calls."
    )


def _shown(found: Study) -> pl.DataFrame:
    rows = []
    for model in found.recipe.models:
        row = {"reward model": model.name}
        row |= {name: with_interval(runs[model.name].headline, 100, ".1f") for name, runs in found.runs.items()}
        if found.best_of_n is not None:
            last = found.best_of_n.sizes[-1]
            estimate = found.best_of_n.estimate("outcome", model=model.name, k=last)
            row[f"best of {last}"] = with_interval(estimate, 1, ".3f")
        if found.optimized:
            row["optimised policy"] = with_interval(found.optimized[model.name].estimate("outcome"), 1, ".3f")
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def _benchmark_notes(found: Study) -> Iterator[str]:
    notes = []
    for name, runs in found.runs.items():
        run = next(iter(runs.values()))
        clusters = run.headline.clusters
        over = f"{run.headline.n:,} decisions" if run.headline.n is not None else "its items"
        among = "" if clusters is None else f" on {clusters:,} prompts or users"
        notes.append(
            f"- {name}: {run.record.benchmark.title}, in per cent; {run.record.benchmark.rule}; {over}{among}."
        )
    if notes:
        yield "\n".join([*notes, "- Brackets are 95% intervals over prompts or users."])


def _optimization_notes(found: Study) -> Iterator[str]:
    for name, one in found.optimized.items():
        curves = one.path / POLICY_FOLDER / "curves.png"
        yield f"- {name}: {level_note(one)} [Curves]({_link(found, curves)})"


def _statistics(found: Correlation) -> pl.DataFrame:
    rows = []
    for name, one in found.statistics.items():
        interval = "" if one.low is None or one.high is None else f"[{one.low:.2f}, {one.high:.2f}]"
        row = {
            "statistic": LABELS[name],
            "value": "–" if one.value is None else f"{one.value:.4f}",
            "95% interval": interval,
            "p": "–" if one.p_value is None else f"{one.p_value:.3f}",
        }
        row |= {
            f"by {other}": "–" if (value := baseline.statistics[name].value) is None else f"{value:.4f}"
            for other, baseline in found.baselines.items()
        }
        rows.append(row)
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return frame.drop([name for name in ("95% interval",) if set(frame[name]) == {""}])


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
