"""Figures of best-of-n: the outcome by k, and what was realised of the gain that rewards promised."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pluralbench_measures.bootstrap import CONFIDENCE, Estimate

from pluralbench.errors import EvaluationError
from pluralbench.reports.figures import style
from pluralbench.reports.figures.files import save
from pluralbench.reports.figures.fonts import readable
from pluralbench.reports.figures.series import Series, series_of_judges
from pluralbench.results.downstream import Downstream

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE, APART = 2.9, 0.75  # of a panel and between panels, in inches
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
    if not found.record.rewards:
        raise EvaluationError("There is nothing to draw: no reward model selected anything.")
    with style.drawing():
        return save(curves(found, among), folder, "best_of_n")


def curves(found: Downstream, among: Iterable[str] = ()) -> "Figure":
    """Outcome by k with the policy's level; beside it realised against promised gain, where both are known."""
    outcome, last = found.record.outcome, found.sizes[-1]
    metric = "promised" if outcome is None else "outcome"
    models = series_of_judges(
        {model: found.estimate(metric, model=model, k=last).value for model in found.record.rewards}, among
    )
    both = any(found.estimate("realised", model=one.name, k=last).value is not None for one in models)
    figure = style.sheet(SIZE * (1 + both) + APART * both, SIZE)
    left = style.place(figure, 0, 0, SIZE, SIZE)
    _by_k(left, found, models, metric)
    left.set_ylabel("Promised gain (standard deviations)" if outcome is None else UNITS[outcome.measure])
    legend_of = left
    if both:
        legend_of = style.place(figure, SIZE + APART, 0, SIZE, SIZE)
        _realised(legend_of, found, models)
    style.legend(legend_of, models)
    policy = readable(found.record.policy.name)
    judge = "" if outcome is None else f" Judged by {outcome.judge.name}: {outcome.scale}."
    title = f"Best of k from {Path(policy.text).name}"
    level = " Grey, dashed: the policy by itself." if metric == "outcome" else ""
    bands = (
        f" Bands: {CONFIDENCE:.0%} intervals." if len(models) <= BANDS else f" Whiskers: {CONFIDENCE:.0%} intervals."
    )
    right = (
        " Right: gains in standard deviations within prompts as k grows; on the dotted line a reward model keeps what "
        "it promises."
        if both
        else ""
    )
    return style.heading(figure, title, f"{found.record.sampling.prompts:,} prompts.{judge}{level}{bands}{right}")


def _by_k(ax: "Axes", found: Downstream, models: Sequence[Series], metric: str) -> None:
    sizes = found.sizes
    ax.set_xscale("log", base=2)
    ax.set_xlabel("k, candidates to choose from")
    ax.set_xticks(sizes, [str(k) for k in sizes])
    ax.minorticks_off()
    if metric == "outcome":
        level = found.estimate("outcome").value
        if level is not None:
            ax.axhline(level, color=style.GREY, linewidth=0.8, linestyle="--", zorder=1)
    for number, one in enumerate(models):
        at = [(k, found.estimate(metric, model=one.name, k=k)) for k in sizes]
        there: list[tuple[int, Any]] = [(k, estimate) for k, estimate in at if estimate.value is not None]
        if not there:
            continue
        ks, values = [k for k, _ in there], [estimate.value for _, estimate in there]
        ax.plot(ks, values, linewidth=1.1, **(style.marker(one) | {"linestyle": one.line}), zorder=3)
        _interval(ax, there, one, number, len(models))


def _interval(ax: "Axes", at: Sequence[tuple[int, Estimate]], one: Series, number: int, models: int) -> None:
    sure: list[tuple[int, Any]] = [(k, estimate) for k, estimate in at if estimate.low is not None]
    if not sure:
        return
    if models <= BANDS:
        low, high = [found.low for _, found in sure], [found.high for _, found in sure]
        ax.fill_between([k for k, _ in sure], low, high, color=one.colour, alpha=0.12, linewidth=0, zorder=2)
    else:  # of many, only the last, side by side
        k, found = sure[-1]
        beside = k * 2 ** (0.1 * (number + 1))
        ax.plot([beside, beside], [found.low, found.high], color=one.colour, linewidth=0.9, zorder=2)


def _realised(ax: "Axes", found: Downstream, models: Sequence[Series]) -> None:
    most = 0.0
    for one in models:
        pairs = [
            (
                found.estimate("promised", model=one.name, k=k).value,
                found.estimate("realised", model=one.name, k=k).value,
            )
            for k in found.sizes
        ]
        there = [(promised, realised) for promised, realised in pairs if promised is not None and realised is not None]
        if there:
            across, up = zip(*there, strict=True)
            ax.plot(across, up, linewidth=1.1, **(style.marker(one) | {"linestyle": one.line}), zorder=3)
            most = max(most, *across)
    ax.axhline(0, color=style.GREY, linewidth=0.8, linestyle="--", zorder=1)
    ax.plot([0, most], [0, most], color=style.GREY, linewidth=0.8, linestyle=":", zorder=1)
    ax.set(xlabel="Gain that the reward promises", ylabel="Gain that the judge sees")
