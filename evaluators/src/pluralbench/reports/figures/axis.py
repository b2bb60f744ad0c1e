"""Scores of reward models along an axis, such as the number of pairs that they learned from."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pluralbench.downstream.study import Study
from pluralbench.reports.figures import style
from pluralbench.reports.figures.files import save
from pluralbench.reports.figures.series import series_of_judges

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 3.6, 2.9  # inches


def draw_axis(found: Study, folder: Path) -> list[Path]:
    """Write `axis` as PNG and SVG: a line for each benchmark, through the models that have a place on the axis."""
    with style.drawing():
        return save(_curves(found), folder, "axis")


def _curves(found: Study) -> "Figure":
    figure = style.sheet(WIDTH, HEIGHT)
    ax = style.place(figure, 0, 0, WIDTH, HEIGHT)
    lines = series_of_judges(dict.fromkeys(found.runs))
    at = sorted({model.at for model in found.recipe.models if model.at is not None})
    if min(at, default=0) > 0:
        ax.set_xscale("log", base=2)
    else:
        ax.set_xscale("symlog", base=2, linthresh=1)
    for one in lines:
        points: list[tuple[float, Any]] = sorted(
            (
                (model.at, found.runs[one.name][model.name].headline)
                for model in found.recipe.models
                if model.at is not None
            ),
            key=lambda point: point[0],
        )
        there = [(place, estimate) for place, estimate in points if estimate.value is not None]
        xs, ys = [place for place, _ in there], [100 * estimate.value for _, estimate in there]
        ax.plot(xs, ys, linewidth=1.1, **(style.marker(one) | {"linestyle": one.line}), zorder=3)
        sure = [(place, estimate) for place, estimate in there if estimate.low is not None]
        low, high = [100 * estimate.low for _, estimate in sure], [100 * estimate.high for _, estimate in sure]
        ax.fill_between([place for place, _ in sure], low, high, color=one.colour, alpha=0.12, linewidth=0, zorder=2)
    ax.set_xticks(at, [f"{place:g}" for place in at])
    ax.minorticks_off()
    ax.set(xlabel=found.recipe.axis, ylabel="Overall number (%)")
    style.legend(ax, lines)
    note = "Bands: 95% intervals over prompts or users."
    return style.heading(figure, found.recipe.title, note)
