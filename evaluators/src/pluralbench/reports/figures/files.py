"""Figures as files."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pluralbench.errors import EvaluationError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save(figure: "Figure", folder: Path, stem: str) -> list[Path]:
    """Write a figure as PNG and SVG, the same bytes each time; the paths."""
    paths = [folder / f"{stem}.png", folder / f"{stem}.svg"]
    # What is drawn is measured once for both files; to have `savefig` do it takes half as long again.
    canvas: Any = figure.canvas
    figure.draw_without_rendering()
    box = figure.get_tightbbox(canvas.get_renderer()).padded(0.1)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(paths[0], dpi=200, bbox_inches=box)
        figure.savefig(paths[1], metadata={"Date": None}, bbox_inches=box)
    except OSError as error:
        raise EvaluationError(f"The figures cannot be written to {folder}: {error.strerror}.") from None
    return paths
