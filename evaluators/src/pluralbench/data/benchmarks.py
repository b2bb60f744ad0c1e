"""Benchmarks: the entries of `benchmarks.toml`, or of a file of the same form."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Self

from pluralbench_runs import FrozenModel, did_you_mean, first_validation_error, read_toml
from pydantic import Field, ValidationError, model_validator

from pluralbench.config import OnEmpty
from pluralbench.data.labels import Labels
from pluralbench.errors import BenchmarkError

ROW_NUMBER = "#"
LISTS = ("prompt", "labels")
PERSONA_JUDGE: Literal["persona-judge"] = "persona-judge"


def _is_none(value: object) -> bool:
    """Return whether runs leave out a field, since runs of earlier versions do not have it."""
    return value is None


class Columns(FrozenModel):
    """Which column is what.

    id: "#" numbers the rows. prompt: one or several, joined by an empty line; text, or a list of messages with `role`
    and `content`, or of what the user says turn by turn. A pair has `chosen` and `rejected`, texts
    or conversations whose last message is the response, or `first`, `second` and `labels` of one or more annotators,
    whose majority decides (see `Labels`). A ranking has `responses`, a list of texts or of {id, content},
    and `rank`, a list of whole numbers or of {id, rank}, or a mapping by id (lower is better, ties share a number).
    pairs: of a ranking, what a reward model is trained on in place of all that the ranks order: a list of
    [better, worse] by id, or of [first, second, mark] with mark 1, 2 or s; nothing else reads it.
    subset: what part of its config a row is of, which sections weigh.
    cluster: what the rows that belong together share, such as a user; without it the prompt's text, and the id.
    profile, aspects, persona: of whom the prompt is, where the benchmark has them; a persona is a text or a list of
    sentences. system: a system message.
    named: which of these the caller named, so that they have to be there.
    """

    id: str = "id"
    prompt: tuple[str, ...] = Field(("prompt",), min_length=1)
    chosen: str = "chosen"
    rejected: str = "rejected"
    first: str | None = None
    second: str | None = None
    labels: tuple[str, ...] = ()
    responses: str | None = None
    rank: str | None = None
    pairs: str | None = Field(None, exclude_if=_is_none)
    subset: str | None = None
    cluster: str | None = None
    system: str | None = None
    profile: str | None = None
    aspects: str | None = None
    persona: str | None = Field(None, exclude_if=_is_none)
    explicit: tuple[str, ...] = ()


class Reference(FrozenModel):
    """The items in the language that a benchmark was translated from.

    config: what they are called, in data that has them and in a run. data, split: where they are otherwise. columns:
    which of their columns are other than the benchmark's there. code: subsets whose answers are code (shell patterns).
    """

    config: str
    data: str
    split: str
    columns: dict[str, str] = Field(default_factory=dict)
    code: tuple[str, ...] = ()


class HistoryRows(FrozenModel):
    """Which rows are pairs that the same user (the value of the column `cluster`) decided before an item.

    column, values: rows with one of these values there are earlier pairs of their user, and are not scored; the other
    rows are. Without a column every row is scored, and the earlier pairs are the rows of its user that stand before it
    in the same table. Where no column has a profile, the questions of these pairs are the user's posts, the latest
    first.
    """

    column: str | None = None
    values: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.column is None) != (not self.values):
            raise ValueError("`column` and `values` belong together; give both, or neither for the rows before")
        return self


class Benchmark(FrozenModel):
    """A benchmark, as an entry of `benchmarks.toml` describes it, and a file of one's own: its keys, or one such entry.

    title: what reports call it. columns: which column is what, see `Columns`. labels: what the values of its columns of
    labels mean, see `Labels`. several: `chosen` and `rejected` are lists of responses, of which each chosen one is
    better than each rejected one. data: where it is when nobody says otherwise. sample: the folder of its sample in
    `pluralbench.data.samples`. split: of that data, or "all" of them. train_split: the split to train on, where that is
    another one. apart: configs with columns of their own that
    stay out of the overall number. sections: weights of subsets, by section. overall: the mean over "items", or the
    unweighted mean over "configs", or that of "accuracy and exact match" over subsets and then configs.
    on_empty: what to do with items that have an empty prompt or response when nobody says otherwise.
    reference: for one whose configs are languages, the original, which stays out of the overall number too.
    merged: rows of one prompt are one item, with the responses of all of them.
    legacy: the benchmark whose weights of subsets stand for this one's own by the legacy rules.
    strict: an exact match needs the strictly higher reward in every pair and at least one pair, as in CHEEMS, section
    3.3; without it a tie of rewards breaks none, and a prompt whose responses share one rank is one, as in its code.
    earlier: which rows are pairs that the same user decided before, see `HistoryRows`; None if the benchmark has none.
    prompts: its items are prompts without responses, which only a policy can answer.
    personas: its items are those of `PersonaItems`, which `judge_personas` reads.
    """

    title: str
    data: str | None = None
    sample: str | None = None
    split: str = "test"
    train_split: str | None = Field(None, exclude_if=_is_none)
    columns: Columns = Columns()
    labels: Labels = Labels()
    multiple_responses: bool = False
    excluded_configs: dict[str, dict[str, str]] = Field(default_factory=dict)
    sections: dict[str, dict[str, float]] = Field(default_factory=dict)
    overall: Literal["items", "configs", "accuracy and exact match"] = "items"
    on_empty: OnEmpty = "error"
    reference: Reference | None = None
    group_by_prompt: bool = False
    legacy: str | None = None
    ties_break_exact_match: bool = True
    prompts_only: bool = False
    persona_items: bool = False
    history: HistoryRows | None = Field(None, exclude_if=_is_none)

    @property
    def outside_overall(self) -> set[str]:
        """The configs that stay out of the overall number."""
        return {*self.excluded_configs, *([self.reference.config] if self.reference else [])}

    @property
    def by_category(self) -> bool:
        """Whether accuracy and exact match are averaged over categories."""
        return self.overall == "accuracy and exact match"

    @property
    def is_ranking(self) -> bool:
        """Whether the items are rankings instead of pairs."""
        return self.multiple_responses or self.columns.responses is not None

    @property
    def section_of(self) -> dict[str, str]:
        """Section of each subset; subsets without a section are missing."""
        return {subset: name for name, weights in self.sections.items() for subset in weights}

    def fit_to(self, subsets: Iterable[str | None]) -> Self:
        """Return this benchmark without sections if none of the items' subsets is in one.

        Your own pairs in the shape of a benchmark are then averaged without weights.
        """
        return self if self.section_of.keys() & set(subsets) else self.model_copy(update={"sections": {}})

    def title_for(self, location: str, revision: str | None = None) -> str:
        """Return the title for a run on this data; it names data that is not the published dataset.

        Args:
            location: Location of the data.
            revision: Commit of a dataset on the Hub. Default: the data is not on the Hub.
        """
        if location == (self.data or "").partition("@")[0]:
            return self.title
        return f"{self.title} ({location if revision is not None else Path(location).resolve().name})"

    def columns_of(self, config: str) -> Columns:
        """Return the columns of a config."""
        return self.columns.model_copy(update=self.excluded_configs.get(config, {}))


class BenchmarkCard(FrozenModel):
    """What `pluralbench list` says of a benchmark, and nothing else depends on.

    items: how many its data has. license: of that data, as an SPDX name. source: where it is published, if not on the
    Hub. takes: what may be given as data.
    """

    items: int | None = None
    license: str | None = None
    source: str | None = None
    accepts: str | None = None


class BenchmarkEntry(Benchmark):
    """A benchmark as its file describes it, with what no run of it records.

    learn: where the data is whose train split planners learn from, when nobody says otherwise. about: for readers.
    """

    train_data: str | None = None
    card: BenchmarkCard = BenchmarkCard()

    def benchmark(self) -> Benchmark:
        """Return the part of the entry that runs record."""
        return Benchmark.model_validate({name: getattr(self, name) for name in Benchmark.model_fields})


def known_benchmarks() -> dict[str, Benchmark]:
    """Return the built-in benchmarks by name."""
    return {name: entry.benchmark() for name, entry in _builtin_entries().items()}


def benchmark_entries(names: Sequence[str] = ()) -> dict[str, BenchmarkEntry]:
    """Return entries of benchmarks by name.

    Args:
        names: Names of built-in benchmarks, or TOML files. Default: all built-in benchmarks.

    Raises:
        BenchmarkError: If a name is unknown, or a file is not valid.
    """
    builtin = _builtin_entries()
    return {name: _find_entry(name, builtin) for name in names or builtin}


def _builtin_entries() -> dict[str, BenchmarkEntry]:
    text = files("pluralbench.data").joinpath("benchmarks.toml").read_text(encoding="utf-8")
    return {name: BenchmarkEntry.model_validate(values) for name, values in tomllib.loads(text).items()}


def _find_entry(name: str, builtin: Mapping[str, BenchmarkEntry]) -> BenchmarkEntry:
    if name in builtin:
        return builtin[name]
    if name.endswith(".toml"):
        return _read_file(Path(name))
    hint = did_you_mean(name, builtin)
    raise BenchmarkError(f"Unknown benchmark {name!r}; {hint}choose {', '.join(builtin)}, or pass a TOML file.")


def find_benchmark(
    name: str,
    columns: Sequence[str] = (),
    labels: Sequence[str] = (),
    *,
    legacy: bool = False,
    for_training: bool = False,
) -> Benchmark:
    """Return a benchmark by its name, or from a TOML file.

    Args:
        name: Name of a built-in benchmark (`known_benchmarks`), or a TOML file.
        columns: Changes to the benchmark's columns, such as "prompt=text".
        labels: Changes to the meaning of its labels, such as "first=A>B".
        legacy: Count as the authors' code does where it differs from the paper: M-RewardBench weights subsets by the
            counts before filtering; CHEEMS's exact match counts ties of scores.
        for_training: Use the column of training pairs and the training split, which only `train` reads.

    Raises:
        BenchmarkError: If the name is unknown, the file or a change is not valid, the benchmark has no legacy rules,
            or its items have no responses to score (the persona judge).
    """
    builtin = _builtin_entries()
    benchmark = _find_entry(name, builtin).benchmark()
    if benchmark.persona_items:
        raise BenchmarkError(
            f"{benchmark.title} has no responses to score; run `pluralbench judge-personas` (Python: `judge_personas`)."
        )
    if legacy:
        if benchmark.legacy is None and not benchmark.by_category:
            raise BenchmarkError(f"{benchmark.title} has no legacy rules; leave out `legacy=True`.")
        rules = (
            {"sections": builtin[benchmark.legacy].sections} if benchmark.legacy else {"ties_break_exact_match": False}
        )
        benchmark = benchmark.model_copy(update=rules)
    changes = dict(_parse_column(change) for change in columns)
    named = benchmark.columns.model_copy(update=changes | {"explicit": tuple(changes)})
    split = benchmark.train_split or benchmark.split
    if not for_training:
        if "pairs" in changes:
            raise BenchmarkError(f"Only training reads `pairs`; leave out the column `{changes['pairs']}`.")
        named, split = named.model_copy(update={"pairs": None}), benchmark.split
    meanings = _parse_labels(benchmark.labels, labels)
    return benchmark.model_copy(update={"columns": named, "labels": meanings, "split": split, "train_split": None})


def _read_file(path: Path) -> BenchmarkEntry:
    values = _single_entry(read_toml(path, "benchmark file", BenchmarkError), path)
    try:
        return BenchmarkEntry.model_validate(values)
    except ValidationError as error:
        raise BenchmarkError(
            f"{path} is not a valid benchmark file: {first_validation_error(BenchmarkEntry, error)}"
        ) from None


def _single_entry(values: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """Return the keys of a file, or those of its only table, which is an entry as in `benchmarks.toml`."""
    tables = [value for value in values.values() if isinstance(value, dict)]
    has_title = any("title" in table for table in tables)  # only entries have a title
    is_flat = values.keys() & BenchmarkEntry.model_fields.keys() and not has_title
    if not tables or len(tables) < len(values) or is_flat:
        return values
    if len(values) > 1:
        raise BenchmarkError(f"{path} describes several benchmarks ({', '.join(values)}); keep one per file.")
    return tables[0]


def _parse_column(change: str) -> tuple[str, str | tuple[str, ...]]:
    field, equals, column = change.partition("=")
    fields = [name for name in Columns.model_fields if name != "explicit"]
    if not equals or field not in fields or not column:
        raise BenchmarkError(
            f"`columns=[{change!r}]` does not have the form WHAT=COLUMN with WHAT one of {', '.join(fields)}."
        )
    return field, tuple(column.split(",")) if field in LISTS else column


def _parse_labels(entry: Labels, changes: Sequence[str]) -> Labels:
    meanings: dict[str, Any] = {}
    for meaning, _, values in (change.partition("=") for change in changes):
        meanings[meaning] = values if meaning == "threshold" else [*meanings.get(meaning, ()), *values.split(",")]
    try:
        return Labels.model_validate(entry.model_dump() | meanings)
    except ValidationError as error:
        raise BenchmarkError(
            f"The labels {' '.join(changes)} do not have the form MEANING=VALUE with MEANING one of "
            f"{', '.join(Labels.model_fields)}: {first_validation_error(Labels, error)}"
        ) from None
