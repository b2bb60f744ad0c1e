"""Color, marker and label of each model and judge, the same in all figures of a report."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import inf
from operator import itemgetter
from pathlib import Path
from typing import Any

from pluralbench_release.figures import COLORS

from pluralbench.reports.figures.fonts import readable
from pluralbench.reports.layout import shortened
from pluralbench.results.names import OTHER_SETTINGS, PROMPT_SETTINGS, differences, short_names
from pluralbench.results.runs import Run

# 8 colors and 11 markers are coprime, so pairs repeat after 88.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*")
LINES = ("-", "--", "-.")
NAME = 36  # columns of a name at most
KINDS = {
    "classifier": "Classifiers",
    "implicit": "Implicit rewards",
    "generative": "Generative judges",
    "function": "Functions",
}
OF_DATA = ("data", "limit", "{} drawn", "drawn", "{} if too long")  # settings that differ between benchmarks
Variant = tuple[str, tuple[Any, ...]]
"""A model, and what distinguishes its runs on a benchmark. The first variant has the model's own marker."""


@dataclass(frozen=True)
class Series:
    """A model, a judge or a reference in figures. A reference has no marker; lines distinguish those of a color."""

    name: str
    label: str
    color: str
    marker: str
    line: str


@dataclass(frozen=True)
class RunSeries(Series):
    """The series of a run."""

    run: Run = field(compare=False)


def series_of(runs: Sequence[Run], among: Sequence[Run] = ()) -> list[RunSeries]:
    """Make a series for each run of a benchmark, the best first, with unique labels.

    Further runs of a model share its color but not its marker. The models of all runs of the report determine the
    colors, which are the same on every benchmark.
    """
    variants = _variants([*among, *runs])
    looks = _looks(variants.values())
    ordered = sorted(runs, key=lambda run: (_last_if_missing(run.headline.value), run.name, str(run.path)))
    labels = _labels([run.name for run in ordered], differences(ordered), [run.name for run in among])
    return [
        RunSeries(run.name, label, *looks[variants[run.name, run.path]], run=run)
        for run, label in zip(ordered, labels, strict=True)
    ]


def series_of_judges(accuracies: Mapping[str, float | None], among: Iterable[str] = ()) -> list[Series]:
    """Make a series for each judge or model by accuracy, the best first; all names in the report determine colors."""
    names = sorted(accuracies, key=lambda name: (_last_if_missing(accuracies[name]), name))
    known = dict.fromkeys(among)
    # Names that the report lacks come last, so that they do not change the colors of the others.
    looks = _looks((name, ()) for name in known)
    looks |= _looks(((name, ()) for name in names if name not in known), first=len(known))
    labels = _labels(names, [""] * len(names), known)
    return [Series(name, label, *looks[name, ()]) for name, label in zip(names, labels, strict=True)]


def _looks(variants: Iterable[Variant], first: int = 0) -> dict[Variant, tuple[str, str, str]]:
    """Color, marker and line style of each variant; the first 88 (8 x 11) are unique."""
    every = sorted(set(variants), key=lambda variant: (variant[0].casefold(), variant))
    places = {name: first + place for place, name in enumerate(dict.fromkeys(name for name, _ in every))}
    taken, looks = set(places.values()), {}
    for name, own in groupby(every, itemgetter(0)):
        for number, variant in enumerate(own):
            place = places[name]
            while number and place in taken:
                place += len(COLORS)
            taken.add(place)
            line = LINES[place // len(COLORS) % len(LINES)]
            looks[variant] = COLORS[place % len(COLORS)], MARKERS[place % len(MARKERS)], line
    return looks


def _variants(runs: Iterable[Run]) -> dict[tuple[str, Path], Variant]:
    """The variant of each run: by its settings, so that those with the same ones look alike on every benchmark."""
    settings = {form: of for form, of in {**PROMPT_SETTINGS, **OTHER_SETTINGS}.items() if not form.startswith(OF_DATA)}
    repeats, variants = Counter[tuple[Any, ...]](), {}
    for run in sorted({(run.name, run.path): run for run in runs}.values(), key=lambda run: str(run.path)):
        own = run.name, *((form, str(value)) for form, of in settings.items() if (value := of(run)) is not None)
        variants[run.name, run.path] = run.name, (repeats[own, run.config.benchmark.name], *own)
        repeats[own, run.config.benchmark.name] += 1
    return variants


def _labels(names: Sequence[str], differences: Sequence[str], among: Iterable[str]) -> list[str]:
    """Short and unique labels of models, whose names may repeat.

    among: All names of the report, so that a model has the same label in all figures.
    """
    every = sorted({*names, *among})
    ends = short_names([" ".join(one.split()) for one in every])
    short = dict(zip(every, shortened([*map(readable, ends)], NAME), strict=True))
    details = shortened([*map(readable, differences)], NAME)
    return unique(
        [f"{short[name]} ({more})" if more else short[name] for name, more in zip(names, details, strict=True)]
    )


def unique(texts: Sequence[str]) -> list[str]:
    """Number the texts that occur more than once."""
    return [
        f"{text} ({texts[: place + 1].count(text)})" if texts.count(text) > 1 else text
        for place, text in enumerate(texts)
    ]


def _last_if_missing(accuracy: float | None) -> float:
    return inf if accuracy is None else -accuracy


def kind_name(kind: str) -> str:
    """Return the name of a kind of reward model; an unknown kind is its own name."""
    return KINDS.get(kind, kind)
