"""Scores of reward models along an axis, such as the number of pairs that they learned from."""

from functools import partial
from pathlib import Path

from pluralbench.downstream.study import Study
from pluralbench.reports.figures import Figure, style
from pluralbench.reports.figures.files import write
from pluralbench.reports.figures.series import series_of_judges

WIDTH, HEIGHT = 3.6, 2.9  # inches


def draw_axis(found: Study, folder: Path) -> list[Path]:
    """Write `axis` as PNG and SVG: a line for each benchmark, through the models that have a place on the axis."""
    return write({"axis": partial(_curves, found)}, folder)


def _curves(found: Study) -> Figure:
    figure, (ax,) = style.grid(WIDTH, HEIGHT)
    benchmarks = series_of_judges(dict.fromkeys(found.runs))
    models = {model.name: model.position for model in found.recipe.models if model.position is not None}
    at = sorted({*models.values()})
    if min(at, default=0) > 0:
        ax.set_xscale("log", base=2)
    else:
        ax.set_xscale("symlog", base=2, linthresh=1)
    for one in benchmarks:
        points = [(place, style.point(found.runs[one.name][name].headline)) for name, place in models.items()]
        style.curve(ax, sorted(points, key=lambda point: point[0]), one, band=True)
    ax.set_xticks(at, [f"{place:g}" for place in at])
    ax.minorticks_off()
    ax.set(xlabel=found.recipe.axis, ylabel="Overall number (%)")
    style.legend(ax, benchmarks)
    return style.heading(figure, found.recipe.title, "Bands: 95% intervals over prompts or users.")
