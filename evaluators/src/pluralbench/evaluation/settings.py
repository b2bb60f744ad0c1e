"""What binds a run, and its directory: a run goes on only under the settings that it began with."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import polars as pl
from pluralbench_calls import ChatConnection, ChatModel
from pluralbench_release import manifest_at
from pluralbench_rewards import Group, ModelRecord, Scoring
from pluralbench_runs import Output, Recipe, Table, digest, output_directory
from pydantic import model_validator

from pluralbench.data.benchmarks import Benchmark, find_benchmark, known_benchmarks
from pluralbench.data.items import Items, load_items
from pluralbench.data.personas import personas_digest
from pluralbench.data.prompts import Told, groups_of, personas_for, plans_for, wordings_digest
from pluralbench.data.samples import SAMPLE
from pluralbench.data.shards import Shard, shard_of
from pluralbench.descriptions import Data, Judging, Profile, Prompt
from pluralbench.errors import BenchmarkError, DataError
from pluralbench.metrics import measure
from pluralbench.metrics.accuracy import rule_of
from pluralbench.results.metrics_frame import metrics_frame
from pluralbench.results.record import BenchmarkRecord, DataRecord, PromptRecord
from pluralbench.results.runs import RUN_FILE, SETTINGS_FILE

DEFAULT = "personalized"


class DataSettings(Table):
    """What is scored. digest: of its content. benchmark_digest: of the benchmark's description. shard: see `Shard`."""

    benchmark: str
    benchmark_digest: str
    location: str
    revision: str | None = None
    digest: str
    configs: tuple[str, ...] = ()
    limit: int | None = None
    on_empty: str = "error"
    shard: str | None = None


class PromptSettings(Table):
    """What the prompt says about the person, and in which words."""

    profile: Profile
    profile_size: int
    plans_digest: str | None = None
    personas_digest: str | None = None
    wordings_digest: str


class ScoreSettings(Recipe):
    """All that the numbers of `score` depend on. model: what was known of it before it was loaded."""

    operational: ClassVar[frozenset[str]] = frozenset({"scoring.token_budget", "scoring.compile"})

    verb: Literal["score"] = "score"
    model: ModelRecord
    data: DataSettings
    prompt: PromptSettings
    scoring: Scoring

    @model_validator(mode="before")
    @classmethod
    def _without_seed(cls, values: Any) -> Any:
        """Settings of earlier versions had a seed, of which nothing was drawn."""
        return {name: value for name, value in values.items() if name != "seed"} if isinstance(values, dict) else values


class JudgeSettings(Recipe):
    """All that a judge's verdicts depend on."""

    operational: ClassVar[frozenset[str]] = frozenset({"connection"})

    verb: Literal["judge"] = "judge"
    model: ChatModel
    prompts_digest: str
    data: DataSettings
    prompt: PromptSettings
    judging: Judging
    seed: int
    connection: ChatConnection = ChatConnection()


class Loaded(NamedTuple):
    """A benchmark with its items, as it is scored.

    told: what is known of people, and what a prompt tells of it. shard: the share that is scored, None for all items.
    frame: the items that are scored.
    """

    name: str
    benchmark: Benchmark
    items: Items
    data: Data
    told: Told
    shard: Shard | None
    frame: pl.DataFrame

    @property
    def prompt(self) -> Prompt:
        """What a prompt says of the person."""
        return self.told.prompt

    def groups(self) -> list[Group]:
        """The items as groups, in their order. Raises `DataError` where what the prompt tells is missing."""
        return groups_of(self.frame, self.told, several=self.items.frame["config"].n_unique() > 1)

    def data_settings(self) -> DataSettings:
        """What binds a run to its data."""
        return DataSettings(
            benchmark=self.name,
            benchmark_digest=digest(self.benchmark.model_dump(mode="json")),
            location=self.items.location,
            revision=self.items.revision,
            digest=self.items.digest,
            configs=self.data.configs,
            limit=self.data.limit,
            on_empty=self.items.on_empty,
            shard=None if self.shard is None else str(self.shard),
        )

    def prompt_settings(self) -> PromptSettings:
        """What binds a run to what its prompts say."""
        told = self.told
        return PromptSettings(
            profile=self.prompt.profile,
            profile_size=self.prompt.profile_size,
            plans_digest=digest(dict(told.plans)) if told.plans else None,
            personas_digest=personas_digest(told.personas),
            wordings_digest=wordings_digest(told.prompt.profile),
        )

    def measured(self, decisions: pl.DataFrame) -> pl.DataFrame:
        """The metrics of a run's decisions; of a share none, which would pass for those of the whole."""
        return measure(self.benchmark, decisions, self.items.frame) if self.shard is None else metrics_frame(())

    def benchmark_record(self) -> BenchmarkRecord:
        """The benchmark as a run records it."""
        benchmark = self.benchmark
        return BenchmarkRecord(name=self.name, title=benchmark.title, rule=rule_of(benchmark), description=benchmark)

    def data_record(self) -> DataRecord:
        """The data as a run records it: all of it, also where a share is scored."""
        asked = {name: getattr(self.data, name) for name in ("configs", "split", "limit")}
        asked["shard"] = None if self.shard is None else str(self.shard)
        return DataRecord.model_validate(self.items.source | asked)

    def prompt_record(self) -> PromptRecord:
        """The prompt as a run records it."""
        return PromptRecord(**self.prompt_settings().model_dump())


def load_benchmark(
    benchmark: str | None,
    data: str | Path | Data | None,
    prompt: Prompt | None,
    *,
    sampled: bool = False,
    shard: str | None = None,
) -> Loaded:
    """A benchmark's description and items. Raises a `UserError` for every mistake of the caller.

    benchmark: without one that which the manifest of the data names, or else `DEFAULT`.
    sampled: responses are sampled from a policy, so of the items only the prompts are read.
    shard: score a share of the items alone, such as "2/8".
    """
    part = None if shard is None else shard_of(shard)
    data = data if isinstance(data, Data) else Data(location=None if data is None else str(data))
    benchmark = benchmark or _benchmark_of(data.location) or DEFAULT
    prompt = prompt or Prompt()
    described = find_benchmark(benchmark, data.columns, legacy=data.legacy)
    if described.prompts and not sampled:
        raise BenchmarkError(
            f"The benchmark {benchmark} has prompts without responses to score; let a policy answer them with "
            "`pluralbench best-of-n`."
        )
    if sampled:
        described = described.model_copy(update={"prompts": True})
    items = _items(benchmark, described, data)
    told = Told(prompt, plans_for(prompt), personas_for(prompt), items.history)
    frame = items.frame if part is None else part.of_items(items.frame)
    return Loaded(Path(benchmark).stem, described.fitted(items.frame["subset"]), items, data, told, part, frame)


def _items(name: str, benchmark: Benchmark, data: Data) -> Items:
    """The items; where they are not of the benchmark's shape, the error says what the data's manifest says it is."""
    try:
        return load_items(benchmark, data)
    except DataError as error:
        own = _benchmark_of(data.location)
        if own in {None, name}:
            raise
        raise DataError(
            f"{error} By its manifest this data is of the benchmark {own}: leave out --benchmark."
        ) from None


def _benchmark_of(location: str | None) -> str | None:
    """The benchmark that a release says it is for, by its builder, which has the benchmark's name."""
    manifest = None if location in {None, SAMPLE} else manifest_at(str(location))
    return None if manifest is None or manifest.builder.name not in known_benchmarks() else manifest.builder.name


@contextmanager
def run_directory(out: Path, settings: Recipe, *, fresh: bool, finished: str = RUN_FILE) -> Iterator[Output | None]:
    """Open a run's directory for writing; None where the run is finished already, as the file `finished` shows."""
    with output_directory(out, settings, recipe_file=SETTINGS_FILE, fresh=fresh) as output:
        yield None if (output.target / finished).exists() and not fresh else output
