"""Figures of runs and of verdicts.

An entry makes a `Chart` (see `pluralbench.reports.figures.chart`) from numbers of runs; `draw.figure_of` draws it.
matplotlib takes a second to import, so functions import it when they draw. This module has the names of its types.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    Axes = Figure = Any

__all__ = ["Axes", "Figure"]
