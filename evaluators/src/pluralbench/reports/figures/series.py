"""Who is who in figures: the colour, marker and name of each model and judge, the same in all figures of a report."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import NamedTuple

from pluralbench.reports.figures.fonts import readable
from pluralbench.reports.names import differences
from pluralbench.results.runs import Run

# Okabe and Ito's colours, without the yellow that white paper swallows. Seven and twelve share no divisor.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*", "h")
LINES = ("-", "--", "-.")
PLACES = len(COLOURS) * len(MARKERS)
NAME, END = 36, 15  # characters of a name, and how many of them are its end where its middle is left out
LONGER = 12  # characters that a name may have more where names would be alike
Settings = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Series:
    """A model or a judge in figures: the same colour and marker in each of them."""

    name: str
    label: str
    colour: str
    marker: str

    @property
    def line(self) -> str:
        """The style of its curves, in which those of one colour differ."""
        looks = [(COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]) for place in range(PLACES)]
        return LINES[looks.index((self.colour, self.marker)) // len(COLOURS) % len(LINES)]


@dataclass(frozen=True)
class RunSeries(Series):
    """The series of a run."""

    run: Run


class _Who(NamedTuple):
    """A model, and which of its runs on a benchmark: 0 is the one that has the model's own marker."""

    name: str
    variant: int = 0


def series_of(runs: Sequence[Run], among: Sequence[Run] = ()) -> list[RunSeries]:
    """A series for each run of a benchmark, the best first, with labels that tell them apart.

    among: all runs of the report. A model's colour and marker go by its name among theirs, so they are the same on
    every benchmark. Further runs of a model on a benchmark, such as with another profile, share its colour alone.
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
    """A series for each judge or model, by its name and accuracy, the best first.

    among: the names in all figures of the report, by which the colours go.
    """
    names = sorted(accuracies, key=lambda name: (_last_if_missing(accuracies[name]), name))
    known = dict.fromkeys(among)
    # A name that the report does not know changes the colour of none that it does.
    looks = _looks(_Who(name) for name in known) if known else {}
    looks |= _looks([*(_Who(name) for name in names if name not in known)], first=len(known))
    labels = _labels(names, [""] * len(names), known)
    return [Series(name, label, *looks[_Who(name)]) for name, label in zip(names, labels, strict=True)]


def _looks(all_of: Iterable[_Who], first: int = 0) -> dict[_Who, tuple[str, str]]:
    """Colour and marker of each, by its name; no two have both alike among the first 84 (7 x 12)."""
    every = sorted(set(all_of), key=lambda one: (one.name.casefold(), one))
    names = {name: first + place for place, name in enumerate(dict.fromkeys(one.name for one in every))}
    places = dict.fromkeys(names.values())
    looks = {}
    for one in every:
        place = names[one.name]
        while one.variant and place in places:
            place += len(COLOURS)
        places[place] = None
        looks[one] = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
    return looks


def _key(run: Run) -> tuple[str, Path]:
    return run.name, run.path


def _variants(runs: Iterable[Run]) -> dict[tuple[str, Path], _Who]:
    """For each run its model, and a number that no other run of the model on the benchmark has.

    Runs with the same settings have the same number on every benchmark, where that can be.
    """
    groups: dict[tuple[str, str], dict[tuple[str, Path], Run]] = {}
    for run in runs:
        groups.setdefault((run.name, run.config.benchmark.name), {})[_key(run)] = run
    numbers: dict[tuple[str, Settings, int], int] = {}
    found: dict[tuple[str, Path], _Who] = {}
    for (name, _), group in sorted(groups.items(), key=lambda one: (-len(one[1]), one[0])):
        own = sorted(group.values(), key=lambda run: (_settings(run), str(run.path)))
        settings = [_settings(run) for run in own]
        wanted = [(name, one, settings[:place].count(one)) for place, one in enumerate(settings)]
        taken: set[int] = set()
        for key, run in sorted(zip(wanted, own, strict=True), key=lambda one: one[0] not in numbers):
            known = numbers.get(key)
            number = known if known is not None and known not in taken else _free(taken)
            numbers.setdefault(key, number)
            taken.add(number)
            found[_key(run)] = _Who(name, number)
    return found


def _free(taken: set[int]) -> int:
    return next(number for number in range(len(taken) + 1) if number not in taken)


def _settings(run: Run) -> Settings:
    """What a model was shown and how it was asked, as far as runs of one model may differ in it."""
    found: dict[str, object] = {name: getattr(run.config.prompt, name) for name in ("profile", "profile_size")}
    asked = ("oracle", "setting", "variables", "reply_format", "orders", "criterion", "verdict_parsing", "limit")
    found |= {name: run.config.judge_setting(name) for name in asked}
    found["rules"] = None if run.config.benchmark.description.ties_break_exact_match else "legacy"
    return tuple((name.replace("_", " "), str(value)) for name, value in found.items() if value is not None)


def _short(names: Sequence[str]) -> list[str]:
    """The last part of each name, as of a path; all of it where parts are alike."""
    whole = [" ".join(name.split()) for name in names]
    parts = [Path(name).name or name for name in whole]
    return [name if parts.count(part) > 1 else part for name, part in zip(whole, parts, strict=True)]


def _labels(names: Sequence[str], differences: Sequence[str], among: Iterable[str]) -> list[str]:
    """Labels that can be read, short, and unlike. names: of models, which may be there more than once.

    among: further names, so that a model is called the same in all figures.
    """
    known = sorted({*names, *among})
    short = dict(zip(known, shortened([readable(one) for one in _short(known)]), strict=True))
    added = shortened([readable(one) for one in differences])
    texts = [f"{short[name]} ({more})" if more else short[name] for name, more in zip(names, added, strict=True)]
    return [
        f"{text} ({texts[: place + 1].count(text)})" if texts.count(text) > 1 else text
        for place, text in enumerate(texts)
    ]


def shortened(names: Sequence[str]) -> list[str]:
    """Long names without their middle, cut where names that are unlike stay so; they keep more where they must."""
    for most in range(NAME, max(map(len, names), default=0), LONGER):
        for end in sorted(range(1, most - 1), key=lambda end: abs(end - END)):
            short = [name if len(name) <= most else f"{name[: most - end - 1]}…{name[-end:]}" for name in names]
            if len(set(short)) == len(set(names)):
                return short
    return list(names)


def _last_if_missing(accuracy: float | None) -> float:
    return inf if accuracy is None else -accuracy
