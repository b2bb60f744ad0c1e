"""`suite`: score a reward model on the benchmarks of a suite, with the model loaded once."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pluralbench_rewards import ScoringConfig
from pluralbench_runs import (
    ClusterConfig,
    OutputError,
    RecipeError,
    UserError,
    describe_difference,
    did_you_mean,
    log_status,
    move_aside,
    output_directory,
    plural,
    read_recipe,
    resolve_output_path,
    write_recipe,
)
from pluralbench_runs.options import Flag, Options

from pluralbench.arguments import ShardText
from pluralbench.config import OF_ONE_BENCHMARK, DataConfig, Profile, PromptConfig, as_prompt_config
from pluralbench.data.benchmark_entries import find_benchmark
from pluralbench.data.clusters import parse_shard
from pluralbench.data.samples import SAMPLE
from pluralbench.data.suites import Suite, SuiteBenchmark, find_suite
from pluralbench.errors import DataError, EvaluationError
from pluralbench.evaluation.folders import run_folder
from pluralbench.evaluation.loading import LoadedBenchmark, load_benchmark
from pluralbench.evaluation.models import Scorable, find_model
from pluralbench.evaluation.scores import model_file_name, write_scores
from pluralbench.results.evaluations import ScoreRunConfig
from pluralbench.results.run_files import RUN_FILE
from pluralbench.results.suite import SUITE_FILE, SuiteRecord, SuiteRun, load_suite

DEFAULT_SUITE = "release"


def suite(
    model: Scorable,
    suite: Annotated["str | Path | Suite", Flag("--suite")] = DEFAULT_SUITE,
    *,
    only: Annotated[Sequence[str], Flag(metavar="NAME")] = (),
    data: str | Mapping[str, str] | None = None,
    options: Annotated[DataConfig | None, Options("Data", left_out=OF_ONE_BENCHMARK)] = None,
    prompt: Profile | PromptConfig | None = None,
    scoring: ScoringConfig | None = None,
    cluster: ClusterConfig | None = None,
    shard: ShardText = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> SuiteRun:
    """Score a reward model on the benchmarks of a suite and print the row of results.

    Each benchmark is an ordinary run in a subdirectory of the suite's directory. All data are read first, and the model
    is loaded once, if a run is not finished. Repeat it with the same arguments to resume; finished runs are only read.
    If `fresh` starts over, runs of another suite or model move to `OUT.kept-...`.

    Args:
        model: The model, as for `score`.
        suite: "release", "plural", "all", a TOML file, or (in Python) a `Suite`.
        only: Benchmark or column to run; repeatable. Default: all.
        data: "sample" for the bundled rows of every benchmark, or the location of the data by benchmark; the key ""
            stands for all other benchmarks. Default: the locations that the suite names.
        options: Selection of items of every benchmark, such as a limit. Default: that of the suite.
        prompt: User context in the prompts of benchmarks whose items have some, such as "raw", or a `PromptConfig`.
            Default: none.
        scoring: How the model runs, as for `score`.
        cluster: Ray cluster that loads the model and scores. Default: this process.
        shard: Process only shard I of N (from 1); `pluralbench merge` joins the shards.
        out: Directory of the suite. Default: a name under runs/ that lists the suite, the model and the other settings.
        fresh: Start over, and replace existing output.

    Returns:
        The finished runs in `out`, with the row of numbers.

    Raises:
        UserError: If an argument, data, the model or a directory cannot be used. The message names the fix.

    Examples:
        pluralbench suite Skywork/Skywork-Reward-V2-Llama-3.2-1B
        pluralbench suite local --suite plural --data sample
        pluralbench suite ./my-model --suite all --data chinese=downloads/cheems_bench --html report.html
        pluralbench suite ./my-model --only JudgeBench --only rm-bench --format latex
        pluralbench suite ./my-model --without contaminated.jsonl
        pluralbench suite ORG/NAME --server http://gpu1:8000 --suite my-suite.toml --out runs/mine
    """
    name, chosen = ("suite", suite) if isinstance(suite, Suite) else (Path(suite).stem, find_suite(suite))
    shared = _shared_options(options)
    benchmarks = _select(chosen, only)
    locations = _locations(data, benchmarks)
    scoring = scoring or ScoringConfig()
    prompt = None if prompt is None else as_prompt_config(prompt)
    found = find_model(model, scoring, cluster)
    record = SuiteRecord(suite=chosen, model=found.record)
    words = [SAMPLE] if SAMPLE in locations.values() else []
    folder = "-".join([name, model_file_name(found.record), *words])
    named_options = (shared, prompt or PromptConfig(), found.local, scoring)
    target = resolve_output_path(Path(out or run_folder(folder, record, *named_options, recipe_file=SUITE_FILE)))
    replaced = _check_directory(target, record, fresh=fresh)
    loaded = _load(benchmarks, shared, locations, prompt, shard)
    suffix = "" if shard is None else parse_shard(shard).suffix
    targets = {key: target / f"{key}{suffix}" for key in loaded}
    configs = {key: ScoreRunConfig(**own.records(), model=found.record, scoring=scoring) for key, own in loaded.items()}
    for key in () if fresh else loaded:
        with output_directory(targets[key], configs[key], recipe_file=RUN_FILE):
            pass  # raises an error for a run with other settings, before any benchmark is scored
    open_once = cache(found.load)
    if replaced is not None:
        open_once()  # a model that cannot be loaded replaces nothing
        _move_runs(target, replaced)
    target.mkdir(parents=True, exist_ok=True)
    write_recipe(record, target / SUITE_FILE)
    runs: dict[str, Any] = {}
    for number, (key, own) in enumerate(loaded.items(), 1):
        log_status(f"Benchmark {number} of {len(loaded)}: {key} ({plural(own.frame.height, 'item')})")
        try:
            runs[key] = write_scores(targets[key], own, configs[key], open_once, fresh=fresh)
        except UserError:
            log_status(
                f"{len(runs)} of {len(loaded)} benchmarks are finished in {target}; rerun the same command to resume."
            )
            raise
    return load_suite(target) if shard is None else SuiteRun(target, record, runs, shard)


def _shared_options(options: DataConfig | None) -> DataConfig:
    """Return options for every benchmark. Raises `EvaluationError` for those of a single one."""
    shared = options or DataConfig()
    own = next((name for name in _changes(shared) if name in OF_ONE_BENCHMARK), None)
    if own is not None:
        raise EvaluationError(
            f"`{own}={getattr(shared, own)!r}` belongs to a single benchmark; set it there, in a suite file."
        )
    return shared


def _changes(options: DataConfig) -> dict[str, Any]:
    """Return the options that are not the default."""
    return {name: value for name, value in options if value != type(options).model_fields[name].default}


def _select(suite: Suite, only: Sequence[str]) -> list[SuiteBenchmark]:
    """Return the chosen benchmarks. Raises `EvaluationError` for an unknown name."""
    columns = {column.name: [benchmark.key for benchmark in column.benchmarks] for column in suite.columns}
    keys = [key for inside in columns.values() for key in inside]
    chosen = {key for name in only for key in columns.get(name, [name])}
    _check_names(chosen, keys, "only")
    return [benchmark for benchmark in suite.benchmarks if not only or benchmark.key in chosen]


def _locations(data: str | Mapping[str, str] | None, benchmarks: Sequence[SuiteBenchmark]) -> dict[str, str]:
    """Return the location of each benchmark's data that is not the suite's. Raises `EvaluationError`."""
    by_name = {"": data} if isinstance(data, str) else dict(data or {})
    keys = [benchmark.key for benchmark in benchmarks]
    others = by_name.pop("", None)
    _check_names(by_name, keys, "data")
    if others is None:
        return by_name
    if others != SAMPLE and len(keys) > 1:
        raise EvaluationError(
            f"`data={others}` is for a single benchmark, but {len(keys)} are chosen; write NAME={others}, or choose "
            "one with `only=...`."
        )
    return dict.fromkeys(keys, others) | by_name


def _check_names(names: Iterable[str], known: Sequence[str], argument: str) -> None:
    unknown = next((name for name in sorted(names) if name not in known), None)
    if unknown is not None:
        raise EvaluationError(
            f"`{argument}={unknown}`: no such benchmark is chosen; {did_you_mean(unknown, known)}choose from "
            f"{', '.join(known)}."
        )


def _check_directory(target: Path, record: SuiteRecord, *, fresh: bool) -> SuiteRecord | None:
    """Return the other suite, or suite of another model, that `fresh` replaces in a directory; None if there is none.

    Raises:
        OutputError: The directory has such a suite, and `fresh` is not set, or it is no directory for a suite.
    """
    path = target / SUITE_FILE
    if target.exists() and not target.is_dir():
        raise OutputError(f"{target} is a file; choose another output directory.")
    if (target / RUN_FILE).exists():
        raise OutputError(f"{target} is the run of a single benchmark; choose another output directory.")
    if not path.exists():
        return None
    try:
        earlier = read_recipe(SuiteRecord, path)
    except RecipeError:
        if fresh:
            return None
        raise
    difference = describe_difference(record, earlier)
    if difference and not fresh:
        raise OutputError(
            f"The suite in {target} has other settings ({difference}); use the same settings to resume, choose another "
            "output directory, or start over with `fresh=True`."
        )
    return earlier if difference else None


def _move_runs(target: Path, suite: SuiteRecord) -> None:
    """Move the runs of a suite, with what a user put beside them, to a new directory beside `target`."""
    runs = [target / one.key for one in suite.suite.benchmarks if (target / one.key / RUN_FILE).is_file()]
    kept = move_aside([*runs, target / SUITE_FILE], target)  # the file last: it names the runs to move
    log_status(f"The suite of {suite.model.name} that was in {target} is in {kept} now.")


def _load(
    benchmarks: Sequence[SuiteBenchmark],
    shared: DataConfig,
    locations: Mapping[str, str],
    prompt: PromptConfig | None,
    shard: str | None,
) -> dict[str, LoadedBenchmark]:
    """Load all benchmarks. Raises `DataError` that names every benchmark that cannot be loaded."""
    loaded, problems = {}, {}
    for benchmark in benchmarks:
        changed = _changes(shared) | ({"location": locations[benchmark.key]} if benchmark.key in locations else {})
        data = benchmark.data.model_copy(update=changed)
        try:
            with_context = prompt is not None and _has_user_context(benchmark)
            own = load_benchmark(
                benchmark.name,
                data,
                benchmark.prompt or (prompt if with_context else None),
                shard=shard,
                in_steps=True,
            )
            if own.prompt.profile != "none":
                own.groups()  # raises an error for an item without user context
            loaded[benchmark.key] = own
        except UserError as error:
            problems[benchmark.key] = error
    if problems:
        lines = "\n".join(f"- {key}: {error}" for key, error in problems.items())
        raise DataError(
            f"{len(problems)} of {len(benchmarks)} benchmarks cannot be loaded, and nothing was scored; name their "
            f"data as NAME=LOCATION (`data=...`), or choose others with `only=...`.\n{lines}"
        )
    return loaded


def _has_user_context(benchmark: SuiteBenchmark) -> bool:
    """Return whether the items of a benchmark have posts, earlier decisions or a persona of the user."""
    described = find_benchmark(benchmark.name, benchmark.columns)
    columns = described.columns
    return described.history is not None or columns.profile is not None or columns.persona is not None
