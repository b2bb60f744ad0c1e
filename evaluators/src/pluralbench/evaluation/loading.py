"""Load the items of a benchmark for a run, and open the run's directory."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import polars as pl
from pluralbench_release import manifest_at
from pluralbench_release.errors import NoSplit
from pluralbench_rewards import Group
from pluralbench_runs import Output, did_you_mean, digest, log_status, output_directory, step

from pluralbench.config import (
    DataConfig,
    PersonaDataConfig,
    PersonaJudgeConfig,
    Profile,
    PromptConfig,
    as_data_config,
    as_prompt_config,
)
from pluralbench.data.annotations import annotations_of
from pluralbench.data.benchmark_entries import known_benchmarks, title_for
from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.clusters import Shard, assign_blocks, parse_shard
from pluralbench.data.items import Items, described_benchmark, load_items
from pluralbench.data.layouts import layout_of
from pluralbench.data.layouts.steps import STEPS
from pluralbench.data.persona_items import PERSONA_JUDGE, PersonaItems, sample_items
from pluralbench.data.personas import personas_digest
from pluralbench.data.prompts import (
    UserContext,
    items_to_groups,
    load_plans,
    load_user_personas,
    prompts_digest,
    up_to_each_step,
)
from pluralbench.data.rules import overall_rule, rule_of
from pluralbench.data.samples import SAMPLE
from pluralbench.errors import BenchmarkError, DataError
from pluralbench.evaluation.work import reopen_failed, stopwatch
from pluralbench.metrics.table import named_metrics
from pluralbench.results.evaluations import EvaluationResult, EvaluationRunConfig
from pluralbench.results.kinds import Texts, numbers_of_run
from pluralbench.results.record import BenchmarkRecord, DataRecord, PromptRecord, RunConfig
from pluralbench.results.run_files import RUN_FILE, write_run
from pluralbench.results.runs import Run, load_run

ConfigT = TypeVar("ConfigT", bound=EvaluationRunConfig)
Evaluation = tuple[EvaluationResult, dict[str, pl.DataFrame], pl.DataFrame | None]
"""Result, frames and recorded calls of a run; None without calls."""
DEFAULT = "personalized"
TRAIN = "train"
"""Default split to train on, if the data has it."""
SELECTION = ("configs", "split", "limit", "items", "items_seed")
"""Fields of `DataConfig` that a run records."""

MAX_SUBSETS = 5  # subsets in an error


class LoadedBenchmark(NamedTuple):
    """A benchmark with its items, ready to be scored.

    Attributes:
        name: Name of the benchmark, or the stem of its file.
        context: User context, and what of it prompts show.
        shard: The shard to score; None for all items.
        blocks: Block of each of them (see `assign_blocks`). Default: they are one block.
    """

    name: str
    benchmark: Benchmark
    items: Items
    data: DataConfig
    context: UserContext
    shard: Shard | None
    frame: pl.DataFrame
    blocks: pl.Series | None = None

    @property
    def prompt(self) -> PromptConfig:
        """The user context that prompts show."""
        return self.context.prompt

    def groups(self, *, full_context: bool = False) -> Sequence[Group]:
        """Convert the items to groups, with all data about the person if `full_context`, else what the prompt shows.

        Raises:
            DataError: If an item lacks the user context that the prompt shows.
        """
        groups = items_to_groups(
            self.frame,
            self.context,
            several_configs=self.items.frame["config"].n_unique() > 1,
            full_context=full_context,
            blocks=self.blocks,
        )
        return [*map(up_to_each_step, groups)] if layout_of(self.benchmark) is STEPS else groups

    def frames(self) -> dict[str, pl.DataFrame]:
        """Return the frames of a run that are of the items to score: the votes of people, if there are any."""
        annotations = annotations_of(self.benchmark, self.frame)
        return {} if annotations is None else {"annotations": annotations}

    def records(self) -> dict[str, Any]:
        """Return the three records below, by the names of a run configuration's fields."""
        return {"benchmark": self.benchmark_record(), "data": self.data_record(), "prompt": self.prompt_record()}

    def benchmark_record(self) -> BenchmarkRecord:
        """Return the record of the benchmark."""
        return benchmark_record(self.name, self.benchmark, self.items.location, self.items.revision)

    def data_record(self) -> DataRecord:
        """Return the record of the data for a run's configuration; a shard's describes all items too."""
        selection = {name: getattr(self.data, name) for name in SELECTION}
        selection["shard"] = None if self.shard is None else str(self.shard)
        selection["benchmark_digest"] = digest(self.benchmark.model_dump(mode="json"))
        return DataRecord.model_validate(self.items.source | selection)

    def prompt_record(self) -> PromptRecord:
        """Return the record of the prompt."""
        context = self.context
        return PromptRecord(
            profile=self.prompt.profile,
            profile_size=self.prompt.profile_size,
            plans_digest=digest(dict(context.plans)) if context.plans else None,
            personas_digest=personas_digest(context.personas),
            wordings_digest=prompts_digest(context.prompt.profile),
        )


class LoadedPersonas(NamedTuple):
    """Items of the persona judge, ready to be judged; see `LoadedBenchmark`."""

    items: PersonaItems
    selection: dict[str, Any]
    shard: Shard | None
    frame: pl.DataFrame

    def records(self) -> dict[str, Any]:
        """Return the records of benchmark and data, by the names of a run configuration's fields."""
        benchmark, shard = known_benchmarks()[PERSONA_JUDGE], None if self.shard is None else str(self.shard)
        return {
            "benchmark": benchmark_record(PERSONA_JUDGE, benchmark, self.items.location, self.items.revision),
            "data": DataRecord(**self.items.source, **self.selection, shard=shard),
        }

    def frames(self) -> dict[str, pl.DataFrame]:
        """Return no further frames."""
        return {}


def drawn_personas(
    personas: PersonaItems,
    selection: PersonaDataConfig | DataRecord,
    judging: PersonaJudgeConfig,
    seed: int,
    shard: Shard | None = None,
) -> LoadedPersonas:
    """Draw the items that a run of the persona judge is about; see `sample_items`."""
    drawn = sample_items(personas, judging, configs=selection.configs, seed=seed)
    in_shard = [shard is None or shard.contains(user) for user in drawn.frame["user"]]
    fields = {"configs": selection.configs, "split": selection.split}
    return LoadedPersonas(drawn, fields, shard, drawn.frame.filter(pl.Series(in_shard, dtype=pl.Boolean)))


def benchmark_record(name: str, benchmark: Benchmark, location: str, revision: str | None) -> BenchmarkRecord:
    """Return the record of a benchmark on some data; `revision` is its commit on the Hub."""
    title = title_for(name, benchmark, location, revision)
    return BenchmarkRecord(name=name, title=title, rule=overall_rule(benchmark), description=benchmark)


def load_benchmark(
    benchmark: str | None,
    data: str | Path | DataConfig | None,
    prompt: Profile | PromptConfig | None,
    *,
    prompts_only: bool = False,
    for_training: bool = False,
    with_draw: bool = True,
    in_steps: bool = False,
    shard: str | None = None,
) -> LoadedBenchmark:
    """Load a benchmark's description and items.

    Args:
        benchmark: Name or TOML file. Default: the benchmark that the manifest of `data` names, or `DEFAULT`.
        data: Where the items are. Default: the benchmark's dataset on the Hub.
        prompt: User context in the prompt, or its kind. Default: none.
        prompts_only: Read only the prompts, since a policy writes the responses.
        for_training: Read the column of training pairs, and the training split unless `data` names another.
        with_draw: Allow `items` in `data`. False where numbers do not weight the drawn items.
        in_steps: Allow items that are answers in steps, which only scores decide.
        shard: Shard to score, such as "2/8". Default: all items.

    Raises:
        UserError: If an argument or the data cannot be used.
    """
    part = None if shard is None else parse_shard(shard)
    data = as_data_config(data)
    if data.items is not None and (prompts_only or for_training or not with_draw):
        raise DataError(f"Only `score` and `judge` draw items; leave out `items={data.items}`, or pass `limit`.")
    if data.items is not None and data.limit is not None:
        raise DataError(f"`items={data.items}` and `limit={data.limit}` exclude each other; pass one of them.")
    benchmark = benchmark or benchmark_of(data.location) or DEFAULT
    prompt = as_prompt_config(prompt)
    entry = described_benchmark(benchmark, data, for_training=for_training)
    metrics = named_metrics(entry)  # an unknown name is refused before anything is read
    if entry.prompts_only and not prompts_only:
        raise BenchmarkError(
            f"The benchmark {benchmark} has prompts and no responses to score; let a policy answer them with "
            "`pluralbench best-of-n`."
        )
    if layout_of(entry) is STEPS and not in_steps:
        raise BenchmarkError(
            f"The benchmark {benchmark} has answers in steps, each of which needs a score; only `pluralbench score` "
            "scores them."
        )
    if prompts_only:
        entry = entry.model_copy(update={"prompts_only": True})
    with step(f"Reading the items of {benchmark}"):
        data, items = (_load_training_items if for_training else _load_items)(benchmark, entry, data)
    if benchmark.endswith(".toml") and not (prompts_only or data.limit or data.configs):
        _check_sections(benchmark, entry, items)
    rule_of(entry).check(entry, items.frame, part=part is not None)
    for metric in metrics:
        if metric.check is not None:
            metric.check(items.frame, items.location)
    context = UserContext(prompt, load_plans(prompt), load_user_personas(prompt), items.history)
    _check_one_person(benchmark, entry, items.frame, context)
    blocks = assign_blocks(items.frame)
    frame = items.frame
    if part is not None:
        in_shard = part.select(blocks)
        frame, blocks = frame.filter(in_shard), blocks.filter(in_shard)
    entry = entry.fit_to(items.subsets).model_copy(update={"strata": items.strata})
    return LoadedBenchmark(Path(benchmark).stem, entry, items, data, context, part, frame, blocks)


def _load_training_items(name: str, benchmark: Benchmark, data: DataConfig) -> tuple[DataConfig, Items]:
    """Load the items of the training split, and name it in the selection.

    What is scored by default is learned only if the data has no training split.
    """
    if data.split is None:
        split = benchmark.train_split or TRAIN
        try:
            data, items = _load_items(name, benchmark, data.model_copy(update={"split": split}))
        except NoSplit:
            if benchmark.train_split is not None:
                raise
            data, items = _load_items(name, benchmark, data)
        return data.model_copy(update={"split": items.split}), items
    return _load_items(name, benchmark, data)


def _load_items(name: str, benchmark: Benchmark, data: DataConfig) -> tuple[DataConfig, Items]:
    """Load the items; if they have another shape, the error names the benchmark of the data's manifest."""
    try:
        return data, load_items(benchmark, data)
    except DataError as error:
        own = benchmark_of(data.location)
        if own in {None, name}:
            raise
        raise DataError(f"{error} The data's manifest names the benchmark {own}: leave out `benchmark=...`.") from None


def _check_sections(file: str, benchmark: Benchmark, items: Items) -> None:
    """Raise `BenchmarkError` if a benchmark file gives a weight to a subset that no item has, such as a typo."""
    subsets = dict.fromkeys(name for name in items.frame["subset"] if name is not None)
    for name, section in benchmark.section_of.items():
        if name not in subsets:
            first = ", ".join(list(subsets)[:MAX_SUBSETS]) + (", …" if len(subsets) > MAX_SUBSETS else "")
            raise BenchmarkError(
                f"{file}: no item has the subset {name} of the section {section}; {did_you_mean(name, subsets)}the "
                f"items' subsets: {first or 'none'}."
            )


def _check_one_person(name: str, benchmark: Benchmark, items: pl.DataFrame, context: UserContext) -> None:
    """Raise `DataError` if prompts show something about a person, and only the votes of several say who decides."""
    if benchmark.annotations is None or benchmark.annotations.by_person or benchmark.history is not None:
        return
    profile = context.prompt.profile
    known = {"raw": items["profile"], "persona": items["persona"]}
    if profile in known and not context.personas and known[profile].null_count() == items.height:
        raise DataError(
            f"Several people decide each item of {name}, so there is no profile of one; choose a benchmark of each "
            "person's own choices, such as `community-alignment`, or leave the profile out."
        )


def benchmark_of(location: str | None) -> str | None:
    """Return the benchmark of a release, which has the name of its builder; None for other data."""
    manifest = None if location in {None, SAMPLE} else manifest_at(str(location))
    return None if manifest is None or manifest.builder.name not in known_benchmarks() else manifest.builder.name


@contextmanager
def run_directory(out: Path, config: RunConfig, *, fresh: bool) -> Iterator[Output | None]:
    """Open a run's directory for writing.

    Yields the directory, or None if the run in it is finished and the server answered all its calls.
    """
    with output_directory(out, config, recipe_file=RUN_FILE, fresh=fresh) as output:
        if fresh or not (output.target / RUN_FILE).exists() or reopen_failed(output):
            yield output
        else:
            log_status(f"{out} is already complete.")
            yield None


def evaluated_run(
    target: Path,
    config: ConfigT,
    loaded: LoadedBenchmark | LoadedPersonas,
    evaluate: Callable[[Output, Callable[[], float]], Evaluation],
    *,
    fresh: bool,
) -> Run[ConfigT, Any]:
    """Evaluate a model on loaded items and write the run directory, or read the finished run in it.

    Args:
        target: Run directory.
        config: The run's configuration.
        loaded: The items.
        evaluate: Evaluates, given the directory and what returns the seconds so far; not called for a finished run.
        fresh: Start over.
    """
    with run_directory(target, config, fresh=fresh) as output:
        if output is not None:
            with stopwatch(output.work) as seconds:
                # No name holds the frames, which take as much memory as those that are read below.
                write_evaluation(output, config, loaded, *evaluate(output, seconds))
    return load_run(target, type(config), part=True)


def write_evaluation(
    output: Output,
    config: EvaluationRunConfig,
    loaded: LoadedBenchmark | LoadedPersonas,
    result: EvaluationResult,
    frames: dict[str, pl.DataFrame],
    calls: pl.DataFrame | None = None,
) -> None:
    """Compute the numbers of a run from its frames and the judge's calls, and write it."""
    frames = frames | loaded.frames()
    write_run(output, config, result, numbers_of_run(config, result, frames, Texts(loaded.items.frame, calls)), frames)
