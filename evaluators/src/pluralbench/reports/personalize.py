"""What personalized reward models decide with and without a profile, as tables for people and as sentences.

The first table has the layout of Personalized RewardBench, Table 6; the others say how sure the differences are.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import polars as pl
from pluralbench_measures.bootstrap import CONFIDENCE, Estimate
from rich.console import Group

from pluralbench.metrics.personalize import COMPARED
from pluralbench.reports import Format
from pluralbench.reports.layout import DASH, WIDTH, Heading, Line, Page
from pluralbench.reports.notes import mark, mark_notes, with_interval
from pluralbench.reports.writing import Content, written
from pluralbench.results.personalize import KNOWN, NEW, Personalized, PersonalizeRecord, SetRecord

METHODS = {"bt": "Bradley-Terry", "gpo": "GPO", "vpl": "VPL", "pal": "PAL", "synthesizeme": "SynthesizeMe"}
CONDITIONS = {"without": "w/o", "with": "w/", "shuffled": "other's"}
TOLD = {"raw": "posts of the user", "persona": "a summary of the user"}


def render_personalized(runs: Sequence[Personalized], form: Format, *, width: int | None = WIDTH) -> str | Group:
    """The report of some directories in a form; for programs the long frame of their numbers, with the directory."""
    frame = pl.concat([found.metrics.select(pl.lit(str(found.path)).alias("run"), pl.all()) for found in runs])
    pages = [page for found in runs for page in pages_of(found)]
    # What two directories have in common is said once.
    said = list(dict.fromkeys(note for found in runs for note in notes(found)))
    return written(Content(pages, said, frame.to_dicts(), frame), form, width)


def pages_of(found: Personalized) -> Iterator[Page]:
    """A table of each set and comparison, and the configs of a set that has several, in the layout of Table 6."""
    conditions = found.record.conditions
    compared = [pair for pair in COMPARED if {*pair} <= {*conditions}]
    for name, described in found.record.sets.items():
        if described.by_config and len(described.configs) > 1:
            yield _by_config(found, name, described)
        if not compared:
            yield _page(found, described.title, [CONDITIONS[one] for one in conditions], partial(_levels, found, name))
    for first, second in compared:
        for name, described in found.record.sets.items():
            against = ", own against another's profile" if first == "shuffled" else ""
            heads = [CONDITIONS[first], CONDITIONS[second], "gain", "p"]
            yield _page(found, described.title + against, heads, partial(_gained, found, name, first, second))


def _by_config(found: Personalized, name: str, described: SetRecord) -> Page:
    conditions = [one for one in found.record.conditions if one != "shuffled"]
    places = dict(zip(described.configs, _first_words(described.configs), strict=True)) | {None: "Mean"}
    shown = [(config, text, condition) for config, text in places.items() for condition in conditions]
    heads = [f"{text}: {CONDITIONS[condition]}" for _, text, condition in shown]

    def cells(method: str) -> list[str]:
        return [
            _percent(found.estimate("accuracy", name, method, condition, config).value)
            for config, _, condition in shown
        ]

    return _page(found, described.title, heads, cells)


def _first_words(names: Sequence[str]) -> list[str]:
    """The first word of each name, as "Art" of "Art_and_Entertainment", where these are unlike."""
    words = [name.split("_")[0] for name in names]
    return words if len(set(words)) == len(words) else list(names)


def _page(found: Personalized, title: str, heads: Sequence[str], cells: Callable[[str], Sequence[str]]) -> Page:
    lines = tuple(Line(METHODS[method], tuple(cells(method))) for method in found.record.methods)
    return Page(title, "method", tuple(Heading(head, part=True) for head in heads), lines)


def _levels(found: Personalized, name: str, method: str) -> list[str]:
    return [_interval(found.estimate("accuracy", name, method, one), ".1f") for one in found.record.conditions]


def _gained(found: Personalized, name: str, first: str, second: str, method: str) -> list[str]:
    """Both accuracies, the difference and its test."""
    levels = (found.estimate("accuracy", name, method, condition) for condition in (first, second))
    gain, p = (found.estimate(metric, name, method, f"{second}-{first}") for metric in ("gain", "p_holm"))
    return [*(_interval(one, ".1f") for one in levels), _interval(gain, "+.1f"), _p(p.value)]


def notes(found: Personalized) -> Iterator[str]:
    """What a reader of the tables has to know, a sentence or two each."""
    record = found.record
    for name, described in record.sets.items():
        about = {
            NEW: "users of whom nothing was trained on",
            KNOWN: "users that were trained on, by their latest pairs, which were not",
        }.get(name, "users")
        yield f"{described.title}: {_number(described.items, 'pair')} of {described.users:,} {about}."
    trained = record.trained_on
    seeds = f", the mean over {record.seeds} seeds" if record.seeds > 1 else ", of one seed"
    yield (
        f"Accuracy in %{seeds}, with {CONFIDENCE:.0%} intervals over users; ties are wrong, and a coin gets 50. "
        f"Trained on {_number(trained['pairs'], 'pair')} of {trained['users']:,} users."
    )
    yield from _told(found)
    if len(record.conditions) > 1:
        methods = len(record.methods)
        adjusted = f", adjusted for the {methods} methods of a table (Holm)" if methods > 1 else ""
        yield (
            "gain: the second less the first, in points. p: of no difference, two-sided, by exchanging the two within "
            f"users{adjusted}."
        )
    if record.left_out:
        left = ", ".join(f"{name} {count:,}" for name, count in record.left_out.items())
        yield f"Left out for all models, since nothing is known of the user to tell, or for their length: {left}."
    yield from _spread(found)
    yield from mark_notes(_marked(found))
    yield from _alike(found)


def _told(found: Personalized) -> Iterator[str]:
    record = found.record
    told: dict[str, list[str]] = {}
    for model in record.models:
        if model.condition == "with" and METHODS[model.method] not in told.setdefault(TOLD[model.told], []):
            told[TOLD[model.told]].append(METHODS[model.method])
    if told:
        said = [f"{what} ({', '.join(names)})" for what, names in told.items()]
        yield f"w/: told {'; '.join(said)}."
        yield from _without_personas(record)
    if "without" in record.conditions:
        yield "w/o: told nothing of the user, in training and here."
    if "shuffled" in record.conditions:
        yield "other's: the models of w/, here told of another user, drawn at random."


def _without_personas(record: PersonalizeRecord) -> Iterator[str]:
    names = dict.fromkeys(METHODS[model.method] for model in record.models if model.told == "persona")
    without = {one.title: one.items - one.personas for one in record.sets.values() if one.personas < one.items}
    if names and without:
        said = ", ".join(f"{count:,} of {title}" for title, count in without.items())
        yield f"Items whose user has no summary, so that {', '.join(names)} was told posts there too: {said}."


def _spread(found: Personalized) -> Iterator[str]:
    """How far seeds lie apart on the first set."""
    name, described = next(iter(found.record.sets.items()))
    parts = []
    for method in found.record.methods:
        spreads = {
            CONDITIONS[condition]: found.estimate("seeds_sd", name, method, condition).value
            for condition in found.record.conditions
        }
        said = [f"{which} {100 * value:.1f}" for which, value in spreads.items() if value is not None]
        parts += [f"{METHODS[method]} {', '.join(said)}"] if said else []
    if parts:
        yield f"Standard deviation over seeds, in points, {described.title.lower()}: {'; '.join(parts)}."


def _marked(found: Personalized) -> Iterator[Estimate]:
    for name in found.record.sets:
        for method in found.record.methods:
            for condition in found.record.conditions:
                yield found.estimate("accuracy", name, method, condition)


def _alike(found: Personalized) -> Iterator[str]:
    if {"bt", "synthesizeme"} <= set(found.record.methods):
        yield (
            "Bradley-Terry and SynthesizeMe are one architecture here, and in the paper of Personalized RewardBench "
            "their rows are the same in every digit: without a profile, or where both are told the same, their rows "
            "are one piece of evidence and not two."
        )


def _number(count: int, of: str) -> str:
    return f"{count:,} {of}{'' if count == 1 else 's'}"


def _percent(value: float | None) -> str:
    return DASH if value is None else f"{100 * value:.1f}"


def _p(value: float | None) -> str:
    return DASH if value is None else f"{value:.3f}" if value >= 0.001 else "<0.001"


def _interval(found: Estimate, form: str) -> str:
    return with_interval(found, 100, form) + mark(found) or DASH


def page(found: Personalized, figures: Sequence[Path]) -> str:
    """The page of a directory in Markdown, with its figures, whose paths are within the directory."""
    record = found.record
    pictures = "\n\n".join(f"![{path.stem.replace('_', ' ')}]({path.as_posix()})" for path in figures)
    parts = [
        f"# Personalized reward models on {Path(record.backbone.name).name}",
        str(render_personalized([found], "markdown")),
        *([f"## By how much is told\n\n{pictures}"] if pictures else []),
        "## How to repeat it\n\nThe settings are in `settings.toml`, what made the numbers in `personalize.json`, each "
        "decision in `items.parquet`, and each model, as `pluralbench score` takes it, in `models`.",
    ]
    return "\n\n".join(parts) + "\n"
