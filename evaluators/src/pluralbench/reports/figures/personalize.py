"""Figures of `personalize`: accuracy with and without a profile by how much the profile tells, method by method."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from pluralbench_measures.bootstrap import CONFIDENCE

from pluralbench.metrics.personalize import BINS, MEASURES
from pluralbench.reports.figures import Axes, Figure, style
from pluralbench.reports.figures.files import write
from pluralbench.reports.figures.fonts import readable
from pluralbench.reports.figures.series import Series, series_of_judges
from pluralbench.reports.figures.style import Point, dots, point
from pluralbench.reports.personalize import METHODS
from pluralbench.results.personalize import KNOWN, NEW
from pluralbench.results.runs import Personalized, method_number

WIDTH, HEIGHT, GAP, ABOVE = 2.0, 1.25, 0.3, 0.5  # inches: of a panel, between columns and between rows
APART = 0.22
COIN = 50.0
USERS = "users"
LABELS = {
    "posts": "Posts in the profile",
    "words": "Words that are told",
    "distance": "Distance of what is told\nfrom the question (1 - cosine)",
    USERS: "Users, new or trained on",
}
SAID = {
    "without": "without a profile",
    "posts": "with the posts alone",
    "with": "with the profile",
    "shuffled": "with another user's",
}


def draw_personalized(found: Personalized, folder: Path) -> list[Path]:
    """Write `told_SET` for each set as PNG and SVG; the paths. Raises `EvaluationError` where it cannot be written."""
    return write({f"told_{name}": partial(told, found, name) for name in drawn_sets(found)}, folder)


def drawn_sets(found: Personalized) -> list[str]:
    """All sets but known users, which stand beside the new ones."""
    return [name for name in found.result.sets if name != KNOWN or NEW not in found.result.sets]


def told(found: Personalized, name: str) -> Figure:
    """A row a method, a column for posts, words and distance, and for new against known users where there are both."""
    config, result = found.config, found.result
    series = {one.name: one for one in series_of_judges(dict.fromkeys(SAID.values()))}
    models = [series[SAID[condition]] for condition in result.conditions]
    measures = [*MEASURES, *([USERS] if name == NEW and KNOWN in result.sets else [])]
    rows = [
        method for method in config.personalizing.methods if any(_has(found, name, method, one) for one in MEASURES)
    ]
    rows = rows or list(config.personalizing.methods)
    panels = {(method, measure): _points(found, name, method, measure) for method in rows for measure in measures}
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
    title = f"{described.title}: accuracy by how much is told of the user"
    few = " Hollow: fewer than 10 users." if any(one.few for one in every) else ""
    note = (
        f"{Path(readable(config.backbone.name)).name}, {described.items:,} pairs of {described.users:,} users. "
        f"Up to {BINS} bins of equally many pairs. Whiskers: {CONFIDENCE:.0%} intervals over users.{few} Dashed: a "
        "coin."
    )
    return style.heading(figure, title, note)


def _has(found: Personalized, name: str, method: str, measure: str) -> bool:
    return method_number(found, "least", f"{name} by {measure}", method, "1").value is not None


Shown = list[tuple[str, list[Point]]]
"""A label under the axis, and a point for each condition."""


def _points(found: Personalized, name: str, method: str, measure: str) -> Shown:
    conditions = found.result.conditions
    if measure == USERS:
        return [
            (one, [point(method_number(found, "accuracy", one, method, condition)) for condition in conditions])
            for one in (NEW, KNOWN)
        ]
    group = f"{name} by {measure}"
    return [
        (label, [point(method_number(found, "accuracy", group, method, f"{one} {place}")) for one in conditions])
        for place, label in enumerate(_bins(found, group, method, measure), start=1)
    ]


def _bins(found: Personalized, group: str, method: str, measure: str) -> Iterator[str]:
    """What is below each bin: from where to where it goes."""
    form = ".2f" if measure == "distance" else ",.0f"
    for place in range(1, BINS + 1):
        least, most = (method_number(found, metric, group, method, str(place)).value for metric in ("least", "most"))
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
