"""Figures of `correlate`: rank against rank, and score against score."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from textwrap import fill

import numpy as np
from pluralbench_measures.bootstrap import CONFIDENCE, bootstrap_estimate

from pluralbench.downstream.correlate import Correlation
from pluralbench.downstream.score_series import ScoreSeries
from pluralbench.reports.figures import Figure, style
from pluralbench.reports.figures.files import write
from pluralbench.reports.figures.fonts import readable
from pluralbench.reports.figures.series import Series, series_of_judges
from pluralbench.reports.figures.style import Point, heading
from pluralbench.reports.figures.theme import SOFT

LINE = 0.18  # inches between names
SLOPE = 3.0  # inches from ranking to ranking


def draw_correlation(correlation: Correlation, folder: Path, among: Iterable[str] = ()) -> list[Path]:
    """Write `ranks` (a slope chart) and `scores` (a scatter plot), each as PNG and SVG.

    Args:
        among: Models in all figures of the report, which determine the colors.

    Returns:
        The paths of the files.

    Raises:
        EvaluationError: The files cannot be written.
    """
    models = series_of_judges(dict(zip(correlation.names, correlation.benchmark.scores.tolist(), strict=True)), among)
    return write(
        {"ranks": partial(slopes, correlation, models), "scores": partial(scatter, correlation, models)}, folder
    )


def slopes(correlation: Correlation, models: Sequence[Series]) -> Figure:
    """Draw a line for each model from its rank on the benchmark to its rank downstream."""
    from scipy.stats import rankdata  # noqa: PLC0415 - two seconds that `--help` saves

    benchmark_ranks, downstream_ranks = (
        dict(zip(correlation.names, rankdata(-side.scores).tolist(), strict=True))
        for side in (correlation.benchmark, correlation.downstream)
    )
    height = LINE * len(models)
    figure, (ax,) = style.grid(SLOPE, height)
    ax.set(xlim=(0, SLOPE), ylim=(len(models) - 0.5, -0.5), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    # Tied models are drawn in the order of the other side.
    places = [_places(benchmark_ranks, downstream_ranks), _places(downstream_ranks, benchmark_ranks)]
    for model in models:
        ends = [side[model.name] for side in places]
        ax.plot([0, SLOPE], ends, color=model.color, linewidth=1.2, zorder=2)
        for x, y, ranks, away in zip((0, SLOPE), ends, (benchmark_ranks, downstream_ranks), (-1, 1), strict=True):
            align = "right" if away < 0 else "left"
            ax.plot(x, y, clip_on=False, **style.marker(model))
            ax.text(x + 0.1 * away, y, f"{ranks[model.name]:g}", ha=align, va="center", color=SOFT)
            ax.text(x + 0.44 * away, y, model.label, ha=align, va="center")
    for x, align, what in ((0, "right", "Benchmark"), (SLOPE, "left", "Downstream")):
        ax.text(x, -0.9, what, ha=align, va="bottom", fontweight="bold")
    tied = any(len(set(ranks.values())) < len(models) for ranks in (benchmark_ranks, downstream_ranks))
    note = f"{_sources(correlation)} Rank 1 is the best.{' Tied models share their mean rank.' if tied else ''}"
    return heading(figure, f"Ranks: {_summary(correlation)}", note)


def _places(ranks: Mapping[str, float], others: Mapping[str, float]) -> dict[str, int]:
    ordered = sorted(ranks, key=lambda name: (ranks[name], others[name]))
    return {name: place for place, name in enumerate(ordered)}


def scatter(correlation: Correlation, models: Sequence[Series]) -> Figure:
    """Draw a point for each model, with intervals if there are per-item results."""
    across, up = (
        dict(zip(correlation.names, _points(side), strict=True))
        for side in (correlation.benchmark, correlation.downstream)
    )
    side = max(3.6, LINE * len(models))
    figure, (ax,) = style.grid(side, side)
    ax.set(xlim=style.extent(across.values()), ylim=style.extent(up.values()))
    style.named_dots(ax, [(model, across[model.name], up[model.name]) for model in models], LINE)
    names = [f"Benchmark: {correlation.benchmark.measure}", f"Downstream: {correlation.downstream.measure}"]
    xlabel, ylabel = (readable(fill(name, int(13 * side))) for name in names)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    noisy = any(one.low is not None for one in [*across.values(), *up.values()])
    note = f"{_sources(correlation)}{f' Whiskers: {CONFIDENCE:.0%} intervals over items.' if noisy else ''}"
    return heading(figure, f"Scores: {_summary(correlation)}", note)


def _points(side: ScoreSeries) -> list[Point]:
    if side.resampled is None:
        return [Point(score) for score in side.scores.tolist()]
    # A model may have items that the others lack, so the resamples are centered at its own score.
    centered = side.resampled - side.resampled[0] + side.scores
    return [style.point(bootstrap_estimate(np.asarray(column)), 1.0) for column in centered.T]


def _summary(correlation: Correlation) -> str:
    rho = correlation.statistics["spearman"]
    if rho.value is None or rho.p_value is None:
        return f"{len(correlation.names)} models"
    p = f"p = {rho.p_value:.2g}" if rho.p_value >= 0.001 else "p < 0.001"
    text = f"{len(correlation.names)} models, Spearman's ρ = {rho.value:.2f}, {p}"
    return text.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")


def _sources(correlation: Correlation) -> str:
    return f"Benchmark: {correlation.benchmark.source}. Downstream: {correlation.downstream.source}."
