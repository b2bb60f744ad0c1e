"""Figures of best-of-n, of correlations, of a study's axis and of personalized reward models."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pluralbench_measures.bootstrap import bootstrap_estimate
from pluralbench_runs import plural

from pluralbench.downstream.correlate import Correlation
from pluralbench.downstream.score_series import ScoreSeries
from pluralbench.downstream.study import Study
from pluralbench.metrics.personalize import BINS, MEASURES
from pluralbench.reports.downstream import of_rewards, selects, shown_metric
from pluralbench.reports.figures.chart import ACCURACY, EQUAL, Chart, Mark, Panel, Point, number, point
from pluralbench.reports.figures.files import stem
from pluralbench.reports.figures.series import series_of_judges
from pluralbench.reports.personalize import METHODS
from pluralbench.results.personalize import KNOWN, NEW
from pluralbench.results.runs import Downstream, Personalized

UNITS = {
    "rubric": "Rubric score (0 to 2)",
    "rating": "Rating (1 to 10)",
    "win": "Wins minus losses (-1 to 1)",
}
USERS = "users"
MEASURED = {
    "posts": "Posts in the profile",
    "words": "Words of user context",
    "distance": "Cosine distance of the context\nto the question",
    USERS: "New and known users",
}
CONDITIONS = {
    "without": "without a profile",
    "posts": "with the posts alone",
    "with": "with the profile",
    "shuffled": "with another user's",
}


def best_of_n(run: Downstream, among: Iterable[str] = ()) -> dict[str, Chart]:
    """Return the chart of the outcome by k and, if there are both, of realized against promised gain, by file stem."""
    if not selects(run):
        return {}
    outcome, metric, sizes = run.result.outcome, shown_metric(run), run.result.sampling.sizes
    models = series_of_judges({name: one.value for name, one in of_rewards(run, metric).items()}, among)
    marks = [Mark(f"{k}", number(run, metric, scale=1.0, model=one.name, k=k), one) for k in sizes for one in models]
    level = run.estimate("outcome").value if metric == "outcome" else None
    unit = "Promised gain (standard deviations)" if outcome is None else UNITS[run.config.outcome.measure]
    lines = {} if level is None else {level: "--"}
    panels = [Panel(marks, unit, "", "k (number of candidates)", lines, upright=True, joined=True, least=0)]
    gains = {
        Mark(promised, Point(realized), one): promised
        for one in models
        for k in run.result.sampling.sizes
        for promised, realized in [[run.estimate(of, model=one.name, k=k).value for of in ("promised", "realized")]]
        if promised is not None and realized is not None
    }
    if gains:
        ends = [Mark(end, Point(end), EQUAL) for end in (0.0, max(0.0, *gains.values()))]
        label, other = "Realized gain (by the judge)", "Promised gain (by the reward)"
        panels.append(Panel([*ends, *gains], label, "", other, {0: ":"}, joined=True, least=0))
    note = f"{plural(run.result.sampling.prompts, 'prompt')}."
    note += "" if outcome is None else f" Judged by {outcome.judge.name}: {outcome.scale}."
    note += "" if level is None else " Left, dashed: the policy by itself."
    if gains:
        note += " Right: gains in standard deviations within prompts, for each k; dashed: both are equal."
    title = f"Best of k from {Path(run.result.policy.name).name} on {run.config.benchmark.title}"
    return {"best_of_n": Chart(title, panels, note, len(panels))}


def correlation(correlation: Correlation, among: Iterable[str] = ()) -> dict[str, Chart]:
    """Return the chart of a correlation, with intervals if there are per-item results, by file stem."""
    sides = benchmark, downstream = correlation.benchmark, correlation.downstream
    models = series_of_judges(dict(zip(correlation.names, benchmark.scores.tolist(), strict=True)), among)
    places = dict(zip(correlation.names, zip(*map(_points, sides), strict=True), strict=True))
    panel = Panel(
        [Mark(at, shown, one) for one in models for at, shown in [places[one.name]]],
        f"Downstream: {downstream.measure}",
        other=f"Benchmark: {benchmark.measure}",
        least=0,
    )
    rho, title = correlation.statistics["spearman"], f"Scores: {len(models)} models"
    if rho.value is not None and rho.p_value is not None:
        p = f"p = {rho.p_value:.2g}" if rho.p_value >= 0.001 else "p < 0.001"
        space = "\N{NO-BREAK SPACE}"
        title += f", Spearman's ρ = {rho.value:.2f}, {p}".replace(" = ", f"{space}={space}")
    return {"scores": Chart(title, [panel], f"Benchmark: {benchmark.source}. Downstream: {downstream.source}.")}


def _points(side: ScoreSeries) -> list[Point]:
    if side.resampled is None:
        return [Point(score) for score in side.scores.tolist()]
    # A model may have items that the others lack, so the resamples are centered at its own score.
    centered = side.resampled - side.resampled[0] + side.scores
    return [point(bootstrap_estimate(np.asarray(column)), 1.0) for column in centered.T]


def study(study: Study) -> dict[str, Chart]:
    """Return the chart of a study's scores along its axis, with a line of each benchmark, by file stem."""
    axis, models = study.recipe.axis, {one.name: one.position for one in study.recipe.models}
    if axis is None or not study.runs:
        return {}
    along = sorted((at, name) for name, at in models.items() if at is not None)
    marks = [
        Mark(float(at), point(study.runs[one.name][name].headline), one)
        for one in series_of_judges(dict.fromkeys(study.runs))
        for at, name in along
    ]
    panel = Panel(marks, "Overall number (%)", other=axis, joined=True, log=True)
    return {"axis": Chart(f"Scores by {axis}", [panel])}


def personalized(run: Personalized) -> dict[str, Chart]:
    """Return the charts of accuracy by user context, by file stem: one for each set.

    Known users are in the figure of new ones, if there is one.
    """
    drawn = [name for name in run.result.sets if name != KNOWN or NEW not in run.result.sets]
    return {stem("user_context", name): _user_context(run, name) for name in drawn}


def _user_context(run: Personalized, name: str) -> Chart:
    """Make a row of each method and columns for posts, words, distance and, if there are both, new and known users."""
    measures = [*MEASURES, *([USERS] if name == NEW and KNOWN in run.result.sets else [])]
    series = {one.name: one for one in series_of_judges(dict.fromkeys(CONDITIONS.values()))}
    panels = []
    for method in run.config.personalizing.methods:
        for measure in measures:
            marks = [
                Mark(label, number(run, "accuracy", condition=condition, **where), series[CONDITIONS[condition]])
                for label, where in _bins(run, name, method, measure)
                for condition in run.result.conditions
            ]
            title, other = METHODS[method] if measure == measures[0] else "", MEASURED[measure]
            panels.append(Panel(marks, ACCURACY, title, other, {50.0: "--"}, upright=True))
    described, backbone = run.result.sets[name], Path(run.config.backbone.name).name
    note = (
        f"{backbone}, {plural(described.items, 'pair')} of {plural(described.users, 'user')}. Up to {BINS} bins with "
        "equal numbers of pairs; intervals are over users. Dashed: chance."
    )
    return Chart(f"{described.title}: accuracy by amount of user context", panels, note, len(measures), few="users")


def _bins(run: Personalized, name: str, method: str, measure: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if measure == USERS:
        yield from ((one, {"set": one, "method": method}) for one in (NEW, KNOWN))
        return
    form = ".2f" if measure == "distance" else ",.0f"
    for place in range(1, BINS + 1):
        where = {"set": name, "method": method, "measure": measure, "bin": place}
        least, most = (run.estimate(metric, **where).value for metric in ("least", "most"))
        if least is not None and most is not None:
            low, high = f"{least:{form}}", f"{most:{form}}"
            yield (low if low == high else f"{low}\nto {high}"), where
