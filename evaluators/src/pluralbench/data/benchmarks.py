"""Benchmarks: the entries of `benchmarks.toml`, or of a file of the same form."""

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pluralbench_runs import FrozenModel, did_you_mean, first_validation_error, read_toml
from pluralbench_tables import SPREADSHEET, Dialect, Quoting, Separator
from pydantic import Field, ValidationError, field_validator, model_validator

from pluralbench.config import OnEmpty
from pluralbench.config.judges import Vote
from pluralbench.data.fields import (
    LISTS,
    Annotations,
    Columns,
    Credit,
    HistoryRows,
    Reference,
    Stratum,
    Turns,
    is_none,
    parse_changes,
)
from pluralbench.data.labels import FIRST, SECOND, Labels, Values
from pluralbench.errors import BenchmarkError

Weight = Annotated[float, Field(ge=0, le=1_000_000)]
"""Weight of a subset; published weights are 1, or numbers of items."""


class Benchmark(FrozenModel):
    """A benchmark, as described by an entry of `benchmarks.toml` or by a TOML file with the same keys.

    Attributes:
        title: Title in reports.
        data: Default dataset on the Hub. Default: none; the caller names the data.
        sample: Directory of its sample in `pluralbench.data.samples`.
        split: Split of the data, or "all"; of several, joined by commas, each is a config.
        configs: Default configs of the data. Default: all.
        train_split: Split to train on. Default: `split`.
        columns: Columns of its tables.
        required: Fields of `columns` whose columns must be in every table, beside those of the layout. Those that the
            caller names are added.
        labels: Meaning of the values in the columns of labels.
        multiple_responses: Whether `chosen` and `rejected` are lists of responses; every chosen response is better than
            every rejected one.
        excluded_configs: Configs that are not part of the overall number, with the columns that differ there.
        sections: Weights of subsets, by section.
        groups: Sections whose subsets weigh by their number of items, as shell patterns of subsets. They become
            `sections` once the items are known.
        user_turns: Whether a list of texts in the prompt has the user's turns. Otherwise it is refused.
        separator: Separator of CSV and TSV files, see `pluralbench_tables.Dialect`.
        quoting: Quoting of CSV and TSV files, see there.
        join_configs: Whether all tables of the data are one config, named "all".
        rows: Values of columns in the rows to keep; other rows are counted and left out.
        credit: How an item counts, by shell patterns of subsets; the first that matches decides. Default: each pair of
            a better and a worse response counts.
        metrics: Metrics beside the accuracy.
        overall: The overall number: the mean over "items", the unweighted mean over "configs", the mean of "accuracy
            and exact match" over subsets and then configs, or for answers in steps the unweighted mean over configs of
            "F1": the harmonic mean of the accuracies on erroneous and on correct answers (ProcessBench).
        step_threshold: Score below which a step is wrong. Default: 0.5, for scores that are probabilities.
        tune_step_threshold: Config on whose items this threshold is tuned, which are test data. Default: none.
        on_empty: Default handling of items with an empty prompt or response.
        reference: Original of a translated benchmark, which is not part of the overall number.
        group_by_prompt: Whether rows with the same prompt are one item with the responses of all of them.
        legacy: Benchmark whose legacy weights of subsets replace its own for `legacy=True`.
        legacy_sections: Sections whose legacy weights differ from `sections`.
        ties_break_exact_match: Whether an exact match requires at least one pair and a strictly higher score in every
            pair (CHEEMS, section 3.3). If false, tied scores match and prompts without a pair count, as in its code.
        prompts_only: Whether items are prompts without responses, for policies to answer.
        persona_items: Whether items are those of `PersonaItems`, for `judge_personas`.
        history: Rows that are earlier pairs of the same user. Default: none.
        annotations: Votes of people, whose majority decides. Default: none.
        turns: How rows that are conversations become a row for each turn. Default: rows stay as they are.
        strata: Drawn items by subset, whose weights pooled numbers use; empty if all items are scored.
        vote: How a judge's verdicts on both orders of a pair count. "unanimous": right if both are right. "signed":
            JudgeBench's vote, by which a right verdict and a tie or an invalid one are right
            (`pluralbench.data.votes.signed_vote`). "mean": the share of the two that are right (LLMBar,
            PersonalRewardBench).
    """

    title: str
    data: str | None = None
    sample: str | None = None
    split: str = "test"
    configs: tuple[str, ...] = ()
    train_split: str | None = None
    columns: Columns = Columns()
    required: tuple[str, ...] = ()
    labels: Labels = Labels()
    multiple_responses: bool = False
    excluded_configs: dict[str, dict[str, str]] = Field(default_factory=dict)
    sections: dict[str, dict[str, Weight]] = Field(default_factory=dict)
    groups: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    user_turns: bool = False
    separator: Separator | None = None
    quoting: Quoting | None = None
    join_configs: bool = False
    rows: dict[str, Values] = Field(default_factory=dict)
    credit: dict[str, Credit] = Field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    overall: Literal["items", "configs", "accuracy and exact match", "F1"] = "items"
    step_threshold: float | None = Field(None, allow_inf_nan=False)
    tune_step_threshold: str | None = None
    on_empty: OnEmpty = "error"
    reference: Reference | None = None
    group_by_prompt: bool = False
    legacy: str | None = None
    legacy_sections: dict[str, dict[str, Weight]] = Field(default_factory=dict)
    ties_break_exact_match: bool = True
    prompts_only: bool = False
    persona_items: bool = False
    history: HistoryRows | None = None
    annotations: Annotations | None = Field(None, exclude_if=is_none)
    turns: Turns | None = Field(None, exclude_if=is_none)
    strata: tuple[Stratum, ...] = ()
    vote: Vote = "unanimous"

    @field_validator("sections", "legacy_sections")
    @classmethod
    def _weigh(cls, sections: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
        for section, weights in sections.items():
            if weights and not any(weights.values()):  # a section of groups may have no subset in the data
                raise ValueError(f"the section {section} has no weight above 0")
        return sections

    @field_validator("required")
    @classmethod
    def _fields(cls, required: tuple[str, ...]) -> tuple[str, ...]:
        unknown = next((field for field in required if field not in Columns.model_fields), None)
        if unknown is not None:
            raise ValueError(f"`{unknown}` is not a field of `columns`")
        return required

    @model_validator(mode="after")
    def _steps(self) -> Self:
        if self.in_steps != (self.overall == "F1"):
            raise ValueError('`columns.steps` and `overall = "F1"` require each other')
        given = [name for name in ("step_threshold", "tune_step_threshold") if getattr(self, name) is not None]
        if given and not self.in_steps:
            raise ValueError(f"`{given[0]}` requires `columns.steps`")
        if len(given) > 1:
            raise ValueError("`step_threshold` and `tune_step_threshold` exclude each other")
        return self

    @model_validator(mode="after")
    def _votes(self) -> Self:
        if self.annotations is None:
            return self
        pairs = self.columns.first is not None and self.columns.second is not None
        if pairs == (self.columns.responses is not None):
            raise ValueError("`annotations` requires the columns `first` and `second`, or `responses`")
        if self.annotations.picks and pairs:
            raise ValueError("`picks` is of votes on `responses`; give the votes on pairs a meaning in `labels`")
        grades = self.annotations.grades
        if grades and not pairs:
            raise ValueError("`grades` is of votes on pairs, `first` and `second`")
        unknown = next((label for label in grades if self.labels.meaning(label) not in {FIRST, SECOND}), None)
        if unknown is not None:
            raise ValueError(f"`grades` names {unknown}, which `labels` gives to neither response")
        return self

    @property
    def in_steps(self) -> bool:
        """Whether an item is one answer in steps, of which the first wrong one is to be found."""
        return self.columns.steps is not None

    @property
    def config_metric(self) -> str:
        """Metric of a config that enters the overall number."""
        return "f1" if self.in_steps else "accuracy"

    @property
    def dialect(self) -> Dialect:
        """Separator and quoting of CSV and TSV files."""
        return Dialect(self.separator, self.quoting)

    @property
    def outside_overall(self) -> set[str]:
        """Configs that are not part of the overall number."""
        return {*self.excluded_configs, *([self.reference.config] if self.reference else [])}

    @property
    def by_category(self) -> bool:
        """Whether accuracy and exact match are averaged over categories."""
        return self.overall == "accuracy and exact match"

    @property
    def credits_items(self) -> bool:
        """Whether items count by a credit from 0 to 1, instead of each decision as right or wrong."""
        return bool(self.credit) or self.vote == "mean"

    @property
    def section_of(self) -> dict[str, str]:
        """Section of each subset; subsets without a section are missing."""
        return {subset: name for name, weights in self.sections.items() for subset in weights}

    def credit_of(self, subset: str | None) -> Credit:
        """Return the rule by which the items of a subset count."""
        rules = (rule for pattern, rule in self.credit.items() if fnmatchcase(subset or "", pattern))
        return next(rules, "pairs")

    def fit_to(self, subsets: Iterable[str | None]) -> Self:
        """Return this benchmark with the sections of its groups, or without sections if no subset is in one.

        Your own pairs in the shape of a benchmark are then averaged without weights.

        Args:
            subsets: The subset of each item.
        """
        counts = Counter(subset for subset in subsets if subset is not None)
        sections = self.sections | {
            name: {
                subset: n for subset, n in sorted(counts.items()) if any(fnmatchcase(subset, one) for one in patterns)
            }
            for name, patterns in self.groups.items()
        }
        inside = any(weights.keys() & counts.keys() for weights in sections.values())
        fitted = sections if inside else {}
        return self if fitted == self.sections else self.model_copy(update={"sections": fitted})

    def columns_of(self, config: str) -> Columns:
        """Return the columns of a config."""
        return self.columns.model_copy(update=self.excluded_configs.get(config, {}))


class BenchmarkCard(FrozenModel):
    """Information about a benchmark that only `pluralbench list` uses.

    Attributes:
        items: Number of items of the published data.
        license: License of that data, as an SPDX name.
        source: Where the data is published, if not on the Hub.
        accepts: What --data accepts.
    """

    items: int | None = None
    license: str | None = None
    source: str | None = None
    accepts: str | None = None


class BenchmarkEntry(Benchmark):
    """A benchmark with the keys of its entry that runs do not record.

    Attributes:
        revision: Commit of `data` on the Hub. Default: the newest; runs record the commit that they read.
        train_data: Default dataset to train planners on.
        card: Information for readers.
    """

    revision: str | None = None
    train_data: str | None = None
    card: BenchmarkCard = BenchmarkCard()

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.strata:
            raise ValueError("`strata` describes the drawn items of a run; leave it out")
        if self.revision is not None and self.data is None:
            raise ValueError("`revision` requires `data`, the dataset on the Hub")
        return self

    def benchmark(self) -> Benchmark:
        """Return the part of the entry that runs record, with the commit of its data as ORG/NAME@REVISION."""
        own = {name: getattr(self, name) for name in Benchmark.model_fields}
        data = f"{self.data}@{self.revision}" if self.revision else self.data
        return Benchmark.model_validate(own | {"data": data})


def known_benchmarks() -> dict[str, Benchmark]:
    """Return the built-in benchmarks.

    Returns:
        The benchmarks by name.
    """
    return {name: entry.benchmark() for name, entry in _builtin_entries().items()}


def is_published_data(name: str, benchmark: Benchmark, location: str, revision: str | None) -> bool:
    """Return whether data is the dataset on the Hub that a benchmark names.

    A description of a user can have the title or the name of a built-in benchmark. Only the built-in one says which
    data is published under them, and a folder of that name on this machine is not.

    Args:
        name: Name of the benchmark.
        benchmark: Description of the benchmark.
        location: Location of the data.
        revision: Commit of a dataset on the Hub; None for other data.
    """
    known = known_benchmarks()
    is_known = name in known
    if (is_known and revision is None) or (not is_known and benchmark.title in {one.title for one in known.values()}):
        return False
    return location == (known.get(name, benchmark).data or "").partition("@")[0]


def title_for(name: str, benchmark: Benchmark, location: str, revision: str | None = None) -> str:
    """Return the title for a run on some data; it names data that is not published.

    Args:
        name: Name of the benchmark.
        benchmark: Description of the benchmark.
        location: Location of the data.
        revision: Commit of a dataset on the Hub. Default: the data is not on the Hub.
    """
    if is_published_data(name, benchmark, location, revision):
        return benchmark.title
    return f"{benchmark.title} ({location if revision is not None else Path(location).resolve().name})"


def legacy_sections(name: str) -> dict[str, dict[str, float]]:
    """Return the weights that a built-in benchmark has for `legacy=True`.

    Raises:
        BenchmarkError: There is no such benchmark.
    """
    entry = _find_entry(name, _builtin_entries())
    return entry.sections | entry.legacy_sections


def benchmark_entries(names: Sequence[str] = ()) -> dict[str, BenchmarkEntry]:
    """Return entries of benchmarks by name.

    Args:
        names: Names of built-in benchmarks, or TOML files. Default: all built-in benchmarks.

    Raises:
        BenchmarkError: If a name is unknown, or a file is not valid.
    """
    builtin = _builtin_entries()
    return {name: _find_entry(name, builtin) for name in names or builtin}


@cache
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
    dialect: Dialect = SPREADSHEET,
    *,
    legacy: bool = False,
    step_threshold: float | None = None,
    tune_step_threshold: str | None = None,
    for_training: bool = False,
) -> Benchmark:
    """Return a benchmark by its name, or from a TOML file.

    Args:
        name: Name of a built-in benchmark (`known_benchmarks`), or a TOML file.
        columns: Changes to the benchmark's columns, such as "prompt=text".
        labels: Changes to the meaning of its labels, such as "first=A>B".
        dialect: Separator and quoting of CSV and TSV files, where they differ from the benchmark's.
        legacy: Count as the authors' code does where it differs from the paper: RewardBench and M-RewardBench weight
            subsets by the constants of the former's code; CHEEMS's exact match counts ties of scores.
        step_threshold: Score below which a step of an answer is wrong. Default: the benchmark's.
        tune_step_threshold: Config on whose items this threshold is tuned. Default: none.
        for_training: Use the column of training pairs and the training split, which only `train` reads.

    Returns:
        The benchmark with these changes.

    Raises:
        BenchmarkError: If the name is unknown, the file or a change is not valid, or the benchmark has no legacy rules.
    """
    builtin = _builtin_entries()
    benchmark = _find_entry(name, builtin).benchmark()
    if legacy:
        if benchmark.legacy is None and not benchmark.by_category:
            raise BenchmarkError(f"{benchmark.title} has no legacy rules; leave out `legacy=True`.")
        rules = (
            {"sections": legacy_sections(benchmark.legacy)} if benchmark.legacy else {"ties_break_exact_match": False}
        )
        benchmark = benchmark.model_copy(update=rules)
    benchmark = _with_threshold(benchmark, step_threshold, tune_step_threshold)
    named = parse_changes(columns, Columns.model_fields, BenchmarkError)
    changes = {field: tuple(column.split(",")) if field in LISTS else column for field, column in named}
    own = benchmark.columns.model_copy(update=changes)
    if (own.steps is not None) != benchmark.in_steps:
        raise BenchmarkError(
            f'{benchmark.title} does not have answers in steps; leave out `columns=["steps={own.steps}"]`, or choose '
            "the benchmark processbench."
        )
    required = tuple(dict.fromkeys((*changes, *benchmark.required)))
    split = benchmark.train_split or benchmark.split
    if not for_training:
        if "pairs" in changes:
            raise BenchmarkError(f"Only training reads `pairs`; leave out the column `{changes['pairs']}`.")
        own, split = own.model_copy(update={"pairs": None}), benchmark.split
    meanings = _parse_labels(benchmark.labels, labels)
    changed = {name: value for name, value in dialect._asdict().items() if value is not None}
    return benchmark.model_copy(
        update=changed | {"columns": own, "required": required, "labels": meanings, "split": split, "train_split": None}
    )


def _with_threshold(benchmark: Benchmark, step_threshold: float | None, tune_step_threshold: str | None) -> Benchmark:
    given = {"step_threshold": step_threshold, "tune_step_threshold": tune_step_threshold}
    names = [name for name, value in given.items() if value is not None]
    if not names:
        return benchmark
    if not benchmark.in_steps:
        raise BenchmarkError(
            f"{benchmark.title} does not have answers in steps; leave out `{names[0]}={given[names[0]]}`."
        )
    if len(names) > 1:
        raise BenchmarkError("`step_threshold` and `tune_step_threshold` exclude each other; pass one of them.")
    return benchmark.model_copy(update=given)


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
