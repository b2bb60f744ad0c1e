"""Figures of runs and of verdicts.

matplotlib takes a second to import, so it is imported where something is drawn; here are the names of its types.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
else:
    Axes = Axis = Figure = Any

Make = Callable[[], Figure | None]
"""Draws a figure; None where it would have nothing to show."""

__all__ = ["Axes", "Axis", "Figure", "Make"]
