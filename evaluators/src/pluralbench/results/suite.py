"""Results of a suite: a directory with `suite.json` and a run for each benchmark, and the row of numbers in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pluralbench_measures.bootstrap import Estimate
from pluralbench_measures.independent import independent_mean
from pluralbench_rewards import ModelRecord
from pluralbench_runs import Recipe, RecipeError, read_recipe

from pluralbench.data.suites import Suite, SuiteColumn
from pluralbench.errors import RunError
from pluralbench.results.evaluations import ScoreRunConfig
from pluralbench.results.record import shown_name
from pluralbench.results.run_files import RUN_FILE
from pluralbench.results.runs import MISSING, SUMMARY, Run, load_run, number_text

SUITE_FILE = "suite.json"


class SuiteRecord(Recipe):
    """Contents of `suite.json`.

    Attributes:
        suite: The suite, with the columns of the suites that it includes.
    """

    suite: Suite
    model: ModelRecord


class Mean(NamedTuple):
    """The mean of a row."""

    estimate: Estimate
    columns: int
    total: int


@dataclass(frozen=True, repr=False)
class SuiteRun:
    """Runs of one model on the benchmarks of a suite.

    Attributes:
        runs: Finished runs by the benchmark's name; shards if `shard` is set.
        shard: Shard of every run, such as "2/8", which has no numbers. Default: complete runs.
    """

    path: Path
    record: SuiteRecord
    runs: Mapping[str, Run] = field(default_factory=dict)
    shard: str | None = None

    @property
    def suite(self) -> Suite:
        """The suite."""
        return self.record.suite

    @property
    def model(self) -> str:
        """Name of the model in tables."""
        return shown_name(self.record.model.name)

    def missing(self, column: SuiteColumn) -> list[str]:
        """Return the benchmarks of a column without a finished run."""
        return [benchmark.key for benchmark in column.benchmarks if benchmark.key not in self.runs]

    def column(self, column: SuiteColumn) -> Estimate:
        """Return the number of a column: the unweighted mean of its benchmarks' overall numbers.

        It is missing unless each benchmark has one: the mean of fewer benchmarks is another quantity.
        """
        if self.missing(column):
            return MISSING
        runs = [self.runs[benchmark.key] for benchmark in column.benchmarks]
        return independent_mean([run.headline for run in runs], data=[run.config.data.digest for run in runs])

    def items(self, column: SuiteColumn) -> int:
        """Return the number of items behind the number of a column."""
        return sum(self.runs[one.key].items_counted for one in column.benchmarks if one.key in self.runs)

    @property
    def mean(self) -> Mean:
        """The unweighted mean over the columns that have a number."""
        present = [column for column in self.suite.columns if self.column(column).value is not None]
        weights = {one.key: 1 / len(column.benchmarks) for column in present for one in column.benchmarks}
        runs = [self.runs[key] for key in weights]
        data = [run.config.data.digest for run in runs]
        estimate = independent_mean([run.headline for run in runs], [*weights.values()], data)
        return Mean(estimate, len(present), len(self.suite.columns))

    def summary(self) -> pl.DataFrame:
        """Return a row for each finished run, in the suite's order; see `pluralbench.load_results`."""
        frames = [self.runs[one.key].summary() for one in self.suite.benchmarks if one.key in self.runs]
        return pl.concat(frames or [pl.DataFrame(schema=SUMMARY)])

    def __repr__(self) -> str:
        benchmarks = f"{len(self.runs)} of {len([*self.suite.benchmarks])} benchmarks"
        mean = self.mean
        number = f"mean of {mean.columns} of {mean.total} columns {number_text(mean.estimate)}"
        return f"<Suite {self.suite.title}: {self.model}, {number}, {benchmarks}, {self.path}>"

    def _repr_html_(self) -> str:
        """Describe the suite, with the rows of its finished runs as a table."""
        return f"<p>{escape(repr(self).strip('<>'))}</p>{self.summary()._repr_html_()}"


def load_suite(path: str | Path) -> SuiteRun:
    """Read a suite's directory with its finished runs.

    Raises:
        RunError: The directory has no suite, or a run in it cannot be read or is of another model.
    """
    path = Path(path)
    if not (path / SUITE_FILE).is_file():
        raise RunError(f"{path} has no suite; it has no {SUITE_FILE}.")
    try:
        record = read_recipe(SuiteRecord, path / SUITE_FILE)
    except RecipeError as error:
        raise RunError(f"{error} Repeat the suite.") from None
    folders = {one.key: path / one.key for one in record.suite.benchmarks}
    finished = {key: folder for key, folder in folders.items() if (folder / RUN_FILE).is_file()}
    runs = {key: load_run(folder, ScoreRunConfig) for key, folder in finished.items()}
    return SuiteRun(path, record, {key: _check_model(run, record.model) for key, run in runs.items()})


def _check_model(run: Run[ScoreRunConfig, Any], model: ModelRecord) -> Run[ScoreRunConfig, Any]:
    """Return the run. Raises `RunError` if it is of another model than the suite."""
    if run.config.model != model:
        raise RunError(
            f"{run.path} is a run of {run.config.model.name}, but {run.path.parent} has a suite of {model.name}, "
            "another model or other settings; remove the run, or choose another directory."
        )
    return run
