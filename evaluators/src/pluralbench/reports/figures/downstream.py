"""Figures of best-of-n, of correlations, of a study's axis and of personalized reward models."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pluralbench_measures.bootstrap import bootstrap_estimate
from pluralbench_runs import plural

from pluralbench.downstream.correlate import Correlation
from pluralbench.downstream.score_series import ScoreSeries
from pluralbench.downstream.study import Study
from pluralbench.metrics.personalize import BINS, MEASURES
from pluralbench.reports.downstream import of_rewards, shown_metric
from pluralbench.reports.figures.chart import ACCURACY, EQUAL, Chart, Mark, Panel, Point, number, point
from pluralbench.reports.figures.files import stem
from pluralbench.reports.figures.series import Series, series_of_judges
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
COIN = 50.0


def best_of_n(run: Downstream, among: Iterable[str] = ()) -> dict[str, Chart]:
    """Return the chart of a run of best-of-n, by file stem.

    Args:
        among: Reward models in all figures of the report, which determine the colors.
    """
    return {"best_of_n": _best_of_n(run, among)} if run.result.rewards else {}


def _best_of_n(run: Downstream, among: Iterable[str]) -> Chart:
    """Make the outcome by k and, if there are both, realized against promised gain."""
    outcome, metric, sizes = run.result.outcome, shown_metric(run), run.result.sampling.sizes
    models = series_of_judges({name: one.value for name, one in of_rewards(run, metric).items()}, among)
    marks = [Mark(f"{k}", number(run, metric, scale=1.0, model=one.name, k=k), one) for k in sizes for one in models]
    level = run.estimate("outcome").value if metric == "outcome" else None
    unit = "Promised gain (standard deviations)" if outcome is None else UNITS[run.config.outcome.measure]
    lines = {} if level is None else {level: "--"}
    panels = [Panel(marks, unit, "", "k (number of candidates)", lines, upright=True, joined=True, least=0)]
    panels += _gains(run, models)
    note = f"{plural(run.result.sampling.prompts, 'prompt')}."
    note += "" if outcome is None else f" Judged by {outcome.judge.name}: {outcome.scale}."
    note += "" if level is None else " Left, dashed: the policy by itself."
    if len(panels) > 1:
        note += " Right: gains in standard deviations within prompts, for each k; dashed: both are equal."
    title = f"Best of k from {Path(run.result.policy.name).name} on {run.config.benchmark.title}"
    return Chart(title, panels, note, len(panels))


def _gains(run: Downstream, models: Sequence[Series]) -> list[Panel]:
    """Realized against promised gain for each k; none without a judge."""
    marks, most = [], 0.0
    for one in models:
        for k in run.result.sampling.sizes:
            promised, realized = (run.estimate(what, model=one.name, k=k).value for what in ("promised", "realized"))
            if promised is not None and realized is not None:
                marks.append(Mark(promised, Point(realized), one))
                most = max(most, promised)
    ends = [Mark(end, Point(end), EQUAL) for end in (0.0, most)]
    label, other = "Realized gain (by the judge)", "Promised gain (by the reward)"
    panel = Panel([*ends, *marks], label, "", other, {0: ":"}, joined=True, least=0)
    return [panel] if marks else []


def correlation(correlation: Correlation, among: Iterable[str] = ()) -> dict[str, Chart]:
    """Return the charts of a correlation, `ranks` and `scores`.

    Args:
        among: Models in all figures of the report, which determine the colors.
    """
    models = series_of_judges(dict(zip(correlation.names, correlation.benchmark.scores.tolist(), strict=True)), among)
    return {"ranks": _ranks(correlation, models), "scores": _scores(correlation, models)}


def _ranks(correlation: Correlation, models: Sequence[Series]) -> Chart:
    """Make a row of each model: its rank on the benchmark and its rank downstream."""
    from scipy.stats import rankdata

    series = {one.name: one for one in series_of_judges({"Benchmark": None, "Downstream": None})}
    sides = {"Benchmark": correlation.benchmark, "Downstream": correlation.downstream}
    ranks = {
        name: dict(zip(correlation.names, rankdata(-side.scores).tolist(), strict=True)) for name, side in sides.items()
    }
    ordered = sorted(models, key=lambda one: tuple(own[one.name] for own in ranks.values()))
    marks = [Mark(one.label, Point(own[one.name]), series[name]) for one in ordered for name, own in ranks.items()]
    tied = any(len(set(own.values())) < len(models) for own in ranks.values())
    note = f"{_sources(correlation)} Rank 1 is the best.{' Tied models share their mean rank.' if tied else ''}"
    return Chart(f"Ranks: {_summary(correlation)}", [Panel(marks, "Rank", least=0)], note)


def _scores(correlation: Correlation, models: Sequence[Series]) -> Chart:
    """Make a point of each model, with intervals if there are per-item results."""
    benchmark, downstream = (
        dict(zip(correlation.names, _points(side), strict=True))
        for side in (correlation.benchmark, correlation.downstream)
    )
    marks = [Mark(benchmark[one.name], downstream[one.name], one) for one in models]
    label, other = f"Downstream: {correlation.downstream.measure}", f"Benchmark: {correlation.benchmark.measure}"
    panel = Panel(marks, label, other=other, least=0)
    return Chart(f"Scores: {_summary(correlation)}", [panel], _sources(correlation))


def _points(side: ScoreSeries) -> list[Point]:
    if side.resampled is None:
        return [Point(score) for score in side.scores.tolist()]
    # A model may have items that the others lack, so the resamples are centered at its own score.
    centered = side.resampled - side.resampled[0] + side.scores
    return [point(bootstrap_estimate(np.asarray(column)), 1.0) for column in centered.T]


def _summary(correlation: Correlation) -> str:
    rho = correlation.statistics["spearman"]
    if rho.value is None or rho.p_value is None:
        return f"{len(correlation.names)} models"
    p = f"p = {rho.p_value:.2g}" if rho.p_value >= 0.001 else "p < 0.001"
    text = f"{len(correlation.names)} models, Spearman's ρ = {rho.value:.2f}, {p}"
    return text.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")


def _sources(correlation: Correlation) -> str:
    return f"Benchmark: {correlation.benchmark.source}. Downstream: {correlation.downstream.source}."


def study(study: Study) -> dict[str, Chart]:
    """Return the chart of a study's scores along its axis, by file stem."""
    return {"axis": _axis(study)} if study.recipe.axis is not None and study.runs else {}


def _axis(study: Study) -> Chart:
    """Make a line of each benchmark through the models, such as by number of training pairs."""
    models = {one.name: one.position for one in study.recipe.models if one.position is not None}
    ordered = sorted(models, key=lambda name: models[name])
    marks = [
        Mark(float(models[name]), point(study.runs[one.name][name].headline), one)
        for one in series_of_judges(dict.fromkeys(study.runs))
        for name in ordered
    ]
    axis = study.recipe.axis or ""
    return Chart(f"Scores by {axis}", [Panel(marks, "Overall number (%)", other=axis, joined=True, log=True)])


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
            panels.append(Panel(marks, ACCURACY, title, other, {COIN: "--"}, upright=True))
    described, backbone = run.result.sets[name], Path(run.config.backbone.name).name
    note = (
        f"{backbone}, {plural(described.items, 'pair')} of {plural(described.users, 'user')}. Up to {BINS} bins with "
        "equal numbers of pairs; intervals are over users. Dashed: chance."
    )
    return Chart(f"{described.title}: accuracy by amount of user context", panels, note, len(measures), few="users")


def _bins(run: Personalized, name: str, method: str, measure: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The label of each bin, and the dimensions of its accuracies."""
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
