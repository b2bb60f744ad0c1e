"""Figures as they are drawn: their texts, and that everyone can read them."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pluralbench.reports.figures.chart import Chart, Panel
from pluralbench.reports.figures.draw import figure_of
from pluralbench.reports.figures.files import drawing, write
from pluralbench.reports.figures.report import figures_of
from pluralbench.results import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.text import Text


def drawn(charts: Mapping[str, Chart]) -> dict[str, "Figure"]:
    """Draw the charts that are not empty."""
    with drawing():
        return {stem: figure_of(chart) for stem, chart in charts.items() if not chart.empty}


def draw(runs: Sequence[Run], folder: Path, families: Mapping[str, str] | None = None) -> list[Path]:
    """Write the figures of runs, and return the files."""
    return write(figures_of(runs, families), folder, "no run has a number")


def chart_of(runs: Sequence[Run], stem: str) -> Chart:
    """The chart of a report of some runs."""
    return figures_of(runs)[stem]


def values(panel: Panel, kind: str = "dot") -> dict[tuple[Any, str], float | None]:
    """The values of a panel by row and by the label of the series."""
    return {(mark.at, mark.series.label): mark.point.value for mark in panel.marks if mark.kind == kind}


def texts(figure: "Figure") -> list["Text"]:
    """The texts of a figure, legends and labels of axes included."""
    from matplotlib.text import Text

    beyond = set()
    for ax in figure.axes:
        for place, axis in enumerate((ax.xaxis, ax.yaxis)):
            # matplotlib has labels beyond the ends of an axis, and draws none of them.
            low, high = sorted(axis.get_view_interval())
            beyond |= {label for label in axis.get_ticklabels() if not low <= label.get_position()[place] <= high}
    found = [text for text in figure.findobj(Text) if isinstance(text, Text)]
    return [text for text in found if text.get_visible() and text.get_text() and text not in beyond]


def words(figure: "Figure") -> str:
    """All texts of a figure in one line."""
    return " ".join(" ".join(text.get_text() for text in texts(figure)).split())


def markers(*axes: Any) -> list[Any]:
    """The dots in some axes: each has those of a series that are full, or hollow."""
    return [line for ax in axes for line in ax.lines if line.get_marker() not in {"None", "", None}]


def check_texts(figure: "Figure", what: str) -> None:
    """Assert that no text lies on another or is too small, and that it all fits on a page."""
    with drawing():
        canvas: Any = figure.canvas
        renderer = canvas.get_renderer()
        figure.draw_without_rendering()
        # Numbers side by side read as one if they nearly touch.
        numbers = {label for ax in figure.axes for label in ax.get_xticklabels()}
        places = [
            (text, text.get_window_extent(renderer).padded(1.5 if text in numbers else -1)) for text in texts(figure)
        ]
        assert all(float(text.get_fontsize()) >= 8 for text, _ in places)
        whole = figure.get_tightbbox(renderer)
        assert max(whole.width, whole.height) < 14, "inches"
    for (one, here), (other, there) in combinations(places, 2):
        assert not here.overlaps(there), f"{what}: {one.get_text()!r} and {other.get_text()!r}"
