"""Scores of reward models along an axis, such as the number of training pairs."""

from functools import partial
from pathlib import Path

from pluralbench.downstream.study import Study
from pluralbench.reports.figures import Figure, style
from pluralbench.reports.figures.files import write
from pluralbench.reports.figures.series import series_of_judges

WIDTH, HEIGHT = 3.6, 2.9  # inches


def draw_axis(study: Study, folder: Path) -> list[Path]:
    """Draw a line for each benchmark through the models on the axis; write `axis` as PNG and SVG.

    Returns:
        The paths of the files.
    """
    return write({"axis": partial(curves, study)}, folder)


def curves(study: Study) -> Figure:
    """Draw a line for each benchmark through the models on the axis."""
    figure, (ax,) = style.grid(WIDTH, HEIGHT)
    benchmarks = series_of_judges(dict.fromkeys(study.runs))
    models = {model.name: model.position for model in study.recipe.models if model.position is not None}
    at = sorted({*models.values()})
    if min(at, default=0) > 0:
        ax.set_xscale("log", base=2)
    else:
        ax.set_xscale("symlog", base=2, linthresh=1)
    for benchmark in benchmarks:
        points = [(place, style.point(study.runs[benchmark.name][name].headline)) for name, place in models.items()]
        style.curve(ax, sorted(points, key=lambda point: point[0]), benchmark, band=True)
    ax.set_xticks(at, [f"{place:g}" for place in at])
    ax.minorticks_off()
    ax.set(xlabel=study.recipe.axis, ylabel="Overall number (%)")
    style.legend(ax, benchmarks)
    return style.heading(figure, f"Scores by {study.recipe.axis}", "Bands: 95% intervals over prompts or users.")
