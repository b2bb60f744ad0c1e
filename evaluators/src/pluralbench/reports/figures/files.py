"""Draw figures in their own settings and write them to files."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from threading import Lock
from typing import Any

from pluralbench_runs import atomic_write

from pluralbench.errors import EvaluationError
from pluralbench.reports.figures import Figure
from pluralbench.reports.figures.chart import Chart
from pluralbench.reports.figures.draw import figure_of
from pluralbench.reports.figures.theme import SETTINGS, with_dark_style

_one_at_a_time = Lock()


@contextmanager
def drawing() -> Iterator[None]:
    """Apply the settings of the figures instead of the user's own; only one thread at a time can draw."""
    import matplotlib as mpl

    with _one_at_a_time, mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(SETTINGS)
        yield


def stem(*parts: str) -> str:
    """Join parts into the stem of a figure's files; unsafe characters become underscores."""
    return "_".join(re.sub(r"[^\w.-]+", "_", part) for part in parts)


def write(charts: Mapping[str, Chart], folder: Path, nothing: str = "") -> list[Path]:
    """Draw charts and write them as PNG and SVG; an empty one writes nothing.

    Args:
        charts: Charts by file stem.
        folder: Directory of the files.
        nothing: Why there is nothing to draw, for the error. Default: no figures are no error.

    Raises:
        EvaluationError: There is nothing to draw, or the files cannot be written.
    """
    paths = []
    with drawing():
        for name, chart in charts.items():
            paths += [] if chart.empty else _save(figure_of(chart), folder / f"{name}.png", folder / f"{name}.svg")
    if nothing and not paths:
        raise EvaluationError(f"There is nothing to draw: {nothing}.")
    return paths


def _save(figure: Figure, png: Path, svg: Path) -> list[Path]:
    # Measured once for both files: with `savefig` measuring each time, saving takes 1.5 times as long.
    canvas: Any = figure.canvas
    box = figure.get_tightbbox(canvas.get_renderer()).padded(0.1)
    drawn = StringIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None}, bbox_inches=box, facecolor="none")
    try:
        png.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(png) as new:
            figure.savefig(new, format="png", dpi=200, bbox_inches=box)
        with atomic_write(svg) as new:
            new.write_text(with_dark_style(drawn.getvalue()), encoding="utf-8")
    except OSError as error:
        raise EvaluationError(f"The figures cannot be written to {png.parent}: {error.strerror}.") from None
    return [png, svg]
