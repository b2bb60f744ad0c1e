"""Style and building blocks of the figures: settings, axes, dots, heat maps, legends and titles.

matplotlib takes a second to import, so functions import it when they draw.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import fmean
from textwrap import wrap
from threading import Lock
from typing import Any, NamedTuple

from pluralbench_measures.bootstrap import CONFIDENCE, Estimate
from pluralbench_runs import plural

from pluralbench.metrics.metric import MetricKey
from pluralbench.reports.figures import Axes, Axis, Figure, Text
from pluralbench.reports.figures.fonts import GENERIC, LETTERS, families, readable, set_fonts
from pluralbench.reports.figures.series import RunSeries, Series
from pluralbench.reports.figures.theme import BAND, INK, LINE, PAPER, SOFT
from pluralbench.reports.sheets import title_of
from pluralbench.results.numbers import DASH, FEW
from pluralbench.results.runs import Run

MAP = "cividis"
CELL = 0.335  # inches: "100.0" in 8 pt
SUBSTANTIAL = 0.60  # kappa
LEAST = 5.0  # points that an axis of accuracies spans at least
SETTINGS: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlepad": 4,
    "axes.titlesize": 9,
    "font.family": [LETTERS, GENERIC],
    "font.sans-serif": [LETTERS, "Verdana", "Helvetica", "Arial"],
    "font.size": 8,
    "grid.color": LINE,
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text that can be searched, copied and read aloud
    "svg.hashsalt": "pluralbench",
    "text.color": INK,
    "text.parse_math": False,  # names may contain dollar signs
    "xtick.color": INK,
    "xtick.labelsize": 8,
    "ytick.color": INK,
    "ytick.labelsize": 8,
}
_one_at_a_time = Lock()


Limits = tuple[float, float]


class Point(NamedTuple):
    """A value and its interval; missing numbers are None.

    Attributes:
        few: The interval is over fewer than `FEW` clusters.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    few: bool = False


class Column(NamedTuple):
    """A column of a heat map.

    Attributes:
        left: Position of the left edge, in cells.
        points: The value of each model.
    """

    left: float
    label: str
    points: Sequence[Point]


@contextmanager
def drawing() -> Iterator[None]:
    """Apply the settings of the figures instead of the user's own; only one thread at a time can draw."""
    import matplotlib as mpl  # noqa: PLC0415 - a second that `--help` saves

    with _one_at_a_time, mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(SETTINGS)
        yield


def stem(*parts: str) -> str:
    """Join parts into the stem of a figure's files; unsafe characters become underscores."""
    return "_".join(re.sub(r"[^\w.-]+", "_", part) for part in parts)


def _two_lines(text: str) -> str:
    """A long name on two lines, broken at a separator near the middle."""
    places = [match.end() for match in re.finditer(r"[-_ ./]+", text) if match.end() < len(text)]
    if len(text) <= 20 or not places:
        return text
    place = min(places, key=lambda place: abs(place - len(text) / 2))
    return f"{text[:place].rstrip()}\n{text[place:]}"


def point(estimate: Estimate, scale: float = 100.0) -> Point:
    """Convert a number of the metrics to a point, in percent by default."""
    value, low, high = (None if one is None else scale * one for one in (estimate.value, estimate.low, estimate.high))
    return Point(value, low, high, estimate.clusters is not None and estimate.clusters < FEW)


def extent(points: Iterable[Point], *also: float, least: float = 0.0) -> tuple[float, float]:
    """Return the limits of an axis.

    Args:
        points: Points that must fit with their intervals.
        also: Further values that must fit.
        least: Minimum span.
    """
    values = [number for one in points for number in one[:3] if number is not None] + list(also)
    low, high = min(values), max(values)
    room = max(0.06 * (high - low) or 1.0, (least - (high - low)) / 2)
    return low - room, high + room


def sheet(width: float, height: float) -> Figure:
    """Make a figure whose axes `place` positions in inches; files include what is outside of it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - a second that `--help` saves
    from matplotlib.figure import Figure  # noqa: PLC0415 - the same

    figure = Figure(figsize=(width, height), facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def place(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Add axes; position and size are in inches."""
    across, up = figure.get_size_inches()
    return figure.add_axes((left / across, bottom / up, width / across, height / up))


def grid(
    width: float, height: float, count: int = 1, across: int = 1, *, beside: float = 0.0, above: float = 0.0
) -> tuple[Figure, list[Axes]]:
    """Make a figure of panels of equal size, row by row from the top.

    Args:
        width: Inches of a panel.
        height: Inches of a panel.
        count: Number of panels.
        across: Panels in a row.
        beside: Inches between columns.
        above: Inches between rows.
    """
    down = -(-count // across)
    figure = sheet(min(count, across) * (width + beside) - beside, down * (height + above) - above)
    places = [divmod(number, across) for number in range(count)]
    return figure, [
        place(figure, column * (width + beside), (down - 1 - row) * (height + above), width, height)
        for row, column in places
    ]


def paired(
    rows: Mapping[str, Sequence[str]], heights: Sequence[float], limits: Sequence[Limits], across: Sequence[str]
) -> tuple[Figure, list[tuple[Axes, Axes]]]:
    """Make two panels side by side for each block of rows: values, and differences from 0.

    Args:
        rows: Row labels by the title of a block.
        heights: Inches of the blocks.
        limits: Axis limits of both panels.
        across: Axis labels of both panels.
    """
    bottom = sum(heights) + 0.32 * (len(heights) - 1)
    figure, both = sheet(6.2, bottom), []
    for (title, labels), height in zip(rows.items(), heights, strict=True):
        left, right = (place(figure, at, bottom - height, 2.95, height) for at in (0.0, 3.25))
        bottom -= height + 0.32
        for ax, limit, shown, label in zip((left, right), limits, (labels, [""] * len(labels)), across, strict=True):
            lines(ax, shown)
            ax.set_xlim(limit)
            ax.grid(axis="x")
            ax.tick_params(axis="x", labelbottom=bottom < 0)
            ax.set_xlabel(label if bottom < 0 else "")
        left.set_title(readable(title))
        dashed(right.axvline, 0)
        both.append((left, right))
    return figure, both


def lines(ax: Axes, labels: Sequence[str]) -> None:
    """Give the axes a row for each label, the first at the top, every other one shaded."""
    ax.set_ylim(len(labels) - 0.5, -0.5)
    tick(ax.yaxis, range(len(labels)), labels)
    stripes(ax.axhspan, len(labels))


def columns(ax: Axes, labels: Sequence[str]) -> None:
    """Give the axes a column for each label, every other one shaded."""
    ax.set_xlim(-0.5, len(labels) - 0.5)
    tick(ax.xaxis, range(len(labels)), labels)
    stripes(ax.axvspan, len(labels))


def tick(axis: Axis, places: Sequence[float], labels: Sequence[str], **style: Any) -> None:
    """Label an axis without tick marks."""
    axis.set_ticks(places, labels, **style)
    axis.set_tick_params(length=0)


def fit(texts: Sequence[Text], inches: float) -> None:
    """Make texts smaller, all to one size, until the widest fits; words are not broken."""
    for text in texts:
        text.set_fontfamily(families(text.get_text()))
    widest = max(text.get_window_extent().width / text.figure.dpi for text in texts)
    for text in texts:
        text.set_fontsize(float(text.get_fontsize()) * min(1.0, inches / widest))


def dashed(line: Callable[..., object], at: float, how: str = "--") -> None:
    """Draw a dashed reference line, such as chance.

    Args:
        line: `ax.axhline` or `ax.axvline`.
        how: Line style.
    """
    line(at, color=SOFT, linewidth=0.8, linestyle=how, zorder=1)


def middle(ax: Axes, row: float, value: float | None, half: float = 0.42) -> None:
    """Draw a mark at the mean of a row, if there is one."""
    if value is not None:
        ax.vlines(value, row - half, row + half, colors=INK, linewidth=1.2, zorder=1.5)


def coin(ax: Axes, row: float, runs: Iterable[Run], key: MetricKey) -> bool:
    """Draw a dotted mark at a coin's number on the same items, if a run has it; return whether it does."""
    value = mean(point(run.at(key._replace(baseline="coin"))) for run in runs)
    if value is not None:
        chance(ax, row, value)
    return value is not None


def chance(ax: Axes, row: float, value: float) -> None:
    """Draw a dotted mark at the value of chance in a row."""
    ax.plot([value, value], [row - 0.42, row + 0.42], color=SOFT, linewidth=1.0, linestyle=":", zorder=1.2)


def curve(ax: Axes, points: Sequence[tuple[float, Point]], model: Series, *, band: bool = False) -> None:
    """Draw a model's values along an axis as a curve; with `band`, shade their intervals."""
    values = [(at, one.value) for at, one in points if one.value is not None]
    xs, ys = [at for at, _ in values], [value for _, value in values]
    ax.plot(xs, ys, linewidth=1.1, **(marker(model) | {"linestyle": model.line}), zorder=3)
    intervals = [(at, one.low, one.high) for at, one in points if one.low is not None and one.high is not None]
    if band and intervals:
        at, low, high = zip(*intervals, strict=True)
        ax.fill_between(at, low, high, color=model.color, alpha=0.12, linewidth=0, zorder=2)


def named_dots(ax: Axes, shown: Sequence[tuple[Series, Point, Point]], gap: float) -> None:
    """Draw a dot for each model with whiskers in both directions, and a line to its name right of the axes.

    Set the limits and the size of the axes before.

    Args:
        shown: Models with their horizontal and vertical values.
        gap: Inches between names.
    """
    low, high = ax.get_ylim()
    ordered = [(*one, one[1].value or 0.0, one[2].value or 0.0) for one in shown]
    ordered.sort(key=lambda one: one[-1])
    size = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted()).height
    heights = spread([(up - low) / (high - low) for *_, up in ordered], gap / size)
    for (model, x, y, across, up), height in zip(ordered, heights, strict=True):
        dot(ax, up, x, model)
        dot(ax, across, y, model, upright=True)
        leader = {"arrowstyle": "-", "color": model.color, "linewidth": 0.5, "alpha": 0.6, "shrinkB": 3}
        ax.annotate("", (across, up), (1.03, height), textcoords="axes fraction", arrowprops=leader, zorder=1)
        ax.plot(1.045, height, transform=ax.transAxes, clip_on=False, **marker(model))
        ax.text(1.075, height, model.label, va="center", transform=ax.transAxes)


def dots(ax: Axes, at: float, shown: Sequence[Point], models: Sequence[Series], apart: float, **how: bool) -> None:
    """Draw the dots of a group of models side by side, at most `apart` from each other."""
    places = beside(at, len(models), min(apart, 0.84 / len(models)))
    for place, one, model in zip(places, shown, models, strict=True):
        dot(ax, place, one, model, **how)


def beside(at: float, count: int, step: float) -> list[float]:
    """Return `count` positions around one, a step apart."""
    return [at + (number - (count - 1) / 2) * step for number in range(count)]


def dot(ax: Axes, at: float, shown: Point, model: Series, *, upright: bool = False, whisker: bool = True) -> None:
    """Draw a model's value and interval; a missing value is a dash outside the axes.

    Args:
        at: Position on the other axis.
        upright: The value is vertical.
    """
    if shown.value is None:
        edge = ax.get_xaxis_transform() if upright else ax.get_yaxis_transform()
        outside = (at, 1.03) if upright else (1.02, at)
        ax.text(*outside, DASH, ha="center", va="center", color=model.color, fontweight="bold", transform=edge)
        return
    if whisker and shown.low is not None and shown.high is not None:
        (ax.vlines if upright else ax.hlines)(at, shown.low, shown.high, colors=model.color, linewidth=0.9, zorder=2)
    across, up = (at, shown.value) if upright else (shown.value, at)
    ax.plot(across, up, **(hollow(model) if whisker and shown.few else marker(model)))


def marker(model: Series) -> dict[str, Any]:
    """Return the style of a model's dots; thin markers are larger."""
    size = {"P": 6.5, "X": 6.5, "*": 8.0}.get(model.marker, 5.0)
    style = {"marker": model.marker, "markersize": size, "markeredgewidth": 0.3, "markeredgecolor": PAPER}
    return style | {"color": model.color, "linestyle": ""}


def hollow(model: Series) -> dict[str, Any]:
    """Return the style of a hollow dot, which the note explains."""
    return marker(model) | {"markerfacecolor": PAPER, "markeredgecolor": model.color, "markeredgewidth": 1}


def legend(
    ax: Axes, models: Sequence[Series], also: Mapping[str, dict[str, Any]] | None = None, away: float = 0.16
) -> None:
    """Draw a legend right of the axes; a single model has none.

    Args:
        also: Styles of further entries, by label.
        away: Inches from the axes.
    """
    from matplotlib.lines import Line2D  # noqa: PLC0415 - a second that `--help` saves

    shown = [(model.label, marker(model)) for model in models if len(models) > 1]
    shown += [(readable(name), looks) for name, looks in (also or {}).items()]
    if not shown:
        return
    handles, names = [Line2D([], [], **looks) for _, looks in shown], [name for name, _ in shown]
    right = 1 + away / ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted()).width
    ax.legend(handles, names, loc="upper left", bbox_to_anchor=(right, 1.0), borderaxespad=0)


def heat(models: Sequence[Series], columns: Sequence[Column], bare: int = 0, unit: str = "Accuracy (%)") -> Figure:
    """Draw a heat map with a row for each model; missing values are hatched.

    Args:
        bare: Number of last columns without colors.
        unit: Label of the color bar.
    """
    from matplotlib import colormaps  # noqa: PLC0415 - a second that `--help` saves
    from matplotlib.cm import ScalarMappable  # noqa: PLC0415 - the same
    from matplotlib.colors import Normalize  # noqa: PLC0415 - the same

    colored = columns[: len(columns) - bare]
    present = [one.value for column in colored for one in column.points if one.value is not None]
    norm = Normalize(min(present), max(present) if max(present) > min(present) else min(present) + 1)
    width = columns[-1].left + 1
    figure, (ax,) = grid(CELL * width, CELL * len(models))
    for number, (left, _, points) in enumerate(columns):
        for row, (value, *_) in enumerate(points):
            blank = value is None or number >= len(colored)
            _cell(ax, left, row, value, None if blank else colormaps[MAP](float(norm(value or 0.0))))
    ax.set(xlim=(0, width), ylim=(len(models), 0))
    ax.spines[:].set_visible(False)
    ax.xaxis.tick_top()
    style = {"rotation": 90, "multialignment": "left", "linespacing": 1.1}
    tick(ax.xaxis, [column.left + 0.5 for column in columns], [column.label for column in columns], **style)
    tick(ax.yaxis, [row + 0.5 for row in range(len(models))], [_two_lines(model.label) for model in models])
    scale = place(figure, 0, -0.3, min(2.0, CELL * width), 0.1)
    bar = figure.colorbar(ScalarMappable(norm, MAP), cax=scale, orientation="horizontal")
    bar.set_label(unit, fontsize=8)
    return figure


def _cell(ax: Axes, left: float, row: int, value: float | None, color: tuple[float, ...] | None) -> None:
    from matplotlib.patches import Rectangle  # noqa: PLC0415 - a second that `--help` saves

    edge, hatch = (LINE, "////") if value is None else (PAPER, None)
    ax.add_patch(Rectangle((left, row), 1, 1, facecolor=color or "none", edgecolor=edge, hatch=hatch, linewidth=0.5))
    ax.text(
        left + 0.5,
        row + 0.5,
        DASH if value is None else f"{value:.1f}",
        ha="center",
        va="center",
        color=INK if color is None else "black" if _luminance(color) > 0.18 else "white",
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1} if value is None else None,
    )


def _luminance(color: Sequence[float]) -> float:
    red, green, blue = ((c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4) for c in color[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def heading(figure: Figure, title: str, note: str) -> Figure:
    """Add a title above the figure and a note below it, wrapped to its width."""
    set_fonts(figure)
    canvas: Any = figure.canvas
    box = figure.get_tightbbox(canvas.get_renderer())
    across, up = figure.get_size_inches()
    above: Any = {"fontsize": 10, "fontweight": "bold", "va": "bottom"}
    below: Any = {"fontsize": 8, "color": SOFT, "va": "top"}
    for text, height, per_inch, looks in ((title, box.y1 + 0.12, 11.5, above), (note, box.y0 - 0.12, 16.5, below)):
        wrapped = "\n".join(wrap(readable(text), int(per_inch * max(box.width, 4.5)), break_on_hyphens=False))
        figure.text(box.x0 / across, height / up, wrapped, family=families(wrapped), linespacing=1.3, **looks)
    return figure


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """Move heights, given in rising order, until they are a gap apart and none is above 1."""
    moved = list(heights)
    for number in range(1, len(moved)):
        moved[number] = max(moved[number], moved[number - 1] + gap)
    moved[-1] = min(moved[-1], 1.0)
    for number in reversed(range(len(moved) - 1)):
        moved[number] = min(moved[number], moved[number + 1] - gap)
    return moved


def guides(ax: Axes) -> None:
    """Draw lines at a kappa of chance and at a substantial one."""
    for value, label in ((0.0, "0: chance"), (SUBSTANTIAL, f"{SUBSTANTIAL:.2f}: substantial")):
        dashed(ax.axvline, value)
        ax.text(value, 1.01, label, ha="center", va="bottom", color=SOFT, transform=ax.get_xaxis_transform())


def stripes(span: Callable[..., object], groups: int) -> None:
    """Shade every other group."""
    for group in range(0, groups, 2):
        span(group - 0.5, group + 0.5, color=BAND, linewidth=0, zorder=0)


def mean(points: Iterable[Point], otherwise: Any = None) -> Any:
    """Return the mean of the values that are not missing, or `otherwise` if all are."""
    present = [one.value for one in points if one.value is not None]
    return fmean(present) if present else otherwise


def any_value(points: Iterable[Point]) -> bool:
    """Return whether any point has a value."""
    return any(one.value is not None for one in points)


def which(models: Sequence[RunSeries]) -> str:
    """Describe the models and the benchmark for a title."""
    names = len({model.name for model in models})
    runs = "" if names == len(models) else f"{len(models)} runs of "
    subject = models[0].label if len(models) == 1 else f"{runs}{plural(names, 'model')}"
    return f"{subject} on {title_of([model.run for model in models])}"


def whiskers(points: Iterable[Point] = ()) -> str:
    """Explain the whiskers of these points for a note."""
    few = f" Hollow: fewer than {FEW} prompts or users." * any(one.few for one in points)
    return f"Whiskers: {CONFIDENCE:.0%} intervals.{few}"


def dashes(points: Iterable[Point]) -> str:
    """Explain the dash for a note, if a value is missing."""
    return f" {DASH}: missing." if any(one.value is None for one in points) else ""
