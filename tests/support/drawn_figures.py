"""What is written and drawn in a figure, and whether everybody can read it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from pluralbench.reports.figures.draw import figures_of
from pluralbench.reports.figures.style import drawing
from pluralbench.results import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.text import Text


Make = Callable[[], "Figure | None"]


def drawn(makes: Mapping[str, Make] | Iterable[tuple[str, Make]]) -> dict[str, "Figure"]:
    """The figures that have something to show, by the stems of their files."""
    with drawing():
        made = {stem: make() for stem, make in dict(makes).items()}
    return {stem: figure for stem, figure in made.items() if figure is not None}


def report_figures(runs: Sequence[Run], *stems: str) -> dict[str, "Figure"]:
    """The figures of a report of some runs, or of them those of these stems."""
    return drawn((stem, make) for stem, make in figures_of(runs) if stem in (stems or {stem}))


def texts(figure: "Figure") -> list["Text"]:
    """What is written in a figure, legends and labels of axes included."""
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
    """All texts of a figure, a line each."""
    return "\n".join(text.get_text().replace("\N{NO-BREAK SPACE}", " ") for text in texts(figure))


def said(figure: "Figure") -> str:
    """All texts of a figure in one line."""
    return " ".join(words(figure).split())


def markers(*axes: Any) -> list[Any]:
    """The dots in some axes."""
    return [line for ax in axes for line in ax.lines if line.get_marker() not in {"None", "", None}]


def dots(figure: "Figure") -> int:
    """How many values are drawn in a figure of dots."""
    return len(markers(*figure.axes))


def values(*axes: Any, upright: bool = False) -> list[float]:
    """The values of the dots in some axes. upright: they go up."""
    return [float(dot.get_data()[upright][0]) for dot in markers(*axes)]


def whiskers(ax: Any, *, upright: bool = False) -> list[list[float]]:
    """The ends of the lines of intervals in the axes."""
    paths = [path for collection in ax.collections for path in collection.get_paths()]
    return [path.vertices[:, int(upright)].tolist() for path in paths]


def check_texts(figure: "Figure", what: str) -> None:
    """Assert that no text lies on another or is too small, and that it all fits on a page."""
    with drawing():
        canvas: Any = figure.canvas
        renderer = canvas.get_renderer()
        figure.draw(renderer)
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
