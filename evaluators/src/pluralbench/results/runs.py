"""Read run directories: a finished run with its numbers and frames."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Generic, overload

import polars as pl
from pluralbench_measures.bootstrap import Estimate
from pluralbench_rewards import ScoringConfig
from pluralbench_runs import plural
from pluralbench_tables import read_parquet, release_memory
from pydantic import TypeAdapter
from typing_extensions import TypeVar as TypeVarWithDefault

from pluralbench.data.metric_key import DIMENSIONS, MetricKey, finest_dimension
from pluralbench.data.votes import Votes
from pluralbench.errors import RunError
from pluralbench.metrics.frame import NUMBERS, MetricsFile, check_metrics, frame_of_rows
from pluralbench.metrics.metric import DECIDED, SHOWN_COUNTS
from pluralbench.results.downstream import DownstreamResult, DownstreamRunConfig
from pluralbench.results.evaluations import (
    EvaluationResult,
    EvaluationRunConfig,
    JudgeResult,
    ScoreResult,
)
from pluralbench.results.item_rows import votes_on_items
from pluralbench.results.kinds import RUN_KINDS, RunKind, check_frame
from pluralbench.results.numbers import DASH, number
from pluralbench.results.personalize import PersonalizeResult, PersonalizeRunConfig
from pluralbench.results.plans import PlanResult, PlanRunConfig, SynthesizeResult, SynthesizeRunConfig
from pluralbench.results.record import ProvenanceRecord, RunConfig, RunResult, shown_name
from pluralbench.results.run_files import (
    ANY_FILE,
    METRICS_FILE,
    RUN_FILE,
    SCHEMA_VERSION,
    UNFINISHED,
    read_file,
)

MISSING = Estimate(None)
SUMMARY = pl.Schema(
    dict.fromkeys(("model", "benchmark", "profile"), pl.String())
    | dict.fromkeys(("overall", "low", "high"), pl.Float64())
    | dict.fromkeys(("n", "clusters"), pl.Int64())
    | {"coin": pl.Float64()}
    | dict.fromkeys(SHOWN_COUNTS, pl.Int64())
    | {"run": pl.String()}
)
"""Columns of `Run.summary` and `pluralbench.load_results`."""

Config_co = TypeVarWithDefault("Config_co", bound=RunConfig, default=EvaluationRunConfig, covariant=True)
Result_co = TypeVarWithDefault("Result_co", bound=RunResult, default=EvaluationResult, covariant=True)


@dataclass(frozen=True, repr=False)
class Run(Generic[Config_co, Result_co]):
    """A finished run. Without type parameters, a run of `score`, `judge` or `judge-personas`.

    Attributes:
        provenance: Time, command and software of the run.
        frames: Frames that have been read; see `frame`.
    """

    path: Path
    config: Config_co
    result: Result_co
    provenance: ProvenanceRecord
    metrics: pl.DataFrame
    frames: dict[str, pl.DataFrame] = field(default_factory=dict)

    @property
    def verb(self) -> str:
        """Command of the run."""
        return self.config.verb

    @property
    def kind(self) -> RunKind:
        """The kind of run."""
        return RUN_KINDS[self.verb]

    # Reports of benchmarks ask both for what only one kind of model has; this is where the types part.
    @property
    def scored(self) -> ScoreResult | None:
        """Result of `score`; None for other verbs."""
        return self.result if isinstance(self.result, ScoreResult) else None

    @property
    def judged(self) -> JudgeResult | None:
        """Result of a judge; None for other verbs."""
        return self.result if isinstance(self.result, JudgeResult) else None

    @property
    def scoring(self) -> ScoringConfig | None:
        """How a reward model scored; None for other verbs than `score`."""
        return getattr(self.config, "scoring", None)

    @property
    def items(self) -> pl.DataFrame:
        """The frame `items`: one row per pair, or per response for rankings."""
        return self.frame("items")

    @cached_property
    def votes(self: "Run") -> Votes | None:
        """The replies of a judge that vote; None if one reply decides."""
        return self.config.votes(self.frame)

    @cached_property
    def annotations(self: "Run") -> pl.DataFrame | None:
        """The votes of people; None if the benchmark has none. Raises `RunError` for votes on other items."""
        if self.config.benchmark.description.annotations is None:
            return None
        return votes_on_items(self.frame("annotations"), self.items, str(self.path / "annotations.parquet"))

    @property
    def frames_of_items(self: "Run") -> list[str]:
        """Names of the frames, besides `items`, with rows of items."""
        has = {"replies": self.votes is not None, "annotations": self.annotations is not None}
        return [name for name, exists in has.items() if exists]

    def frame(self, name: str) -> pl.DataFrame:
        """Read the frame NAME.parquet.

        Raises:
            RunError: The file is missing or is not valid for the verb.
        """
        if name not in self.frames:
            path = self.path / f"{name}.parquet"
            frame = read_parquet(path, error=RunError)
            release_memory()
            self.frames[name] = check_frame(name, frame, self.config, str(path))
        return self.frames[name]

    @property
    def name(self: "Run") -> str:
        """Name in tables: that of the model or judge."""
        return shown_name(self.result.model.name)

    @property
    def headline(self) -> Estimate:
        """The overall number with its interval; without a value if the run is `unreadable`."""
        return MISSING if self.unreadable else self.estimate("overall")

    @property
    def unreadable(self) -> str:
        """How many decisions are invalid, as "40 of 41", if these are most, so that numbers do not show the model."""
        invalid, decisions = self.count("invalid"), sum(self.count(name) for name in DECIDED)
        return f"{invalid:,} of {decisions:,}" if 2 * invalid > decisions else ""

    @property
    def close_margins(self) -> str:
        """How many margins are within the measured tolerance, as "5 of 24 margins within rounding error"."""
        within, margins = self._within_tolerance
        return f"{within:,} of {margins:,} margins within rounding error" if within else ""

    @property
    def mostly_close_margins(self) -> str:
        """`close_margins`, if more than a tenth of the margins are within the tolerance."""
        within, margins = self._within_tolerance
        return self.close_margins if 10 * within > margins else ""

    @property
    def _within_tolerance(self) -> tuple[int, int]:
        within = (self.scored.decisions_within_tolerance if self.scored else None) or 0
        configs = self.names("config", "mean_margin")
        return within, sum(self.estimate("mean_margin", config=config).n or 0 for config in configs)

    @property
    def items_counted(self) -> int:
        """Number of items behind the overall number."""
        return self.count("items_counted")

    @property
    def items_total(self: "Run") -> int:
        """Number of items of the benchmark for the overall number, including those not drawn or not counted."""
        data = self.config.data
        empty = len(data.empty) if data.on_empty == "drop" else 0
        if strata := self.config.benchmark.description.strata:
            return sum(stratum.items for stratum in strata) + empty
        return self.count("items") + empty + self.result.excluded

    @property
    def size(self: "Run") -> str:
        """Number of items, such as "24 items", "1 of 805 items" or "200 of 2,985 items, stratified"."""
        text = items_text([self.items_counted], self.items_total)
        return f"{text}, stratified" if self.config.data.items is not None else text

    def estimate(self, metric: str, **dimensions: Any) -> Estimate:
        """Return the number of a metric with exactly these dimensions; all fields are None if the run has none."""
        return self._numbers.get(MetricKey(metric, **dimensions), MISSING)

    def at(self, key: MetricKey) -> Estimate:
        """Return the number with this name; all fields are None if the run has none."""
        return self._numbers.get(key, MISSING)

    def count(self, metric: str, **dimensions: Any) -> int:
        """Return the count with exactly these dimensions; 0 if the run has none."""
        return int(self.estimate(metric, **dimensions).value or 0)

    def numbers(self, metric: str, *dimensions: str) -> pl.DataFrame:
        """Return the numbers of a metric by exactly these dimensions, in order, without those of baselines."""
        own = [pl.col(name).is_not_null() if name in dimensions else pl.col(name).is_null() for name in DIMENSIONS]
        return self.metrics.filter(pl.col("metric") == metric, *own).select(*dimensions, *NUMBERS)

    def keys(self, metric: str, finest: str, **dimensions: Any) -> list[MetricKey]:
        """Return the names of the numbers whose finest dimension is `finest`, and that have these dimensions."""
        return [
            key
            for key in self._finest.get((metric, finest), ())
            if all(getattr(key, name) == value for name, value in dimensions.items())
        ]

    def names(self, dimension: str, metric: str = "accuracy", **dimensions: Any) -> list[Any]:
        """Return the distinct values of the finest dimension of a metric's numbers, in order."""
        return list(dict.fromkeys(getattr(key, dimension) for key in self.keys(metric, dimension, **dimensions)))

    @property
    def configs(self: "Run") -> list[str]:
        """Names of the configs behind the overall number."""
        return [name for name in self.names("config", "pooled_accuracy") if name not in self.excluded_configs]

    @property
    def excluded_configs(self: "Run") -> list[str]:
        """Names of the configs outside the overall number."""
        outside = self.config.benchmark.description.outside_overall
        return [name for name in self.names("config", "pooled_accuracy") if name in outside]

    @cached_property
    def _numbers(self) -> dict[MetricKey, Estimate]:
        return {
            MetricKey(*(row[name] for name in MetricKey._fields)): Estimate(*(row[name] for name in NUMBERS))
            for row in self.metrics.iter_rows(named=True)
        }

    @cached_property
    def _finest(self) -> dict[tuple[str, str | None], list[MetricKey]]:
        """The names of the numbers by metric and finest dimension, without those of baselines."""
        keys: dict[tuple[str, str | None], list[MetricKey]] = {}
        for key in self._numbers:
            if key.baseline is None:
                keys.setdefault((key.metric, finest_dimension(key)), []).append(key)
        return keys

    def summary(self: "Run[Any, Any]") -> pl.DataFrame:
        """Return the overall number with its interval and counts as a row; see `pluralbench.load_results`.

        Raises:
            RunError: The run has no overall number, because it is of a command other than `score` and the judges.
        """
        if not self.kind.has_overall:
            raise RunError(f"{self.path} is a run of `{self.verb}`, which has no overall number; read its `metrics`.")
        overall = self.headline
        row = {
            "model": self.name,
            "benchmark": self.config.benchmark.name,
            "profile": self.config.prompt.profile,
            "overall": overall.value,
            "low": overall.low,
            "high": overall.high,
            "n": self.items_counted,
            "clusters": overall.clusters,
            "coin": self.estimate("overall", baseline="coin").value,
            **{name: self.count(name) for name in SHOWN_COUNTS},
            "run": str(self.path),
        }
        return pl.DataFrame([row], schema=SUMMARY)

    def __repr__(self: "Run[Any, Any]") -> str:
        if not self.kind.has_overall:
            return f"<Run of {self.verb}: {self.path}>"
        number = f"unreadable ({self.unreadable} invalid)" if self.unreadable else number_text(self.headline)
        parts = [number, *filter(None, [self.mostly_close_margins]), self.size, str(self.path)]
        return f"<Run of {self.verb}: {self.name} on {self.config.benchmark.title}, {', '.join(parts)}>"

    def _repr_html_(self: "Run[Any, Any]") -> str:
        """Describe the run, with its row as a table, or its numbers if it has no overall number."""
        frame = self.summary() if self.kind.has_overall else self.metrics
        return f"<p>{escape(repr(self).strip('<>'))}</p>{frame._repr_html_()}"


Downstream = Run[DownstreamRunConfig, DownstreamResult]
Personalized = Run[PersonalizeRunConfig, PersonalizeResult]
Plans = Run[PlanRunConfig, PlanResult]
Synthesis = Run[SynthesizeRunConfig, SynthesizeResult]


@overload
def load_run(path: str | Path, *, part: bool = ...) -> Run[Any, Any]: ...
@overload
def load_run(path: str | Path, of: type[Config_co], *, part: bool = ...) -> Run[Config_co, Any]: ...
def load_run(path: str | Path, of: type[RunConfig] = RunConfig, *, part: bool = False) -> Run[Any, Any]:
    """Read a run directory.

    Args:
        path: Run directory.
        of: Class of the config, which determines the verbs to accept. Default: any verb.
        part: Accept a shard, which has no metrics and may have no items. Default: only complete runs.

    Returns:
        The run. Its frames are read when they are used.

    Raises:
        RunError: The directory has no finished run of such a verb, or the files are not valid or of another version.
    """
    path = Path(path)
    if not os.path.isfile(path / RUN_FILE):  # noqa: PTH113 - before Python 3.14 `Path.is_file` raises for a long name
        unfinished = os.path.exists(f"{path.absolute()}{UNFINISHED}")  # noqa: PTH110 - before Python 3.14 `Path.exists` raises for a long name
        hint = "to resume it, run its command again" if unfinished else f"it has no {RUN_FILE}"
        raise RunError(f"{path} is not a finished run; {hint}.")
    file = read_file(path / RUN_FILE, ANY_FILE, SCHEMA_VERSION)
    if not isinstance(file.config, of):
        verbs = [verb for verb, kind in RUN_KINDS.items() if issubclass(kind.config, of)]
        raise RunError(f"{path} is a run of {file.verb}; give one of {', '.join(verbs)}.")
    shard = file.config.shard
    if shard is not None and not part:
        shards = shard.partition("/")[2]
        raise RunError(
            f"{path} is shard {shard} of a run and has no metrics; merge all {shards} with `pluralbench merge RUN...` "
            "and give the merged run."
        )
    metrics = frame_of_rows(read_file(path / METRICS_FILE, TypeAdapter(MetricsFile), 2).rows)
    check_metrics(metrics, str(path / METRICS_FILE))
    run = Run(path, file.config, file.result, file.provenance, metrics)
    for name in run.kind.frames:
        run.frame(name)
    return run


def items_text(counted: Sequence[int], total: int) -> str:
    """Describe the number of items, such as "24 items", or "1 of 805 items" if not all are counted."""
    least, most = min(counted), max(counted)
    part = "" if least == total else f"{least:,} of " if least == most else f"{least:,} to {most:,} of "
    return f"{part}{plural(total, 'item')}"


def number_text(estimate: Estimate) -> str:
    """Format a share in percent with its interval, as "41.7 % [22.9, 62.5]"."""
    value, low, high, _ = number(estimate)
    if value == DASH:
        return "no overall number"
    return f"{value} % [{low}, {high}]" if low else f"{value} %"


def ungrouped_votes(run: Run) -> str:
    """Say how many votes are in no group, since their person has no value of an attribute; empty if there are none."""
    counts = {
        name: [run.count(f"{what}_without_group", attribute=name) for what in ("annotations", "annotators")]
        for name in run.names("attribute", "annotations_without_group")
    }
    return ", ".join(
        f"{votes:,} without {name} ({plural(people, 'person', 'people')})"
        for name, (votes, people) in counts.items()
        if votes
    )
