"""What is written in a figure, and whether everybody can read it."""

from itertools import combinations
from typing import Any

from matplotlib.figure import Figure
from matplotlib.text import Text
from pluralbench.reports.figures.style import drawing


def texts(figure: Figure) -> list[Text]:
    """What is written in a figure, legends and labels of axes included."""
    beyond = set()
    for ax in figure.axes:
        for place, axis in enumerate((ax.xaxis, ax.yaxis)):
            # matplotlib has labels beyond the ends of an axis, and draws none of them.
            low, high = sorted(axis.get_view_interval())
            beyond |= {label for label in axis.get_ticklabels() if not low <= label.get_position()[place] <= high}
    found = [text for text in figure.findobj(Text) if isinstance(text, Text)]
    return [text for text in found if text.get_visible() and text.get_text() and text not in beyond]


def words(figure: Figure) -> str:
    """All texts of a figure, a line each."""
    return "\n".join(text.get_text().replace("\N{NO-BREAK SPACE}", " ") for text in texts(figure))


def dots(figure: Figure) -> int:
    """How many values are drawn in a figure of dots."""
    return sum(line.get_marker() not in {"None", "", None} for ax in figure.axes for line in ax.lines)


def check_texts(figure: Figure, what: str) -> None:
    """Assert that no text lies on another or is too small, and that it all fits on a page."""
    with drawing():
        canvas: Any = figure.canvas
        renderer = canvas.get_renderer()
        figure.draw(renderer)
        places = [(text, text.get_window_extent(renderer).padded(-1)) for text in texts(figure)]
        assert all(float(text.get_fontsize()) >= 8 for text, _ in places)
        whole = figure.get_tightbbox(renderer)
        assert max(whole.width, whole.height) < 14, "inches"
    for (one, here), (other, there) in combinations(places, 2):
        assert not here.overlaps(there), f"{what}: {one.get_text()!r} and {other.get_text()!r}"
