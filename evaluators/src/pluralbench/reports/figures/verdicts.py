"""Figures of verdicts with certainty ("Can LLM be a Personalized Judge?", section 5)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pluralbench_measures.bootstrap import Estimate

from pluralbench.metrics.certainty import WITHOUT, place_of
from pluralbench.reports.figures.chart import (
    ACCURACY,
    CHANCE,
    DIFFERENCE,
    PLAIN,
    Chart,
    Mark,
    Panel,
    Point,
    mean,
    point,
)
from pluralbench.reports.figures.files import stem, write
from pluralbench.reports.figures.series import Series, series_of_judges

FEW = 10  # verdicts in a decile
POINTS = 16  # of a curve between two certainties
QUARTERS = (0.25, 0.5, 0.75)
Row = Mapping[str, Any]
Rows = Sequence[Row]
Judges = Mapping[str, Series]
EXPECTED = replace(PLAIN, name="expected", label="Perfect calibration", marker="", line=":")


def draw(rows: Rows, folder: Path) -> list[Path]:
    """Write the figures that these verdicts have data for, each as PNG and SVG; see `figures_of`.

    Raises:
        EvaluationError: There is nothing to draw, or the files cannot be written.
    """
    nothing = "no verdict has a certainty, and no judge has them with and without a persona"
    return write(figures_of(rows), folder, nothing)


def figures_of(rows: Rows, among: Iterable[str] = ()) -> dict[str, Chart]:
    """Return the charts that these verdicts have data for.

    Args:
        rows: As `verdict_rows` returns them.
        among: Names of all models in the report, which determine the colors.

    Returns:
        By file stem: `certainty_SETTING_VARIABLES` and `risk_coverage_SETTING_VARIABLES` for verdicts with certainties,
        with a row of panels for each task; `variables_SETTING` if a setting has two sets of variables besides none;
        `persona`, with and without a persona.
    """
    means = {
        name: mean(Point(row["accuracy"]) for row in rows if row["judge"] == name) for name in _names(rows, "judge")
    }
    judges = {one.name: one for one in series_of_judges(means, among)}
    ordered = sorted(rows, key=lambda row: (*place_of(row)[:4], list(judges).index(row["judge"])))
    figures: dict[str, Chart] = {}
    rated = [row for row in ordered if row["by_certainty"]]
    for setting, variables in dict.fromkeys((row["setting"], row["persona_variables"]) for row in rated):
        own = [row for row in rated if (row["setting"], row["persona_variables"]) == (setting, variables)]
        prompt = f"{setting}, persona: {variables}"
        for name, entry in (("certainty", certainty), ("risk_coverage", risk_coverage)):
            figures[stem(name, setting, variables)] = entry(own, judges, prompt)
    for setting in _names(ordered, "setting"):
        own = [row for row in ordered if row["setting"] == setting]
        if len({*_names(own, "persona_variables")} - {WITHOUT}) > 1:
            figures[stem("variables", setting)] = variables_of(own, judges, setting)
    compared = [row for row in ordered if row["against_none"]]
    return figures | ({"persona": persona(compared, judges)} if compared else {})


def certainty(rows: Rows, judges: Judges, prompt: str) -> Chart:
    """Make panels of each task: accuracy by decile of certainty, and the share of verdicts in it."""
    panels = []
    for task, own in _tasks(rows):
        accuracies, shares = [], []
        for decile in range(min(cell["from"] for row in rows for cell in row["deciles"]), 100, 10):
            at = f"{decile}–\n{decile + (10 if decile == 90 else 9)}"
            accuracies.append(Mark(at, Point(decile + 5.0), EXPECTED, "tick"))
            shares.append(Mark(at, Point(), EXPECTED, "tick"))
            for row in own:
                cell = next((cell for cell in row["deciles"] if cell["from"] == decile), None)
                if cell is not None:
                    few = verdict_point(cell, "accuracy")._replace(few=cell["n"] < FEW)
                    accuracies.append(Mark(at, few, judges[row["judge"]]))
                    share = 100 * cell["n"] / _total(row)["total"]
                    shares.append(Mark(at, Point(share), judges[row["judge"]], "bar"))
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
            few = high["total"] < FEW
            cell = total if few else high
            error = Point(100 * (1 - cell["correct"] / cell["total"]), few=few)
            marks += [Mark(x, Point(y), replace(judge, label="", marker="")) for x, y in _curve(row)]
            marks.append(Mark(100 * cell["total"] / total["total"], error, judge))
        panels.append(Panel(marks, "Errors (%)", task, "Coverage (%)", {100 * (1 - own[0]["chance"]): "--"}))
    note = (
        f"Error rate of the most certain answers (at least {FEW}) by their share of the valid answers with a "
        "certainty. Equal certainties are in random order. Dashed: chance. Filled: certainty of at least "
        f"{rows[0]['threshold']:g}; with fewer than {FEW} such answers, hollow: all answers."
    )
    return Chart(f"Risk and coverage, {_which(rows, judges)} ({prompt})", panels, note, 2, few="verdicts")


def _curve(row: Row) -> list[tuple[float, float]]:
    """Coverage and expected risk in percent, at each certainty and at points between, from `FEW` answers on."""
    total, before, wrong, points = _total(row)["total"], 0, 0.0, []
    for cell in row["by_certainty"]:
        rate = 1 - cell["correct"] / cell["n"]
        first, last = max(before + 1, min(FEW, total)), before + cell["n"]
        # The curve bends most at its start.
        part = range(POINTS + 1) if first <= last else ()
        places = sorted({round(first * (last / first) ** (place / POINTS)) for place in part})
        points += [(100 * k / total, 100 * (wrong + (k - before) * rate) / k) for k in places]
        before, wrong = before + cell["n"], wrong + cell["n"] * rate
    return points


def variables_of(rows: Rows, judges: Judges, setting: str) -> Chart:
    """Make panels of each task by set of persona variables: accuracy, share of high certainties and their median."""
    at, rated = f"{rows[0]['threshold']:g}", any(row["by_certainty"] for row in rows)
    panels = []
    for task, own in _tasks(rows):
        shown = {ACCURACY: [verdict_point(row, "accuracy") for row in own]}
        if rated:
            shown |= {
                f"≥ {at} (%)": [verdict_point(row, "coverage") for row in own],
                "Certainty": list(map(_middle, own)),
            }
        for label, points in shown.items():
            marks = [
                Mark(row["persona_variables"], one, judges[row["judge"]]) for row, one in zip(own, points, strict=True)
            ]
            lines = {100 * own[0]["chance"]: "--"} if label == ACCURACY else {}
            title = task if label == ACCURACY else ""
            panels.append(Panel(marks, label, title, "Persona variables", lines, upright=True, joined=True, least=20))
    note = "Accuracy: invalid answers are wrong; dashed: chance."
    if rated:
        note += (
            f" ≥ {at}: share of all verdicts with that certainty. Certainty: median of the valid answers, with a line "
            "over the middle half instead of an interval."
        )
    return Chart(f"Verdicts by persona variables, {_which(rows, judges)} ({setting})", panels, note, 3 if rated else 1)


def _middle(row: Row) -> Point:
    """The median certainty of a row's valid answers, with the quartiles; missing if none has a certainty."""
    certainties = [cell["certainty"] for cell in row["by_certainty"] for _ in range(cell["n"])]
    if not certainties:
        return Point()
    low, median, high = np.quantile(certainties, QUARTERS, method="inverted_cdf").tolist()
    return Point(median, low, high)


def persona(rows: Rows, judges: Judges) -> Chart:
    """Make panels of each task with a row of each judge: accuracy with and without a persona, and the difference."""
    differing = [name for name in ("setting", "persona_variables") if len({*_names(rows, name)}) > 1]
    sides = {one.name: one for one in series_of_judges({"with": None, "without": None})}
    single = len(_names(rows, "judge")) == 1  # its tasks are the rows of one panel
    panels = []
    for task, own in [("", rows)] if single else _tasks(rows):
        levels, changes = [], []
        for row in own:
            label, both = row["task"] if single else judges[row["judge"]].label, row["against_none"]
            label += f" ({', '.join(row[name] for name in differing)})" if differing else ""
            levels.append(Mark(label, verdict_point(both, "accuracy"), sides["with"]))
            levels.append(Mark(label, verdict_point(both, "accuracy_without"), sides["without"]))
            levels.append(Mark(label, Point(100 * row["chance"]), replace(CHANCE, label="Chance"), "tick"))
            changes.append(Mark(label, verdict_point(both, "difference"), PLAIN))
        panels += [Panel(levels, ACCURACY, task), Panel(changes, DIFFERENCE, lines={0: "--"})]
    unpaired = sum(not row["against_none"]["same_items"] for row in rows)
    note = "Dashed: no difference."
    if unpaired:
        note += f" {unpaired} of {len(rows)} pairs are on different items and are resampled independently."
    return Chart(f"With and without a persona, {_which(rows, judges)}", panels, note, 2)


def _tasks(rows: Rows) -> list[tuple[str, Rows]]:
    return [(task, [row for row in rows if row["task"] == task]) for task in _names(rows, "task")]


def _names(rows: Rows, column: str) -> list[str]:
    return list(dict.fromkeys(row[column] for row in rows))


def _total(row: Row) -> dict[str, int]:
    """The number of a row's valid answers with a certainty, and the number of correct ones."""
    return {key: row["high"][key] + row["low"][key] for key in ("correct", "total")}


def verdict_point(cell: Row, name: str) -> Point:
    """Return a fraction of a row with its interval, in percent."""
    return point(Estimate(cell[name], *(cell[f"{name}_interval"] or (None, None))))


def _which(rows: Rows, judges: Judges) -> str:
    """The judges of these rows for a title, with the benchmark if the rows have a `title`."""
    shown, title = _names(rows, "judge"), rows[0].get("title")
    return (judges[shown[0]].label if len(shown) == 1 else f"{len(shown)} judges") + (f" on {title}" if title else "")
