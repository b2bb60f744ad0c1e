"""Figures as files."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pluralbench.errors import EvaluationError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save(figure: "Figure", folder: Path, stem: str) -> list[Path]:
    """Write a figure as PNG and SVG, the same bytes each time; the paths."""
    paths = [folder / f"{stem}.png", folder / f"{stem}.svg"]
    box: Any = {"bbox_inches": "tight", "pad_inches": 0.1}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(paths[0], dpi=200, **box)
        figure.savefig(paths[1], metadata={"Date": None}, **box)
    except OSError as error:
        raise EvaluationError(f"The figures cannot be written to {folder}: {error.strerror}.") from None
    return paths
