"""The items of a benchmark as a run has them, and its directory, which goes on only under what it began with."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pluralbench_release import manifest_at
from pluralbench_rewards import Group
from pluralbench_runs import Output, did_you_mean, digest, output_directory

from pluralbench.config import DataConfig, PromptConfig
from pluralbench.data.benchmarks import Benchmark, find_benchmark, known_benchmarks
from pluralbench.data.items import Items, load_items
from pluralbench.data.personas import personas_digest
from pluralbench.data.prompts import UserContext, items_to_groups, load_plans, load_user_personas, prompts_digest
from pluralbench.data.samples import SAMPLE
from pluralbench.data.shards import Shard, parse_shard
from pluralbench.errors import BenchmarkError, DataError
from pluralbench.metrics import measure
from pluralbench.metrics.accuracy import overall_rule
from pluralbench.results.metrics_frame import metrics_frame
from pluralbench.results.record import BenchmarkRecord, DataRecord, PromptRecord, RunConfig
from pluralbench.results.runs import RUN_FILE

DEFAULT = "personalized"
NAMED = 5  # subsets in an error


class LoadedBenchmark(NamedTuple):
    """A benchmark with its items, as it is scored.

    context: what is known of people, and what a prompt shows of it. shard: the part that is scored, None for all items.
    frame: the items that are scored.
    """

    name: str
    benchmark: Benchmark
    items: Items
    data: DataConfig
    context: UserContext
    shard: Shard | None
    frame: pl.DataFrame

    @property
    def prompt(self) -> PromptConfig:
        """What a prompt says of the person."""
        return self.context.prompt

    def groups(self, *, full_context: bool = False) -> list[Group]:
        """The items as groups, in their order. Raises `DataError` where what the prompt tells is missing.

        full_context: with all that is known of the person as data, rather than what the prompt tells.
        """
        return items_to_groups(
            self.frame,
            self.context,
            several_configs=self.items.frame["config"].n_unique() > 1,
            full_context=full_context,
        )

    def compute_metrics(self, decisions: pl.DataFrame) -> pl.DataFrame:
        """The metrics of a run's decisions; of a share none, which would pass for those of the full_context."""
        return measure(self.benchmark, decisions, self.items.frame) if self.shard is None else metrics_frame(())

    def records(self) -> dict[str, Any]:
        """What a run's settings say of all three below, by the names of their fields."""
        return {"benchmark": self.benchmark_record(), "data": self.data_record(), "prompt": self.prompt_record()}

    def benchmark_record(self) -> BenchmarkRecord:
        """The benchmark as a run records it."""
        benchmark, items = self.benchmark, self.items
        title = benchmark.title_for(items.location, items.revision)
        return BenchmarkRecord(name=self.name, title=title, rule=overall_rule(benchmark), description=benchmark)

    def data_record(self) -> DataRecord:
        """The data as a run records it: all of it, also where a share is scored."""
        asked = {name: getattr(self.data, name) for name in ("configs", "split", "limit")}
        asked["shard"] = None if self.shard is None else str(self.shard)
        asked["benchmark_digest"] = digest(self.benchmark.model_dump(mode="json"))
        return DataRecord.model_validate(self.items.source | asked)

    def prompt_record(self) -> PromptRecord:
        """What a run records of what its prompts say."""
        context = self.context
        return PromptRecord(
            profile=self.prompt.profile,
            profile_size=self.prompt.profile_size,
            plans_digest=digest(dict(context.plans)) if context.plans else None,
            personas_digest=personas_digest(context.personas),
            wordings_digest=prompts_digest(context.prompt.profile),
        )


def as_data_config(place: str | Path | DataConfig | None) -> DataConfig:
    """Which items are meant by a place alone, or by the choices that are given with it."""
    return place if isinstance(place, DataConfig) else DataConfig(location=None if place is None else str(place))


def load_benchmark(
    benchmark: str | None,
    data: str | Path | DataConfig | None,
    prompt: PromptConfig | None,
    *,
    prompts_only: bool = False,
    for_training: bool = False,
    shard: str | None = None,
) -> LoadedBenchmark:
    """A benchmark's description and items. Raises a `UserError` for every mistake of the caller.

    benchmark: without one that which the manifest of the data names, or else `DEFAULT`.
    prompts_only: responses are prompts_only from a policy, so of the items only the prompts are read.
    for_training: a reward model is trained on the items.
    shard: score a share of the items alone, such as "2/8".
    """
    part = None if shard is None else parse_shard(shard)
    data = as_data_config(data)
    benchmark = benchmark or _benchmark_of(data.location) or DEFAULT
    prompt = prompt or PromptConfig()
    described = find_benchmark(benchmark, data.columns, data.labels, legacy=data.legacy, for_training=for_training)
    if described.prompts_only and not prompts_only:
        raise BenchmarkError(
            f"The benchmark {benchmark} has prompts without responses to score; let a policy answer them with "
            "`pluralbench best-of-n`."
        )
    if prompts_only:
        described = described.model_copy(update={"prompts": True})
    items = _items(benchmark, described, data)
    if benchmark.endswith(".toml") and not (prompts_only or data.limit or data.configs):
        _check_sections(benchmark, described, items)
    context = UserContext(prompt, load_plans(prompt), load_user_personas(prompt), items.history)
    frame = items.frame if part is None else part.select(items.frame)
    return LoadedBenchmark(
        Path(benchmark).stem, described.fit_to(items.frame["subset"]), items, data, context, part, frame
    )


def _items(name: str, benchmark: Benchmark, data: DataConfig) -> Items:
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


def _check_sections(file: str, benchmark: Benchmark, items: Items) -> None:
    """Raise `BenchmarkError` where a file of one's own weighs a subset that no item is of, such as a misspelt one."""
    there = dict.fromkeys(name for name in items.frame["subset"] if name is not None)
    for name, section in benchmark.section_of.items():
        if name not in there:
            known = ", ".join(list(there)[:NAMED]) + (", …" if len(there) > NAMED else "")
            raise BenchmarkError(
                f"{file}: the section {section} has the subset {name}, which no item is of; "
                f"{did_you_mean(name, there)}items are of {known or 'none'}."
            )


def _benchmark_of(location: str | None) -> str | None:
    """The benchmark that a release says it is for, by its builder, which has the benchmark's name."""
    manifest = None if location in {None, SAMPLE} else manifest_at(str(location))
    return None if manifest is None or manifest.builder.name not in known_benchmarks() else manifest.builder.name


@contextmanager
def run_directory(out: Path, config: RunConfig, *, fresh: bool) -> Iterator[Output | None]:
    """Open a run's directory for writing; None where the run is finished already."""
    with output_directory(out, config, recipe_file=RUN_FILE, fresh=fresh) as output:
        yield None if (output.target / RUN_FILE).exists() and not fresh else output
