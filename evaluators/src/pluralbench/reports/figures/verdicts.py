"""Figures of verdicts with certainty ("Can LLM be a Personalized Judge?", section 5)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pluralbench_measures.bootstrap import Estimate

from pluralbench.metrics.certainty import WITHOUT, group_order
from pluralbench.reports.figures.chart import (
    ACCURACY,
    PLAIN,
    Chart,
    Mark,
    Panel,
    Point,
    mean,
    point,
)
from pluralbench.reports.figures.files import stem
from pluralbench.reports.figures.series import Series, series_of_judges

FEW = 10  # verdicts in a decile
QUARTERS = (0.25, 0.5, 0.75)
Row = Mapping[str, Any]
Rows = Sequence[Row]
Judges = Mapping[str, Series]
EXPECTED = replace(PLAIN, name="expected", label="Perfect calibration", marker="", line=":")


def figures_of(rows: Rows, among: Iterable[str] = ()) -> dict[str, Chart]:
    """Return the charts of verdicts: certainty and risk by setting and variables, and by variables of a setting.

    Args:
        rows: As `verdict_rows` returns them.
        among: Names of all models in the report, which determine the colors.
    """
    names = _names(rows, "judge")
    means = {name: mean(Point(row["accuracy"]) for row in rows if row["judge"] == name) for name in names}
    judges = {one.name: one for one in series_of_judges(means, among)}
    ordered = sorted(rows, key=lambda row: (*group_order(row)[:4], list(judges).index(row["judge"])))
    figures: dict[str, Chart] = {}
    rated = [row for row in ordered if row["by_certainty"]]
    for setting, variables in dict.fromkeys((row["setting"], row["persona_variables"]) for row in rated):
        own = [row for row in rated if (row["setting"], row["persona_variables"]) == (setting, variables)]
        for entry in (certainty, risk_coverage):
            name = stem(entry.__name__, setting, variables)
            figures[name] = entry(own, judges, f"{setting}, persona: {variables}")
    for setting in _names(ordered, "setting"):
        own = [row for row in ordered if row["setting"] == setting]
        if len({*_names(own, "persona_variables")} - {WITHOUT}) > 1:
            figures[stem("variables", setting)] = variables_of(own, judges, setting)
    return figures


def certainty(rows: Rows, judges: Judges, prompt: str) -> Chart:
    """Make panels of each task: accuracy by decile of certainty, and the share of verdicts in it."""
    panels = []
    for task, own in _tasks(rows):
        deciles = range(min(cell["from"] for row in rows for cell in row["deciles"]), 100, 10)
        columns = {decile: f"{decile}–\n{decile + (10 if decile == 90 else 9)}" for decile in deciles}
        accuracies = [Mark(at, Point(decile + 5.0), EXPECTED, "tick") for decile, at in columns.items()]
        shares = [Mark(at, Point(), EXPECTED, "tick") for at in columns.values()]
        for row in own:
            judge = judges[row["judge"]]
            for at, cell in ((columns[cell["from"]], cell) for cell in row["deciles"]):
                accuracies.append(Mark(at, verdict_point(cell, "accuracy")._replace(few=cell["n"] < FEW), judge))
                shares.append(Mark(at, Point(100 * cell["n"] / _total(row)), judge, "bar"))
        chance = {100 * own[0]["chance"]: "--"}
        panels.append(Panel(accuracies, ACCURACY, task, "Certainty", chance, upright=True, joined=True))
        panels.append(Panel(shares, "Verdicts (%)", "", "Certainty", upright=True))
    note = (
        "Left: accuracy of valid answers by decile of certainty. Right: share of each judge's verdicts in the decile. "
        "Dashed: chance."
    )
    return Chart(f"Accuracy by certainty, {_which(rows, judges)} ({prompt})", panels, note, 2, few="verdicts")


def risk_coverage(rows: Rows, judges: Judges, prompt: str) -> Chart:
    """Make a panel of each task: error rate of the most certain answers by their share."""
    panels = []
    for task, own in _tasks(rows):
        marks = []
        for row in own:
            judge, total, high = judges[row["judge"]], _total(row), row["high"]
            marks += [Mark(x, Point(y), replace(judge, label="", marker="")) for x, y in _curve(row)]
            error = Point(100 * (1 - high["correct"] / high["total"]) if high["total"] else None)
            marks.append(Mark(100 * high["total"] / total, error._replace(few=high["total"] < FEW), judge))
        panels.append(Panel(marks, "Errors (%)", task, "Coverage (%)", {100 * (1 - own[0]["chance"]): "--"}))
    note = (
        f"Error rate of the most certain answers (at least {FEW}) by their share of the valid answers with a "
        "certainty. Equal certainties are in random order. Dashed: chance. Dots: certainty of at least "
        f"{rows[0]['threshold']:g}."
    )
    return Chart(f"Risk and coverage, {_which(rows, judges)} ({prompt})", panels, note, 2, few="verdicts")


def _curve(row: Row) -> list[tuple[float, float]]:
    """Coverage and expected risk in percent for each number of answers, from `FEW` on."""
    total, before, wrong, points = _total(row), 0, 0.0, []
    for cell in row["by_certainty"]:
        rate = 1 - cell["correct"] / cell["n"]
        answers = range(max(before + 1, min(FEW, total)), before + cell["n"] + 1)
        points += [(100 * k / total, 100 * (wrong + (k - before) * rate) / k) for k in answers]
        before, wrong = before + cell["n"], wrong + cell["n"] * rate
    return points


def variables_of(rows: Rows, judges: Judges, setting: str) -> Chart:
    """Make panels of each task by set of persona variables: accuracy, share of high certainties and their median."""
    at = f"{rows[0]['threshold']:g}"
    shown: dict[str, Callable[[Row], Point]] = {ACCURACY: lambda row: verdict_point(row, "accuracy")}
    if any(row["by_certainty"] for row in rows):
        shown |= {f"≥ {at} (%)": lambda row: verdict_point(row, "coverage"), "Certainty": _middle}
    panels = []
    for task, own in _tasks(rows):
        for label, point_of in shown.items():
            marks = [Mark(row["persona_variables"], point_of(row), judges[row["judge"]]) for row in own]
            lines, title = ({100 * own[0]["chance"]: "--"}, task) if label == ACCURACY else ({}, "")
            panels.append(Panel(marks, label, title, "Persona variables", lines, upright=True, joined=True, least=20))
    note = "Accuracy: invalid answers are wrong; dashed: chance."
    if len(shown) > 1:
        note += (
            f" ≥ {at}: share of all verdicts with that certainty. Certainty: median of the valid answers, with a line "
            "over the middle half instead of an interval."
        )
    return Chart(f"Verdicts by persona variables, {_which(rows, judges)} ({setting})", panels, note, len(shown))


def _middle(row: Row) -> Point:
    """The median certainty of a row's valid answers, with the quartiles; missing if none has a certainty."""
    certainties = [cell["certainty"] for cell in row["by_certainty"] for _ in range(cell["n"])]
    if not certainties:
        return Point()
    low, median, high = np.quantile(certainties, QUARTERS, method="inverted_cdf").tolist()
    return Point(median, low, high)


def _tasks(rows: Rows) -> list[tuple[str, Rows]]:
    return [(task, [row for row in rows if row["task"] == task]) for task in _names(rows, "task")]


def _names(rows: Rows, column: str) -> list[str]:
    return list(dict.fromkeys(row[column] for row in rows))


def _total(row: Row) -> int:
    return int(row["high"]["total"] + row["low"]["total"])


def verdict_point(cell: Row, name: str) -> Point:
    """Return a fraction of a row with its interval, in percent."""
    return point(Estimate(cell[name], *(cell[f"{name}_interval"] or (None, None))))


def _which(rows: Rows, judges: Judges) -> str:
    """The judges of these rows for a title, with the benchmark if the rows have a `title`."""
    shown, title = _names(rows, "judge"), rows[0].get("title")
    return (judges[shown[0]].label if len(shown) == 1 else f"{len(shown)} judges") + (f" on {title}" if title else "")
