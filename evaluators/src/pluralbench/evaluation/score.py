"""`score`: score a reward model on a benchmark and write a run directory."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import polars as pl
from pluralbench_rewards import MISSING_CONTEXT, AnyRewardModel, ModelRecord, RewardModel, Scored, ScoringConfig
from pluralbench_runs import ClusterConfig, Output, log_status

from pluralbench.arguments import ShardText
from pluralbench.config import DataConfig, Profile, PromptConfig
from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.decisions import decide, decisions_of, score_items
from pluralbench.data.rules import rule_of
from pluralbench.evaluation.folders import file_name, run_folder
from pluralbench.evaluation.loading import Evaluation, LoadedBenchmark, evaluated_run, load_benchmark
from pluralbench.evaluation.models import Scorable, find_model
from pluralbench.evaluation.pairwise import check_pairs, compare_items, compared_items, compared_pairs
from pluralbench.evaluation.work import open_journal
from pluralbench.results.evaluations import ScoreResult, ScoreRunConfig, count_within_tolerance
from pluralbench.results.record import CostRecord
from pluralbench.results.runs import Run


def score(
    model: Scorable,
    *,
    benchmark: str | None = None,
    data: str | Path | DataConfig | None = None,
    prompt: Profile | PromptConfig | None = None,
    scoring: ScoringConfig | None = None,
    cluster: ClusterConfig | None = None,
    shard: ShardText = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Run[ScoreRunConfig, ScoreResult]:
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
    loaded = load_benchmark(benchmark, data, prompt, shard=shard, in_steps=True)
    scoring = scoring or ScoringConfig()
    found = find_model(model, scoring, cluster)
    config = ScoreRunConfig(**loaded.records(), model=found.record, scoring=scoring)
    name = f"{loaded.name}-{model_file_name(found.record)}"
    named_options = (loaded.data, loaded.prompt, found.local, scoring)
    target = Path(out or run_folder(name, config, *named_options, shard=loaded.shard))
    return write_scores(target, loaded, config, found.load, fresh=fresh)


def model_file_name(model: ModelRecord) -> str:
    """Return the name of a model for a directory's name."""
    return file_name(Path(model.name).name) or model.kind


def write_scores(
    target: Path,
    loaded: LoadedBenchmark,
    config: ScoreRunConfig,
    open_model: Callable[[], AnyRewardModel],
    *,
    fresh: bool = False,
) -> Run[ScoreRunConfig, ScoreResult]:
    """Score a loaded benchmark and write the run directory, or read the finished run in it."""

    def evaluate(output: Output, seconds: Callable[[], float]) -> Evaluation:
        result, rows = _score_items(output.work, loaded, open_model, config.model, seconds)
        return result, {"items": rows}, None

    return evaluated_run(target, config, loaded, evaluate, fresh=fresh)


def _score_items(
    work: Path,
    loaded: LoadedBenchmark,
    open_model: Callable[[], AnyRewardModel],
    model_record: ModelRecord,
    seconds: Callable[[], float],
) -> tuple[ScoreResult, pl.DataFrame]:
    items, benchmark = loaded.frame, loaded.benchmark
    if items.is_empty():  # an empty shard needs no model
        decisions, rows = scored_items(benchmark, items, Scored([]))
        return result_of_scores(model_record, Scored([]), decisions, 0, CostRecord(seconds=seconds())), rows
    groups, model = loaded.groups(), open_model()
    compares = not isinstance(model, RewardModel)
    if compares:
        check_pairs(model_record.name, benchmark, loaded.items.frame, loaded.items.location)
    pairs = compared_pairs(items) if compares else []
    sizes = [2 * len(own) for own in pairs] or items["rank"].list.len().to_list()
    with open_journal(work, sizes) as (journaled, record):
        resumed = len(journaled)
        if resumed:
            log_status(f"{resumed:,} of {len(groups):,} items were scored before.")
        scored = (
            model.score(
                groups,
                cached=journaled,
                on_scored=rule_of(benchmark).checking(benchmark, model_record.name, record),
            )
            if isinstance(model, RewardModel)
            else compare_items(model, groups, pairs, journaled, record)
        )
    del groups  # their texts take as much memory as the data
    decisions, rows = scored_items(benchmark, items, scored, compares=compares)
    return result_of_scores(model.record(), scored, decisions, resumed, CostRecord(seconds=seconds())), rows


def scored_items(
    benchmark: Benchmark, items: pl.DataFrame, scored: Scored, *, compares: bool = False
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the decisions of scores, or of probabilities of pairs (`compares`), and the rows of `items.parquet`."""
    if compares:
        rows = compared_items(benchmark.vote, items, scored)
        return decisions_of(rows), rows
    settle = rule_of(benchmark).settle
    if settle is not None:
        rows = settle(benchmark, score_items(benchmark, items, scored, pl.DataFrame()))
        return decisions_of(rows), rows
    decisions = decide(items, scored.scores, scored.tokens_cut)
    return decisions, score_items(benchmark, items, scored, decisions)


def result_of_scores(
    model: ModelRecord, scored: Scored, decisions: pl.DataFrame, resumed: int, cost: CostRecord | None
) -> ScoreResult:
    """Return the result of a run; an earlier process scored the `resumed` items."""
    without_context = [*scored.dropped.values()].count(MISSING_CONTEXT)
    return ScoreResult(
        model=model,
        cost=cost,
        tolerance=scored.tolerance,
        decisions_within_tolerance=count_within_tolerance(decisions, scored.tolerance),
        items_truncated=sum(cut > 0 for cut in scored.tokens_cut),
        items_dropped=len(scored.dropped) - without_context,
        items_without_context=without_context,
        items_rendered_identically=scored.rendered_identically,
        inputs_with_two_bos=scored.inputs_with_two_bos,
        inputs_without_bos=scored.inputs_without_bos,
        inputs_ending_in_padding=scored.inputs_ending_in_padding,
        items_resumed=resumed,
        invalid_reasons=dict(sorted(Counter(scored.reasons).items())),
        work=scored.work,
        served=scored.served,
    )
