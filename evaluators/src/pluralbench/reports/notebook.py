"""Figures and the page of runs, for notebooks and scripts."""

from collections.abc import Iterable
from functools import partial
from io import StringIO
from pathlib import Path

from pluralbench_runs import did_you_mean, log_status

from pluralbench.errors import EvaluationError
from pluralbench.reports.figures import Figure
from pluralbench.reports.figures.draw import figure_of
from pluralbench.reports.figures.files import drawing
from pluralbench.reports.figures.report import figures_of
from pluralbench.reports.figures.theme import PAPER, with_dark_style
from pluralbench.results.finding import RunLike, as_found


def plot(runs: RunLike | Iterable[RunLike], figure: str | None = None) -> Figure:
    """Draw a figure of runs, as `pluralbench report --plots` writes it.

    Args:
        runs: A run or a suite, a directory of runs, or several of these.
        figure: Name of the figure, which is that of its file, such as "position_personalized". Default: the forest plot
            of the runs' benchmark, which shows the overall number and its parts with their intervals.

    Returns:
        The matplotlib figure.

    Raises:
        EvaluationError: There is nothing to draw, no figure of this name, or no default because the runs are of
            several benchmarks.
        RunError: A directory has no run.
    """
    charts = figures_of(as_found(runs).runs)
    default = [name for name in charts if name.startswith("forest")]
    if not charts:
        raise EvaluationError("There is nothing to draw: no run has a number.")
    if figure is None and len(default) != 1:
        raise EvaluationError(f"The runs are of several benchmarks; pass `figure=...`, one of {', '.join(charts)}.")
    name = default[0] if figure is None else figure
    if name not in charts:
        raise EvaluationError(
            f"These runs have no figure {name}; {did_you_mean(name, charts)}choose one of {', '.join(charts)}."
        )
    with drawing():
        drawn = figure_of(charts[name])
    # IPython itself shows only figures of pyplot, and those in the user's own settings.
    drawn._repr_svg_ = partial(_svg, drawn)  # type: ignore[attr-defined]
    return drawn


def _svg(figure: Figure) -> str:
    """A figure as a notebook shows it: on its own paper, which is dark where the reader prefers dark pages."""
    text = StringIO()
    with drawing():
        figure.savefig(text, format="svg", metadata={"Date": None}, bbox_inches="tight", facecolor=PAPER)
    return with_dark_style(text.getvalue())


def html(runs: RunLike | Iterable[RunLike], path: str | Path) -> Path:
    """Write the page of runs with tables, figures and items, as `pluralbench report --html` does.

    Messages on standard error name what the page lacks, such as items whose data cannot be read.

    Args:
        runs: A run or a suite, a directory of runs, or several of these.
        path: The file. The page is self-contained and needs no network.

    Returns:
        The path.

    Raises:
        EvaluationError: There are no runs, or the file cannot be written.
        RunError: A directory has no run.
    """
    from pluralbench.reports.html.page import write_html

    for note in write_html(as_found(runs), Path(path)):
        log_status(note)
    return Path(path)
