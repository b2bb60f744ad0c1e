"""Figures of runs of a multilingual benchmark."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from statistics import fmean, median
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pluralbench_runs import plural

from pluralbench.reports.figures import Figure, style
from pluralbench.reports.figures.fonts import language_label, readable, short_name
from pluralbench.reports.figures.series import RunSeries
from pluralbench.reports.figures.style import LEAST, Column, Point, dot, heading, point
from pluralbench.reports.figures.theme import INK, LINE, SOFT
from pluralbench.results.numbers import DASH
from pluralbench.results.runs import Run

MOST = 10  # models at most in the heat map of languages
OUTCOMES = ("win", "tie", "loss")
SUBSET = re.compile(r"(?:translation|maple)-([a-z]{2,3})-([a-z]{2,3})-(easy|hard)")
GROUPS = {"class": "Class of Joshi et al.", "resource": "Resources", "family": "Family", "script": "Script"}
ORDERED = {"class": ["5", "4", "3", "2", "1"], "resource": ["High", "Mid", "Low"]}
NAMES = {"Hans": "Han, simplified", "Hant": "Han, traditional"}
MEAN = "mean of sections"
INTERVALS = 4  # the axis of differences is at least so many times as wide as the median interval
TINY = 1e-9
ENGLISH, MINUS = "English:", "\N{MINUS SIGN}"


def _languages(models: Sequence[RunSeries]) -> Figure | None:
    shown = models[:MOST]
    by_code = {code: [point(model.run.estimate("accuracy", config=code)) for model in shown] for code in _codes(shown)}
    if not style.any_value(chain(*by_code.values())):
        return None
    codes = sorted(by_code, key=lambda code: (-style.mean(by_code[code], -1.0), code))
    variances = [point(model.run.estimate("variance"), 1.0) for model in shown]
    columns = [
        Column(0, "Mean", [point(model.run.headline) for model in shown]),
        *(Column(1.2 + n, language_label(code, "\n"), by_code[code]) for n, code in enumerate(codes)),
        Column(1.5 + len(codes), "Variance\n(points²)", variances),
    ]
    which = f"the best {MOST} of {style.which(models)}" if len(models) > MOST else style.which(models)
    note = (
        "Languages are sorted by their mean over these models. Variance: of the accuracies in percent over languages; "
        "the two scripts of Chinese are averaged first."
        + style.dashes(one for column in columns for one in column.points)
        + _uneven(shown)
    )
    return heading(style.heat(shown, columns, bare=1), f"Accuracy (%) by language, {which}", note)


def _english_and_multilingual(models: Sequence[RunSeries]) -> Figure | None:
    both = [
        (model, point(model.run.estimate("accuracy", config=_reference(model.run))), point(model.run.headline))
        for model in models
    ]
    shown = [(one, x, y) for one, x, y in both if x.value is not None and y.value is not None]
    if not shown:
        return None
    points = [either for _, x, y in shown for either in (x, y)]
    low, high = style.extent(points, least=LEAST)
    side = max(3.6, 0.17 * len(shown))
    figure, (ax,) = style.grid(side, side)
    ax.set(xlim=(low, high), ylim=(low, high))
    ax.plot([low, high], [low, high], color=SOFT, linewidth=0.8, linestyle="--", zorder=1)
    style.named_dots(ax, shown, 0.165)
    ax.set(xlabel="English: mean of sections, accuracy (%)", ylabel="Mean over languages, accuracy (%)")
    drawn, *values = (list(column) for column in zip(*shown, strict=True))
    missing = ", ".join(model.label for model in models if model not in drawn)
    note = (
        f"{style.whiskers(points)} Dashed: equal accuracy.{' The axes do not start at 0.' * (low > 0)}{_uneven(drawn)}"
    )
    note += f" No point, since a value is missing: {missing}." if missing else ""
    title = f"Accuracy in English and over languages, {style.which(drawn)}"
    return heading(figure, title + _correlations(*([one.value or 0.0 for one in side] for side in values)), note)


def _correlations(xs: Sequence[float], ys: Sequence[float]) -> str:
    if len(xs) < 3 or len(set(xs)) < 2 or len(set(ys)) < 2:
        return ""
    from scipy.stats import pearsonr, spearmanr  # noqa: PLC0415 - two seconds that `--help` saves

    values = {"Pearson's r": pearsonr(xs, ys).statistic, "Spearman's ρ": spearmanr(xs, ys).statistic}
    texts = (f"{name} = {value:.2f}" for name, value in values.items())
    return ": " + ", ".join(text.replace(" ", "\N{NO-BREAK SPACE}") for text in texts)


def _dimensions(models: Sequence[RunSeries]) -> Figure | None:
    panels = {kind: rows for kind in GROUPS if (rows := _groups(models, kind))}
    coins = style.mean(point(model.run.estimate("overall", baseline="coin")) for model in models)
    every = [one for rows in panels.values() for _, points in rows for one in points]
    if not style.any_value(every):
        return None
    overall = style.mean(point(model.run.headline) for model in models)
    single = len(models) == 1
    drawn = every if single else [Point(one.value) for one in every]
    limits = style.extent(drawn, *filter(None, [overall, coins]), least=LEAST)
    sizes = [0.22 * len(rows) for rows in panels.values()]
    bottom = sum(sizes) + 0.36 * (len(sizes) - 1)
    figure = style.sheet(4.2, bottom)
    for (kind, rows), size in zip(panels.items(), sizes, strict=True):
        ax = style.place(figure, 0, bottom - size, 4.2, size)
        bottom -= size + 0.36
        ax.set_xlim(limits)
        ax.set_title(GROUPS[kind])
        ax.grid(axis="x")
        ax.tick_params(axis="x", labelbottom=bottom < 0)
        if kind == next(iter(panels)):
            style.legend(ax, models, away=0.5)
        style.lines(ax, [label for label, _ in rows])
        if overall is not None:
            style.dashed(ax.axvline, overall)
        if coins is not None:
            style.dashed(ax.axvline, coins, ":")
        for row, (_, points) in enumerate(rows):
            present = [one.value for one in points if one.value is not None]
            text = f"{fmean(present):.1f}" if present else DASH
            ax.text(1.02, row, text, va="center", transform=ax.get_yaxis_transform())
            if single and present:
                dot(ax, row, points[0], models[0])
            elif present:
                for one, model in zip(points, models, strict=True):
                    if one.value is not None:
                        ax.plot(one.value, row, **style.marker(model))
                style.middle(ax, row, fmean(present))
    ax.set_xlabel("Accuracy (%)" + "; the axis does not start at 0" * (limits[0] > 0))
    marks = style.whiskers(every) if single else "Vertical marks and numbers: mean over models."
    note = f"{marks} Dashed: mean over all languages. In brackets: number of languages. Class 0 is excluded."
    note += " Dotted: coin." * (coins is not None)
    note += style.dashes(every) + _uneven(models)
    return heading(figure, f"Accuracy by kind of language, {style.which(models)}", note)


def _groups(models: Sequence[RunSeries], kind: str) -> list[tuple[str, list[Point]]]:
    """The groups of a kind in order, with the value of each model."""
    names = dict.fromkeys(name for model in models for name in model.run.names(kind))
    rows = []
    for name in names:
        if (kind, name) == ("class", "0"):
            continue
        points = [point(model.run.estimate("accuracy", **{kind: name})) for model in models]
        sizes = sorted({size for model in models if (size := model.run.count("languages", **{kind: name}))})
        many = "–".join(str(size) for size in dict.fromkeys((sizes[0], sizes[-1])))
        label = readable(f"{'Class ' * (kind == 'class')}{NAMES.get(name, name)} ({many})")
        fixed = ORDERED.get(kind, [])
        place = fixed.index(name) if name in fixed else len(fixed)
        rows.append(((place, -style.mean(points, -1.0), name), label, points))
    return [(label, points) for _, label, points in sorted(rows, key=lambda row: row[0])]


def _translation(models: Sequence[RunSeries]) -> Figure | None:
    results = [_translated(model.run) for model in models]
    levels = [level for level in ("easy", "hard") if any(key[2] == level for subsets in results for key in subsets)]
    directions = sorted({(source, target) for subsets in results for source, target, _ in subsets})
    values = {
        (*direction, level): [points.get((*direction, level), Point()) for points in results]
        for level in levels
        for direction in directions
    }
    every = [one for row in values.values() for one in row]
    if not style.any_value(every):
        return None
    names = [readable(" → ".join(map(short_name, direction))) for direction in directions]
    title = f"Accuracy (%) on translations, {style.which(models)}"
    dashes = style.dashes(every)
    if len(models) > 4:
        columns = [
            Column(panel * (len(directions) + 0.3) + number, f"{names[number]}\n{level}", values[*direction, level])
            for panel, level in enumerate(levels)
            for number, direction in enumerate(directions)
        ]
        return heading(style.heat(models, columns), title, f"Chance is 50.{dashes}")
    size = max(0.3, 0.13 * len(models)) * len(directions)
    figure, panels = style.grid(2.6, size, len(levels), len(levels), beside=0.3)
    for panel, (ax, level) in enumerate(zip(panels, levels, strict=True)):
        ax.set(xlim=(0, 102), xlabel="Accuracy (%)")
        ax.set_title(level.upper())
        style.dashed(ax.axvline, 50)
        style.lines(ax, names if panel == 0 else [""] * len(directions))
        for row, direction in enumerate(directions):
            style.dots(ax, row, values[*direction, level], models, 0.2)
    style.legend(ax, models)
    return heading(figure, title, f"{style.whiskers(every)} Dashed: chance.{dashes}")


def _translated(run: Run) -> dict[tuple[str, str, str], Point]:
    """Accuracy by source, target and level."""
    names = run.names("subset", config="translation")
    matches = ((SUBSET.fullmatch(name), name) for name in names)
    return {
        (match[1], match[2], match[3]): point(run.estimate("accuracy", config="translation", subset=name))
        for match, name in matches
        if match
    }


def _drop(models: Sequence[RunSeries]) -> Figure | None:
    sections = dict.fromkeys(name for model in models for name in model.run.names("section", "drop"))
    rows = [[point(model.run.estimate("drop", section=name)) for model in models] for name in sections]
    rows.append([point(model.run.estimate("drop")) for model in models])
    names = [*sections, MEAN]
    points = [one for row in rows for one in row]
    if not style.any_value(points):
        return None
    width = max(4.8, 0.105 * len(models) * len(names))
    figure, (ax,) = style.grid(width, 3.0)
    widths = [one.high - one.low for one in points if one.low is not None and one.high is not None]
    # A wide axis, so that differences within the intervals do not look large.
    least = max(LEAST, INTERVALS * median(widths)) if widths else LEAST
    low, high = style.extent(points, 0.0, least=least)
    # Differences are at most 100 points; 105 leaves room for their marks.
    ax.set_ylim(max(low, -105), min(high, 105))
    ax.axhline(0, color=INK, linewidth=0.8, zorder=1)
    ax.yaxis.set_major_formatter(
        lambda place, _: f"{place:+.3g}".replace("-", MINUS) if abs(place) > TINY else f"{ENGLISH} 0"
    )
    ax.grid(axis="y")
    style.columns(ax, [readable(name[:1].upper() + name[1:]) for name in names])
    for group, row in enumerate(rows):
        style.dots(ax, group, row, models, 0.12, upright=True)
    ax.set_ylabel("Accuracy minus English accuracy\n(percentage points)")
    style.legend(ax, models)
    note = f"Mean over languages. Below 0: worse than in English. {style.whiskers(points)}"
    note += f" Their median width is {median(widths):.1f} points." if widths else ""
    note += style.dashes(points) + _uneven(models)
    return heading(figure, f"Drop from English by section, {style.which(models)}", note)


def _consistency(models: Sequence[RunSeries]) -> Figure | None:
    by_code = {
        code: [point(model.run.estimate("kappa", config=code), 1.0) for model in models] for code in _codes(models)
    }
    every = [one for row in by_code.values() for one in row]
    if not style.any_value(every):
        return None
    codes = sorted(by_code, key=lambda code: (-style.mean(by_code[code], -2.0), code))
    whisker = len(models) <= 3
    height = min(0.36, max(0.24, (0.1 if whisker else 0.028) * len(models))) * len(codes)
    figure, (ax,) = style.grid(4.2, height)
    ax.set_xlim(style.extent((one if whisker else Point(one.value) for one in every), 0.0, style.SUBSTANTIAL))
    style.guides(ax)
    style.lines(ax, [language_label(code) for code in codes])
    for row, code in enumerate(codes):
        style.dots(ax, row, by_code[code], models, 0.24, whisker=whisker)
        if len(models) > 1:
            style.middle(ax, row, style.mean(by_code[code]))
    ax.set_xlabel("Cohen's kappa between labels in the language and in English")
    style.legend(ax, models)
    note = (
        f"{style.whiskers(every)} " * whisker
        + "Vertical mark: mean over models." * (len(models) > 1)
        + style.dashes(every)
    )
    return heading(figure, f"Consistency with English, {style.which(models)}", note)


def _instances(models: Sequence[RunSeries]) -> Figure | None:
    labels = _labels(models)
    kappas, undefined = _kappas(labels.select(pl.col("^n_.*$")).to_numpy())
    if not len(kappas):
        return None
    figure, (ax,) = style.grid(4.6, 2.6)
    ax.hist(kappas, [edge / 10 for edge in range(-10, 11)], color=LINE, edgecolor=INK, linewidth=0.5)
    ax.set(xlim=(-1.02, 1.02), xlabel="Cohen's kappa of an item across models", ylabel="Items, all languages")
    style.guides(ax)
    raters = " to ".join(str(n) for n in dict.fromkeys((labels["raters"].min(), labels["raters"].max())))
    high = int((kappas >= style.SUBSTANTIAL).sum())
    note = (
        f"{plural(len(kappas), 'item')} in {plural(labels['config'].n_unique(), 'language')}: labels of {raters} "
        f"models in the language and in English. At {style.SUBSTANTIAL:.2f} or above: "
        f"{high:,} ({high / len(kappas):.0%})."
    )
    if undefined:
        note += f" Not shown: {undefined:,} with undefined kappa, where all models give the same label in both."
    return heading(figure, f"Agreement with English by item, {style.which(models)}", note)


def _labels(models: Sequence[RunSeries]) -> pl.DataFrame:
    """The counts of labels of each item in a language that at least three models labeled in both languages.

    Columns: `n_outcome_...` labels in the language, `n_english_...` in English, `n_same` equal ones, `raters` models.
    """
    pairs = []
    for one in models:
        items = one.run.items.select("config", "id", "outcome").unique(["config", "id"], keep="none")
        items = items.filter(pl.col("outcome").is_in(OUTCOMES))
        english = items.filter(config=_reference(one.run))
        others = items.filter(pl.col("config").is_in(_codes([one])))
        pairs.append(others.join(english.select("id", english="outcome"), on="id"))
    counts = [(pl.col(c) == label).sum().alias(f"n_{c}_{label}") for c in ("outcome", "english") for label in OUTCOMES]
    same = (pl.col("outcome") == pl.col("english")).sum()
    grouped = pl.concat(pairs).group_by("config", "id").agg(*counts, n_same=same, raters=pl.len())
    return grouped.filter(pl.col("raters") >= 3)


def _kappas(counts: NDArray[Any]) -> tuple[NDArray[np.float64], int]:
    """Cohen's kappa of each row, and the number of rows whose kappa is undefined (chance agreement of 1).

    counts: three columns of label counts in the language, three in English, and the number of equal labels.
    """
    integers = counts.astype(np.int64)
    n, same = integers[:, :3].sum(1), integers[:, 6]
    chance = (integers[:, :3] * integers[:, 3:6]).sum(1)
    defined = chance < n * n
    return ((n * same - chance)[defined] / (n * n - chance)[defined]), int((~defined).sum())


def _codes(models: Iterable[RunSeries]) -> list[str]:
    """The languages of these models, without the reference language."""
    return list(dict.fromkeys(code for model in models for code in model.run.configs))


def _reference(run: Run) -> str:
    """The config of the reference language."""
    reference = run.config.benchmark.description.reference
    return reference.config if reference else ""


def _uneven(models: Sequence[RunSeries]) -> str:
    same = len({frozenset(_codes([one])) for one in models}) == 1
    return "" if same else " The models cover different languages, so their means are not comparable."


FIGURES: dict[str, Callable[[Sequence[RunSeries]], Figure | None]] = {
    "languages": _languages,
    "english_and_multilingual": _english_and_multilingual,
    "dimensions": _dimensions,
    "translation": _translation,
    "drop": _drop,
    "consistency": _consistency,
    "instances": _instances,
}
