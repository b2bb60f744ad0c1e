"""Figures of best-of-n: the outcome by k, and what was realised of the gain that rewards promised."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from pluralbench_measures.bootstrap import CONFIDENCE

from pluralbench.errors import EvaluationError
from pluralbench.reports.downstream import of_rewards, shown_metric
from pluralbench.reports.figures import Axes, Figure, style
from pluralbench.reports.figures.files import write
from pluralbench.reports.figures.fonts import readable
from pluralbench.reports.figures.series import Series, series_of_judges
from pluralbench.reports.figures.style import Point
from pluralbench.results.runs import Downstream, policy_number

SIZE, APART = 2.9, 0.75  # of a panel and between panels, in inches
GAINS = ("promised", "realised")
BANDS = 3  # reward models of which intervals stay readable
UNITS = {
    "rubric": "Rubric score (0 to 2)",
    "rating": "Rating (1 to 10)",
    "win": "Wins less losses (-1 to 1)",
}


def draw_best_of_n(found: Downstream, folder: Path, among: Iterable[str] = ()) -> list[Path]:
    """Write `best_of_n` as PNG and SVG; the paths. Raises `EvaluationError` when there is nothing to draw.

    among: the reward models in all figures of the report, by whose names the colours go.
    """
    if not found.result.rewards:
        raise EvaluationError("There is nothing to draw: no reward model selected anything.")
    return write({"best_of_n": partial(curves, found, among)}, folder)


def curves(found: Downstream, among: Iterable[str] = ()) -> Figure:
    """Outcome by k with the policy's level; beside it realised against promised gain, where both are known."""
    outcome, metric = found.result.outcome, shown_metric(found)
    models = series_of_judges({model: one.value for model, one in of_rewards(found, metric).items()}, among)
    both = any(one.value is not None for one in of_rewards(found, "realised").values())
    figure, (left, *right) = style.grid(SIZE, SIZE, 1 + both, 2, beside=APART)
    _by_k(left, found, models, metric)
    left.set_ylabel("Promised gain (standard deviations)" if outcome is None else UNITS[found.config.outcome.measure])
    for ax in right:
        _realised(ax, found, models)
    style.legend(figure.axes[-1], models)
    judge = "" if outcome is None else f" Judged by {outcome.judge.name}: {outcome.scale}."
    title = f"Best of k from {Path(readable(found.result.policy.name)).name} on {found.config.benchmark.title}"
    level = " Grey, dashed: the policy by itself." if metric == "outcome" else ""
    bands = f" Bands: {CONFIDENCE:.0%} intervals." if len(models) <= BANDS else f" {style.whiskers()}"
    gains = (
        " Right: gains in standard deviations within prompts as k grows; on the dotted line a reward model keeps what "
        "it promises."
        if both
        else ""
    )
    return style.heading(figure, title, f"{found.result.sampling.prompts:,} prompts.{judge}{level}{bands}{gains}")


def _by_k(ax: Axes, found: Downstream, models: Sequence[Series], metric: str) -> None:
    sizes = found.result.sampling.sizes
    ax.set_xscale("log", base=2)
    ax.set_xlabel("k, candidates to choose from")
    ax.set_xticks(sizes, [str(k) for k in sizes])
    ax.minorticks_off()
    level = policy_number(found, "outcome").value if metric == "outcome" else None
    if level is not None:
        style.dashed(ax.axhline, level)
    for number, one in enumerate(models):
        points = [(k, style.point(policy_number(found, metric, model=one.name, k=k), 1.0)) for k in sizes]
        style.curve(ax, points, one, band=len(models) <= BANDS)
        sure = [(k, low, high) for k, (_, low, high, _) in points if low is not None and high is not None]
        if sure and len(models) > BANDS:  # of many, only the last, side by side
            k, low, high = sure[-1]
            ax.vlines(k * 2 ** (0.1 * (number + 1)), low, high, color=one.colour, linewidth=0.9, zorder=2)


def _realised(ax: Axes, found: Downstream, models: Sequence[Series]) -> None:
    most = 0.0
    for one in models:
        gains = [
            [policy_number(found, what, model=one.name, k=k).value for what in GAINS]
            for k in found.result.sampling.sizes
        ]
        there = [(promised, Point(realised)) for promised, realised in gains if promised is not None]
        style.curve(ax, there, one)
        most = max([most, *(promised for promised, realised in there if realised.value is not None)])
    style.dashed(ax.axhline, 0)
    ax.plot([0, most], [0, most], color=style.GREY, linewidth=0.8, linestyle=":", zorder=1)
    ax.set(xlabel="Gain that the reward promises", ylabel="Gain that the judge sees")
