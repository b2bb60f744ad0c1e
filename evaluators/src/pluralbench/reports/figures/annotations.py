"""Figures of runs on benchmarks with votes of people: by group of people, by consensus, and predicted shares."""

from collections.abc import Sequence
from typing import Any

from pluralbench_measures.annotators import CONSENSUS
from pluralbench_measures.crossed import MIN_PEOPLE

from pluralbench.metrics.metric import PEOPLE
from pluralbench.reports.annotations import AGREEMENT, attributes_of, groups_of
from pluralbench.reports.figures.chart import Chart, Panel, bins_of, marks_of, which
from pluralbench.reports.figures.series import RunSeries

MODELS = 4  # panels of predicted shares in a row
SIDED, SIDING = "agreement_where_groups_differ", "Agreement with the first group (%)"
SIDES = 12  # rows of two groups in a panel
AGREEING = "Votes for the preferred response (%)"


def groups(models: Sequence[RunSeries]) -> Chart:
    """Make a panel of each attribute, with a row of each group of people."""
    runs = [one.run for one in models]
    panels = []
    for attribute in attributes_of(runs):
        people = groups_of(runs, attribute)
        rows = {f"{name} ({many:,})": {"attribute": attribute, "group": name} for name, many in people.items()}
        panels.append(Panel(marks_of(models, rows, AGREEMENT), AGREEING, attribute.replace("_", " ").capitalize()))
    note = f"In brackets: people. Groups of fewer than {MIN_PEOPLE} are last, and not ranked."
    return Chart(f"Agreement with groups of people, {which(models)}", panels, note)


def sides(models: Sequence[RunSeries]) -> Chart:
    """Make a panel of each attribute, with a row of each two groups whose majorities differ on some items."""
    runs = [one.run for one in models]
    panels = []
    for attribute in attributes_of(runs):
        keys = dict.fromkeys(key for run in runs for key in run.keys(SIDED, "other_group", attribute=attribute))
        items = {key: max(run.at(key).n or 0 for run in runs) for key in keys}
        rows: dict[str, dict[str, Any]] = {}
        for key, many in sorted(items.items(), key=lambda pair: -pair[1])[:SIDES]:
            place = {"attribute": attribute, "group": key.group, "other_group": key.other_group}
            rows[f"{key.group}, not {key.other_group} ({many:,})"] = place
        if rows:
            panels.append(Panel(marks_of(models, rows, SIDED), SIDING, attribute.replace("_", " ").capitalize()))
    note = (
        "In brackets: items on which most of one group and most of the other prefer different responses. At most "
        f"{SIDES} rows, those with the most items."
    )
    return Chart(f"Whose side is taken where groups differ, {which(models)}", panels, note)


def consensus(models: Sequence[RunSeries]) -> Chart:
    """Make a row of each level of consensus, with panels for accuracy against the majority and for margins."""
    rows = {
        f"{name.capitalize()} ({models[0].run.count('items_by_consensus', consensus=name):,})": {"consensus": name}
        for name in CONSENSUS
        if any(one.run.count("items_by_consensus", consensus=name) for one in models)
    }
    panels = [Panel(marks_of(models, rows, "accuracy_by_consensus"), title="Accuracy against the majority")]
    margins = marks_of(models, rows, "margin_by_consensus")
    if any(mark.point.value is not None for mark in margins):
        panels.append(Panel(margins, "Mean margin (% of all items')", "Margin", lines={100: "--"}))
    note = (
        "In brackets: items. Clear: at least two thirds of the votes for one response. Dashed: the mean of all items."
    )
    return Chart(f"Accuracy by consensus of people, {which(models)}", panels, note, 2)


def reliability(models: Sequence[RunSeries]) -> Chart:
    """Make a panel of each model with scores: the observed share of votes by the predicted one."""
    panels = []
    shown = [one for one in models if one.run.names("bin", "observed_share")]
    for one in shown:
        marks = bins_of(one, "observed_share", "predicted_share", 0)
        loss = one.run.estimate("annotation_log_loss")
        floor = one.run.estimate("annotation_log_loss", baseline=PEOPLE)
        title = f"{one.label}, log loss {loss.value:.3f}, at least {floor.value:.3f}"
        panels.append(Panel(marks, "Observed share of votes (%)", title, "Predicted share (%)", joined=True))
    note = (
        "Responses in ten equal bins of the share of votes that the scores predict, with a temperature fitted on other "
        "prompts. Dashed: equal shares."
    )
    others = [one.label for one in models if one not in shown]
    note += f" No panel, since there are no scores: {', '.join(others)}." if others and shown else ""
    return Chart(f"Predicted shares of votes, {which(shown)}", panels, note, MODELS)


FIGURES = {"groups": groups, "sides": sides, "consensus": consensus, "shares": reliability}
"""Figures of benchmarks with votes of people, by what their files begin with."""
