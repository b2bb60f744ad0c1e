"""Draw charts: panels in a grid, the legend, the title and the note.

matplotlib takes a second to import, so functions import it when they draw.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import nan
from statistics import median
from textwrap import wrap
from typing import Any

from pluralbench_measures.bootstrap import CONFIDENCE

from pluralbench.reports.figures import Axes, Figure
from pluralbench.reports.figures.chart import Chart, Mark, Panel, Point
from pluralbench.reports.figures.fonts import families, folded, readable, set_fonts, width_of
from pluralbench.reports.figures.series import Series
from pluralbench.reports.figures.theme import BAND, PAPER, SOFT
from pluralbench.results.numbers import DASH, FEW

STEP, ROW, LETTER, GAP = 0.11, 0.2, 0.085, 0.2  # inches: between series, of a row, of a letter, and between panels
LETTERS = 44  # of a row's label in a line; a Han character counts as two
PAGE, BETWEEN = 9.5, 0.09  # inches: of all rows or columns at most, and between their series
WHISKERS = 0.05  # inches between series at least for whiskers
WIDTH, ALL, HIGH = 3.6, 8.5, 2.4  # inches: of a panel, of panels side by side, and of an upright panel
INTERVALS = 3  # an axis of differences is at least so many times as wide as the median interval


def figure_of(chart: Chart) -> Figure:
    """Draw a chart that is not empty. Call it within `files.drawing`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1, 1), facecolor="white")  # until `_arrange` knows the size
    FigureCanvasAgg(figure)
    across, step = min(chart.across, len(chart.panels)), _step(chart)
    axes: list[Axes] = []
    sizes = [_size(panel, across, step, alone=len(chart.panels) <= across) for panel in chart.panels]
    for place, panel in enumerate(chart.panels):
        first = place - place % across
        width = max(size[0] for size in sizes[place % across :: across])
        height = max(size[1] for size in sizes[first : first + across])
        axes.append(figure.add_axes((0, 0, width, height)))
        _panel(axes[-1], panel, step, (width, height))
        below, left = chart.panels[place + across :][:1], chart.panels[place - 1 : place] if place % across else ()
        _outer(axes[-1], panel, below, left)
    limits = {panel.label: _limits([one for one in chart.panels if one.label == panel.label]) for panel in chart.panels}
    for ax, panel in zip(axes, chart.panels, strict=True):
        (ax.set_ylim if panel.vertical else ax.set_xlim)(limits[panel.label])
    set_fonts(figure)
    _legend(axes[across - 1], chart, _arrange(figure, axes, across))
    return heading(figure, chart.title, " ".join(filter(None, [chart.note, *_explained(chart, limits, step)])))


def _step(chart: Chart) -> float:
    """Inches between series, so that the panels of a column, or the upright ones of a row, fit on a page."""
    panels, across = chart.panels, chart.across
    if panels[0].upright:
        groups = [panels[place : place + across] for place in range(0, len(panels), across)]
    else:
        groups = [panels[place::across] for place in range(across)]
    rows = max(sum(len(panel.labels) for panel in own) for own in groups)
    slots = max(sum(len(panel.labels) * panel.most for panel in own) for own in groups)
    return max(0.02, min(STEP, (PAGE - BETWEEN * rows) / max(1, slots)))


def _shown(panel: Panel) -> list[str]:
    labels = list(map(readable, panel.labels))
    return labels if panel.upright else [folded(label, LETTERS, lines=2) for label in labels]


def _size(panel: Panel, across: int, step: float, *, alone: bool) -> tuple[float, float]:
    labels = [label.split("\n") for label in _shown(panel)]
    if not labels:
        side = HIGH if across <= 2 else ALL / across - GAP
        return side, side
    if panel.upright:
        letters = max(width_of(line) for lines in labels for line in lines)
        column = max(step * panel.most + 0.1, LETTER * letters + 0.05)
        return max(2.0, column * len(labels)), HIGH if alone else HIGH / 2
    row = max(ROW if panel.most > 1 else 0.17, step * panel.most + BETWEEN, 0.16 * max(map(len, labels)))
    return (WIDTH if across == 1 else ALL / max(across, 3) - GAP), row * len(labels)


def _limits(panels: Sequence[Panel]) -> tuple[float, float]:
    """The limits of an axis of values that panels share."""
    points = [mark.point for panel in panels for mark in panel.marks]
    bars = any(mark.kind == "bar" for panel in panels for mark in panel.marks)
    values = [value for one in points for value in one[:3] if value is not None]
    values += [*(line for panel in panels for line in panel.lines), *([0.0] if bars else [])]
    low, high = min(values, default=0.0), max(values, default=1.0)
    widths = [one.high - one.low for one in points if one.low is not None and one.high is not None]
    # A wide axis of differences, so that those within the intervals do not look large.
    wide = INTERVALS * median(widths) if widths and 0 in panels[0].lines else 0.0
    room = max(0.06 * (high - low) or 1.0, (max(panels[0].least, wide) - (high - low)) / 2)
    return (0.0 if bars and low == 0 else low - room), high + room


def _panel(ax: Axes, panel: Panel, step: float, size: tuple[float, float]) -> None:
    labels, vertical = panel.labels, panel.vertical
    others = ax.xaxis if vertical else ax.yaxis
    for line, style in panel.lines.items():
        (ax.axhline if vertical else ax.axvline)(line, color=SOFT, linewidth=0.8, linestyle=style, zorder=1)
    if labels:
        ends = -0.5, len(labels) - 0.5
        (ax.set_xlim if vertical else ax.set_ylim)(*(ends if vertical else ends[::-1]))
        others.set_ticks(range(len(labels)), _shown(panel))
        others.set_tick_params(length=0)
        for row in range(0, len(labels), 2):
            (ax.axvspan if vertical else ax.axhspan)(row - 0.5, row + 0.5, color=BAND, linewidth=0, zorder=0)
    elif panel.log:
        at = sorted({mark.at for mark in panel.marks if isinstance(mark.at, int | float)})
        ax.set_xscale("symlog", base=2, linthresh=min((one for one in at if one > 0), default=1))
        shown: list[float] = []  # labels that have room
        for one in at:
            shown += [] if shown and one < 2 * shown[-1] else [one]
        ax.set_xticks(shown, [f"{one:g}" for one in shown])
        ax.minorticks_off()
    for series in dict.fromkeys(mark.series for mark in panel.marks):
        _series(ax, panel, series, step)
    axis: Any = "y" if vertical else "x"
    ax.locator_params(axis=axis, nbins=max(2, min(6, int(2.2 * size[0]))), steps=[1, 2, 5, 10])
    ax.grid(axis=axis)
    across, up = (panel.other, panel.label) if vertical else (panel.label, panel.other)
    wide, high = (int((one + 0.1) / LETTER) for one in size)
    ax.set_xlabel(folded(readable(across), wide))
    ax.set_ylabel(folded(readable(up), max(12, high)))
    # matplotlib looks for what a title lies on, four times; only a vertical axis can have something there.
    ax.set_title(folded(readable(panel.title), wide, lines=4), y=None if vertical else 1.0)


def _outer(ax: Axes, panel: Panel, below: Sequence[Panel], left: Sequence[Panel]) -> None:
    """Keep labels of axes only where the panel below or to the left does not have the same."""
    along = [(one.other, one.labels) if one.vertical else (one.label, []) for one in (panel, *below)]
    up = [(one.label, []) if one.vertical else (one.other, one.labels) for one in (panel, *left)]
    if along[0] in along[1:]:
        ax.tick_params(axis="x", labelbottom=False)
    if along[0][0] in [name for name, _ in along[1:]]:
        ax.set_xlabel("")
    if up[0] in up[1:]:
        ax.tick_params(axis="y", labelleft=False)
        ax.set_ylabel("")


def _series(ax: Axes, panel: Panel, series: Series, step: float) -> None:
    """Draw the marks of a series, side by side with those of others in a row."""
    share = step / (step * panel.most + BETWEEN)
    line: list[tuple[float, float]] = []
    dots: list[tuple[float, Mark]] = []
    own = [
        mark for mark in panel.marks if mark.series == series and (mark.kind == "dot" or mark.point.value is not None)
    ]
    places = sorted({mark.at for mark in own if isinstance(mark.at, int | float)})
    wide = min((after - at for at, after in pairwise(places)), default=share)
    for mark in own:
        value, at = nan if mark.point.value is None else mark.point.value, _position(panel, mark, share)
        if mark.kind == "tick":
            _line(ax, panel, [(at - 0.44, value), (at + 0.44, value)], series)
        elif mark.kind == "bar":
            (ax.bar if panel.vertical else ax.barh)(at, value, 0.9 * wide, color=series.color, alpha=0.35, zorder=1.5)
        else:
            line.append((at, nan if mark.point.few and panel.joined else value))
            dots.append((at, mark))
    if series.marker:
        _dots(ax, panel.vertical, series, dots, whiskers=step >= WHISKERS or panel.most == 1)
    if line and (panel.joined or not series.marker):
        _line(ax, panel, line, series)


def _position(panel: Panel, mark: Mark, share: float) -> float:
    if not isinstance(mark.at, str):
        return (mark.at.value or 0.0) if isinstance(mark.at, Point) else mark.at
    slots = panel.slots[mark.at]
    aside = 0.0 if mark.kind == "tick" else slots.index(mark.series) - (len(slots) - 1) / 2
    return panel.labels.index(mark.at) + share * aside


def _line(ax: Axes, panel: Panel, points: Sequence[tuple[float, float]], series: Series) -> None:
    across, up = zip(*(point if panel.vertical else point[::-1] for point in points), strict=True)
    ax.plot(across, up, zorder=1.4, **_line_style(series))


def _line_style(series: Series) -> dict[str, Any]:
    return {"color": series.color, "linestyle": series.line, "linewidth": 1.1}


def _dots(ax: Axes, vertical: bool, series: Series, dots: Sequence[tuple[float, Mark]], *, whiskers: bool) -> None:
    """Draw values and their intervals at their positions; a missing value is a dash outside the axes.

    All of a kind are one object of matplotlib, since each takes about a millisecond.
    """
    edge = ax.get_xaxis_transform() if vertical else ax.get_yaxis_transform()
    for at in (at for at, mark in dots if mark.point.value is None):
        outside = (at, 1.03) if vertical else (1.02, at)
        ax.text(*outside, DASH, ha="center", va="center", color=series.color, fontweight="bold", transform=edge)
    shown = [(at, mark.at, mark.point) for at, mark in dots if mark.point.value is not None]
    own = [(at, one.low, one.high) for at, _, one in shown if one.low is not None and one.high is not None]
    other = [(one.value, at.low, at.high) for _, at, one in shown if isinstance(at, Point) and at.low is not None]
    looks: Any = {"colors": series.color, "linewidth": 0.9, "zorder": 2}
    if whiskers and own:
        (ax.vlines if vertical else ax.hlines)(*zip(*own, strict=True), **looks)
    if other:
        ax.hlines(*zip(*other, strict=True), **looks)
    for hollow in (False, True):
        points = [(at, one.value) for at, _, one in shown if one.few == hollow]
        if points:
            places, values = zip(*points, strict=True)
            ax.plot(*((places, values) if vertical else (values, places)), **marker(series, hollow=hollow))


def marker(series: Series, *, hollow: bool = False) -> dict[str, Any]:
    """Return the style of a series' dots; thin markers are larger."""
    size = {"P": 6.5, "X": 6.5, "*": 8.0}.get(series.marker, 5.0)
    inside, edge, width = (PAPER, series.color, 1.0) if hollow else (series.color, PAPER, 0.3)
    style = {"marker": series.marker, "markersize": size, "markeredgewidth": width, "markeredgecolor": edge}
    return style | {"color": series.color, "markerfacecolor": inside, "linestyle": ""}


def _arrange(figure: Figure, axes: Sequence[Axes], across: int) -> float:
    """Place axes row by row so that none lies on another's labels; return the inches right of the first row's last."""
    sizes = [ax.get_window_extent().frozen() for ax in axes]  # the extent itself follows the figure
    outer: list[Any] = [ax.get_tightbbox() for ax in axes]
    dpi, left, top, lefts, bottoms = figure.dpi, 0.0, 0.0, [], []
    for column in range(across):
        left -= min(one.x0 for one in outer[column::across]) / dpi
        lefts.append(left)
        left += max(one.x1 for one in outer[column::across]) / dpi + GAP
    for row in range(0, len(axes), across):
        top += max(one.y1 for one in outer[row : row + across]) / dpi
        bottoms.append(top)
        top -= min(one.y0 for one in outer[row : row + across]) / dpi - GAP
    figure.set_size_inches(left, top)
    for place, (ax, size) in enumerate(zip(axes, sizes, strict=True)):
        x, y = lefts[place % across], top - bottoms[place // across]
        ax.set_position((x / left, y / top, size.width / dpi / left, size.height / dpi / top))
    last = across - 1
    return float(max(one.x1 for one in outer[last::across]) / dpi - sizes[last].width / dpi)


def _legend(ax: Axes, chart: Chart, away: float) -> None:
    from matplotlib.lines import Line2D

    rows = {mark.at for mark in chart.marks}
    several = any(len({mark.series for mark in panel.marks if mark.series.marker}) > 1 for panel in chart.panels)
    present = [mark.series for mark in chart.marks if mark.point.value is not None]
    shown = {one.label: one for one in present if one.label and one.label not in rows and (several or not one.marker)}
    series = sorted(shown.values(), key=lambda one: not one.marker)
    if series:
        handles = [Line2D([], [], **(marker(one) if one.marker else _line_style(one))) for one in series]
        anchor = 1 + (away + 0.1) / (ax.get_window_extent().width / ax.figure.dpi), 1.0
        texts = [readable(one.label) for one in series]
        ax.legend(handles, texts, loc="upper left", bbox_to_anchor=anchor, borderaxespad=0)


def _explained(chart: Chart, limits: dict[str, tuple[float, float]], step: float) -> Iterator[str]:
    dots = [(panel, mark.point) for panel in chart.panels for mark in panel.marks if mark.kind == "dot"]
    across = [mark.at.low for mark in chart.marks if isinstance(mark.at, Point)]
    if any(low is not None for low in (*(one.low for _, one in dots), *across)):
        drawn = any(step >= WHISKERS or panel.most == 1 for panel, _ in dots)
        yield f"Whiskers: {CONFIDENCE:.0%} intervals." if drawn else "Intervals: see the tables."
    if any(one.few for _, one in dots):
        yield f"Hollow: fewer than {FEW} {chart.few}."
    if any(one.value is None for _, one in dots):
        yield f"{DASH}: missing."
    if any(low > 0 and "%" in label for label, (low, _) in limits.items()):
        yield "The axis does not start at 0."


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
