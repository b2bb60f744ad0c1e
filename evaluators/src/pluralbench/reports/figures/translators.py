"""Translations of the same items side by side: what each model gets on each (M-RewardBench, section 6.1, Figure 4)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pluralbench.evaluation.compare import counted_decisions, overall_difference
from pluralbench.reports.figures import Axes, Figure, style
from pluralbench.reports.figures.fonts import readable
from pluralbench.reports.figures.kinds import by_kind, kind_name
from pluralbench.reports.figures.series import MARKERS, RunSeries, shortened
from pluralbench.reports.figures.style import LEAST, Point, dot, heading, point
from pluralbench.reports.names import ASKED, TOLD
from pluralbench.results.runs import Run

OF_THE_DATA = "data {}"
"""What in `TOLD` is of the data itself."""


class Side(NamedTuple):
    """A model on one translation: its overall number, and how much that is above the one on the first translation."""

    data: str
    accuracy: Point
    against_first: Point | None = None


class Pair(NamedTuple):
    """A model on all translations that it was run on."""

    model: RunSeries
    sides: list[Side]


def translators(models: Sequence[RunSeries]) -> Figure | None:
    """A row a model, in groups by kind. None where no model was run on two translations of the same items.

    Translations are of the same items where ids and subsets are the same and texts are not. What they are called is
    where the data lies, with its revision where that alone tells them apart.
    """
    names = _names([one.run for one in models])
    pairs = [_pair(own, names) for own in _by_model(models, names)]
    pairs = [pair for pair in pairs if len(pair.sides) > 1]
    if not pairs:
        return None
    known = sorted({side.data for pair in pairs for side in pair.sides})
    markers = {name: MARKERS[place % len(MARKERS)] for place, name in enumerate(known)}
    kinds = by_kind([pair.model for pair in pairs])
    of = {id(pair.model): pair for pair in pairs}
    sizes = [0.14 * (1 + len(known)) * len(own) for own in kinds.values()]
    labels = {kind_name(kind): [one.label for one in own] for kind, own in kinds.items()}
    across = "Mean over languages, accuracy (%)", "Difference (points)"
    figure, both = style.paired(labels, sizes, _limits(pairs), across)
    grey = {"color": style.GREY, "linestyle": "", "markersize": 5.0}
    said = zip(shortened(known), markers.values(), strict=True)
    style.legend(both[0][1], [], {name: grey | {"marker": marker} for name, marker in said})
    for (left, right), own in zip(both, kinds.values(), strict=True):
        _sides(left, right, [of[id(one)] for one in own], markers)
    points = [side.accuracy for pair in pairs for side in pair.sides]
    note = (
        f"Left: on all items of each. Right: against {known[0]}, or the first that a model was run on, on the items in "
    )
    note += f"both. {style.whiskers(points)} Dashed: no difference.{style.dashes(points)}"
    return heading(figure, f"Translations side by side, {style.which([pair.model for pair in pairs])}", note)


def _names(runs: Sequence[Run]) -> dict[str, str]:
    """What to call the data of each digest."""
    where = {run.config.data.digest: (run.config.data.location, run.config.data.revision) for run in runs}
    short = {digest: Path(location).name or location for digest, (location, _) in where.items()}
    said: dict[str, str] = {}
    for digest, (location, revision) in where.items():
        alike = [other for other, name in short.items() if name == short[digest]]
        longer = (
            location if len({where[other][0] for other in alike}) > 1 else f"{short[digest]}@{(revision or '')[:7]}"
        )
        said[digest] = short[digest] if len(alike) == 1 else longer
    # The same place can have held two contents.
    return {
        digest: name if [*said.values()].count(name) == 1 else f"{name} ({digest[:7]})" for digest, name in said.items()
    }


def _by_model(models: Sequence[RunSeries], names: Mapping[str, str]) -> list[list[RunSeries]]:
    """The runs of each model that was asked alike, one for each data, in the order of their names."""
    found: dict[tuple[str, ...], dict[str, RunSeries]] = {}
    for one in models:
        told = (str(of(one.run)) for how, of in {**ASKED, **TOLD}.items() if how != OF_THE_DATA)
        key = one.name, one.run.result.model.kind, one.run.config.benchmark.rule, *told
        found.setdefault(key, {}).setdefault(names[one.run.config.data.digest], one)
    return [[own[name] for name in sorted(own)] for own in found.values()]


def _pair(own: Sequence[RunSeries], names: Mapping[str, str]) -> Pair:
    first, *others = own
    sides = [Side(names[first.run.config.data.digest], point(first.run.headline))]
    for one in others:
        if _same_items(first.run, one.run):
            both = counted_decisions(first.run), counted_decisions(one.run)
            change = point(overall_difference(first.run, one.run, *both, differing_text=True))
            sides.append(Side(names[one.run.config.data.digest], point(one.run.headline), change))
    # Named as a model, since what tells its runs apart is what the figure shows.
    label = shortened([readable(Path(first.name).name or first.name)])[0]
    return Pair(replace(first, label=label), sides)


def _same_items(first: Run, second: Run) -> bool:
    """Whether the second's items are the first's in other words: the same ids and subsets, and other texts."""
    one, other = first.config.benchmark.description, second.config.benchmark.description
    if one.sections != other.sections:
        return False
    wanted = ["config", "id", "subset", "digest"]
    ours, theirs = (
        run.items.filter(~pl.col("config").is_in(sorted(run.config.benchmark.description.outside_overall)))
        .select(wanted)
        .unique(["config", "id"])
        for run in (first, second)
    )
    both = ours.join(theirs, on=["config", "id"], suffix="_second")
    return (
        both.height > 0
        and bool((both["digest"] != both["digest_second"]).any())
        and bool(both.select(pl.col("subset").eq_missing(pl.col("subset_second")).all()).item())
    )


def _limits(pairs: Sequence[Pair]) -> tuple[tuple[float, float], tuple[float, float]]:
    values = [side.accuracy for pair in pairs for side in pair.sides if side.accuracy.value is not None]
    changes = [side.against_first for pair in pairs for side in pair.sides if side.against_first is not None]
    return style.extent(values, least=LEAST), style.extent(
        [one for one in changes if one.value is not None], 0.0, least=LEAST
    )


def _sides(left: Axes, right: Axes, pairs: Sequence[Pair], markers: Mapping[str, str]) -> None:
    for row, pair in enumerate(pairs):
        places = style.beside(row, len(pair.sides), 0.8 / len(pair.sides))
        for at, side in zip(places, pair.sides, strict=True):
            looks = replace(pair.model, marker=markers[side.data])
            dot(left, at, side.accuracy, looks)
            if side.against_first is not None:
                dot(right, at, side.against_first, looks)
