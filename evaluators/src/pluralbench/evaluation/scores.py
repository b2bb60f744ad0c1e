"""The work of `score`: scores of items, in a journal from which a run resumes, and the decisions from them."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import polars as pl
from pluralbench_rewards import MISSING_CONTEXT, AnyRewardModel, ModelRecord, RewardModel, Scored
from pluralbench_runs import Output, log_status

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.decisions import decide, decisions_of, score_items
from pluralbench.data.rules import rule_of
from pluralbench.evaluation.folders import file_name
from pluralbench.evaluation.loading import Evaluation, LoadedBenchmark, evaluated_run
from pluralbench.evaluation.pairwise import check_pairs, compare_items, compared_items, compared_pairs
from pluralbench.evaluation.work import open_journal
from pluralbench.results.evaluations import ScoreResult, ScoreRunConfig, count_within_tolerance
from pluralbench.results.record import CostRecord
from pluralbench.results.runs import Run


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
