"""Figures of rankings by category: accuracy, exact match and calibration."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from pluralbench.metrics.calibration import scores_log_odds
from pluralbench.metrics.metric import MetricKey
from pluralbench.reports.figures import Axes, Figure, style
from pluralbench.reports.figures.fonts import folded, part_labels
from pluralbench.reports.figures.series import RunSeries
from pluralbench.reports.figures.style import Column, Point, dot, heading, point
from pluralbench.reports.figures.theme import SOFT
from pluralbench.results.runs import Run

SIDE_BY_SIDE = 6  # models at most in a bar chart; more are a heat map
ACROSS = 4  # calibration panels in a row
WIDTH = 26  # letters of a category in a line; a Han character counts as two
MEAN = "Mean of categories"
PANELS = ("Accuracy", "Exact match")


def figures_of(models: Sequence[RunSeries]) -> dict[str, Callable[[Sequence[RunSeries]], Figure | None]]:
    """Return the functions that draw these models' figures by file stem: one for each config, and the calibration."""
    configs = dict.fromkeys(config for model in models for config in model.run.names("config", "exact_match"))
    stems = {style.stem("categories", config): config for config in configs}
    return {stem: partial(_categories, config=config) for stem, config in stems.items()} | {"calibration": _calibration}


def labels_of(runs: Iterable[Run]) -> dict[str, str]:
    """Return the label of each part of a benchmark, the same in every figure of these runs."""
    every = list(runs)
    own = [name for run in every for name in run.configs] + [name for run in every for name in run.excluded_configs]
    inner = ("section", "category", "subset")
    return part_labels([*own, *(name for dimension in inner for run in every for name in run.names(dimension))])


def _categories(models: Sequence[RunSeries], config: str) -> Figure | None:
    labels = {MEAN: MEAN} | labels_of(model.run for model in models)
    rows = [(MEAN, [_shares(model.run, config) for model in models])]
    names = dict.fromkeys(name for model in models for name in model.run.names("category", config=config))
    rows += [(name, [_shares(model.run, config, name) for model in models]) for name in names]
    points = [one for _, pairs in rows for pair in pairs for one in pair]
    if not style.any_value(points):
        return None
    first, *others = rows
    rows = [first, *sorted(others, key=lambda row: -style.mean((accuracy for accuracy, _ in row[1]), -1.0))]
    title = f"Accuracy and exact match (%) by category, {labels[config]}, {style.which(models)}"
    note = f"{MEAN}: unweighted. Exact match: all pairs of a prompt are correct.{style.dashes(points)}"
    if len(models) > SIDE_BY_SIDE:
        columns = [
            Column(
                panel * (len(rows) + 0.4) + number + 0.2 * (number > 0),
                folded(labels[name], 2 * WIDTH, lines=1, below=metric.lower()),
                [pair[panel] for pair in pairs],
            )
            for panel, metric in enumerate(PANELS)
            for number, (name, pairs) in enumerate(rows)
        ]
        return heading(style.heat(models, columns, unit="Percent"), title, f"{note} Intervals: see the table.")
    texts = [folded(labels[name], WIDTH) for name, _ in rows]
    lines = max(text.count("\n") + 1 for text in texts)
    size = max(0.3, 0.13 * len(models), 0.16 * lines) * len(rows)
    figure, both = style.grid(2.75, size, 2, 2, beside=0.3)
    runs, coins = [model.run for model in models], list[bool]()
    for panel, (ax, metric) in enumerate(zip(both, PANELS, strict=True)):
        ax.set(xlim=(-2, 102), xlabel=f"{metric} (%)")
        style.lines(ax, texts if panel == 0 else [""] * len(rows))
        for row, (name, pairs) in enumerate(rows):
            category = None if name == MEAN else name
            key = MetricKey(("accuracy", "exact_match")[panel], config, category=category)
            coins.append(style.coin(ax, row, runs, key))
            _bars(ax, row, [pair[panel] for pair in pairs], models)
    style.legend(ax, models)
    return heading(figure, title, f"{style.whiskers(points)}{' Dotted: coin.' * any(coins)} {note}")


def _bars(ax: Axes, row: int, shown: Sequence[Point], models: Sequence[RunSeries]) -> None:
    step = min(0.4, 0.84 / len(models))
    for at, one, model in zip(style.beside(row, len(models), step), shown, models, strict=True):
        ax.barh(at, one.value or 0.0, 0.9 * step, color=model.color, alpha=0.35, linewidth=0, zorder=1.5)
        dot(ax, at, one, model)


def _calibration(models: Sequence[RunSeries]) -> Figure | None:
    scored = [model for model in models if _bins(model.run)]
    shown = [model for model in scored if scores_log_odds(model.run.result.model)]
    if not shown:
        return None
    across = min(ACROSS, len(shown))
    side = 3.0 if across == 1 else 1.75
    titles = [folded(model.label, 22) for model in shown]
    above = 0.42 + 0.16 * max(title.count("\n") + 1 for title in titles)
    figure, panels = style.grid(side, side, len(shown), across, beside=0.25, above=above)
    texts = []
    for number, (ax, one, name) in enumerate(zip(panels, shown, titles, strict=True)):
        column = number % across
        ax.set(xlim=(48, 102), ylim=(-4, 104), xticks=[50, 75, 100], yticks=[0, 25, 50, 75, 100])
        ax.plot([50, 100], [50, 100], color=SOFT, linewidth=0.8, linestyle="--", zorder=1)
        ax.tick_params(labelleft=column == 0)
        title = f"{name}\n" * (len(shown) > 1) + f"ECE {one.run.estimate('ece').value:.3f}"
        texts.append(ax.set_title(title, fontsize=8))
        points = _bins(one.run)
        ax.plot([x for x, _ in points], [y.value or 0.0 for _, y in points], color=one.color, linewidth=0.8, zorder=1.5)
        for x, y in points:
            dot(ax, x, y, one, upright=True)
        if column == 0:
            ax.set_ylabel("Correct pairs (%)")
        if number + across >= len(shown):
            ax.set_xlabel("Sigmoid of the difference (%)")
    style.fit(texts, side + 0.15)
    note = (
        "Pairs in five equal bins of score difference: sigmoid of the mean difference, and correct pairs. "
        "ECE: expected calibration error. Dashed: perfect calibration. "
        f"{style.whiskers(accuracy for model in shown for _, accuracy in _bins(model.run))}"
    )
    others = {
        "there are no scores": [model.label for model in models if model not in scored],
        "the scores are not log-odds": [model.label for model in scored if model not in shown],
    }
    note += "".join(f" No panel, since {why}: {', '.join(names)}." for why, names in others.items() if names)
    return heading(figure, f"Calibration, {style.which(shown)}", note)


def _bins(run: Run) -> list[tuple[float, Point]]:
    """The probability of each bin, in percent, and the accuracy of its pairs."""
    bins = []
    for name in run.names("bin", "bin_accuracy"):
        probability = run.estimate("bin_probability", bin=name).value
        if probability is not None:
            bins.append((100 * probability, point(run.estimate("bin_accuracy", bin=name))))
    return bins


def _shares(run: Run, config: str, category: str | None = None) -> tuple[Point, Point]:
    """Accuracy and exact match of a category, or of a config as the mean over its categories."""
    accuracy, exact = (run.estimate(name, config=config, category=category) for name in ("accuracy", "exact_match"))
    return point(accuracy), point(exact)
