"""Figures of runs of a multilingual benchmark (M-RewardBench)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from pluralbench_runs import plural

from pluralbench.evaluation.compare import overall_difference
from pluralbench.evaluation.shared_decisions import counted_decisions
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
    marks_of,
    mean,
    names,
    number,
    point,
    which,
    with_means,
)
from pluralbench.reports.figures.fonts import language_label, readable
from pluralbench.reports.figures.series import KINDS, NAME, RunSeries, series_of_judges, unique
from pluralbench.reports.layout import shortened
from pluralbench.results.names import OTHER_SETTINGS, PROMPT_SETTINGS, short_names
from pluralbench.results.runs import Run

OUTCOMES = ("win", "tie", "loss")
GROUPS = {"joshi_class": "Class of Joshi et al.", "resource": "Resources", "family": "Family", "script": "Script"}
ORDER = ["5", "4", "3", "2", "1", "High", "Mid", "Low"]
NAMES = {"Hans": "Han, simplified", "Hant": "Han, traditional"}
SUBSTANTIAL = 0.60  # kappa
OF_THE_DATA = "data {}"
"""The entry of `OTHER_SETTINGS` that names the data."""


def english_and_multilingual(models: Sequence[RunSeries]) -> Chart:
    """Make a scatter plot of accuracy in English and over languages."""
    both = {one: (number(one.run, "accuracy", config=_reference(one.run)), point(one.run.headline)) for one in models}
    shown = {one: own for one, own in both.items() if None not in (own[0].value, own[1].value)}
    xs, ys = ([own[side].value or 0.0 for own in shown.values()] for side in (0, 1))
    ends = [Mark(Point(end), Point(end), EQUAL) for of in (min, max) for end in ([of([*xs, *ys])] if shown else [])]
    missing = ", ".join(one.label for one in models if one not in shown)
    note = f"Dashed: equal accuracy.{_uneven([*shown])}"
    note += f" No point, since a value is missing: {missing}." if missing else ""
    title = f"Accuracy in English and over languages, {which([*shown])}{_correlations(xs, ys)}"
    marks = [*(Mark(*own, one) for one, own in shown.items()), *ends]
    panel = Panel(marks, "Mean over languages, accuracy (%)", other="English: mean of sections, accuracy (%)")
    return Chart(title, [panel], note)


def _correlations(xs: Sequence[float], ys: Sequence[float]) -> str:
    if len(xs) < 3 or len(set(xs)) < 2 or len(set(ys)) < 2:
        return ""
    from scipy.stats import pearsonr, spearmanr

    text = f": Pearson's r = {pearsonr(xs, ys).statistic:.2f}, Spearman's ρ = {spearmanr(xs, ys).statistic:.2f}"
    return text.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")


def dimensions(models: Sequence[RunSeries]) -> Chart:
    """Make a panel of each way to group languages, with a row of each group."""
    overall = mean(point(one.run.headline) for one in models)
    coin = mean(number(one.run, "overall", baseline="coin") for one in models)
    lines = {line: style for line, style in ((overall, "--"), (coin, ":")) if line is not None}
    panels = []
    for kind, title in GROUPS.items():
        rows = {name: {kind: name} for name in names(models, kind) if (kind, name) != ("joshi_class", "0")}
        marks = by_mean(marks_of(models, rows, "accuracy"))
        marks.sort(key=lambda mark: ORDER.index(str(mark.at)) if mark.at in ORDER else len(ORDER))
        labels = {name: _group_label(models, kind, name) for name in rows}
        marks = [mark._replace(at=labels[str(mark.at)]) for mark in marks]
        panels += [Panel(with_means(marks), title=title, lines=lines)] if marks else []
    note = "Dashed: mean over all languages. In brackets: number of languages. Class 0 is excluded."
    note += " Dotted: coin." * (coin is not None) + _uneven(models)
    return Chart(f"Accuracy by kind of language, {which(models)}", panels, note)


def _group_label(models: Sequence[RunSeries], kind: str, name: str) -> str:
    sizes = sorted({size for one in models if (size := one.run.count("languages", **{kind: name}))})
    many = "–".join(str(size) for size in dict.fromkeys((sizes[0], sizes[-1])))
    return f"{'Class ' * (kind == 'joshi_class')}{NAMES.get(name, name)} ({many})"


def consistency(models: Sequence[RunSeries]) -> Chart:
    """Make a row of each language: agreement of a model's labels with those in English."""
    rows = {language_label(code): {"config": code} for code in _codes(models)}
    label = "Cohen's kappa between labels in the language and in English"
    marks = with_means(by_mean(marks_of(models, rows, "kappa", scale=1.0)))
    note = f"Dashed: chance (0) and substantial agreement ({SUBSTANTIAL:.2f})."
    panel = Panel(marks, label, lines={0: "--", SUBSTANTIAL: "--"}, least=SUBSTANTIAL)
    return Chart(f"Consistency with English, {which(models)}", [panel], note)


def instances(models: Sequence[RunSeries]) -> Chart:
    """Make a histogram of each item's kappa between labels in a language and in English, across models."""
    items = item_kappas(models)
    kappas = items["kappa"].drop_nulls().to_numpy()
    if not len(kappas):
        return Chart()
    counts, edges = np.histogram(kappas, [edge / 10 for edge in range(-10, 11)])
    heights = zip(edges[:-1].tolist(), counts.tolist(), strict=True)
    bars = [Mark(round(edge + 0.05, 2), Point(float(count)), PLAIN, "bar") for edge, count in heights]
    raters = " to ".join(str(n) for n in dict.fromkeys((items["raters"].min(), items["raters"].max())))
    high = int((kappas >= SUBSTANTIAL).sum())
    note = (
        f"{plural(len(kappas), 'item')} in {plural(items['config'].n_unique(), 'language')}: labels of {raters} "
        f"models in the language and in English. At {SUBSTANTIAL:.2f} or above: {high:,} ({high / len(kappas):.0%})."
    )
    if undefined := items["kappa"].null_count():
        note += f" Not shown: {undefined:,} with undefined kappa, where all models give the same label in both."
    panel = Panel(bars, "Items, all languages", other="Cohen's kappa of an item across models")
    return Chart(f"Agreement with English by item, {which(models)}", [panel], note)


def item_kappas(models: Sequence[RunSeries]) -> pl.DataFrame:
    """Compute Cohen's kappa of each item in a language that at least three models labeled in both languages.

    Columns: `config`, `id`, `raters` (models), `kappa` (null if chance agreement is 1).
    """
    pairs = []
    for one in models:
        items = one.run.items.select("config", "id", "outcome").unique(["config", "id"], keep="none")
        items = items.filter(pl.col("outcome").is_in(OUTCOMES))
        english = items.filter(config=_reference(one.run)).select("id", english="outcome")
        pairs.append(items.filter(pl.col("config").is_in(_codes([one]))).join(english, on="id"))
    sums = [[(pl.col(side) == label).sum().cast(pl.Int64) for label in OUTCOMES] for side in ("outcome", "english")]
    grouped = pl.concat(pairs).group_by("config", "id")
    counts = grouped.agg(
        raters=pl.len().cast(pl.Int64),
        same=(pl.col("outcome") == pl.col("english")).sum().cast(pl.Int64),
        chance=pl.sum_horizontal(one * other for one, other in zip(*sums, strict=True)),
    ).filter(pl.col("raters") >= 3)
    n, same, chance = pl.col("raters"), pl.col("same"), pl.col("chance")
    kappa = pl.when(chance < n * n).then((n * same - chance) / (n * n - chance))
    return counts.select("config", "id", "raters", kappa=kappa)


def translators(models: Sequence[RunSeries]) -> Chart:
    """Make a row of each model that ran on several translations of the same items (section 6.1, Figure 4).

    Translations have the same ids and subsets but different texts; they are named by the data's locations.
    """
    groups = [own for own in _by_model(models) if len(own) > 1]
    bases = [next(iter(own.values())) for own in groups]
    rows = unique(shortened([readable(Path(run.name).name or run.name) for run in bases], NAME))
    shown = {one.name: one for one in series_of_judges(dict.fromkeys(name for own in groups for name in own))}
    levels, changes = defaultdict[str, list[Mark]](list), defaultdict[str, list[Mark]](list)
    for own, base, row in zip(groups, bases, rows, strict=True):
        kind = base.result.model.kind
        levels[kind].append(Mark(row, number(base, "overall", baseline="coin"), CHANCE, "tick"))
        levels[kind] += [Mark(row, point(run.headline), shown[name]) for name, run in own.items()]
        for name, run in [*own.items()][1:]:
            both = counted_decisions(base), counted_decisions(run)
            change = overall_difference(base, run, *both, differing_text=True)
            changes[kind].append(Mark(row, point(change), shown[name]))
    panels = []
    for kind in (kind for kind in KINDS if kind in levels):
        panels += [Panel(levels[kind], "Mean over languages, accuracy (%)", KINDS[kind])]
        panels += [Panel(changes[kind], DIFFERENCE, lines={0: "--"})]
    note = f"Right: difference to {min(shown, default='')}, or to a model's first translation, on the items in both."
    return Chart(f"Translations side by side, {plural(len(groups), 'model')}", panels, note, 2)


def _by_model(models: Sequence[RunSeries]) -> list[dict[str, Run]]:
    """The runs of each model with the same settings on the same items, by the name of the data.

    A location may have held different data at different times; then the names have digests.
    """
    where = {one.run.config.data.digest: one.run.config.data.location for one in models}
    short = dict(zip(where, short_names([*where.values()]), strict=True))
    counts = Counter(short.values())
    data = {digest: f"{name} ({digest[:7]})" if counts[name] > 1 else name for digest, name in short.items()}
    groups: dict[tuple[str, ...], dict[str, Run]] = {}
    for one in sorted(models, key=lambda one: data[one.run.config.data.digest]):
        settings = (str(of(one.run)) for how, of in {**PROMPT_SETTINGS, **OTHER_SETTINGS}.items() if how != OF_THE_DATA)
        own = groups.setdefault((one.name, one.run.result.model.kind, one.run.config.benchmark.rule, *settings), {})
        if not own or _translated(next(iter(own.values())), one.run):
            own.setdefault(data[one.run.config.data.digest], one.run)
    return list(groups.values())


def _translated(first: Run, second: Run) -> bool:
    """Whether the second run's items are translations of the first's: the same ids and subsets, different texts."""
    one, other = (
        run.items.filter(~pl.col("config").is_in(sorted(run.config.benchmark.description.outside_overall)))
        .select("config", "id", "subset", "digest")
        .unique(["config", "id"])
        for run in (first, second)
    )
    both = one.join(other, on=["config", "id"], suffix="_second")
    same = both["subset"].eq_missing(both["subset_second"]).all()
    return bool((both["digest"] != both["digest_second"]).any()) and same


def _codes(models: Sequence[RunSeries]) -> list[str]:
    return list(dict.fromkeys(code for one in models for code in one.run.configs))


def _reference(run: Run) -> str:
    reference = run.config.benchmark.description.reference
    return reference.config if reference else ""


def _uneven(models: Sequence[RunSeries]) -> str:
    same = len({frozenset(_codes([one])) for one in models}) <= 1
    return "" if same else " The models cover different languages, so their means are not comparable."


FIGURES: Mapping[str, Callable[[Sequence[RunSeries]], Chart]] = {
    entry.__name__: entry for entry in (english_and_multilingual, dimensions, consistency, instances, translators)
}
