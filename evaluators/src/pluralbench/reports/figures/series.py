"""Color, marker and label of each model and judge, the same in all figures of a report."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import NamedTuple

from pluralbench_release.palette import COLORS

from pluralbench.reports.figures.fonts import readable
from pluralbench.results.names import differences, short_names
from pluralbench.results.runs import Run

# 8 colors and 11 markers are coprime, so pairs repeat after 88.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*")
LINES = ("-", "--", "-.")
NAME, END = 36, 15  # characters of a name at most, and of its end if its middle is cut
LONGER = 12  # step by which names may be longer to stay unique
KINDS = {
    "classifier": "Classifiers",
    "implicit": "Implicit rewards",
    "generative": "Generative judges",
    "function": "Functions",
}
Settings = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Series:
    """A model, a judge or a reference in figures.

    Attributes:
        marker: Empty for a reference, which is a line.
        line: Style of its lines, which distinguishes series of one color.
    """

    name: str
    label: str
    color: str
    marker: str
    line: str


@dataclass(frozen=True)
class RunSeries(Series):
    """The series of a run."""

    run: Run = field(compare=False)


class _Variant(NamedTuple):
    """A model and one of its runs on a benchmark; variant 0 has the model's own marker."""

    name: str
    variant: int = 0


def series_of(runs: Sequence[Run], among: Sequence[Run] = ()) -> list[RunSeries]:
    """Make a series for each run of a benchmark, the best first, with unique labels.

    Further runs of a model on a benchmark, such as those with another profile, share its color but not its marker.

    Args:
        among: All runs of the report. Their model names determine the colors, which are the same on every benchmark.
    """
    variants = _variants([*among, *runs])
    looks = _looks(variants.values())
    ordered = sorted(runs, key=lambda run: (_last_if_missing(run.headline.value), run.name, str(run.path)))
    labels = _labels([run.name for run in ordered], differences(ordered), [run.name for run in among])
    return [
        RunSeries(run.name, label, *looks[variants[_key(run)]], run=run)
        for run, label in zip(ordered, labels, strict=True)
    ]


def series_of_judges(accuracies: Mapping[str, float | None], among: Iterable[str] = ()) -> list[Series]:
    """Make a series for each judge or model, the best first.

    Args:
        accuracies: Accuracy by name.
        among: Names in all figures of the report, which determine the colors.
    """
    names = sorted(accuracies, key=lambda name: (_last_if_missing(accuracies[name]), name))
    report_names = dict.fromkeys(among)
    # Names that the report lacks come last, so that they do not change the colors of the others.
    looks = _looks(_Variant(name) for name in report_names) if report_names else {}
    looks |= _looks([*(_Variant(name) for name in names if name not in report_names)], first=len(report_names))
    labels = _labels(names, [""] * len(names), report_names)
    return [Series(name, label, *looks[_Variant(name)]) for name, label in zip(names, labels, strict=True)]


def _looks(all_of: Iterable[_Variant], first: int = 0) -> dict[_Variant, tuple[str, str, str]]:
    """Color, marker and line style of each variant; the first 88 (8 x 11) are unique."""
    every = sorted(set(all_of), key=lambda variant: (variant.name.casefold(), variant))
    names = {name: first + place for place, name in enumerate(dict.fromkeys(variant.name for variant in every))}
    places = dict.fromkeys(names.values())
    looks = {}
    for one in every:
        place = names[one.name]
        while one.variant and place in places:
            place += len(COLORS)
        places[place] = None
        line = LINES[place // len(COLORS) % len(LINES)]
        looks[one] = COLORS[place % len(COLORS)], MARKERS[place % len(MARKERS)], line
    return looks


def _key(run: Run) -> tuple[str, Path]:
    return run.name, run.path


def _variants(runs: Iterable[Run]) -> dict[tuple[str, Path], _Variant]:
    """The variant of each run: by its settings, so that those with the same ones look alike on every benchmark."""
    repeats: dict[tuple[str, str, Settings], int] = {}
    keys: dict[tuple[str, Path], tuple[str, int, Settings]] = {}
    for key, run in sorted({_key(run): run for run in runs}.items(), key=lambda one: str(one[0])):
        own = run.name, run.config.benchmark.name, _settings(run)
        repeats[own] = repeats.get(own, -1) + 1
        keys[key] = run.name, repeats[own], own[-1]
    ordered = sorted(set(keys.values()))
    first = {name: place for place, (name, *_) in reversed([*enumerate(ordered)])}
    return {key: _Variant(own[0], ordered.index(own) - first[own[0]]) for key, own in keys.items()}


def _settings(run: Run) -> Settings:
    """The prompt and judge settings in which runs of one model may differ."""
    values: dict[str, object] = {name: getattr(run.config.prompt, name) for name in ("profile", "profile_size")}
    names = ("oracle", "setting", "variables", "reply_format", "orders", "criterion", "verdict_parsing", "limit")
    values |= {name: run.config.judge_setting(name) for name in names}
    values["rules"] = None if run.config.benchmark.description.ties_break_exact_match else "legacy"
    return tuple((name.replace("_", " "), str(value)) for name, value in values.items() if value is not None)


def _labels(names: Sequence[str], differences: Sequence[str], among: Iterable[str]) -> list[str]:
    """Short and unique labels of models, whose names may repeat.

    among: All names of the report, so that a model has the same label in all figures.
    """
    every = sorted({*names, *among})
    short = dict(
        zip(
            every,
            shortened([readable(one) for one in short_names([" ".join(one.split()) for one in every])]),
            strict=True,
        )
    )
    details = shortened([readable(one) for one in differences])
    texts = [f"{short[name]} ({more})" if more else short[name] for name, more in zip(names, details, strict=True)]
    return unique(texts)


def unique(texts: Sequence[str]) -> list[str]:
    """Number the texts that occur more than once."""
    return [
        f"{text} ({texts[: place + 1].count(text)})" if texts.count(text) > 1 else text
        for place, text in enumerate(texts)
    ]


def shortened(names: Sequence[str]) -> list[str]:
    """Cut the middle of long names so that different names stay different; keep more of them if necessary."""
    for most in range(NAME, max(map(len, names), default=0), LONGER):
        for end in sorted(range(1, most - 1), key=lambda end: abs(end - END)):
            short = [name if len(name) <= most else f"{name[: most - end - 1]}…{name[-end:]}" for name in names]
            if len(set(short)) == len(set(names)):
                return short
    return list(names)


def _last_if_missing(accuracy: float | None) -> float:
    return inf if accuracy is None else -accuracy


def kind_name(kind: str) -> str:
    """Return the name of a kind of reward model; an unknown kind is its own name."""
    return KINDS.get(kind, kind)
