"""Accuracy and certainty of verdicts by set of persona variables.

"Can LLM be a Personalized Judge?", section 5: its Tables 3 and 4, and the certainties of its Figure 3.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pluralbench.metrics.certainty import WITHOUT, place_of
from pluralbench.reports.figures import Axes, Figure, style
from pluralbench.reports.figures.fonts import readable
from pluralbench.reports.figures.panels import MANY, WHISKERS, Rows, panels, shown_judges, verdict_point, which_judges
from pluralbench.reports.figures.series import Series
from pluralbench.reports.figures.style import Point, dot

ACCURACY = "Accuracy (%)"
QUARTERS = (0.25, 0.5, 0.75)


def by_setting(rows: Rows) -> dict[str, list[Mapping[str, Any]]]:
    """Group rows by setting; only settings with at least two sets of variables besides none are returned."""
    ordered = sorted(rows, key=place_of)
    groups = {setting: [row for row in ordered if row["setting"] == setting] for setting in _names(ordered, "setting")}
    return {setting: own for setting, own in groups.items() if len({*_names(own, "persona_variables")} - {WITHOUT}) > 1}


def draw_variables(rows: Rows, judges: Mapping[str, Series], setting: str) -> Figure:
    """Draw a panel for each task: accuracy and, if there are certainties, the share of high ones and their quartiles.

    Args:
        rows: Rows of one setting, as `verdict_rows` returns them.
    """
    sets = _names(sorted(rows, key=lambda row: place_of(row)[2:4]), "persona_variables")
    whisker = len(shown_judges(rows, judges)) <= MANY
    at = f"{rows[0]['threshold']:g}"

    def panel(of: Any, limits: tuple[float, float], label: str) -> Any:
        def draw(ax: Axes, task_rows: Rows, judges: Mapping[str, Series]) -> None:
            ax.set(ylim=limits, ylabel=label, xlabel="Persona variables")
            style.columns(ax, [readable(name) for name in sets])
            ax.grid(axis="y")
            if label == ACCURACY:
                style.dashed(ax.axhline, 100 * task_rows[0]["chance"])
            _lines(ax, task_rows, sets, judges, of, whisker=whisker)

        return draw

    accuracies = [verdict_point(row, "accuracy") for row in rows]
    shown = [panel(lambda row: verdict_point(row, "accuracy"), style.extent(accuracies, 50, least=20), ACCURACY)]
    note = "Accuracy: invalid answers are wrong; dashed: chance."
    rated = any(row["by_certainty"] for row in rows)
    if rated:
        high = [verdict_point(row, "coverage") for row in rows]
        shown.append(panel(lambda row: verdict_point(row, "coverage"), style.extent(high, 0, least=20), f"≥ {at} (%)"))
        shown.append(panel(_middle, (-4, 104), "Certainty"))
        note += f" ≥ {at}: share of all verdicts with that certainty. Certainty: median of the valid answers"
        note += ", with a line over the middle half." if whisker else "."
    note += (
        f" Other {WHISKERS.lower()}"
        if whisker and rated
        else f" {WHISKERS}"
        if whisker
        else " Intervals: see the JSON."
    )
    heights = (1.2, 0.6, 0.6)[: len(shown)]
    figure = panels(rows, judges, heights, shown)
    return style.heading(figure, f"Verdicts by persona variables, {which_judges(rows, judges)} ({setting})", note)


def _names(rows: Rows, column: str) -> list[str]:
    return list(dict.fromkeys(row[column] for row in rows))


def _lines(ax: Axes, rows: Rows, sets: Sequence[str], judges: Mapping[str, Series], of: Any, *, whisker: bool) -> None:
    """A dot for each judge and set, with lines between those of a judge."""
    by_judge = [(model, [row for row in rows if row["judge"] == name]) for name, model in judges.items()]
    by_judge = [(model, own) for model, own in by_judge if own]
    places = style.beside(0, len(by_judge), min(0.2, 0.8 / len(by_judge)))
    for aside, (model, own) in zip(places, by_judge, strict=True):
        points: list[tuple[float, Point]] = [(sets.index(row["persona_variables"]) + aside, of(row)) for row in own]
        values = sorted((at, one.value) for at, one in points if one.value is not None)
        ax.plot(
            [at for at, _ in values],
            [value for _, value in values],
            linewidth=0.8,
            zorder=1.5,
            color=model.color,
            linestyle=model.line,
        )
        for at, one in points:
            if one.value is not None:
                dot(ax, at, one, model, upright=True, whisker=whisker)


def _middle(row: Mapping[str, Any]) -> Point:
    """The median certainty of a row's valid answers, with the quartiles; missing if none has a certainty."""
    certainties = [cell["certainty"] for cell in row["by_certainty"] for _ in range(cell["n"])]
    if not certainties:
        return Point()
    low, median, high = np.quantile(certainties, QUARTERS, method="inverted_cdf").tolist()
    return Point(median, low, high)
