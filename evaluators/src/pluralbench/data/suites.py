"""Suites: the benchmarks of a row of results, from `suites.toml` or a file of the same form."""

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

from pluralbench_runs import (
    FrozenModel,
    PathName,
    did_you_mean,
    first_validation_error,
    read_toml,
    validate_folder_name,
)
from pydantic import Field, ValidationError, model_validator

from pluralbench.config import DataConfig, PromptConfig
from pluralbench.data.benchmark_entries import benchmark_entries
from pluralbench.errors import BenchmarkError


class SuiteBenchmark(DataConfig):
    """A benchmark of a suite, with the options that it does not share with the others.

    Attributes:
        name: Name of a built-in benchmark, or a TOML file.
        run: Name of the run's directory. Default: the benchmark's name.
        prompt: User context in the prompt. Default: that of the whole suite.
    """

    name: str = Field(min_length=1)
    run: PathName | None = None
    prompt: PromptConfig | None = None

    @model_validator(mode="after")
    def _is_folder(self) -> Self:
        validate_folder_name(self.key)
        return self

    @property
    def key(self) -> str:
        """Name of the run's directory, and of the benchmark in results."""
        return self.run or Path(self.name).stem

    @property
    def data(self) -> DataConfig:
        """The items of the benchmark."""
        return DataConfig(**{name: getattr(self, name) for name in DataConfig.model_fields})


class SuiteColumn(FrozenModel):
    """A column of a suite: the unweighted mean of the overall numbers of its benchmarks."""

    name: str = Field(min_length=1)
    benchmarks: tuple[SuiteBenchmark, ...] = Field(min_length=1)


class Suite(FrozenModel):
    """Columns of a row of results, after those of built-in suites that it includes."""

    title: str
    includes: tuple[str, ...] = ()
    columns: tuple[SuiteColumn, ...] = ()

    @property
    def benchmarks(self) -> Iterator[SuiteBenchmark]:
        """The benchmarks of all columns, in order."""
        return (benchmark for column in self.columns for benchmark in column.benchmarks)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if not self.columns and not self.includes:
            raise ValueError("the suite has no columns; add a table [[columns]] with `name` and `benchmarks`")
        if (name := _repeated(column.name for column in self.columns)) is not None:
            raise ValueError(f"two columns have the name `{name}`; rename one")
        if (key := _repeated(benchmark.key for benchmark in self.benchmarks)) is not None:
            raise ValueError(f"two benchmarks have the name `{key}`; give one of them a `run = ...`")
        return self


def _repeated(names: Iterable[str]) -> str | None:
    return next((name for name, number in Counter(names).items() if number > 1), None)


def known_suites() -> dict[str, Suite]:
    """Return the built-in suites by name."""
    text = files("pluralbench.data").joinpath("suites.toml").read_text(encoding="utf-8")
    suites: dict[str, Suite] = {}
    for name, values in tomllib.loads(text).items():
        suites[name] = _with_included(Suite.model_validate(values), suites, name)
    return suites


def find_suite(name: str | Path) -> Suite:
    """Return a suite by its name, or from a TOML file with `title` and the list `columns`.

    Raises:
        BenchmarkError: If the name or a benchmark of the suite is unknown, or the file is not valid.
    """
    known, text = known_suites(), str(name)
    if text in known:
        suite = known[text]
    elif text.endswith(".toml"):
        suite = _read_suite(Path(text), known)
    else:
        hint = did_you_mean(text, known)
        raise BenchmarkError(f"Unknown suite {text!r}; {hint}choose {', '.join(known)}, or pass a TOML file.")
    for column in suite.columns:
        for benchmark in column.benchmarks:
            try:
                benchmark_entries([benchmark.name])
            except BenchmarkError as error:
                raise BenchmarkError(f"Suite {text}, column {column.name}: {error}") from None
    return suite


def _read_suite(path: Path, known: Mapping[str, Suite]) -> Suite:
    values: Mapping[str, Any] = read_toml(path, "suite file", BenchmarkError)
    try:
        return _with_included(Suite.model_validate(values), known, str(path))
    except ValidationError as error:
        raise BenchmarkError(f"{path} is not a valid suite file: {first_validation_error(Suite, error)}") from None


def _with_included(suite: Suite, known: Mapping[str, Suite], where: str) -> Suite:
    unknown = next((name for name in suite.includes if name not in known), None)
    if unknown is not None:
        raise BenchmarkError(
            f"{where} includes the unknown suite {unknown!r}; {did_you_mean(unknown, known)}choose {', '.join(known)}."
        )
    included = [column for name in suite.includes for column in known[name].columns]
    return Suite(title=suite.title, columns=(*included, *suite.columns))
