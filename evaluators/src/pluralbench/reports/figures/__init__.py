"""Figures of runs and of verdicts.

matplotlib takes a second to import, so functions import it when they draw. This module has the names of its types.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.text import Text
else:
    Axes = Axis = Figure = Text = Any

Make = Callable[[], Figure | None]
"""A function that draws a figure; it returns None if there is nothing to show."""

__all__ = ["Axes", "Axis", "Figure", "Make", "Text"]
