"""Find benchmarks by name: the entries of `benchmarks.toml`, or a file of the same form."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

from pluralbench_runs import FrozenModel, did_you_mean, first_validation_error, read_toml
from pluralbench_tables import SPREADSHEET, Dialect
from pydantic import ValidationError, model_validator

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.fields import LISTS, Columns, parse_changes
from pluralbench.data.labels import Labels
from pluralbench.data.rules import check_names, rule_of
from pluralbench.errors import BenchmarkError


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
        check_names(self)
        if self.revision is not None and self.data is None:
            raise ValueError("`revision` requires `data`, the dataset on the Hub")
        return self

    def benchmark(self) -> Benchmark:
        """Return the part of the entry that runs record, with the commit of its data as ORG/NAME@REVISION."""
        own = {name: getattr(self, name) for name in Benchmark.model_fields}
        data = f"{self.data}@{self.revision}" if self.revision else self.data
        return Benchmark.model_validate(own | {"data": data})


def known_benchmarks() -> dict[str, Benchmark]:
    """Return the built-in benchmarks by name."""
    return {name: entry.benchmark() for name, entry in _builtin_entries().items()}


def is_published_data(name: str, benchmark: Benchmark, location: str, revision: str | None) -> bool:
    """Return whether data is the dataset on the Hub that a benchmark names.

    A description of a user can have the title or the name of a built-in benchmark. Only the built-in one says which
    data is published under them, and a folder of that name on this machine is not.
    """
    known = known_benchmarks()
    is_known = name in known
    if (is_known and revision is None) or (not is_known and benchmark.title in {one.title for one in known.values()}):
        return False
    return location == (known.get(name, benchmark).data or "").partition("@")[0]


def title_for(name: str, benchmark: Benchmark, location: str, revision: str | None = None) -> str:
    """Return the title for a run on some data; it names data that is not published (see `is_published_data`)."""
    if is_published_data(name, benchmark, location, revision):
        return benchmark.title
    return f"{benchmark.title} ({location if revision is not None else Path(location).resolve().name})"


def legacy_sections(name: str) -> dict[str, dict[str, float]]:
    """Return the weights that a built-in benchmark has for `legacy=True`."""
    entry = _find_entry(name, _builtin_entries())
    return entry.sections | entry.legacy_sections


def benchmark_entries(names: Sequence[str] = ()) -> dict[str, BenchmarkEntry]:
    """Return the entries of built-in benchmarks or TOML files by name; default: of all built-in benchmarks.

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
        for_training: Keep the column of training pairs and the training split.

    Raises:
        BenchmarkError: If the name is unknown, the file or a change is not valid, or the benchmark has no legacy rules.
    """
    builtin = _builtin_entries()
    benchmark = _find_entry(name, builtin).benchmark()
    if legacy:
        older = {"sections": legacy_sections(benchmark.legacy)} if benchmark.legacy else rule_of(benchmark).legacy
        if not older:
            raise BenchmarkError(f"{benchmark.title} has no legacy rules; leave out `legacy=True`.")
        benchmark = benchmark.model_copy(update=older)
    given = {"step_threshold": step_threshold, "tune_step_threshold": tune_step_threshold}
    if any(value is not None for value in given.values()):
        benchmark = benchmark.model_copy(update=given)
    named = parse_changes(columns, Columns.model_fields, BenchmarkError)
    changes = {field: tuple(column.split(",")) if field in LISTS else column for field, column in named}
    own = benchmark.columns.model_copy(update=changes)
    required = tuple(dict.fromkeys((*changes, *benchmark.required)))
    train_split = benchmark.train_split if for_training else None
    if not for_training:
        if "pairs" in changes:
            raise BenchmarkError(f"Only training reads `pairs`; leave out the column `{changes['pairs']}`.")
        own = own.model_copy(update={"pairs": None})
    meanings = _parse_labels(benchmark.labels, labels)
    changed = {name: value for name, value in dialect._asdict().items() if value is not None}
    described = benchmark.model_copy(
        update=changed | {"columns": own, "required": required, "labels": meanings, "train_split": train_split}
    )
    try:
        check_names(described)
    except ValueError as error:
        raise BenchmarkError(f"{benchmark.title}: {error}; leave it out, or choose another benchmark.") from None
    return described


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
