"""Forest plot of a benchmark: the overall number and its parts with intervals, models side by side."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pluralbench_schemas import LANGUAGES

from pluralbench.metrics.metric import BASELINES, MetricKey
from pluralbench.reports.figures import Axes, Figure, style
from pluralbench.reports.figures.categories import labels_of
from pluralbench.reports.figures.fonts import folded, language_label
from pluralbench.reports.figures.series import RunSeries
from pluralbench.reports.figures.style import Point, dot, heading, point
from pluralbench.reports.figures.theme import BAND, SOFT
from pluralbench.results.runs import Run

SIDE_BY_SIDE = 3  # models at most in one row for each part; more have a panel for each part
TALL = 13.4  # inches of rows or panels at most
ACROSS = 6  # panels in a row
WIDTH, PANELS, WIDEST, APART = (
    3.6,
    8.5,
    1.9,
    0.2,
)  # inches: of rows, of all panels, of one panel at most, and between panels
LINE, ABOVE = 0.17, 0.62  # inches: of a model in a panel, and above the panel
GAP = 0.13  # between blocks of parts, in inches
STEPS = [1, 2, 5, 10]  # between numbers on an axis
LETTERS, BROAD = 36, 14  # letters of a part's name in a line beside rows, and in an inch of a panel
MARKS: Mapping[str, Mapping[str, Any]] = {
    "coin": {"color": SOFT, "linewidth": 1.0, "linestyle": ":"},
    "longer": {"color": SOFT, "linewidth": 1.3, "linestyle": "-"},
    "shorter": {"color": SOFT, "linewidth": 1.3, "linestyle": "--"},
}


class Part(NamedTuple):
    """A part in the plot.

    Attributes:
        key: Name of its number.
        short: Label above a small panel. Default: `label`.
    """

    label: str
    key: MetricKey
    short: str = ""


def forest(models: Sequence[RunSeries]) -> Figure | None:
    """Draw the plot of these runs of one benchmark; None if they have no number."""
    blocks = [
        [part for part in block if style.any_value(_at(model.run, part.key) for model in models)]
        for block in _blocks(models)
    ]
    if not any(blocks):
        return None
    draw = _rows if len(models) <= SIDE_BY_SIDE else _panels
    figure, shown = draw(models, [block for block in blocks if block])
    points = [_at(model.run, part.key) for part in shown for model in models]
    rule = models[0].run.config.benchmark.rule
    note = f"Overall: {rule}. {style.whiskers(points)}{style.dashes(points)}"
    hidden = sum(map(len, blocks)) - len(shown)
    note += f" {hidden} more parts do not fit; see the CSV report." if hidden else ""
    note += _data_note(models)
    return heading(figure, f"Overall and parts (%), {style.which(models)}", note)


def _blocks(models: Sequence[RunSeries]) -> list[list[Part]]:
    """The overall number and its parts, by kind."""
    runs = [model.run for model in models]
    labels = {name: label.replace("_", " ") for name, label in labels_of(runs).items()}
    overall = Part("Overall", MetricKey("overall"))
    configs = list(dict.fromkeys(name for run in runs for name in run.configs))
    outside = list(dict.fromkeys(name for run in runs for name in run.excluded_configs))
    if runs[0].config.benchmark.description.by_category:
        return [[overall], *(_of_metric(metric, configs, labels) for metric in ("accuracy", "exact_match"))]
    excluded = [Part(labels[name], MetricKey("accuracy", name)) for name in outside]
    own = [Part(labels[name], MetricKey("accuracy", name)) for name in configs]
    if runs[0].config.benchmark.description.reference is not None:
        excluded, own = ([_in_language(part) for part in block] for block in (excluded, own))
        own.sort(key=lambda part: -style.mean((_at(run, part.key) for run in runs), -1.0))
    of = configs[0] if len(configs) == 1 else None
    sections = [
        Part(labels[name], MetricKey("accuracy", of, section=name))
        for name in dict.fromkeys(name for run in runs for name in run.names("section"))
    ]
    blocks = [[overall], sections, excluded, own if len(own) > 1 else []]
    return blocks if any(blocks[1:]) else [[overall], _subsets(runs, labels)]


def _in_language(part: Part) -> Part:
    """A part that is a language, labeled with its English and its own name."""
    language = LANGUAGES.get(part.key.config or "")
    return part if language is None else part._replace(label=language_label(language.code), short=language.name)


def _of_metric(metric: str, configs: Sequence[str], labels: Mapping[str, str]) -> list[Part]:
    name = metric.replace("_", " ").capitalize()
    parts = [Part(name, MetricKey(metric))]
    return parts + [Part(f"{name}, {labels[config]}", MetricKey(metric, config)) for config in configs]


def _subsets(runs: Sequence[Run], labels: Mapping[str, str]) -> list[Part]:
    """The subsets of a benchmark without configs or sections, those with most items first."""
    sizes = {
        key: run.at(key._replace(metric="items")).value or 0
        for run in runs
        for config in run.configs
        for key in run.keys("accuracy", "subset", config=config)
    }
    ordered = sorted(sizes, key=lambda key: -sizes[key])
    return [Part(labels[key.subset or ""], key) for key in ordered]


def _at(run: Run, key: MetricKey) -> Point:
    return point(run.at(key))


def _mark(run: Run, key: MetricKey, baseline: str) -> Point:
    """The number of a baseline on the same items."""
    return _at(run, key._replace(baseline=baseline))


def _marks(models: Sequence[RunSeries], parts: Sequence[Part]) -> dict[str, dict[str, Any]]:
    """The marks of the baselines that have numbers, by label."""
    places = [(model.run, part.key) for model in models for part in parts]
    return {
        BASELINES[name].capitalize(): dict(looks)
        for name, looks in MARKS.items()
        if style.any_value(_mark(*place, name) for place in places)
    }


def _limits(models: Sequence[RunSeries], parts: Sequence[Part]) -> tuple[float, float]:
    places = [(model.run, part.key) for model in models for part in parts]
    marks = [Point(_mark(*place, baseline).value) for place in places for baseline in MARKS]
    return style.extent([*(_at(*place) for place in places), *marks], least=2 * style.LEAST)


def _dot(ax: Axes, at: float, room: float, part: Part, model: RunSeries) -> None:
    """A model's value in its row, in front of the baselines on the same items."""
    for baseline, looks in MARKS.items():
        mark = _mark(model.run, part.key, baseline).value
        if mark is not None:
            ax.plot([mark, mark], [at - room / 2, at + room / 2], zorder=1.2, **looks)
    dot(ax, at, _at(model.run, part.key), model)


def _rows(models: Sequence[RunSeries], blocks: Sequence[Sequence[Part]]) -> tuple[Figure, list[Part]]:
    """A row for each part, with the models one below the other in it."""
    each = 0.09 + 0.11 * len(models)
    most = int(TALL / each)
    places = _spaced(blocks, GAP / each)[:most]
    parts, last = [part for _, part in places], places[-1][0]
    labels = [folded(part.label, LETTERS, lines=1 if each < 0.3 else 2) for part in parts]
    figure, (ax,) = style.grid(WIDTH, each * (last + 1))
    limits = _limits(models, parts)
    ax.set(xlim=limits, ylim=(last + 0.5, -0.5))
    unit = "Percent" if models[0].run.config.benchmark.description.by_category else "Accuracy (%)"
    ax.set_xlabel(unit + "; the axis does not start at 0" * (limits[0] > 0))
    ax.locator_params(axis="x", steps=STEPS)
    ax.grid(axis="x")
    style.tick(ax.yaxis, [at for at, _ in places], labels)
    ax.get_yticklabels()[0].set_fontweight("bold")
    step = 0.8 / len(models)
    for at, part in places:
        ax.axhspan(at - 0.46, at + 0.46, color=BAND, linewidth=0, zorder=0)
        for place, model in zip(style.beside(at, len(models), step), models, strict=True):
            _dot(ax, place, step, part, model)
    style.legend(ax, models, _marks(models, parts), away=0.3)
    return figure, parts


def _spaced(blocks: Sequence[Sequence[Part]], gap: float) -> list[tuple[float, Part]]:
    """Each part with its position in rows, with a gap between blocks."""
    places: list[tuple[float, Part]] = []
    for number, block in enumerate(blocks):
        before = len(places) + number * gap
        places += [(before + place, part) for place, part in enumerate(block)]
    return places


def _panels(models: Sequence[RunSeries], blocks: Sequence[Sequence[Part]]) -> tuple[Figure, list[Part]]:
    """A panel for each part, with a line for each model."""
    each = LINE * len(models)
    most = max(1, int(TALL / (each + ABOVE))) * ACROSS
    parts = [part for block in blocks for part in block][:most]
    across = min(ACROSS, len(parts))
    width = min(WIDEST, (PANELS + APART) / across - APART)
    figure, panels = style.grid(width, each, len(parts), across, beside=APART, above=ABOVE)
    limits, titles = _limits(models, parts), []
    for number, (ax, part) in enumerate(zip(panels, parts, strict=True)):
        ax.set_xlim(limits)
        style.lines(ax, [model.label if number % across == 0 else "" for model in models])
        ax.locator_params(axis="x", nbins=4, steps=STEPS)
        ax.grid(axis="x")
        title = folded(part.short or part.label, int(BROAD * width), lines=2)
        titles.append(ax.set_title(title, fontsize=8, fontweight="bold" if number == 0 else "normal"))
        for at, model in enumerate(models):
            _dot(ax, at, 1.0, part, model)
        if number == across - 1:
            style.legend(ax, models[:1], _marks(models, parts))
    style.fit(titles, width + APART / 2)
    return figure, parts


def _data_note(models: Sequence[RunSeries]) -> str:
    """A note if the runs are on different data."""
    same = len({(model.run.config.data.digest, model.run.config.data.limit) for model in models}) == 1
    return "" if same else " The runs are on different data."
