"""Accuracy of each model on several translations of the same items (M-RewardBench, section 6.1, Figure 4)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pluralbench.evaluation.compare import counted_decisions, overall_difference
from pluralbench.metrics.metric import MetricKey
from pluralbench.reports.figures import Axes, Figure, style
from pluralbench.reports.figures.fonts import readable
from pluralbench.reports.figures.kinds import by_kind, kind_name
from pluralbench.reports.figures.series import MARKERS, RunSeries, shortened
from pluralbench.reports.figures.style import LEAST, Point, dot, heading, point
from pluralbench.reports.figures.theme import SOFT
from pluralbench.results.names import OTHER_SETTINGS, PROMPT_SETTINGS
from pluralbench.results.runs import Run

OF_THE_DATA = "data {}"
"""The entry of `OTHER_SETTINGS` that names the data."""


class Side(NamedTuple):
    """A model on one translation.

    Attributes:
        accuracy: The overall number.
        against_first: Difference to the overall number on the model's first translation.
    """

    data: str
    accuracy: Point
    against_first: Point | None = None


class Pair(NamedTuple):
    """A model on all of its translations."""

    model: RunSeries
    sides: list[Side]


def translators(models: Sequence[RunSeries]) -> Figure | None:
    """Draw a row for each model, in groups by kind; None if no model was run on two translations of the same items.

    Translations have the same ids and subsets but different texts. Their names are the data locations, with the
    revision if the locations are equal.
    """
    names = _names([model.run for model in models])
    pairs = [_pair(own, names) for own in _by_model(models, names)]
    pairs = [pair for pair in pairs if len(pair.sides) > 1]
    if not pairs:
        return None
    data = sorted({side.data for pair in pairs for side in pair.sides})
    markers = {name: MARKERS[place % len(MARKERS)] for place, name in enumerate(data)}
    kinds = by_kind([pair.model for pair in pairs])
    of = {id(pair.model): pair for pair in pairs}
    sizes = [0.14 * (1 + len(data)) * len(own) for own in kinds.values()]
    labels = {kind_name(kind): [model.label for model in own] for kind, own in kinds.items()}
    across = "Mean over languages, accuracy (%)", "Difference (points)"
    figure, both = style.paired(labels, sizes, _limits(pairs), across)
    gray = {"color": SOFT, "linestyle": "", "markersize": 5.0}
    entries = zip(shortened(data), markers.values(), strict=True)
    style.legend(both[0][1], [], {name: gray | {"marker": marker} for name, marker in entries})
    for (left, right), own in zip(both, kinds.values(), strict=True):
        _sides(left, right, [of[id(one)] for one in own], markers)
    points = [side.accuracy for pair in pairs for side in pair.sides]
    note = (
        f"Left: all items of each translation. Right: difference to {data[0]}, or to a model's first translation, on "
    )
    note += f"the items in both. {style.whiskers(points)} Dashed: no difference.{style.dashes(points)}"
    if any(pair.model.run.estimate("overall", baseline="coin").value is not None for pair in pairs):
        note += " Dotted: coin."
    return heading(figure, f"Translations side by side, {style.which([pair.model for pair in pairs])}", note)


def _names(runs: Sequence[Run]) -> dict[str, str]:
    """The name of the data, by digest."""
    where = {run.config.data.digest: (run.config.data.location, run.config.data.revision) for run in runs}
    short = {digest: Path(location).name or location for digest, (location, _) in where.items()}
    names: dict[str, str] = {}
    for digest, (location, revision) in where.items():
        same = [other for other, name in short.items() if name == short[digest]]
        longer = location if len({where[other][0] for other in same}) > 1 else f"{short[digest]}@{(revision or '')[:7]}"
        names[digest] = short[digest] if len(same) == 1 else longer
    # A location may have held different data at different times.
    repeated = {name for name, count in Counter(names.values()).items() if count > 1}
    return {digest: f"{name} ({digest[:7]})" if name in repeated else name for digest, name in names.items()}


def _by_model(models: Sequence[RunSeries], names: Mapping[str, str]) -> list[list[RunSeries]]:
    """The runs of each model with the same settings, one for each data, in the order of their names."""
    groups: dict[tuple[str, ...], dict[str, RunSeries]] = {}
    for one in models:
        settings = (str(of(one.run)) for how, of in {**PROMPT_SETTINGS, **OTHER_SETTINGS}.items() if how != OF_THE_DATA)
        key = one.name, one.run.result.model.kind, one.run.config.benchmark.rule, *settings
        groups.setdefault(key, {}).setdefault(names[one.run.config.data.digest], one)
    return [[own[name] for name in sorted(own)] for own in groups.values()]


def _pair(own: Sequence[RunSeries], names: Mapping[str, str]) -> Pair:
    first, *others = own
    sides = [Side(names[first.run.config.data.digest], point(first.run.headline))]
    for one in others:
        if _same_items(first.run, one.run):
            both = counted_decisions(first.run), counted_decisions(one.run)
            change = point(overall_difference(first.run, one.run, *both, differing_text=True))
            sides.append(Side(names[one.run.config.data.digest], point(one.run.headline), change))
    # Labeled with the model alone: the figure itself shows in what its runs differ.
    label = shortened([readable(Path(first.name).name or first.name)])[0]
    return Pair(replace(first, label=label), sides)


def _same_items(first: Run, second: Run) -> bool:
    """Whether the second run's items are translations of the first's: the same ids and subsets, different texts."""
    one, other = first.config.benchmark.description, second.config.benchmark.description
    if one.sections != other.sections:
        return False
    wanted = ["config", "id", "subset", "digest"]
    first_items, second_items = (
        run.items.filter(~pl.col("config").is_in(sorted(run.config.benchmark.description.outside_overall)))
        .select(wanted)
        .unique(["config", "id"])
        for run in (first, second)
    )
    both = first_items.join(second_items, on=["config", "id"], suffix="_second")
    return (
        both.height > 0
        and bool((both["digest"] != both["digest_second"]).any())
        and bool(both.select(pl.col("subset").eq_missing(pl.col("subset_second")).all()).item())
    )


def _limits(pairs: Sequence[Pair]) -> tuple[tuple[float, float], tuple[float, float]]:
    values = [side.accuracy for pair in pairs for side in pair.sides if side.accuracy.value is not None]
    every = (pair.model.run.estimate("overall", baseline="coin").value for pair in pairs)
    coins = [100 * value for value in every if value is not None]
    changes = [side.against_first for pair in pairs for side in pair.sides if side.against_first is not None]
    return style.extent(values, *coins, least=LEAST), style.extent(
        [one for one in changes if one.value is not None], 0.0, least=LEAST
    )


def _sides(left: Axes, right: Axes, pairs: Sequence[Pair], markers: Mapping[str, str]) -> None:
    for row, pair in enumerate(pairs):
        style.coin(left, row, [pair.model.run], MetricKey("overall"))
        places = style.beside(row, len(pair.sides), 0.8 / len(pair.sides))
        for at, side in zip(places, pair.sides, strict=True):
            looks = replace(pair.model, marker=markers[side.data])
            dot(left, at, side.accuracy, looks)
            if side.against_first is not None:
                dot(right, at, side.against_first, looks)
