"""Figures of `personalize`: accuracy with and without a profile by the amount of user context, for each method."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from pluralbench_measures.bootstrap import CONFIDENCE
from pluralbench_runs import plural

from pluralbench.metrics.personalize import BINS, MEASURES
from pluralbench.reports.figures import Axes, Figure, style
from pluralbench.reports.figures.files import write
from pluralbench.reports.figures.fonts import readable
from pluralbench.reports.figures.series import Series, series_of_judges
from pluralbench.reports.figures.style import Point, dots, point
from pluralbench.reports.personalize import METHODS
from pluralbench.results.personalize import KNOWN, NEW
from pluralbench.results.runs import Personalized

WIDTH, HEIGHT, GAP, ABOVE = 2.0, 1.25, 0.3, 0.5  # inches: of a panel, between columns and between rows
APART = 0.22
COIN = 50.0
USERS = "users"
LABELS = {
    "posts": "Posts in the profile",
    "words": "Words of user context",
    "distance": "Cosine distance of the context\nto the question",
    USERS: "New and known users",
}
CONDITION_LABELS = {
    "without": "without a profile",
    "posts": "with the posts alone",
    "with": "with the profile",
    "shuffled": "with another user's",
}


def draw_personalized(run: Personalized, folder: Path) -> list[Path]:
    """Write `user_context_SET` for each set as PNG and SVG.

    Returns:
        The paths of the files.

    Raises:
        EvaluationError: The files cannot be written.
    """
    return write(
        {style.stem("user_context", name): partial(context_figure, run, name) for name in drawn_sets(run)}, folder
    )


def drawn_sets(run: Personalized) -> list[str]:
    """Return the sets that have a figure: all but known users, which are in the figure of new ones."""
    return [name for name in run.result.sets if name != KNOWN or NEW not in run.result.sets]


def context_figure(run: Personalized, name: str) -> Figure:
    """Draw a row for each method and columns for posts, words, distance and, if there are both, new and known users."""
    config, result = run.config, run.result
    series = {model.name: model for model in series_of_judges(dict.fromkeys(CONDITION_LABELS.values()))}
    models = [series[CONDITION_LABELS[condition]] for condition in result.conditions]
    measures = [*MEASURES, *([USERS] if name == NEW and KNOWN in result.sets else [])]
    rows = [method for method in config.personalizing.methods if any(_has(run, name, method, one) for one in MEASURES)]
    rows = rows or list(config.personalizing.methods)
    panels = {(method, measure): _points(run, name, method, measure) for method in rows for measure in measures}
    every = [one for shown in panels.values() for _, points in shown for one in points if one.value is not None]
    limits = style.extent(every, COIN, least=style.LEAST)
    count = len(panels)
    figure, every_ax = style.grid(WIDTH, HEIGHT, count, len(measures), beside=GAP, above=ABOVE)
    for number, (ax, ((method, measure), shown)) in enumerate(zip(every_ax, panels.items(), strict=True)):
        _panel(ax, shown, models, limits)
        ax.set_xlabel(LABELS[measure] if number + len(measures) >= count else "")
        if number % len(measures):
            ax.set_yticklabels([])
        else:
            ax.set_ylabel(f"{METHODS[method]}\nAccuracy (%)")
        if number == len(measures) - 1:
            style.legend(ax, models)
    described = result.sets[name]
    title = f"{described.title}: accuracy by amount of user context"
    few = " Hollow: fewer than 10 users." if any(one.few for one in every) else ""
    note = (
        f"{Path(readable(config.backbone.name)).name}, {plural(described.items, 'pair')} of "
        f"{plural(described.users, 'user')}. "
        f"Up to {BINS} bins with equal numbers of pairs. Whiskers: {CONFIDENCE:.0%} intervals over users.{few} "
        "Dashed: chance."
    )
    return style.heading(figure, title, note)


def _has(run: Personalized, name: str, method: str, measure: str) -> bool:
    return run.estimate("least", set=name, method=method, measure=measure, bin=1).value is not None


Shown = list[tuple[str, list[Point]]]
"""A label under the axis, and a point for each condition."""


def _points(run: Personalized, name: str, method: str, measure: str) -> Shown:
    conditions = run.result.conditions
    if measure == USERS:
        return [
            (one, [point(run.estimate("accuracy", set=one, method=method, condition=each)) for each in conditions])
            for one in (NEW, KNOWN)
        ]
    bins = {"set": name, "method": method, "measure": measure}
    return [
        (label, [point(run.estimate("accuracy", condition=one, bin=number, **bins)) for one in conditions])
        for number, label in enumerate(_bins(run, bins), start=1)
    ]


def _bins(run: Personalized, bins: Mapping[str, str]) -> Iterator[str]:
    """The label of each bin: its range."""
    form = ".2f" if bins["measure"] == "distance" else ",.0f"
    for number in range(1, BINS + 1):
        least, most = (run.estimate(metric, bin=number, **bins).value for metric in ("least", "most"))
        if least is None or most is None:
            return
        low, high = f"{least:{form}}", f"{most:{form}}"
        yield low if low == high else f"{low}\nto {high}"


def _panel(ax: Axes, shown: Shown, models: Sequence[Series], limits: tuple[float, float]) -> None:
    middle, room = (len(shown) - 1) / 2, max(len(shown), 2) / 2
    ax.set(xlim=(middle - room, middle + room), ylim=limits)
    style.dashed(ax.axhline, COIN)
    style.tick(ax.xaxis, range(len(shown)), [label for label, _ in shown])
    for at, (_, points) in enumerate(shown):
        dots(ax, at, points, models, APART, upright=True)
