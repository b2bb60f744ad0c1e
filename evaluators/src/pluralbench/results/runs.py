"""The directory of a run: `run.json` with what was asked and what came of it, its metrics, and its frames."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar, Union, overload

import polars as pl
from pluralbench_measures.bootstrap import Estimate
from pluralbench_runs import FrozenModel, Output
from pluralbench_tables import read_json, read_parquet
from pydantic import ConfigDict, Discriminator, Field, TypeAdapter, ValidationError, create_model
from typing_extensions import TypeVar as TypeVarWithDefault

from pluralbench.errors import RunError
from pluralbench.results.decisions import cast_columns, check_items
from pluralbench.results.downstream import (
    FRAMES,
    START,
    BestOfNRunConfig,
    DownstreamResult,
    DownstreamRunConfig,
    OptimizeRunConfig,
)
from pluralbench.results.evaluations import (
    EvaluationResult,
    EvaluationRunConfig,
    JudgeResult,
    JudgeRunConfig,
    PersonaJudgeResult,
    PersonaJudgeRunConfig,
    ScoreResult,
    ScoreRunConfig,
)
from pluralbench.results.metrics_frame import (
    NUMBERS,
    MetricsFile,
    Place,
    check_metrics,
    frame_of_rows,
    metrics_text,
)
from pluralbench.results.personalize import PERSONALIZE_ITEMS, PersonalizeResult, PersonalizeRunConfig
from pluralbench.results.plans import PlanResult, PlanRunConfig, SynthesizeResult, SynthesizeRunConfig
from pluralbench.results.record import ProvenanceRecord, RunConfig, RunResult, provenance

SCHEMA_VERSION: Literal[2] = 2
RUN_SCHEMA: Literal["urn:pluralbench:run:2"] = "urn:pluralbench:run:2"
ITEMS_FILE, METRICS_FILE, RUN_FILE = "items.parquet", "metrics.json", "run.json"
LEDGER_FILE, VERDICTS_FILE = "ledger.parquet", "verdicts.csv"
MISSING = Estimate(None)
VERBS: Mapping[str, tuple[type[RunConfig], type[RunResult]]] = {
    config.verb: (config, result)
    for config, result in (
        (ScoreRunConfig, ScoreResult),
        (JudgeRunConfig, JudgeResult),
        (PersonaJudgeRunConfig, PersonaJudgeResult),
        (BestOfNRunConfig, DownstreamResult),
        (OptimizeRunConfig, DownstreamResult),
        (PersonalizeRunConfig, PersonalizeResult),
        (PlanRunConfig, PlanResult),
        (SynthesizeRunConfig, SynthesizeResult),
    )
}
"""What the runs of each verb were asked, and what came of them."""

EAGER = (EvaluationRunConfig, PersonalizeRunConfig)
"""Of whose runs the items are read, and checked, with all else."""

File = TypeVar("File", bound=FrozenModel)
Config_co = TypeVarWithDefault("Config_co", bound=RunConfig, default=EvaluationRunConfig, covariant=True)
Result_co = TypeVarWithDefault("Result_co", bound=RunResult, default=EvaluationResult, covariant=True)


class RunFile(FrozenModel):
    """`run.json`. `$schema` in it names the JSON Schema, and `schema_version` its version."""

    # Written and read by the names of the JSON: `$schema` is no name for an attribute.
    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    json_schema: Literal["urn:pluralbench:run:2"] = Field(RUN_SCHEMA, alias="$schema")
    schema_version: Literal[2] = SCHEMA_VERSION
    verb: str
    config: Any
    result: Any
    provenance: ProvenanceRecord


def _file(verb: str, config: Any, result: Any) -> Any:
    kind: Any = Literal[verb]
    return create_model(f"Run of {verb}", __base__=RunFile, verb=kind, config=config, result=result)


FILES: Mapping[str, Any] = {verb: _file(verb, *kinds) for verb, kinds in VERBS.items()}
_EVERY: Any = Annotated[Union[*FILES.values()], Discriminator("verb")]
ANY_FILE: TypeAdapter[RunFile] = TypeAdapter(_EVERY)


@dataclass(frozen=True)
class Run(Generic[Config_co, Result_co]):
    """A finished run. path: its directory. config: what was asked, resolved. result: what came of it.

    metrics: the long frame of `pluralbench.results.metrics_frame`. frames: those that were read so far; see `frame`.
    Without type parameters it is a run of `score`, `judge` or `judge-personas`.
    """

    path: Path
    config: Config_co
    result: Result_co
    provenance: ProvenanceRecord
    metrics: pl.DataFrame
    frames: dict[str, pl.DataFrame] = field(default_factory=dict, repr=False)

    @property
    def verb(self) -> str:
        """The command that made it."""
        return self.config.verb

    @property
    def scored(self) -> ScoreResult | None:
        """What came of `score`; None for other verbs."""
        return self.result if isinstance(self.result, ScoreResult) else None

    @property
    def judged(self) -> JudgeResult | None:
        """What came of a judge; None for other verbs."""
        return self.result if isinstance(self.result, JudgeResult) else None

    @property
    def items(self) -> pl.DataFrame:
        """`items.parquet`: a row a pair, or for rankings a row a response."""
        return self.frame("items")

    def frame(self, name: str) -> pl.DataFrame:
        """What the file NAME.parquet holds. Raises `RunError` where there is none, or not the verb's."""
        if name not in self.frames:
            path = self.path / f"{name}.parquet"
            self.frames[name] = check_frame(name, read_parquet(path, error=RunError), self.config, str(path))
        return self.frames[name]

    @property
    def name(self: "Run") -> str:
        """What to call it in tables: its model, or its judge."""
        return self.result.model.name

    @property
    def headline(self) -> Estimate:
        """The overall number."""
        return self.estimate("overall", "overall")

    @property
    def items_counted(self) -> int:
        """How many items the overall number is made of."""
        return self.count("items", "overall")

    @property
    def items_total(self: "Run") -> int:
        """How many items the benchmark has for the overall number, those included that could not count."""
        data, result = self.config.data, self.result
        empty = len(data.empty) if data.on_empty == "drop" else 0
        ties = result.ties_excluded if isinstance(result, PersonaJudgeResult) else {}
        return self.count("items") + empty + sum(ties.values())

    def estimate(
        self,
        metric: str,
        group: str,
        *,
        config: str | None = None,
        section: str | None = None,
        subset: str | None = None,
    ) -> Estimate:
        """The number at exactly this place, all of it None where the run has none there."""
        return self._numbers.get(Place(group, metric, config, section, subset), MISSING)

    def count(self, metric: str, group: str = "pooled", *, config: str | None = None, subset: str | None = None) -> int:
        """A count at exactly this place, 0 where the run has none there."""
        return int(self.estimate(metric, group, config=config, subset=subset).value or 0)

    def of(self, config: str, metric: str = "accuracy") -> Estimate:
        """A config's own number, whether or not it enters the overall one."""
        found = self.estimate(metric, "config", config=config)
        return self.estimate(metric, "excluded", config=config) if found is MISSING else found

    def names(self, group: str, column: str, metric: str = "accuracy", config: str | None = None) -> list[str]:
        """The names of a group's members in `column`, in their order; of one config where one is given."""
        rows = self.metrics.filter(pl.col("group") == group, pl.col("metric") == metric)
        rows = rows if config is None else rows.filter(pl.col("config") == config)
        return rows[column].drop_nulls().unique(maintain_order=True).to_list()

    @cached_property
    def _numbers(self) -> dict[Place, Estimate]:
        return {
            Place(*(row[name] for name in Place._fields)): Estimate(*(row[name] for name in NUMBERS))
            for row in self.metrics.iter_rows(named=True)
        }

    def _repr_html_(self: "Run") -> str:
        shown = self.metrics.filter(pl.col("group").is_in(["overall", "config", "excluded", "section"]))
        with pl.Config(tbl_rows=-1, fmt_str_lengths=80, tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True):
            table = shown.drop("subset")._repr_html_()
        count = items_text([self.items_counted], self.items_total)
        title = f"{self.name}: {self.config.benchmark.title}, {count} ({self.path})"
        return f"<p>{escape(title)}</p>{table}"


Downstream = Run[DownstreamRunConfig, DownstreamResult]
Personalized = Run[PersonalizeRunConfig, PersonalizeResult]
Plans = Run[PlanRunConfig, PlanResult]
Synthesis = Run[SynthesizeRunConfig, SynthesizeResult]


def policy_number(
    found: Downstream,
    metric: str,
    *,
    model: str | None = None,
    k: int | None = None,
    config: str | None = None,
    start: bool = False,
) -> Estimate:
    """A number of the policy itself, or of a reward model's best of k. All of it None where it is missing.

    start: of the policy that `optimize` began with.
    """
    group = "policy" if model is None else "best-of-n"
    subset = None if k is None else str(k)
    return found.estimate(metric, group, config=config, section=START if start else model, subset=subset)


def method_number(
    found: Personalized, metric: str, group: str, method: str, which: str | None, config: str | None = None
) -> Estimate:
    """A number of a method; all of it None where it is missing.

    group: a set, or a set and what its items are binned by, as "new by words". which: a condition, a comparison of two
    as "with-without", or with a bin after it, as "with 2".
    """
    return found.estimate(metric, group, config=config, section=method, subset=which)


def items_text(counted: Sequence[int], of: int) -> str:
    """Of how many items numbers are: "24 items", or where some do not count "1 of 805 items".

    counted: how many count towards each of some numbers.
    """
    least, most = min(counted), max(counted)
    part = "" if least == of else f"{least:,} of " if least == most else f"{least:,} to {most:,} of "
    return f"{part}{of:,} item{'' if of == 1 else 's'}"


@overload
def load_run(path: str | Path, *, part: bool = ...) -> Run[Any, Any]: ...
@overload
def load_run(path: str | Path, of: type[Config_co], *, part: bool = ...) -> Run[Config_co, Any]: ...
def load_run(path: str | Path, of: type[RunConfig] = RunConfig, *, part: bool = False) -> Run[Any, Any]:
    """Read the directory of a run. of: what its verb has to be asked; without it a run of any verb is read.

    part: whether it may be a shard, which has no metrics, may have no items, and says nothing of the whole.

    Raises `RunError` where it is no run of such a verb, was not finished, or is not of this version or shape.
    """
    path = Path(path)
    if not (path / RUN_FILE).is_file():
        unfinished = path.with_name(path.name + ".work").exists()
        hint = "it is not finished: run its command again to go on" if unfinished else f"it has no {RUN_FILE}"
        raise RunError(f"{path} is no finished run: {hint}.")
    file = read_file(path / RUN_FILE, ANY_FILE, SCHEMA_VERSION)
    if not isinstance(file.config, of):
        verbs = [verb for verb, (config, _) in VERBS.items() if issubclass(config, of)]
        raise RunError(f"{path} is a run of {file.verb}, and this takes one of {', '.join(verbs)}.")
    shard = file.config.data.shard if isinstance(file.config, EvaluationRunConfig) else None
    if shard is not None and not part:
        every = shard.partition("/")[2]
        raise RunError(
            f"{path} is shard {shard} of a run and has no metrics; join all {every} by `pluralbench merge RUN...` and "
            "give what that makes."
        )
    metrics = frame_of_rows(read_file(path / METRICS_FILE, TypeAdapter(MetricsFile), 1).rows)
    check_metrics(metrics, str(path / METRICS_FILE))
    run = Run(path, file.config, file.result, file.provenance, metrics)
    if isinstance(run.config, EAGER):
        run.frame("items")
    return run


def check_frame(name: str, frame: pl.DataFrame, config: RunConfig, where: str) -> pl.DataFrame:
    """A frame of a run, its columns of their types. Raises `RunError` for one that is not what its verb makes."""
    if isinstance(config, EvaluationRunConfig) and name == "items":
        return check_items(frame, config, where)
    if isinstance(config, PersonalizeRunConfig) and name == "items":
        if dict(frame.schema) != dict(PERSONALIZE_ITEMS):
            wanted, there = ", ".join(PERSONALIZE_ITEMS), ", ".join(frame.columns)
            raise RunError(f"{where} need the columns {wanted}, and have {there}.")
        if frame.is_empty():
            raise RunError(f"{where}: there is no row.")
    if isinstance(config, DownstreamRunConfig):
        kinds = FRAMES.get(name.removesuffix(f"_{START}"), pl.Schema())
        return cast_columns(frame, kinds, where, kinds)
    return frame


def read_file(path: Path, model: TypeAdapter[File], version: int) -> File:
    """A JSON file of this model. Raises `RunError` for another version and for what is not of the model's shape."""
    values = read_json(path, RunError)
    found = values.get("schema_version") if isinstance(values, dict) else None
    if found != version:
        said = "has no schema_version" if found is None else f"is of schema_version {found}"
        raise RunError(f"{path} {said}, and this version of pluralbench reads {version}: make the run again.")
    try:
        return model.validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise RunError(f"{path} is not of a run's shape: `{place}`: {first['msg']}.") from None


def write_run(
    output: Output,
    config: RunConfig,
    result: RunResult,
    metrics: pl.DataFrame,
    frames: Mapping[str, pl.DataFrame],
    *,
    texts: Mapping[str, str] | None = None,
    folders: Sequence[str] = (),
) -> None:
    """Write a run's files and put its directory in place.

    A judge's ledger and table of verdicts go with it, where they lie in the working directory. texts: further files by
    name. folders: of the working directory, which the run has too. Raises `RunError` for frames or metrics that
    `load_run` would refuse.
    """
    file = FILES[config.verb](verb=config.verb, config=config, result=result, provenance=provenance())
    named = {f"{name}.parquet": check_frame(name, frame, config, f"The {name}") for name, frame in frames.items()}
    written = {METRICS_FILE: metrics_text(check_metrics(metrics)), RUN_FILE: file.model_dump_json(indent=2)}
    staged = output.staging()
    for name, frame in named.items():
        frame.write_parquet(staged / name)
    for name, text in (*written.items(), *(texts or {}).items()):
        (staged / name).write_text(text if text.endswith("\n") or not text else f"{text}\n", encoding="utf-8")
    for name in (LEDGER_FILE, VERDICTS_FILE):
        if (output.work / name).exists():
            (output.work / name).rename(staged / name)
    for name in folders:
        link_folder(output.work / name, staged / name)
    output.publish(staged)


def link_folder(source: Path, target: Path) -> None:
    """A folder under another name too, its files linked, or copied where the file system has no links.

    Linked and not moved: a kill before the end of `Output.publish` leaves what was made to the next run.
    """
    shutil.copytree(source, target, copy_function=_linked)


def _linked(source: str, target: str) -> None:
    try:
        Path(target).hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)
