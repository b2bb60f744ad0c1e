"""Drop from English to other languages by kind of reward model (M-RewardBench, section 5.1)."""

from collections.abc import Mapping, Sequence
from typing import Any

from pluralbench.reports.figures import Axes, Figure, style
from pluralbench.reports.figures.fonts import readable
from pluralbench.reports.figures.series import RunSeries
from pluralbench.reports.figures.style import LEAST, Point, dot, heading, point
from pluralbench.results.numbers import DASH

NAMES = {
    "classifier": "Classifiers",
    "implicit": "Implicit rewards",
    "generative": "Generative judges",
    "function": "Functions",
}
WIDTH, APART = 1.55, 0.34  # inches of a panel, and between panels
WHISKERS = 4  # models of a kind at most whose intervals are drawn
Panels = Mapping[str, Mapping[str, Sequence[Point]]]


def kind_name(kind: str) -> str:
    """Return the name of a kind of reward model; an unknown kind is its own name."""
    return NAMES.get(kind, kind)


def by_kind(models: Sequence[RunSeries]) -> dict[str, list[RunSeries]]:
    """Group models by kind, the kinds in `NAMES` first."""
    kinds = dict.fromkeys([*NAMES, *(model.run.result.model.kind for model in models)])
    groups = {kind: [model for model in models if model.run.result.model.kind == kind] for kind in kinds}
    return {kind: own for kind, own in groups.items() if own}


def drop_by_kind(models: Sequence[RunSeries]) -> Figure | None:
    """Draw panels for the mean of sections and each section, with a row for each kind; None with only one kind."""
    dropped = [model for model in models if model.run.estimate("drop").value is not None]
    kinds = by_kind(dropped)
    if len(kinds) < 2:
        return None
    sections = dict.fromkeys(name for model in dropped for name in model.run.names("section", "drop"))
    panels: Panels = {
        name: {kind: [_drop(model, name) for model in own] for kind, own in kinds.items()}
        for name in ("Mean of sections", *sections)
    }
    every = [one for panel in panels.values() for row in panel.values() for one in row]
    whisker = max(map(len, kinds.values())) <= WHISKERS
    low, high = style.extent(every if whisker else [Point(one.value) for one in every], 0.0, least=LEAST)
    height = max(0.36, 0.13 * max(map(len, kinds.values()))) * len(kinds)
    figure, every_ax = style.grid(WIDTH, height, len(panels), len(panels), beside=APART)
    names = [readable(f"{kind_name(kind)} ({len(own)})") for kind, own in kinds.items()]
    for number, (ax, (title, panel)) in enumerate(zip(every_ax, panels.items(), strict=True)):
        ax.set_xlim(max(low, -105), min(high, 105))
        ax.set_title(readable(title), fontsize=8, fontweight="normal" if number else "bold")
        style.lines(ax, [""] * len(kinds) if number else names)
        _draw(ax, panel, kinds, whisker=whisker)
    style.legend(ax, dropped)
    figure.axes[len(panels) // 2].set_xlabel("Accuracy minus English accuracy (percentage points)")
    note = "Mean over languages. Left of 0: worse than in English. Vertical mark: mean over the models of a kind. "
    note += "In brackets: number of models." + f" {style.whiskers(every)}" * whisker + style.dashes(every)
    return heading(figure, f"Drop from English by kind of reward model, {style.which(dropped)}", note)


def _drop(model: RunSeries, section: str) -> Point:
    overall = model.run.estimate("drop")
    return point(overall if section == "Mean of sections" else model.run.estimate("drop", section=section))


def _draw(ax: Axes, panel: Mapping[str, Sequence[Point]], kinds: Mapping[str, Sequence[Any]], *, whisker: bool) -> None:
    style.dashed(ax.axvline, 0)
    ax.locator_params(axis="x", nbins=5, steps=[1, 2, 5, 10])
    for row, (kind, points) in enumerate(panel.items()):
        places = style.beside(row, len(points), 0.76 / len(points))
        for at, one, model in zip(places, points, kinds[kind], strict=True):
            if one.value is not None:
                dot(ax, at, one, model, whisker=whisker)
        mean = style.mean(points)
        if mean is None:
            ax.text(0, row, DASH, ha="center", va="center")
        else:
            style.middle(ax, row, mean, 0.46)
