"""Figures of verdicts with certainty: accuracy by certainty, risk and coverage, with and without a persona."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pluralbench.errors import EvaluationError
from pluralbench.reports.figures import Axes, Figure, style
from pluralbench.reports.figures.files import write
from pluralbench.reports.figures.fonts import readable
from pluralbench.reports.figures.panels import (
    MANY,
    WHISKERS,
    Rows,
    panels,
    shown_judges,
    total_of,
    verdict_point,
    which_judges,
)
from pluralbench.reports.figures.series import Series, series_of_judges
from pluralbench.reports.figures.style import Point, dot, heading, hollow
from pluralbench.reports.figures.theme import BAND, SOFT
from pluralbench.reports.figures.variables import by_setting, draw_variables

FEW = 10  # verdicts in a decile
POINTS = 16  # of a curve between two certainties


def draw_verdicts(rows: Rows, folder: Path) -> list[Path]:
    """Write the figures that these verdicts have data for, each as PNG and SVG.

    Args:
        rows: As `verdict_rows` returns them.

    Returns:
        The paths of the files.

    Raises:
        EvaluationError: There is nothing to draw, or the files cannot be written.
    """
    figures = figures_of(rows)
    if not figures:
        raise EvaluationError(
            "There is nothing to draw: no verdict has a certainty, and no judge has them with and without a persona."
        )
    return write(figures, folder)


def figures_of(rows: Rows, among: Iterable[str] = ()) -> dict[str, Callable[[], Figure]]:
    """Return the functions that draw the figures that these verdicts have data for.

    Args:
        among: Names of all models in the report, which determine the colors.

    Returns:
        By file stem: `certainty_SETTING_VARIABLES` and `risk_coverage_SETTING_VARIABLES` for verdicts with certainties,
        with a panel for each task; `variables_SETTING` if a setting has two sets of variables besides none; `persona`,
        with and without a persona.
    """
    rated = [row for row in rows if row["by_certainty"]]
    compared = [row for row in rows if row["against_none"]]
    judges = _judges(rows, among)
    figures: dict[str, Callable[[], Figure]] = {}
    for setting, variables in dict.fromkeys((row["setting"], row["persona_variables"]) for row in rated):
        selected = [row for row in rated if (row["setting"], row["persona_variables"]) == (setting, variables)]
        prompt = f"{setting}, persona: {variables}"
        figures[style.stem("certainty", setting, variables)] = partial(_by_certainty, selected, judges, prompt)
        figures[style.stem("risk_coverage", setting, variables)] = partial(_risk_coverage, selected, judges, prompt)
    for setting, selected in by_setting(rows).items():
        figures[style.stem("variables", setting)] = partial(draw_variables, selected, judges, setting)
    if compared:
        figures["persona"] = partial(_persona, compared, judges)
    return figures


def _judges(rows: Rows, among: Iterable[str]) -> dict[str, Series]:
    """The series of each judge, the same in every figure; the best judge first."""
    names = dict.fromkeys(row["judge"] for row in rows)
    means = {name: style.mean(Point(row["accuracy"]) for row in rows if row["judge"] == name) for name in names}
    return {model.name: model for model in series_of_judges(means, among)}


def _by_certainty(rows: Rows, judges: Mapping[str, Series], prompt: str) -> Figure:
    deciles = [cell["from"] for row in rows for cell in row["deciles"]]
    limits = (min(deciles) - 2, max(deciles) + 12)
    edges = list(range(min(deciles), max(deciles) + 20, 10))
    most = 25 * math.ceil(4 * max(cell["n"] / total_of(row)["total"] for row in rows for cell in row["deciles"]))
    compared = shown_judges(rows, judges)
    whiskers = len(compared) <= MANY

    def bins(ax: Axes) -> None:
        ax.set(xlim=limits, xticks=edges, xlabel="Certainty")
        for edge in edges[:-1:2]:
            ax.axvspan(edge, edge + 10, color=BAND, linewidth=0, zorder=0)

    def accuracy(ax: Axes, task_rows: Rows, judges: Mapping[str, Series]) -> None:
        bins(ax)
        ax.set(ylim=(-4, 104), yticks=[0, 25, 50, 75, 100], ylabel="Accuracy (%)")
        style.dashed(ax.axhline, 100 * task_rows[0]["chance"])
        ax.plot([0, 100], [0, 100], color=SOFT, linewidth=0.8, linestyle=":", zorder=1)
        for row, model, left, step in _beside(task_rows, judges):
            by_decile = {cell["from"]: 100 * cell["accuracy"] if cell["n"] >= FEW else None for cell in row["deciles"]}
            xs = [decile + left + step / 2 for decile in range(0, 100, 10)]
            ys = [by_decile.get(decile) for decile in range(0, 100, 10)]
            # matplotlib leaves a gap where a value is NaN.
            ax.plot(xs, [math.nan if y is None else y for y in ys], linewidth=0.8, zorder=1.5, **_curved(model))
            for cell in row["deciles"]:
                at, shown = cell["from"] + left + step / 2, verdict_point(cell, "accuracy")
                dot(ax, at, shown, model, upright=True, whisker=whiskers)
                if cell["n"] < FEW:
                    ax.plot(at, shown.value or 0.0, **_over(model))

    def histogram(ax: Axes, task_rows: Rows, judges: Mapping[str, Series]) -> None:
        bins(ax)
        ax.set(ylim=(0, most), yticks=range(0, most + 1, 50 if most == 100 else 25), ylabel="Verdicts (%)")
        for row, model, left, step in _beside(task_rows, judges):
            xs = [cell["from"] + left for cell in row["deciles"]]
            shares = [100 * cell["n"] / total_of(row)["total"] for cell in row["deciles"]]
            ax.bar(xs, shares, 0.92 * step, align="edge", color=model.color, linewidth=0)

    figure = panels(rows, judges, (1.75, 0.65), (accuracy, histogram))
    note = "Top: accuracy of valid answers by decile of certainty; the last includes 100. Bottom: share of "
    note += (
        "the verdicts in each decile." if len(compared) == 1 else "each judge's verdicts, in the order of the legend."
    )
    if any(cell["n"] < FEW for row in rows for cell in row["deciles"]):
        note += f" Hollow: fewer than {FEW} verdicts."
    note += f" Dashed gray: chance. Dotted: perfect calibration. {WHISKERS if whiskers else 'Intervals: see the JSON.'}"
    return heading(figure, f"Accuracy by certainty, {which_judges(rows, judges)} ({prompt})", note)


def _beside(rows: Rows, judges: Mapping[str, Series]) -> list[tuple[Mapping[str, Any], Series, float, float]]:
    """Each judge's row, with its offset and width within a decile."""
    pairs = [(row, model) for name, model in judges.items() for row in rows if row["judge"] == name]
    step = min(7.0, 9.0 / len(pairs))
    return [(row, model, 5 + (n - len(pairs) / 2) * step, step) for n, (row, model) in enumerate(pairs)]


def _risk_coverage(rows: Rows, judges: Mapping[str, Series], prompt: str) -> Figure:
    worst = max([100 * (1 - row["chance"]) for row in rows] + [y for row in rows for _, y in _curve(row)])

    def few(row: Mapping[str, Any]) -> bool:
        return bool(row["high"]["total"] < FEW)

    def curves(ax: Axes, task_rows: Rows, judges: Mapping[str, Series]) -> None:
        ax.set(xlim=(-2, 102), ylim=(-0.03 * worst, 1.05 * worst), xticks=[0, 25, 50, 75, 100])
        ax.set(xlabel="Coverage (%)", ylabel="Errors (%)")
        style.dashed(ax.axhline, 100 * (1 - task_rows[0]["chance"]))
        for row in task_rows:
            model, curve = judges[row["judge"]], _curve(row)
            ax.plot([x for x, _ in curve], [y for _, y in curve], linewidth=1.1, zorder=1.5, **_curved(model))
            cell, looks = (total_of(row), _over(model)) if few(row) else (row["high"], style.marker(model))
            across = 100 * cell["total"] / total_of(row)["total"]
            ax.plot(across, 100 * (1 - cell["correct"] / cell["total"]), **looks)

    figure = panels(rows, judges, (2.2,), (curves,))
    note = (
        f"Error rate of the most certain answers (at least {FEW}) by their share of the valid answers with a "
        "certainty. Equal certainties are in random order. Dashed gray: chance. Filled: certainty of at least "
        f"{rows[0]['threshold']:g}."
    )
    note += f" Hollow: all answers, if fewer than {FEW} are that certain." if any(few(row) for row in rows) else ""
    return heading(figure, f"Risk and coverage, {which_judges(rows, judges)} ({prompt})", note)


def _curve(row: Mapping[str, Any]) -> list[tuple[float, float]]:
    """Coverage and expected risk in percent, at each certainty and at points between, from `FEW` answers on."""
    total, before, wrong, points = total_of(row)["total"], 0, 0.0, []
    for cell in row["by_certainty"]:
        rate = 1 - cell["correct"] / cell["n"]
        first, last = max(before + 1, min(FEW, total)), before + cell["n"]
        # The curve bends most at its start.
        part = range(POINTS + 1) if first <= last else ()
        places = sorted({round(first * (last / first) ** (place / POINTS)) for place in part})
        points += [(100 * k / total, 100 * (wrong + (k - before) * rate) / k) for k in places]
        before, wrong = before + cell["n"], wrong + cell["n"] * rate
    return points


def _curved(model: Series) -> dict[str, Any]:
    return {"color": model.color, "linestyle": model.line}


def _over(model: Series) -> dict[str, Any]:
    """A hollow dot on a filled one."""
    return hollow(model) | {"zorder": 2.5}


def _persona(rows: Rows, judges: Mapping[str, Series]) -> Figure:
    best, single = list(judges), len(shown_judges(rows, judges)) == 1
    differing = [name for name in ("setting", "persona_variables") if len({row[name] for row in rows}) > 1]
    # With one judge, the tasks are the rows of one panel; otherwise each task has a panel with a row for each judge.
    panels: dict[str, list[Mapping[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: (row["task"], best.index(row["judge"]), row["setting"])):
        panels.setdefault("" if single else row["task"], []).append(row)
    shifts = [verdict_point(row["against_none"], "difference") for row in rows]
    both = [verdict_point(row["against_none"], name) for row in rows for name in ("accuracy", "accuracy_without")]
    limits = (
        style.extent(both, *(100 * row["chance"] for row in rows), least=style.LEAST),
        style.extent(shifts, 0.0, least=style.LEAST),
    )
    labels = {
        task: [_row_label(row, judges, differing, single=single) for row in task_rows]
        for task, task_rows in panels.items()
    }
    sizes = [0.24 * len(task_rows) + 0.1 for task_rows in panels.values()]
    figure, sides = style.paired(labels, sizes, limits, ("Accuracy (%)", "Difference (points)"))
    for (left, right), task_rows in zip(sides, panels.values(), strict=True):
        _with_and_without(left, right, task_rows, judges)
    note = f"Filled: with a persona; hollow: without. {WHISKERS} Dotted: chance. Dashed: no difference."
    unpaired = sum(not row["against_none"]["same_items"] for row in rows)
    if unpaired:
        note += f" {unpaired} of {len(rows)} pairs are on different items and are resampled independently."
    return heading(figure, f"With and without a persona, {which_judges(rows, judges)}", note)


def _row_label(row: Mapping[str, Any], judges: Mapping[str, Series], differing: Sequence[str], *, single: bool) -> str:
    name = readable(row["task"]) if single else judges[row["judge"]].label
    return f"{name} ({', '.join(row[column] for column in differing)})" if differing else name


def _with_and_without(left: Axes, right: Axes, rows: Rows, judges: Mapping[str, Series]) -> None:
    for at, row in enumerate(rows):
        style.chance(left, at, 100 * row["chance"])
        model, comparison = judges[row["judge"]], row["against_none"]
        dot(left, at - 0.14, verdict_point(comparison, "accuracy"), model)
        without = verdict_point(comparison, "accuracy_without")
        dot(left, at + 0.14, without, model)
        left.plot(without.value or 0.0, at + 0.14, **_over(model))
        dot(right, at, verdict_point(comparison, "difference"), model)
