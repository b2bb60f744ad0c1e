"""`correlate --plot`: rank against rank, and score against score."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from pluralbench_measures.bootstrap import spread

from pluralbench.downstream.correlate import Correlation
from pluralbench.downstream.tables import Side
from pluralbench.reports.figures import style
from pluralbench.reports.figures.draw import save
from pluralbench.reports.figures.fonts import readable
from pluralbench.reports.figures.style import Point, Series, dot, heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE = 0.18  # inches between names
SLOPE = 3.0  # inches from ranking to ranking


def draw_correlation(found: Correlation, folder: Path) -> list[Path]:
    """Write `ranks` (a slope chart) and `scores` (a scatter plot), each as PNG and SVG, and say which files those are.

    Raises `EvaluationError` where they cannot be written.
    """
    with style.drawing():
        models = style.series_of_judges(dict(zip(found.names, found.benchmark.scores.tolist(), strict=True)))
        figures = {"ranks": slopes(found, models), "scores": scatter(found, models)}
        return [path for stem, figure in figures.items() for path in save(figure, folder, stem)]


def slopes(found: Correlation, models: Sequence[Series]) -> "Figure":
    """A line for each model from its rank on the benchmark to its rank downstream."""
    from scipy.stats import rankdata  # noqa: PLC0415 - two seconds that `--help` saves

    count = len(models)
    ranks = [dict(zip(found.names, rankdata(-side.scores), strict=True)) for side in (found.benchmark, found.downstream)]
    height = LINE * count
    figure = style.sheet(SLOPE, height)
    ax = style.place(figure, 0, 0, SLOPE, height)
    ax.set(xlim=(0, 1), ylim=(count + 0.5, 0.5), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    for one in models:
        ends = [side[one.name] for side in ranks]
        ax.plot([0, 1], ends, color=one.colour, linewidth=1.2, zorder=2)
        for x, y in enumerate(ends):
            ax.plot(x, y, clip_on=False, **style.marker(one))
    for x, (side, align, what) in enumerate(zip(ranks, ("right", "left"), ("Benchmark", "Downstream"), strict=True)):
        _names_beside(ax, x, side, models, align)
        ax.text(x, 1 + 0.12 / height, what, ha=align, va="bottom", fontweight="bold", transform=ax.transAxes)
    return heading(figure, f"Ranks: {_told(found)}", _sources(found) + " Rank 1 is the best.")


def _names_beside(ax: "Axes", x: int, ranks: dict[str, float], models: Sequence[Series], align: str) -> None:
    """Each model's rank and name beside its point; tied models have one rank and a line each."""
    ordered = sorted(models, key=lambda one: -ranks[one.name])
    places = style.apart([1 - (ranks[one.name] - 0.5) / len(models) for one in ordered], 1 / len(models) * 0.999)
    for one, place in zip(ordered, places, strict=True):
        rank = f"{ranks[one.name]:g}"
        text = f"{one.label.text}  {rank}" if align == "right" else f"{rank}  {one.label.text}"
        at = -0.035 if x == 0 else 1.035
        ax.text(at, place, text, ha=align, va="center", family=one.label.families, transform=ax.transAxes)


def scatter(found: Correlation, models: Sequence[Series]) -> "Figure":
    """A point for each model, with intervals where there are per-item results, and a line from it to its name."""
    across, up = (dict(zip(found.names, _points(side), strict=True)) for side in (found.benchmark, found.downstream))
    side = max(3.6, LINE * len(models))
    figure = style.sheet(side, side)
    ax = style.place(figure, 0, 0, side, side)
    limits = style.extent(across.values()), style.extent(up.values())
    ax.set(xlim=limits[0], ylim=limits[1])
    low, high = limits[1]
    ordered = sorted(models, key=lambda one: up[one.name].value or 0.0)
    heights = style.apart([((up[one.name].value or 0.0) - low) / (high - low) for one in ordered], LINE / side)
    for one, height in zip(ordered, heights, strict=True):
        x, y = across[one.name], up[one.name]
        here = (x.value or 0.0, y.value or 0.0)
        dot(ax, here[1], x, one)
        dot(ax, here[0], y, one, upright=True)
        leader = {"arrowstyle": "-", "color": one.colour, "linewidth": 0.5, "alpha": 0.6, "shrinkB": 3}
        ax.annotate("", here, (1.03, height), textcoords="axes fraction", arrowprops=leader, zorder=1)
        ax.plot(1.045, height, transform=ax.transAxes, clip_on=False, **style.marker(one))
        ax.text(1.075, height, one.label.text, family=one.label.families, va="center", transform=ax.transAxes)
    for axis, what, shown in (("x", "Benchmark", found.benchmark), ("y", "Downstream", found.downstream)):
        label = readable(fill(f"{what}: {shown.measure}", int(13 * side)))
        (ax.set_xlabel if axis == "x" else ax.set_ylabel)(label.text, family=label.families)
    noisy = any(one.low is not None for one in [*across.values(), *up.values()])
    note = f"{_sources(found)}{' ' + style.whiskers() + ' They are of the items.' if noisy else ''}"
    return heading(figure, f"Scores: {_told(found)}", note)


def _points(side: Side) -> list[Point]:
    if side.resampled is None:
        return [Point(score) for score in side.scores.tolist()]
    # The items that all models share may be fewer than a model's own, so the spread is put around its own score.
    moved = side.resampled - side.resampled[0] + side.scores
    return [style.point(spread(np.asarray(column)), 1.0) for column in moved.T]


def _told(found: Correlation) -> str:
    rho = found.statistics["spearman"]
    if rho.value is None or rho.p_value is None:
        return f"{len(found.names)} models"
    p = f"p = {rho.p_value:.2g}" if rho.p_value >= 0.001 else "p < 0.001"
    return f"{len(found.names)} models, Spearman's ρ = {rho.value:.2f}, {p}".replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")


def _sources(found: Correlation) -> str:
    return f"Benchmark: {found.benchmark.source}. Downstream: {found.downstream.source}."
