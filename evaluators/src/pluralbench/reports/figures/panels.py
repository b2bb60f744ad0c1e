"""Helpers of the figures of verdicts: a panel for each task, and the judges in it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pluralbench_measures.bootstrap import Estimate

from pluralbench.reports.figures import Axes, Figure, style
from pluralbench.reports.figures.fonts import readable
from pluralbench.reports.figures.series import Series
from pluralbench.reports.figures.style import Point

Rows = Sequence[Mapping[str, Any]]
Draw = Callable[[Axes, Rows, Mapping[str, Series]], None]
WIDTH, APART = 2.9, 0.45  # inches of a panel, and between panels
MANY = 4  # judges at most for two panels in a row and for whiskers
WHISKERS = style.whiskers()


def panels(rows: Rows, judges: Mapping[str, Series], heights: Sequence[float], draw: Sequence[Draw]) -> Figure:
    """Draw a panel for each task, with axes one below the other.

    Args:
        heights: Heights of the axes in inches, from the top.
        draw: Functions that draw into the axes, from the top.
    """
    tasks = {task: [row for row in rows if row["task"] == task] for task in dict.fromkeys(row["task"] for row in rows)}
    many = len(shown_judges(rows, judges)) > MANY
    across, width = (1, 2 * WIDTH + APART) if many else (min(2, len(tasks)), WIDTH)
    down, each = -(-len(tasks) // across), sum(heights) + 0.1 * (len(heights) - 1) + 0.55
    figure = style.sheet(across * (width + APART) - APART, down * each)
    for number, (task, task_rows) in enumerate(tasks.items()):
        row, column = divmod(number, across)
        top = (down - row) * each
        for place, (height, one) in enumerate(zip(heights, draw, strict=True)):
            ax = style.place(figure, column * (width + APART), top - height, width, height)
            top -= height + 0.1
            one(ax, task_rows, judges)
            ax.tick_params(axis="x", labelbottom=place == len(heights) - 1)
            if column:
                ax.set_ylabel("")
            if place < len(heights) - 1 or number + across < len(tasks):
                ax.set_xlabel("")
            if place == 0:
                ax.set_title(readable(task))
            if place == 0 and number == across - 1:
                style.legend(ax, shown_judges(rows, judges))
    return figure


def shown_judges(rows: Rows, judges: Mapping[str, Series]) -> list[Series]:
    """Return the judges of these rows, the best first."""
    names = {row["judge"] for row in rows}
    return [one for name, one in judges.items() if name in names]


def total_of(row: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of a row's valid answers with a certainty, and the number of correct ones."""
    return {key: row["high"][key] + row["low"][key] for key in ("correct", "total")}


def verdict_point(cell: Mapping[str, Any], name: str) -> Point:
    """Return a fraction of a row with its interval, in percent."""
    low, high = cell[f"{name}_interval"] or (None, None)
    return style.point(Estimate(cell[name], low, high))


def which_judges(rows: Rows, judges: Mapping[str, Series]) -> str:
    """Describe the judges of these rows for a title, with the benchmark if the rows have a `title`."""
    shown, title = shown_judges(rows, judges), rows[0].get("title")
    return (shown[0].label if len(shown) == 1 else f"{len(shown)} judges") + (f" on {title}" if title else "")
