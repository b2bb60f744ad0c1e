"""Records of a rollout for `run.json`, and its arrays for the curves."""

from collections import Counter

import polars as pl
from pluralbench_rewards import MISSING_CONTEXT, ModelRecord

from pluralbench.downstream.rollout import RewardedCandidates, Rollout, RolloutSetup
from pluralbench.results.downstream import (
    THREAD_KEY,
    OutcomeRecord,
    RewardedRecord,
    SamplingRecord,
)
from pluralbench.results.record import ScoringRecord


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
