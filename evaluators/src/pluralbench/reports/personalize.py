"""What personalized reward models decide with and without a profile, as tables for people and as sentences.

The first table has the layout of Personalized RewardBench, Table 6; the others say how sure the differences are.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from pluralbench_measures.bootstrap import CONFIDENCE, Estimate
from pluralbench_release import counted

from pluralbench.metrics.personalize import COMPARED
from pluralbench.reports.layout import first_words
from pluralbench.reports.numbers import p_value, percent, points
from pluralbench.reports.tables import Column, Row, Table, Value
from pluralbench.reports.writing import Report, long_frame, written
from pluralbench.results.personalize import KNOWN, NEW, PersonalizeResult, SetRecord
from pluralbench.results.runs import Personalized, method_number

METHODS = {"bt": "Bradley-Terry", "gpo": "GPO", "vpl": "VPL", "pal": "PAL", "synthesizeme": "SynthesizeMe"}
CONDITIONS = {"without": "w/o", "posts": "posts", "with": "w/", "shuffled": "other's"}
TOLD = {"raw": "posts of the user", "persona": "a summary of the user"}
AGAINST = {"posts": ", with the summary against the posts alone", "shuffled": ", own against another's profile"}


def report_personalized(runs: Sequence[Personalized]) -> Report:
    """The report of some directories; for programs the long frame of their numbers, with the directory."""
    # What two directories have in common is said once.
    said = list(dict.fromkeys(note for found in runs for note in notes(found)))
    return Report(
        [table for found in runs for table in tables_of(found)],
        said,
        long_frame((found.path, found.metrics) for found in runs),
    )


def tables_of(found: Personalized) -> Iterator[Table]:
    """A table of each set and comparison, and the configs of a set that has several, in the layout of Table 6."""
    conditions = found.result.conditions
    compared = [pair for pair in COMPARED if {*pair} <= {*conditions}]
    for name, described in found.result.sets.items():
        if described.by_config and len(described.configs) > 1:
            yield _by_config(found, name, described)
        if not compared:
            columns = [Column(CONDITIONS[one], part=True) for one in conditions]
            yield _table(found, described.title, columns, partial(_levels, found, name, conditions))
    for first, second in compared:
        levels = [Column(CONDITIONS[one], part=True) for one in (first, second)]
        columns = [*levels, Column("gain", points, part=True), Column("p", p_value, part=True)]
        for name, described in found.result.sets.items():
            title = described.title + AGAINST.get(first, "")
            yield _table(found, title, columns, partial(_gained, found, name, first, second))


def _by_config(found: Personalized, name: str, described: SetRecord) -> Table:
    conditions = [one for one in found.result.conditions if one != "shuffled"]
    places = dict(zip(described.configs, first_words(described.configs), strict=True)) | {None: "Mean"}
    shown = [(config, text, condition) for config, text in places.items() for condition in conditions]
    columns = [Column(f"{text}: {CONDITIONS[one]}", bounds=False, part=True) for _, text, one in shown]

    def values(method: str) -> list[Estimate]:
        return [method_number(found, "accuracy", name, method, condition, config) for config, _, condition in shown]

    return _table(found, described.title, columns, values)


def _table(
    found: Personalized, title: str, columns: Sequence[Column], values: Callable[[str], Sequence[Value]]
) -> Table:
    methods = found.config.personalizing.methods
    return Table(title, "method", columns, [Row(METHODS[method], values(method)) for method in methods])


def _levels(found: Personalized, name: str, conditions: Sequence[str], method: str) -> list[Estimate]:
    return [method_number(found, "accuracy", name, method, one) for one in conditions]


def _gained(found: Personalized, name: str, first: str, second: str, method: str) -> list[Value]:
    """Both accuracies, the difference and its test."""
    gain, p = (method_number(found, metric, name, method, f"{second}-{first}") for metric in ("gain", "p_holm"))
    return [*_levels(found, name, (first, second), method), gain, p]


def notes(found: Personalized) -> Iterator[str]:
    """What a reader of the tables has to know, a sentence or two each."""
    config, result = found.config, found.result
    for name, described in result.sets.items():
        about = {
            NEW: "users of whom nothing was trained on",
            KNOWN: "users that were trained on, by their latest pairs, which were not",
        }.get(name, "users")
        yield f"{described.title}: {counted(described.items, 'pair')} of {described.users:,} {about}."
    trained, number = result.trained_on, config.personalizing.seeds
    seeds = f", the mean over {number} seeds" if number > 1 else ", of one seed"
    yield (
        f"Accuracy in %{seeds}, with {CONFIDENCE:.0%} intervals over users; ties are wrong, and a coin gets 50. "
        f"Trained on {counted(trained.pairs, 'pair')} of {trained.users:,} users."
    )
    yield from _told(found)
    if len(result.conditions) > 1:
        methods = len(config.personalizing.methods)
        adjusted = f", adjusted for the {methods} methods of a table (Holm)" if methods > 1 else ""
        yield (
            "gain: the second less the first, in points. p: of no difference, two-sided, by exchanging the two within "
            f"users{adjusted}."
        )
    if result.excluded:
        left = ", ".join(f"{name} {count:,}" for name, count in result.excluded.items())
        yield f"Left out for all models, since nothing is known of the user to tell, or for their length: {left}."
    yield from _spread(found)
    yield from _alike(found)


def _told(found: Personalized) -> Iterator[str]:
    config, result = found.config, found.result
    told: dict[str, list[str]] = {}
    for model in result.models:
        if model.condition == "with" and METHODS[model.method] not in told.setdefault(TOLD[model.user_context], []):
            told[TOLD[model.user_context]].append(METHODS[model.method])
    if told:
        said = [f"{what} ({', '.join(names)})" for what, names in told.items()]
        summary = ", and a summary of the user besides" if config.personalizing.persona else ""
        yield f"w/: told {'; '.join(said)}{summary}."
        yield from _without_personas(result)
    if "posts" in result.conditions:
        yield (
            "posts: told posts of the user alone. The paper of Personalized RewardBench describes its Table 6 in two "
            "ways: w/ against w/o is that of appendix A.3, w/ against posts that of appendix B (there GPO is told no "
            "posts in either)."
        )
    if "without" in result.conditions:
        yield "w/o: told nothing of the user, in training and here."
    if "shuffled" in result.conditions:
        yield "other's: the models of w/, here told of another user, drawn at random."


def _without_personas(result: PersonalizeResult) -> Iterator[str]:
    names = dict.fromkeys(METHODS[model.method] for model in result.models if model.user_context == "persona")
    without = {one.title: one.items - one.personas for one in result.sets.values() if one.personas < one.items}
    if names and without:
        said = ", ".join(f"{count:,} of {title}" for title, count in without.items())
        yield f"Items whose user has no summary, so that {', '.join(names)} was told posts there too: {said}."


def _spread(found: Personalized) -> Iterator[str]:
    """How far seeds lie apart on the first set."""
    name, described = next(iter(found.result.sets.items()))
    parts = []
    for method in found.config.personalizing.methods:
        spreads = {
            CONDITIONS[condition]: method_number(found, "seeds_sd", name, method, condition).value
            for condition in found.result.conditions
        }
        said = [f"{which} {percent(value)}" for which, value in spreads.items() if value is not None]
        parts += [f"{METHODS[method]} {', '.join(said)}"] if said else []
    if parts:
        yield f"Standard deviation over seeds, in points, {described.title.lower()}: {'; '.join(parts)}."


def _alike(found: Personalized) -> Iterator[str]:
    if {"bt", "synthesizeme"} <= set(found.config.personalizing.methods):
        yield (
            "Bradley-Terry and SynthesizeMe are one architecture here, and in the paper of Personalized RewardBench "
            "their rows are the same in every digit: without a profile, or where both are told the same, their rows "
            "are one piece of evidence and not two."
        )


def page(found: Personalized, figures: Sequence[Path]) -> str:
    """The page of a directory in Markdown, with its figures, whose paths are within the directory."""
    pictures = "\n\n".join(f"![{path.stem.replace('_', ' ')}]({path.as_posix()})" for path in figures)
    parts = [
        f"# Personalized reward models on {Path(found.config.backbone.name).name}",
        str(written(report_personalized([found]), "markdown", None)),
        *([f"## By how much is told\n\n{pictures}"] if pictures else []),
        "## How to repeat it\n\nWhat was asked and what made the numbers is in `run.json`, each decision in "
        "`items.parquet`, and each model, as `pluralbench score` takes it, in `models`.",
    ]
    return "\n\n".join(parts) + "\n"
