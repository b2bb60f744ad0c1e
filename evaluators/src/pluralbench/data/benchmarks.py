"""The benchmarks: a table of data (`benchmarks.toml`). A new one is an entry there, or a file of that form."""

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
    """Such a field is left out of what a run records: runs of earlier versions did not have it."""
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
        """Whether its items are rankings rather than pairs."""
        return self.multiple_responses or self.columns.responses is not None

    @property
    def section_of(self) -> dict[str, str]:
        """The section of each subset that is in one."""
        return {subset: name for name, weights in self.sections.items() for subset in weights}

    def fit_to(self, subsets: Iterable[str | None]) -> Self:
        """This benchmark for items of these subsets: without sections where none of the subsets is in one.

        So pairs of one's own, of which only the shape is the benchmark's, are averaged plainly.
        """
        return self if self.section_of.keys() & set(subsets) else self.model_copy(update={"sections": {}})

    def title_for(self, location: str, revision: str | None = None) -> str:
        """The title that a run on this data records: where it is not the published one, with its name.

        revision: where the data is on the Hub, its commit.
        """
        if location == (self.data or "").partition("@")[0]:
            return self.title
        return f"{self.title} ({location if revision is not None else Path(location).resolve().name})"

    def columns_of(self, config: str) -> Columns:
        """Which column is what in a config."""
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
        """The benchmark by itself."""
        return Benchmark.model_validate({name: getattr(self, name) for name in Benchmark.model_fields})


def known_benchmarks() -> dict[str, Benchmark]:
    """The benchmarks of this package by name."""
    return {name: described.benchmark() for name, described in _known().items()}


def benchmark_entries(names: Sequence[str] = ()) -> dict[str, BenchmarkEntry]:
    """Benchmarks as they are described: those named, of which one may be a TOML file, or all of this package.

    Raises `BenchmarkError` for an unknown name and a bad file.
    """
    known = _known()
    return {name: _described(name, known) for name in names or known}


def _known() -> dict[str, BenchmarkEntry]:
    text = files("pluralbench.data").joinpath("benchmarks.toml").read_text(encoding="utf-8")
    return {name: BenchmarkEntry.model_validate(values) for name, values in tomllib.loads(text).items()}


def _described(name: str, known: Mapping[str, BenchmarkEntry]) -> BenchmarkEntry:
    if name in known:
        return known[name]
    if name.endswith(".toml"):
        return _read(Path(name))
    hint = did_you_mean(name, known)
    raise BenchmarkError(f"There is no benchmark {name!r}; {hint}choose {', '.join(known)}, or give a TOML file.")


def find_benchmark(
    name: str,
    columns: Sequence[str] = (),
    labels: Sequence[str] = (),
    *,
    legacy: bool = False,
    for_training: bool = False,
) -> Benchmark:
    """A benchmark by its name, or from a TOML file that describes one.

    columns, labels: changes to its `columns` and `labels`, such as "prompt=text" and "first=A>B".
    legacy: count as the authors' code does where it differs from the paper: M-RewardBench's weighs subsets by the
    counts before filtering (for judges), CHEEMS's is not strict about exact matches (see `Benchmark`).
    for_training: as a reward model is trained on it: its pairs and its split to train on, which nothing else reads.

    Raises `BenchmarkError` for an unknown name, a bad file, a change that names no column or one that is only trained
    on, legacy rules of a benchmark that has none, and the persona judge, whose items have neither pairs nor rankings of
    responses.
    """
    known = _known()
    benchmark = _described(name, known).benchmark()
    if benchmark.persona_items:
        raise BenchmarkError(
            f"{benchmark.title} has no responses to score; run `pluralbench judge-personas MODEL --data DIR`, or in "
            "Python `judge_personas`."
        )
    if legacy:
        if benchmark.legacy is None and not benchmark.by_category:
            raise BenchmarkError(f"{benchmark.title} has no legacy rules; leave out --legacy.")
        rules = (
            {"sections": known[benchmark.legacy].sections} if benchmark.legacy else {"ties_break_exact_match": False}
        )
        benchmark = benchmark.model_copy(update=rules)
    changes = dict(_change(change) for change in columns)
    named = benchmark.columns.model_copy(update=changes | {"explicit": tuple(changes)})
    split = benchmark.train_split or benchmark.split
    if not for_training:
        if "pairs" in changes:
            raise BenchmarkError(f"Only training reads pairs; leave out the column `{changes['pairs']}`.")
        named, split = named.model_copy(update={"pairs": None}), benchmark.split
    meanings = _labels(benchmark.labels, labels)
    return benchmark.model_copy(update={"columns": named, "labels": meanings, "split": split, "train_split": None})


def _read(path: Path) -> BenchmarkEntry:
    values = _entry(read_toml(path, "benchmark file", BenchmarkError), path)
    try:
        return BenchmarkEntry.model_validate(values)
    except ValidationError as error:
        raise BenchmarkError(
            f"{path} describes no benchmark: {first_validation_error(BenchmarkEntry, error)}"
        ) from None


def _entry(values: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """A file's one description: its keys, or those of the one table it has, as an entry of `benchmarks.toml` is."""
    tables = [value for value in values.values() if isinstance(value, dict)]
    titled = any("title" in table for table in tables)  # of an entry: no table of a description has one
    flat = values.keys() & BenchmarkEntry.model_fields.keys() and not titled
    if not tables or len(tables) < len(values) or flat:
        return values
    if len(values) > 1:
        raise BenchmarkError(f"{path} describes several benchmarks ({', '.join(values)}); leave one in it.")
    return tables[0]


def _change(change: str) -> tuple[str, str | tuple[str, ...]]:
    what, equals, column = change.partition("=")
    known = [name for name in Columns.model_fields if name != "explicit"]
    if not equals or what not in known or not column:
        names = ", ".join(known)
        raise BenchmarkError(f"--column {change!r} is not of the form WHAT=COLUMN, with WHAT one of {names}.")
    return what, tuple(column.split(",")) if what in LISTS else column


def _labels(entry: Labels, changes: Sequence[str]) -> Labels:
    said: dict[str, Any] = {}
    for what, _, values in (change.partition("=") for change in changes):
        said[what] = values if what == "threshold" else [*said.get(what, ()), *values.split(",")]
    try:
        return Labels.model_validate(entry.model_dump() | said)
    except ValidationError as error:
        raise BenchmarkError(
            f"The labels {' '.join(changes)} are not of the form MEANING=VALUE, with MEANING one of "
            f"{', '.join(Labels.model_fields)}: {first_validation_error(Labels, error)}"
        ) from None
