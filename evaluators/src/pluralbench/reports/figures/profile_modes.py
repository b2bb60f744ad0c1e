"""Accuracy by user context, in groups of bars by family of models (Personalized RewardBench, Figure 2).

A bar is the mean over a family's models, shown as dots. The bar of a single model has an interval.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from pluralbench_release.palette import COLORS

from pluralbench.errors import EvaluationError
from pluralbench.metrics.metric import MetricKey
from pluralbench.reports.figures import Axes, Figure, Make, style
from pluralbench.reports.figures.fonts import folded, readable
from pluralbench.reports.figures.theme import INK, SOFT
from pluralbench.reports.profile_modes import NONE, ModeRun, modes_of
from pluralbench.reports.sheets import Sheet, sheets_of
from pluralbench.results.numbers import DASH
from pluralbench.results.runs import Run

PLAN, RAW, PERSONA, *OTHERS = COLORS
OF_MODE = {NONE: SOFT, "raw": RAW, "plan": PLAN, "persona": PERSONA}
LABELS = {NONE: "none", "raw": "posts", "plan": "plan", "persona": "persona"}
BAR, HIGH, BETWEEN = 0.3, 2.4, 0.35  # inches of a bar, of a panel, and between panels
LETTERS, LONGEST_WORD = 11, 16  # letters of a title in an inch; a longer word is set smaller
MOST = 4  # panels at most besides the first
OVERALL = MetricKey("overall")


class Bar(NamedTuple):
    """The results of a family in a mode, in percent; the points are those of its models."""

    mode: str
    points: list[style.Point]


Families = Mapping[str, Mapping[str, Bar]]
"""Bars by mode, by family."""


def mode_figures(runs: Sequence[Run], families: Mapping[str, str]) -> dict[str, Make]:
    """Return the functions that draw the figure of each sheet with models in several modes, by file stem.

    Args:
        families: Patterns of model names by the name of a family. A model that matches none is its own family.

    Raises:
        EvaluationError: A pattern matches no model.
    """
    figures: dict[str, Make] = {}
    names = [run.name for run in runs]
    for family, pattern in families.items():
        if not any(_matches(name, pattern) for name in names):
            raise EvaluationError(
                f"The pattern {pattern} of the family {family} matches none of the models "
                f"{', '.join(dict.fromkeys(names))}."
            )
    for sheet in sheets_of(runs):
        models = modes_of(sheet.runs)
        if models:
            stem = style.stem("profile_modes", Path(sheet.runs[0].config.benchmark.name).stem)
            stem = f"{stem}_{len(figures) + 1}" if stem in figures else stem
            figures[stem] = partial(_figure, sheet, models, families)
    return figures


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(Path(name).name, pattern)


def _figure(sheet: Sheet, models: Sequence[Sequence[ModeRun]], families: Mapping[str, str]) -> Figure | None:
    places = [OVERALL, *(column.key for column in sheet.columns if column.part)][: MOST + 1]
    panels = [_families(models, families, place) for place in places]
    modes = list(dict.fromkeys(bar for own in panels[0].values() for bar in own))
    titles = [readable((place.section or place.config or "Overall").replace("_", " ")) for place in places]
    longest = max(len(word) for title in titles for word in title.split())
    width = max(BAR * (len(modes) + 1) * len(panels[0]), min(longest, LONGEST_WORD) / LETTERS)
    figure, every_ax = style.grid(width, HIGH, len(panels), len(panels), beside=BETWEEN)
    colors = _colors(modes)
    shown = []
    for number, (ax, place, title, panel) in enumerate(zip(every_ax, places, titles, panels, strict=True)):
        _draw(ax, panel, modes, colors)
        coin = style.mean(_at(own[0].run, place._replace(baseline="coin")) for own in models)
        if coin is not None:
            ax.axhline(coin, color=SOFT, linewidth=0.9, linestyle=":", zorder=1.5)
        shown.append(ax.set_title(folded(title, round(LETTERS * width), lines=3), fontsize=8))
        style.fit(ax.get_xticklabels(), 0.95 * width / len(panel))
        if number == 0:
            ax.set_ylabel("Accuracy (%)")
        else:
            ax.set_yticklabels([])
    style.fit(shown, width + BETWEEN / 2)
    _legend(ax, modes, colors)
    several = any(len(bar.points) > 1 for own in panels[0].values() for bar in own.values())
    dots = " Bars: family means. Dots: the models of a family." if several else ""
    points = [
        point for own in panels[0].values() for bar in own.values() if len(bar.points) == 1 for point in bar.points
    ]
    whiskers = f" {style.whiskers()}" if points else ""
    note = f"Overall: {sheet.runs[0].config.benchmark.rule}.{dots}{whiskers} Dotted: coin."
    return style.heading(figure, f"{sheet.title}: user context", note)


def _families(models: Sequence[Sequence[ModeRun]], families: Mapping[str, str], key: MetricKey) -> Families:
    groups: dict[str, dict[str, Bar]] = {}
    for own in models:
        name = own[0].run.name
        family = next((family for family, pattern in families.items() if _matches(name, pattern)), Path(name).name)
        bars = groups.setdefault(family, {})
        modes = [one.mode for one in own]
        for one in own:
            # A model may have plans of several planners, distinguished by the runs' directories.
            mode = f"{one.mode} ({one.run.path.name})" if modes.count(one.mode) > 1 else one.mode
            bar = bars.setdefault(mode, Bar(mode, []))
            bar.points.append(_at(one.run, key))
    return groups


def _at(run: Run, key: MetricKey) -> style.Point:
    return style.point(run.at(key))


def _colors(modes: Sequence[str]) -> dict[str, str]:
    others = cycle(OTHERS)
    return {mode: OF_MODE.get(mode) or next(others) for mode in modes}


def _draw(ax: Axes, panel: Families, modes: Sequence[str], colors: Mapping[str, str]) -> None:
    for number, bars in enumerate(panel.values()):
        for place, mode in enumerate(modes):
            at = number + (place - (len(modes) - 1) / 2) / (len(modes) + 1)
            _bar(ax, at, 1 / (len(modes) + 1), bars.get(mode), colors[mode])
    ax.set(xlim=(-0.5, len(panel) - 0.5), ylim=(0, 100))
    ax.grid(axis="y")
    each = int(BAR * (len(modes) + 1) * 13)
    style.tick(ax.xaxis, range(len(panel)), [folded(readable(name), each, lines=3) for name in panel])


def _bar(ax: Axes, at: float, width: float, bar: Bar | None, color: str) -> None:
    values = [] if bar is None else [point.value for point in bar.points if point.value is not None]
    if bar is None or not values:
        ax.text(at, 1, DASH, ha="center", va="bottom", color=color, fontweight="bold")
        return
    ax.bar(at, fmean(values), 0.92 * width, color=color, zorder=2)
    if len(bar.points) > 1:
        ax.plot([at] * len(values), values, "o", color=INK, markersize=2.5, zorder=3)
    elif bar.points[0].low is not None and bar.points[0].high is not None:
        ax.vlines(at, bar.points[0].low, bar.points[0].high, colors=INK, linewidth=0.8, zorder=3)


def _legend(ax: Axes, modes: Sequence[str], colors: Mapping[str, str]) -> None:
    from matplotlib.patches import Patch  # noqa: PLC0415 - a second that `--help` saves

    handles = [Patch(color=colors[mode]) for mode in modes]
    names = [readable(LABELS.get(mode, mode)) for mode in modes]
    ax.legend(handles, names, title="User context", loc="upper left", bbox_to_anchor=(1.03, 1), borderaxespad=0)
