"""Verbs that evaluate reward models and judges."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pluralbench_runs import Seed
from pluralbench_runs.options import Flag, Options

from pluralbench.config import (
    OF_ONE_BENCHMARK,
    ClusterConfig,
    ConnectionConfig,
    DataConfig,
    JudgeConfig,
    PersonaDataConfig,
    PersonaJudgeConfig,
    Profile,
    PromptConfig,
    ScoringConfig,
    SynthesizeConfig,
)

if TYPE_CHECKING:
    from pluralbench.data.suites import Suite
    from pluralbench.evaluation.models import Scorable
    from pluralbench.results.evaluations import (
        JudgeResult,
        JudgeRunConfig,
        PersonaJudgeResult,
        PersonaJudgeRunConfig,
        ScoreResult,
        ScoreRunConfig,
    )
    from pluralbench.results.runs import Run, Synthesis
    from pluralbench.results.suite import SuiteRun

Shard = Annotated[str | None, Flag(metavar="I/N")]
Runs = Annotated[Sequence[str | Path], Flag(metavar="RUN...")]
WITHOUT_DRAW = ("english", "legacy", "items", "items_seed")
"""Fields of `DataConfig` that only verbs with a benchmark's number have."""


def score(
    model: "Scorable",
    *,
    benchmark: str | None = None,
    data: str | Path | DataConfig | None = None,
    prompt: Profile | PromptConfig | None = None,
    scoring: ScoringConfig | None = None,
    cluster: ClusterConfig | None = None,
    shard: Shard = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> "Run[ScoreRunConfig, ScoreResult]":
    """Score a reward model on a benchmark.

    Writes a run directory with the scores of every item, the metrics and their provenance. Repeat it with the same
    arguments to resume. A finished run is only read.

    Args:
        model: Directory, ORG/NAME on the Hub, or `local` (small embedded model). In Python also a `LocalModel`, a
            `ServedModel`, a `RewardModel`, or a function that takes a list of `Group` and returns a list of scores, one
            per response, for each group.
        benchmark: Name, such as personalized, multilingual, chinese, reward-bench-2 or pairs (`pluralbench list` shows
            all), or a TOML file. Default: the benchmark in the manifest of `data`, else personalized.
        data: Location of the dataset, or a `DataConfig`, which also selects configs, columns and a limit, or draws
            items. Default: the benchmark's dataset on the Hub.
        prompt: User context in the prompt, such as "raw", or a `PromptConfig`. Default: none.
        scoring: How the model runs in this process: mode, maximum length, overflow, token budget. Default:
            `ScoringConfig()`; models that bring their own code take no other.
        cluster: Ray cluster that loads the model and scores. Default: this process.
        shard: Process only shard I of N (from 1); `pluralbench merge` joins the shards.
        out: Run directory. Default: a name under runs/ that lists the benchmark, the model and the other settings.
        fresh: Start over, and replace existing output.

    Returns:
        The run in `out`, as `load_run` reads it.

    Raises:
        UserError: If an argument, the data, the model or the directory cannot be used. The message names the fix.

    Examples:
        pluralbench score Skywork/Skywork-Reward-V2-Llama-3.2-1B --benchmark personalized
        pluralbench score local --data sample
        pluralbench score ./my-model --data dist/personalized-rewardbench --profile raw --out runs/mine
        pluralbench score ORG/NAME --server http://gpu1:8000,http://gpu2:8000 --dtype bfloat16
        pluralbench score ./policy --kind implicit --reference ./base --benchmark pairs --data pairs.jsonl
        pluralbench score ./my-model --benchmark personalized --shard 2/8 --out runs/mine-shard2of8
    """
    arguments = locals()
    from pluralbench.evaluation.score import score as run_score

    return run_score(**arguments)


def judge(
    model: str,
    *,
    benchmark: str | None = None,
    data: str | Path | DataConfig | None = None,
    prompt: Profile | PromptConfig | None = None,
    judging: JudgeConfig | None = None,
    connection: ConnectionConfig | None = None,
    seed: Seed = 0,
    shard: Shard = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> "Run[JudgeRunConfig, JudgeResult]":
    """Let a language model judge a benchmark.

    Every call is recorded in the run directory; repeat it with the same arguments to resume without repeating calls. A
    reply that cannot be parsed is retried at a higher temperature. If no attempt gives a readable verdict, it is
    invalid and counts as wrong.

    Args:
        model: Name of a model at the endpoint, or `local` (small embedded model).
        benchmark: Name, such as personalized, multilingual, chinese, reward-bench-2 or pairs (`pluralbench list` shows
            all), or a TOML file. Default: the benchmark in the manifest of `data`, else personalized.
        data: Location of the dataset, or a `DataConfig`, which also selects configs, columns and a limit, or draws
            items. Default: the benchmark's dataset on the Hub.
        prompt: User context that the judge sees, such as "raw", or a `PromptConfig`. Default: none.
        judging: The judge's question and reply: orders, criterion, oracle, reply format, sampling. Default:
            `JudgeConfig()`. Benchmarks with legacy rules for rankings (`legacy=True`) are judged in one order.
        connection: Endpoint, rate limits and maximum cost. Default: `ConnectionConfig()`, which is OpenAI's API.
        seed: Random seed, of draws such as the order of the responses.
        shard: Process only shard I of N (from 1); `pluralbench merge` joins the shards.
        out: Run directory. Default: a name under runs/ that lists the benchmark, the model and the other settings.
        fresh: Start over, and replace existing output.

    Returns:
        The run in `out`, as `load_run` reads it.

    Raises:
        UserError: If an argument, the data, the endpoint or the directory cannot be used. The message names the fix.

    Examples:
        pluralbench judge gpt-5-mini --benchmark personalized --limit 50 --price 0.25/2 --max-cost 1
        pluralbench judge my-model --base-url http://localhost:8000/v1 --data dist/personalized-rewardbench
            --oracle titles
    """
    arguments = locals()
    from pluralbench.evaluation.judge import judge as run_judge

    return run_judge(**arguments)


def judge_personas(
    model: str,
    *,
    data: str | Path | PersonaDataConfig | None = None,
    judging: PersonaJudgeConfig | None = None,
    connection: ConnectionConfig | None = None,
    seed: Seed = 0,
    shard: Shard = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> "Run[PersonaJudgeRunConfig, PersonaJudgeResult]":
    """Let a language model predict the choices of people from their personas, with its certainty.

    Every call is recorded in the run directory; repeat it with the same arguments to resume without repeating calls.

    If both orders are judged, a verdict that changes with the order is wrong, even if the true answer is a tie, and the
    certainty is the mean of the two. A person without any sentence of the chosen variables is judged without persona,
    and counted in the result. A verdict that no attempt could parse is invalid and counts as wrong.

    Args:
        model: Name of a model at the endpoint, or `local` (small embedded model).
        data: A release of `build-persona-judge` (directory, file or ORG/NAME[@REVISION]), or "sample"; a
            `PersonaDataConfig` also selects configs and a split. Required: there is no default dataset.
        judging: Setting, variables, sampling and reply format; `sample_items` explains which items a setting leaves
            out. Default: `PersonaJudgeConfig()`.
        connection: Endpoint, rate limits and maximum cost. Default: `ConnectionConfig()`, which is OpenAI's API.
        seed: Random seed, of draws such as the order of the responses.
        shard: Process only shard I of N (from 1); `pluralbench merge` joins the shards.
        out: Run directory. Default: a name under runs/ that lists the benchmark, the model and the other settings.
        fresh: Start over, and replace existing output.

    Returns:
        The run in `out`, as `load_run` reads it.

    Raises:
        UserError: If an argument, the data, the endpoint or the directory cannot be used. The message names the fix.

    Examples:
        pluralbench judge-personas gpt-5-mini --data dist/persona-judge --price 0.25/2 --max-cost 2
        pluralbench judge-personas gpt-5-mini --data dist/persona-judge --variables none --limit 200
    """
    arguments = locals()
    from pluralbench.evaluation.personas import judge_personas as run_judge_personas

    return run_judge_personas(**arguments)


def merge(
    runs: Runs,
    *,
    data: Annotated[str | None, Flag(metavar="DIR|FILE|ORG/NAME[@REVISION]")] = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> "Run":
    """Join the shards of `score`, `judge` or `judge-personas` into one run.

    Items and metrics equal those of a run without shards; to the bit if scores do not depend on the other items of a
    batch (`ScoringConfig(mode="exact")`).

    Args:
        runs: Directories of all shards of a run, in any order.
        data: Current location of the run's data, if it has moved.
        out: Run directory. Default: the name of the shards without the shard number.
        fresh: Start over, and replace existing output.

    Returns:
        The joined run, as `load_run` reads it.

    Raises:
        RunError: If a shard is missing or there twice, a run is not a shard, or shards differ in settings or model.
        DataError: If the data is not what the shards read.

    Examples:
        pluralbench merge runs/mine-shard*
        pluralbench merge runs/mine-shard1of2 runs/mine-shard2of2 --out runs/whole
    """
    arguments = locals()
    from pluralbench.evaluation.merge import merge as merge_runs

    return merge_runs(**arguments)


def suite(
    model: "Scorable",
    suite: Annotated["str | Path | Suite", Flag("--suite")] = "release",
    *,
    only: Annotated[Sequence[str], Flag(metavar="NAME")] = (),
    data: str | Mapping[str, str] | None = None,
    options: Annotated[DataConfig | None, Options("Data", left_out=OF_ONE_BENCHMARK)] = None,
    prompt: Profile | PromptConfig | None = None,
    scoring: ScoringConfig | None = None,
    cluster: ClusterConfig | None = None,
    shard: Shard = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> "SuiteRun":
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
    arguments = locals()
    from pluralbench.evaluation.suite import suite as run_suite

    return run_suite(**arguments)


def synthesize(
    model: str,
    *,
    benchmark: str | None = None,
    data: Annotated[str | Path | DataConfig | None, Options(left_out=WITHOUT_DRAW)] = None,
    synthesizing: SynthesizeConfig | None = None,
    connection: ConnectionConfig | None = None,
    seed: Seed = 0,
    out: str | Path | None = None,
    fresh: bool = False,
) -> "Synthesis":
    """Let a language model write personas and choose demonstrations for a judge (SynthesizeMe).

    The model predicts each user's older pairs with reasons, and writes a persona from the reasons of its correct
    predictions. The newer pairs select the demonstrations. Users without earlier pairs are described by their posts. A
    person gets one persona if the same is known of them at all of their items; otherwise each item gets its own, so
    that no persona uses later choices.

    Writes personas.jsonl (for --personas) with the recorded calls. Repeat it with the same arguments to resume.

    Args:
        model: Name of a model at the endpoint, or `local` (small embedded model).
        benchmark: Name, such as personalized, multilingual, chinese, reward-bench-2 or pairs (`pluralbench list` shows
            all), or a TOML file. Default: the benchmark in the manifest of `data`, else personalized.
        data: Location of the dataset, or a `DataConfig`, which also selects configs, columns and a limit. Default: the
            benchmark's dataset on the Hub.
        synthesizing: Numbers of pairs, personas and demonstrations, sampling and reply format. Default:
            `SynthesizeConfig()`.
        connection: Endpoint, rate limits and maximum cost. Default: `ConnectionConfig()`, which is OpenAI's API.
        seed: Random seed, of draws such as the order of the responses.
        out: Run directory. Default: a name under runs/ that lists the benchmark, the model and the other settings.
        fresh: Start over, and replace existing output.

    Returns:
        The synthesis in `out`. Its `personas.jsonl` is what `PromptConfig(profile="persona", personas=...)` takes.

    Raises:
        DataError: If no person of the data has earlier pairs or posts.
        UserError: If another argument, the endpoint or the directory cannot be used. The message names the fix.

    Examples:
        pluralbench synthesize gpt-5-mini --benchmark prism-personalized --price 0.25/2 --max-cost 5 --out personas
        pluralbench judge gpt-5-mini --benchmark prism-personalized --profile persona --personas personas
    """
    arguments = locals()
    from pluralbench.evaluation.synthesize import synthesize as run_synthesis

    return run_synthesis(**arguments)
