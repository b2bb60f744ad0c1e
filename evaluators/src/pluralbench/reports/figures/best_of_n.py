"""Figures of best-of-n: outcome by k, and realized against promised gain."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from pluralbench_measures.bootstrap import CONFIDENCE
from pluralbench_runs import plural

from pluralbench.errors import EvaluationError
from pluralbench.reports.downstream import of_rewards, shown_metric
from pluralbench.reports.figures import Axes, Figure, style
from pluralbench.reports.figures.files import write
from pluralbench.reports.figures.fonts import readable
from pluralbench.reports.figures.series import Series, series_of_judges
from pluralbench.reports.figures.style import Point
from pluralbench.reports.figures.theme import SOFT
from pluralbench.results.runs import Downstream

SIZE, APART = 2.9, 0.75  # of a panel and between panels, in inches
GAINS = ("promised", "realized")
BANDS = 3  # reward models at most whose intervals are drawn as bands
UNITS = {
    "rubric": "Rubric score (0 to 2)",
    "rating": "Rating (1 to 10)",
    "win": "Wins minus losses (-1 to 1)",
}


def draw_best_of_n(run: Downstream, folder: Path, among: Iterable[str] = ()) -> list[Path]:
    """Write `best_of_n` as PNG and SVG.

    Args:
        among: Reward models in all figures of the report, which determine the colors.

    Returns:
        The paths of the files.

    Raises:
        EvaluationError: There is nothing to draw.
    """
    if not run.result.rewards:
        raise EvaluationError("There is nothing to draw: the run has no reward model.")
    return write({"best_of_n": partial(curves, run, among)}, folder)


def curves(run: Downstream, among: Iterable[str] = ()) -> Figure:
    """Draw the outcome by k with the policy's level and, if there are both, realized against promised gain."""
    outcome, metric = run.result.outcome, shown_metric(run)
    models = series_of_judges({model: one.value for model, one in of_rewards(run, metric).items()}, among)
    both = any(one.value is not None for one in of_rewards(run, "realized").values())
    figure, (left, *right) = style.grid(SIZE, SIZE, 1 + both, 2, beside=APART)
    _by_k(left, run, models, metric)
    left.set_ylabel("Promised gain (standard deviations)" if outcome is None else UNITS[run.config.outcome.measure])
    for ax in right:
        _gains(ax, run, models)
    style.legend(figure.axes[-1], models)
    judge = "" if outcome is None else f" Judged by {outcome.judge.name}: {outcome.scale}."
    title = f"Best of k from {Path(readable(run.result.policy.name)).name} on {run.config.benchmark.title}"
    level = " Dashed gray: the policy by itself." if metric == "outcome" else ""
    bands = f" Bands: {CONFIDENCE:.0%} intervals." if len(models) <= BANDS else f" {style.whiskers()}"
    gains = (
        " Right: gains in standard deviations within prompts, for each k; dotted: realized gain equals promised gain."
        if both
        else ""
    )
    return style.heading(figure, title, f"{plural(run.result.sampling.prompts, 'prompt')}.{judge}{level}{bands}{gains}")


def _by_k(ax: Axes, run: Downstream, models: Sequence[Series], metric: str) -> None:
    sizes = run.result.sampling.sizes
    ax.set_xscale("log", base=2)
    ax.set_xlabel("k (number of candidates)")
    ax.set_xticks(sizes, [str(k) for k in sizes])
    ax.minorticks_off()
    level = run.estimate("outcome").value if metric == "outcome" else None
    if level is not None:
        style.dashed(ax.axhline, level)
    for number, model in enumerate(models):
        points = [(k, style.point(run.estimate(metric, model=model.name, k=k), 1.0)) for k in sizes]
        style.curve(ax, points, model, band=len(models) <= BANDS)
        intervals = [(k, low, high) for k, (_, low, high, _) in points if low is not None and high is not None]
        if intervals and len(models) > BANDS:  # only those of the largest k, side by side
            k, low, high = intervals[-1]
            ax.vlines(k * 2 ** (0.1 * (number + 1)), low, high, color=model.color, linewidth=0.9, zorder=2)


def _gains(ax: Axes, run: Downstream, models: Sequence[Series]) -> None:
    most = 0.0
    for model in models:
        gains = [[run.estimate(what, model=model.name, k=k).value for what in GAINS] for k in run.result.sampling.sizes]
        points = [(promised, Point(realized)) for promised, realized in gains if promised is not None]
        style.curve(ax, points, model)
        most = max([most, *(promised for promised, realized in points if realized.value is not None)])
    style.dashed(ax.axhline, 0)
    ax.plot([0, most], [0, most], color=SOFT, linewidth=0.8, linestyle=":", zorder=1)
    ax.set(xlabel="Promised gain (by the reward)", ylabel="Realized gain (by the judge)")
