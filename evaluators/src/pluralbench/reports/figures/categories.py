"""Figures of rankings by category: accuracy, exact match and calibration."""

from collections.abc import Sequence
from dataclasses import replace

from pluralbench.metrics.calibration import scores_log_odds
from pluralbench.reports.figures.benchmarks import labels_of
from pluralbench.reports.figures.chart import BASELINES, EQUAL, Chart, Mark, Panel, Point, by_mean, names, number, which
from pluralbench.reports.figures.series import RunSeries
from pluralbench.results.runs import Run

SIDE_BY_SIDE, ACROSS = 6, 4  # models at most in a bar chart; more are a heat map; panels in a row
MEAN = "Mean of categories"


def categories(models: Sequence[RunSeries], config: str) -> Chart:
    """Make a row of each category, with panels for accuracy and exact match; of many models a heat map."""
    labels = labels_of([one.run for one in models])
    rows = [None, *names(models, "category", config=config)]
    panels, heat = [], len(models) > SIDE_BY_SIDE
    for metric, title in (("accuracy", "Accuracy"), ("exact_match", "Exact match")):
        marks = []
        for name in rows:
            at = labels.get(name or "", MEAN)
            for one in models:
                shown = number(one.run, metric, config=config, category=name)
                coin = number(one.run, metric, config=config, category=name, baseline="coin")
                marks += [Mark(at, Point(shown.value), one, "bar"), Mark(at, shown, one)]
                marks += [Mark(at, coin, BASELINES["coin"], "tick")] if coin.value is not None else []
        panels.append(Panel(marks, "Percent", title))
    order = [mark.at for mark in by_mean(panels[0].marks)]
    panels = [
        replace(one, marks=sorted(one.marks, key=lambda mark: (mark.at != MEAN, order.index(mark.at))))
        for one in panels
    ]
    note = f"{MEAN}: unweighted. Exact match: all pairs of a prompt are correct."
    title = f"Accuracy and exact match (%) by category, {labels[config]}, {which(models)}"
    return Chart(title, panels, note, 2, heat)


def calibration(models: Sequence[RunSeries]) -> Chart:
    """Make a panel of each model whose scores are log-odds: accuracy by predicted probability."""
    scored = [one for one in models if _bins(one.run)]
    shown = [one for one in scored if scores_log_odds(one.run.result.model)]
    panels = []
    for one in shown:
        marks = [Mark(x, y, one) for x, y in _bins(one.run)]
        ends = [Mark(float(end), Point(float(end)), EQUAL) for end in (50, 100)]
        title = f"{one.label}, ECE {one.run.estimate('ece').value:.3f}"
        other = "Sigmoid of the difference (%)"
        panels.append(Panel([*ends, *marks], "Correct pairs (%)", title, other, joined=True))
    note = (
        "Pairs in five equal bins of score difference: sigmoid of the mean difference, and correct pairs. "
        "ECE: expected calibration error. Dashed: perfect calibration."
    )
    others = {
        "there are no scores": [one.label for one in models if one not in scored],
        "the scores are not log-odds": [one.label for one in scored if one not in shown],
    }
    note += "".join(f" No panel, since {why}: {', '.join(own)}." for why, own in others.items() if own)
    return Chart(f"Calibration, {which(shown)}", panels, note, ACROSS)


def _bins(run: Run) -> list[tuple[float, Point]]:
    """The probability of each bin, in percent, and the accuracy of its pairs."""
    bins = [(name, number(run, "bin_probability", bin=name).value) for name in run.names("bin", "bin_accuracy")]
    return [(x, number(run, "bin_accuracy", bin=name)) for name, x in bins if x is not None]
