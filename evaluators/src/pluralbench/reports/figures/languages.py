"""Figures of runs of a multilingual benchmark (M-RewardBench)."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pluralbench_runs import plural

from pluralbench.evaluation.compare import counted_decisions, overall_difference
from pluralbench.reports.figures.chart import (
    CHANCE,
    DIFFERENCE,
    EQUAL,
    PLAIN,
    Chart,
    Mark,
    Panel,
    Point,
    by_mean,
    mean,
    names,
    number,
    point,
    which,
    with_means,
)
from pluralbench.reports.figures.fonts import language_label, readable, short_name
from pluralbench.reports.figures.series import KINDS, RunSeries, kind_name, series_of_judges, shortened, unique
from pluralbench.results.names import OTHER_SETTINGS, PROMPT_SETTINGS, short_names
from pluralbench.results.runs import Run

MOST, MANY = 10, 4  # models at most in the heat map of languages, and in rows of translations
OUTCOMES = ("win", "tie", "loss")
SUBSET = re.compile(r"(?:translation|maple)-([a-z]{2,3})-([a-z]{2,3})-(easy|hard)")
GROUPS = {"joshi_class": "Class of Joshi et al.", "resource": "Resources", "family": "Family", "script": "Script"}
ORDER = ["5", "4", "3", "2", "1", "High", "Mid", "Low"]
NAMES = {"Hans": "Han, simplified", "Hant": "Han, traditional"}
SUBSTANTIAL = 0.60  # kappa
GUIDES = f"Dashed: chance (0) and substantial agreement ({SUBSTANTIAL:.2f})."
MEAN_DROP = "mean of sections"
WORSE = "Accuracy minus English accuracy (points)"
OF_THE_DATA = "data {}"
"""The entry of `OTHER_SETTINGS` that names the data."""


def languages(models: Sequence[RunSeries]) -> Chart:
    """Make a heat map of models by languages."""
    shown = models[:MOST]
    own = by_mean(
        Mark(language_label(code, "\n"), number(one.run, "accuracy", config=code), one)
        for code in _codes(shown)
        for one in shown
    )
    variance = [Mark("Variance\n(points²)", number(one.run, "variance", scale=1.0), one) for one in shown]
    panels = [
        Panel([Mark("Mean", point(one.run.headline), one) for one in shown]),
        Panel(own),
        Panel(variance, "Variance"),
    ]
    best = f"the best {MOST} of " if len(models) > MOST else ""
    note = (
        "Languages are sorted by their mean over these models. Variance: of the accuracies in percent over languages; "
        f"the two scripts of Chinese are averaged first.{_uneven(shown)}"
    )
    return Chart(f"Accuracy (%) by language, {best}{which(models)}", panels, note, heat=True)


def english_and_multilingual(models: Sequence[RunSeries]) -> Chart:
    """Make a scatter plot of accuracy in English and over languages."""
    both = [(one, number(one.run, "accuracy", config=_reference(one.run)), point(one.run.headline)) for one in models]
    shown = [(one, x, y) for one, x, y in both if x.value is not None and y.value is not None]
    drawn, xs, ys = (
        [one for one, *_ in shown],
        [x.value or 0.0 for _, x, _ in shown],
        [y.value or 0.0 for *_, y in shown],
    )
    marks = [Mark(x, y, one) for one, x, y in shown]
    marks += [Mark(Point(end), Point(end), EQUAL) for of in (min, max) for end in ([of([*xs, *ys])] if shown else [])]
    missing = ", ".join(one.label for one in models if one not in drawn)
    note = f"Dashed: equal accuracy.{_uneven(drawn)}"
    note += f" No point, since a value is missing: {missing}." if missing else ""
    title = f"Accuracy in English and over languages, {which(drawn)}{_correlations(xs, ys)}"
    label, other = "Mean over languages, accuracy (%)", "English: mean of sections, accuracy (%)"
    return Chart(title, [Panel(marks, label, other=other)], note)


def _correlations(xs: Sequence[float], ys: Sequence[float]) -> str:
    if len(xs) < 3 or len(set(xs)) < 2 or len(set(ys)) < 2:
        return ""
    from scipy.stats import pearsonr, spearmanr

    values = {"Pearson's r": pearsonr(xs, ys).statistic, "Spearman's ρ": spearmanr(xs, ys).statistic}
    texts = (f"{name} = {value:.2f}" for name, value in values.items())
    return ": " + ", ".join(text.replace(" ", "\N{NO-BREAK SPACE}") for text in texts)


def dimensions(models: Sequence[RunSeries]) -> Chart:
    """Make a panel of each way to group languages, with a row of each group."""
    overall = mean(point(one.run.headline) for one in models)
    coin = mean(number(one.run, "overall", baseline="coin") for one in models)
    lines = {line: style for line, style in ((overall, "--"), (coin, ":")) if line is not None}
    panels = []
    for kind, title in GROUPS.items():
        groups = [name for name in names(models, kind) if (kind, name) != ("joshi_class", "0")]
        marks = by_mean(
            Mark(name, point(one.run.estimate("accuracy", **{kind: name})), one) for name in groups for one in models
        )
        marks.sort(key=lambda mark: ORDER.index(str(mark.at)) if mark.at in ORDER else len(ORDER))
        marks = [mark._replace(at=_group_label(models, kind, str(mark.at))) for mark in marks]
        panels += [Panel(with_means(marks), title=title, lines=lines)] if marks else []
    note = "Dashed: mean over all languages. In brackets: number of languages. Class 0 is excluded."
    note += " Dotted: coin." * (coin is not None) + _uneven(models)
    return Chart(f"Accuracy by kind of language, {which(models)}", panels, note)


def _group_label(models: Sequence[RunSeries], kind: str, name: str) -> str:
    sizes = sorted({size for one in models if (size := one.run.count("languages", **{kind: name}))})
    many = "–".join(str(size) for size in dict.fromkeys((sizes[0], sizes[-1])))
    return f"{'Class ' * (kind == 'joshi_class')}{NAMES.get(name, name)} ({many})"


def translation(models: Sequence[RunSeries]) -> Chart:
    """Make a panel of easy and of hard translations, with a row of each direction."""
    subsets = {name: SUBSET.fullmatch(name) for name in sorted(names(models, "subset", config="translation"))}
    panels = []
    for level in ("easy", "hard"):
        directions = {
            name: f"{short_name(match[1])} → {short_name(match[2])}"
            for name, match in subsets.items()
            if match and match[3] == level
        }
        marks = [
            Mark(label, number(one.run, "accuracy", config="translation", subset=name), one)
            for name, label in directions.items()
            for one in models
        ]
        panels += [Panel(marks, title=level, lines={50: "--"})] if marks else []
    heat = len(models) > MANY
    note = "Chance is 50." if heat else "Dashed: chance."
    return Chart(f"Accuracy (%) on translations, {which(models)}", panels, note, len(panels), heat)


def drop(models: Sequence[RunSeries]) -> Chart:
    """Make a row of each section: accuracy over languages minus accuracy in English."""
    marks = [Mark(name, _drop(one.run, name), one) for name in _sections(models) for one in models]
    note = f"Mean over languages. Below 0: worse than in English.{_uneven(models)}"
    return Chart(f"Drop from English by section, {which(models)}", [Panel(marks, WORSE, lines={0: "--"})], note)


def drop_by_kind(models: Sequence[RunSeries]) -> Chart:
    """Make a panel of each section, with a row of each kind of reward model (section 5.1); empty with only one kind."""
    dropped = [one for one in models if _drop(one.run, MEAN_DROP).value is not None]
    of = {one.label: kind_name(one.run.result.model.kind) for one in dropped}
    counts = Counter(of.values())
    if len(counts) < 2:
        return Chart()
    by_kind = sorted(dropped, key=lambda one: [*KINDS.values(), *counts].index(of[one.label]))
    panels = []
    for name in reversed(_sections(dropped)):
        rows = [Mark(f"{of[one.label]} ({counts[of[one.label]]})", _drop(one.run, name), one) for one in by_kind]
        panels.append(Panel(with_means(rows), WORSE, name, lines={0: "--"}))
    note = "Mean over languages. Below 0: worse than in English. In brackets: number of models."
    return Chart(f"Drop from English by kind of reward model, {which(dropped)}", panels, note, len(panels))


def _sections(models: Sequence[RunSeries]) -> list[str]:
    return [*names(models, "section", "drop"), MEAN_DROP]


def _drop(run: Run, section: str) -> Point:
    return number(run, "drop", section=None if section == MEAN_DROP else section)


def consistency(models: Sequence[RunSeries]) -> Chart:
    """Make a row of each language: agreement of a model's labels with those in English."""
    rows = [
        Mark(language_label(code), number(one.run, "kappa", scale=1.0, config=code), one)
        for code in _codes(models)
        for one in models
    ]
    label = "Cohen's kappa between labels in the language and in English"
    panel = Panel(with_means(by_mean(rows)), label, lines={0: "--", SUBSTANTIAL: "--"}, least=SUBSTANTIAL)
    return Chart(f"Consistency with English, {which(models)}", [panel], GUIDES)


def instances(models: Sequence[RunSeries]) -> Chart:
    """Make a histogram of each item's kappa between labels in a language and in English, across models."""
    labels = item_labels(models)
    kappas, undefined = item_kappas(labels.select(pl.col("^n_.*$")).to_numpy())
    if not len(kappas):
        return Chart()
    counts, edges = np.histogram(kappas, [edge / 10 for edge in range(-10, 11)])
    bars = [
        Mark(round(edge + 0.05, 2), Point(float(count)), PLAIN, "bar")
        for count, edge in zip(counts.tolist(), edges.tolist(), strict=False)
    ]
    raters = " to ".join(str(n) for n in dict.fromkeys((labels["raters"].min(), labels["raters"].max())))
    high = int((kappas >= SUBSTANTIAL).sum())
    note = (
        f"{plural(len(kappas), 'item')} in {plural(labels['config'].n_unique(), 'language')}: labels of {raters} "
        f"models in the language and in English. At {SUBSTANTIAL:.2f} or above: {high:,} ({high / len(kappas):.0%})."
    )
    if undefined:
        note += f" Not shown: {undefined:,} with undefined kappa, where all models give the same label in both."
    panel = Panel(bars, "Items, all languages", other="Cohen's kappa of an item across models")
    return Chart(f"Agreement with English by item, {which(models)}", [panel], note)


def item_labels(models: Sequence[RunSeries]) -> pl.DataFrame:
    """Count the labels of each item in a language that at least three models labeled in both languages.

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


def item_kappas(counts: NDArray[Any]) -> tuple[NDArray[np.float64], int]:
    """Compute Cohen's kappa of each row, and count the rows whose kappa is undefined (chance agreement of 1).

    Args:
        counts: Three columns of label counts in the language, three in English, and the number of equal labels.
    """
    integers = counts.astype(np.int64)
    n, same = integers[:, :3].sum(1), integers[:, 6]
    chance = (integers[:, :3] * integers[:, 3:6]).sum(1)
    defined = chance < n * n
    return ((n * same - chance)[defined] / (n * n - chance)[defined]), int((~defined).sum())


def translators(models: Sequence[RunSeries]) -> Chart:
    """Make a row of each model that ran on several translations of the same items (section 6.1, Figure 4).

    Translations have the same ids and subsets but different texts. Their names are the data locations, with the
    digest if the locations are equal.
    """
    data = _data_names([one.run for one in models])
    groups = [own for own in _by_model(models, data) if len(own) > 1]
    bases = [next(iter(own.values())) for own in groups]
    rows = unique(shortened([readable(Path(run.name).name or run.name) for run in bases]))
    shown = {one.name: one for one in series_of_judges(dict.fromkeys(name for own in groups for name in own))}
    panels = []
    for kind in (kind for kind in KINDS if kind in {run.result.model.kind for run in bases}):
        levels, changes = [], []
        of_kind = [one for one in zip(groups, bases, rows, strict=True) if one[1].result.model.kind == kind]
        for own, base, row in of_kind:
            levels.append(Mark(row, number(base, "overall", baseline="coin"), CHANCE, "tick"))
            levels += [Mark(row, point(run.headline), shown[name]) for name, run in own.items()]
            for name, run in [*own.items()][1:]:
                both = counted_decisions(base), counted_decisions(run)
                change = overall_difference(base, run, *both, differing_text=True)
                changes.append(Mark(row, point(change), shown[name]))
        panels += [Panel(levels, "Mean over languages, accuracy (%)", KINDS[kind])]
        panels += [Panel(changes, DIFFERENCE, lines={0: "--"})]
    note = f"Right: difference to {min(shown, default='')}, or to a model's first translation, on the items in both."
    return Chart(f"Translations side by side, {plural(len(groups), 'model')}", panels, note, 2)


def _data_names(runs: Sequence[Run]) -> dict[str, str]:
    """The name of the data, by digest; a location may have held different data at different times."""
    where = {run.config.data.digest: run.config.data.location for run in runs}
    names = dict(zip(where, short_names(list(where.values())), strict=True))
    counts = Counter(names.values())
    return {digest: f"{name} ({digest[:7]})" if counts[name] > 1 else name for digest, name in names.items()}


def _by_model(models: Sequence[RunSeries], data: Mapping[str, str]) -> list[dict[str, Run]]:
    """The runs of each model with the same settings on the same items, by the name of the data."""
    groups: dict[tuple[str, ...], dict[str, Run]] = {}
    for one in sorted(models, key=lambda one: data[one.run.config.data.digest]):
        settings = (str(of(one.run)) for how, of in {**PROMPT_SETTINGS, **OTHER_SETTINGS}.items() if how != OF_THE_DATA)
        own = groups.setdefault((one.name, one.run.result.model.kind, one.run.config.benchmark.rule, *settings), {})
        if not own or _translated(next(iter(own.values())), one.run):
            own.setdefault(data[one.run.config.data.digest], one.run)
    return list(groups.values())


def _translated(first: Run, second: Run) -> bool:
    """Whether the second run's items are translations of the first's: the same ids and subsets, different texts."""
    if first.config.benchmark.description.sections != second.config.benchmark.description.sections:
        return False
    one, other = (
        run.items.filter(~pl.col("config").is_in(sorted(run.config.benchmark.description.outside_overall)))
        .select("config", "id", "subset", "digest")
        .unique(["config", "id"])
        for run in (first, second)
    )
    both = one.join(other, on=["config", "id"], suffix="_second")
    same = both.select(pl.col("subset").eq_missing(pl.col("subset_second")).all()).item()
    return both.height > 0 and bool((both["digest"] != both["digest_second"]).any()) and bool(same)


def _codes(models: Sequence[RunSeries]) -> list[str]:
    """The languages of these models, without the reference language."""
    return list(dict.fromkeys(code for one in models for code in one.run.configs))


def _reference(run: Run) -> str:
    """The config of the reference language."""
    reference = run.config.benchmark.description.reference
    return reference.config if reference else ""


def _uneven(models: Sequence[RunSeries]) -> str:
    same = len({frozenset(_codes([one])) for one in models}) <= 1
    return "" if same else " The models cover different languages, so their means are not comparable."


FIGURES: Mapping[str, Callable[[Sequence[RunSeries]], Chart]] = {
    entry.__name__: entry
    for entry in (
        languages,
        english_and_multilingual,
        dimensions,
        translation,
        drop,
        consistency,
        instances,
        drop_by_kind,
        translators,
    )
}
