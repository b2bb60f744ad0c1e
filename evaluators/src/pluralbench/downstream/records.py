"""Records of a rollout for `run.json`, and its arrays for the curves."""

from collections import Counter
from collections.abc import Callable
from itertools import chain

import polars as pl
from pluralbench_measures.bootstrap import Array
from pluralbench_rewards import MISSING_CONTEXT, ModelRecord

from pluralbench.downstream.candidates import THREAD_KEY
from pluralbench.downstream.rollout import RewardedCandidates, Rollout, RolloutSetup
from pluralbench.errors import RunError
from pluralbench.metrics.best_of_n import OutcomeTable, candidate_arrays, curve_numbers, index_names, level_numbers
from pluralbench.metrics.cycles import cyclic_numbers
from pluralbench.metrics.frame import metrics_frame
from pluralbench.metrics.metric import START
from pluralbench.metrics.people import people_numbers
from pluralbench.results.downstream import (
    PEOPLE,
    BestOfNRunConfig,
    DownstreamResult,
    DownstreamRunConfig,
    OutcomeRecord,
    RewardedRecord,
    SamplingRecord,
)
from pluralbench.results.record import ScoringRecord


def downstream_metrics(
    config: DownstreamRunConfig, result: DownstreamResult, frame: Callable[[str], pl.DataFrame]
) -> pl.DataFrame:
    """Compute the metrics of a run of `best-of-n` or `optimize` from its frames.

    Args:
        config: What was run.
        result: Its result.
        frame: Returns the frame of a name, such as `Run.frame`.

    Raises:
        RunError: The run has no candidates, or its sample numbers are not consecutive.
    """
    by_config = config.benchmark.description.overall != "items"
    if isinstance(config, BestOfNRunConfig):
        curves = outcome_table(config, result, frame)
        numbers = curve_numbers(curves, result.sampling.sizes, by_config=by_config)
        by_people = result.outcome is not None and result.outcome.judge.kind == PEOPLE
        compared = [name for name, one in result.rewards.items() if one.compares]
        cycles = (
            cyclic_numbers(frame("candidates"), frame("comparisons"), compared, by_config=by_config) if compared else ()
        )
        return metrics_frame(chain(numbers, cycles, people_numbers(frame("answers")) if by_people else ()))
    if result.outcome is None:
        return metrics_frame(())
    before, after = (outcome_table(config, result, frame, end) for end in (f"_{START}", ""))
    return metrics_frame(level_numbers(before, after, by_config=by_config))


def outcome_table(
    config: DownstreamRunConfig, result: DownstreamResult, frame: Callable[[str], pl.DataFrame], end: str = ""
) -> OutcomeTable:
    """Build the outcome table of a run.

    Args:
        config: What was run.
        result: Its result.
        frame: Returns the frame of a name.
        end: End of the names of the candidates and the outcomes: `_start` before optimization.

    Raises:
        RunError: See `downstream_metrics`.
    """
    candidates = frame(f"candidates{end}").filter(pl.col("sample") < config.sampling.n)
    outcomes = None if result.outcome is None else frame(f"outcomes{end}")
    rewards, selected = frame("rewards"), frame("selected")
    last = candidates["sample"].n_unique() - 1
    for name, one in {"candidates": candidates, "rewards": rewards, "outcomes": outcomes}.items():
        if one is not None and not (last >= 0 and one["sample"].fill_null(-1).is_between(0, last).all()):
            raise RunError(f"{name}.parquet has no candidates, or sample numbers outside 0 to {max(last, 0):,}.")
    names = [*result.rewards] if isinstance(config, BestOfNRunConfig) else []
    items, by_model, values = candidate_arrays(candidates, rewards, outcomes, names)
    places, configs = index_names(items["config"])
    cluster, _ = index_names(items["cluster"])
    if outcomes is None:
        return OutcomeTable(places, cluster, configs, by_model, None, {})
    # A table is complete if each candidate with a text was judged in every conversation with a judged candidate.
    texts = candidates.drop_nulls("text").join(outcomes.select(THREAD_KEY).unique(), on=THREAD_KEY, how="semi")
    complete = result.sampling.turns == 1 and texts.join(outcomes, on=[*THREAD_KEY, "sample"], how="anti").is_empty()
    chosen = _values_of_selected(selected, outcomes, items)
    return OutcomeTable(places, cluster, configs, by_model, values if complete else None, chosen)


def _values_of_selected(
    selected: pl.DataFrame, outcomes: pl.DataFrame, items: pl.DataFrame
) -> dict[tuple[str, int], Array]:
    """Return the outcome of the selected candidate by reward model and k, averaged over turns. Shape (items,)."""
    values = (
        selected.join(outcomes, on=[*THREAD_KEY, "sample"], how="left", maintain_order="left")
        .group_by("model", "k", "config", "id", maintain_order=True)
        # A conversation has no value if one of its turns has none.
        .agg(value=pl.when(pl.col("value").null_count() == 0).then(pl.col("value").mean()))
    )
    return {
        (str(model), int(str(k))): items.join(own, on=["config", "id"], how="left", maintain_order="left")["value"]
        .cast(pl.Float64)
        .fill_null(float("nan"))
        .to_numpy()
        for (model, k), own in values.partition_by("model", "k", as_dict=True, include_key=True).items()
    }


def sampling_record(setup: RolloutSetup, candidates: pl.DataFrame, turns: int) -> SamplingRecord:
    """Record how candidates were sampled and which calls failed. `turns`: largest number of turns of a conversation."""
    counts = candidates["outcome"].value_counts().sort("outcome")
    without_text = candidates.filter(pl.col("text").is_null())
    texts = candidates.group_by("config", "id", maintain_order=True).agg(pl.col("text").count())
    return SamplingRecord(
        sizes=setup.sampling.sizes,
        turns=turns,
        seeded=setup.policy.chat.seeded,
        prompts=texts.height,
        outcomes=dict(counts.iter_rows()),
        reasons=dict(sorted(Counter(without_text["reason"].to_list()).items())),
        without_text=tuple(texts.filter(text=0)["id"].to_list()),
        completion_tokens=int(candidates["tokens"].sum()),
    )


def outcome_record(setup: RolloutSetup, outcomes: pl.DataFrame | None) -> OutcomeRecord | None:
    """Record the judge and its counts; None without a judge."""
    judge = setup.judge
    if judge is None or outcomes is None:
        return None
    invalid = outcomes.filter(pl.col("value").is_null())
    chat = judge.chat
    calls = setup.ledger.frame(setup.ledger.used) if chat else None
    own = None if calls is None or chat is None else calls.filter(pl.col("label").str.contains("^the "))
    return OutcomeRecord(
        judge=ModelRecord(name=str(judge.outcome.judge), kind="words")
        if chat is None
        else ModelRecord(name=chat.model, kind="generative", provider=chat.provider),
        scale=judge.scale,
        judged=outcomes.height,
        invalid=invalid.height,
        invalid_reasons=dict(sorted(Counter(invalid["reason"].to_list()).items())),
        calls=0 if own is None else own.height,
        prompt_tokens=0 if own is None else int(own["prompt_tokens"].sum()),
        completion_tokens=0 if own is None else int(own["completion_tokens"].sum()),
        cached_tokens=0 if own is None else int(own["cached_tokens"].sum()),
    )


def rewarded_record(rollout: Rollout, name: str, rewarded: RewardedCandidates) -> RewardedRecord:
    """Record a reward model and how it scored the candidates."""
    frame = rollout.rewards.filter(model=name)
    by_prompt = frame.drop_nulls("reward").group_by(THREAD_KEY).agg(pl.col("reward").n_unique(), count=pl.len())
    works = [scored.work for scored in rewarded.scored if scored.work is not None]
    reasons = [reason for scored in rewarded.scored for reason in scored.reasons]
    dropped = [reason for scored in rewarded.scored for reason in scored.dropped.values()]
    return RewardedRecord(
        model=rewarded.record,
        scoring=ScoringRecord(
            tolerance=max((one.tolerance for one in rewarded.scored if one.tolerance is not None), default=None),
            items_truncated=sum(cut > 0 for scored in rewarded.scored for cut in scored.tokens_cut),
            items_dropped=len(dropped) - dropped.count(MISSING_CONTEXT),
            items_without_context=dropped.count(MISSING_CONTEXT),
            items_rendered_identically=sum(scored.rendered_identically for scored in rewarded.scored),
            invalid_reasons=dict(sorted(Counter(reasons + dropped).items())),
            work=works[-1] if works else None,
        ),
        missing=frame["reward"].null_count(),
        identical=by_prompt.filter(pl.col("reward") == 1, pl.col("count") > 1).height,
        compares=bool(rewarded.comparisons),
    )
