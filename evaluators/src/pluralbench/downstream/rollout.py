"""Roll out conversations turn by turn: sample candidates, score, select and judge them, and add the next user turn.

The first turn is sampled once for all reward models. Each later turn continues from the selected answer, so
conversations branch by reward model and k; equal branches are sampled once.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from pluralbench_calls import Ledger, working_ledger
from pluralbench_rewards import MISSING_CONTEXT, Group, ModelRecord, RewardModel, Scored, ScoringConfig
from pluralbench_runs import ClusterConfig, digest

from pluralbench.config import SamplingConfig
from pluralbench.downstream.candidates import (
    Policy,
    Thread,
    check_candidates,
    initial_threads,
    next_thread,
    sample,
    user_turns,
)
from pluralbench.downstream.outcomes import JudgedCandidate, OutcomeJudge
from pluralbench.errors import EvaluationError
from pluralbench.evaluation.models import DUPLICATE_NAME, Scorable, as_local_model, find_model
from pluralbench.evaluation.pairwise import all_pairs, compare_items, in_both_orders, mean_probabilities
from pluralbench.evaluation.work import open_journal
from pluralbench.metrics.best_of_n import best_of_first
from pluralbench.results.downstream import (
    COMPARISONS,
    REWARDS,
    SELECTED,
    THREAD_KEY,
    OutcomeRecord,
    RewardedRecord,
    SamplingRecord,
)
from pluralbench.results.record import ScoringRecord
from pluralbench.results.run_files import LEDGER_FILE


@dataclass(frozen=True)
class RolloutSetup:
    """Settings of a rollout: the policy, the reward models by name, and the judge; None for no outcomes.

    `work` is for checkpointed scores. The seed is of the candidates and of the response order in comparisons.
    """

    policy: Policy
    models: Mapping[str, Scorable]
    scoring: ScoringConfig
    sampling: SamplingConfig
    judge: OutcomeJudge | None
    ledger: Ledger
    work: Path
    seed: int
    cluster: ClusterConfig | None = None


@dataclass
class RewardedCandidates:
    """A reward model's record, its scores by turn, and the pairs that it compared (`COMPARISONS`), if it does."""

    record: ModelRecord
    scored: list[Scored] = field(default_factory=list)
    comparisons: list[pl.DataFrame] = field(default_factory=list)


Positions = Mapping[tuple[str, int], Mapping[tuple[str, str], Thread]]
"""Current conversation of each reward model and k, by config and id of the item."""


FRAMES = ("candidates", "rewards", "selected", "outcomes")


class Rollout(NamedTuple):
    """Frames of a rollout with the columns of these names, outcomes with a judge, and the reward models by name."""

    candidates: pl.DataFrame
    rewards: pl.DataFrame
    selected: pl.DataFrame
    outcomes: pl.DataFrame | None
    rewarded: Mapping[str, RewardedCandidates]

    def frames(self, end: str = "", names: Sequence[str] = FRAMES) -> dict[str, pl.DataFrame]:
        """Return these frames for a run directory, by name with an end."""
        own = {f"{name}{end}": frame for name in names if (frame := getattr(self, name)) is not None}
        compared = [frame for one in self.rewarded.values() for frame in one.comparisons]
        return own | ({"comparisons": pl.concat(compared)} if compared else {})


def model_record(model: Scorable, scoring: ScoringConfig) -> ModelRecord:
    """Return the record of a reward model without loading it. Raises `LocalError` if it is a folder without a model."""
    found = find_model(model, scoring_config(model, scoring))
    found.check_folders()
    return found.record


def scoring_config(model: Scorable, scoring: ScoringConfig) -> ScoringConfig:
    """Return the scoring options for a reward model: the defaults for one that does not tokenize in this process."""
    return scoring if isinstance(model, str | Path) or as_local_model(model) is not None else ScoringConfig()


def default_model_name(model: Scorable) -> str:
    """Return the default name of a reward model: the last part of its path, or the name that it records."""
    local = as_local_model(model)
    name = model if local is None else local.name
    return Path(name).name if isinstance(name, str | Path) else model_record(model, ScoringConfig()).name


def named_models(rewards: Mapping[str, Scorable] | Sequence[Scorable]) -> dict[str, Scorable]:
    """Name the reward models of a sequence by the last part of their path. Raises `EvaluationError` if two match."""
    if isinstance(rewards, Mapping):
        return dict(rewards)
    by_name: dict[str, Scorable] = {}
    for model in rewards:
        name = default_model_name(model)
        if name in by_name:
            raise EvaluationError(DUPLICATE_NAME.format(name=name))
        by_name[name] = model
    return by_name


@contextmanager
def reused_ledger(work: Path, reuse: Path | None, judge: OutcomeJudge | None) -> Iterator[Ledger]:
    """Open the ledger in a working directory, add the calls of another ledger or run directory, and check the judge."""
    with working_ledger(work / "ledger.sqlite") as ledger:
        if reuse is not None:
            ledger.add_from(reuse / LEDGER_FILE if reuse.is_dir() else reuse)
        if judge is not None:
            judge.check(ledger)
        yield ledger


def rollout(setup: RolloutSetup, items: pl.DataFrame, groups: Sequence[Group]) -> Rollout:
    """Run all turns of all conversations of items, whose `groups` have their user context, in the same order.

    Raises:
        UserError: The policy, a reward model or the judge cannot be used.
    """
    group_by_key = dict(zip(items.select("config", "id").iter_rows(), groups, strict=True))
    rewarded: dict[str, RewardedCandidates] = {}
    threads = initial_threads(items, groups)
    # In the first turn, all reward models and k share one conversation per item.
    selectors = [(name, k) for name in setup.models for k in setup.sampling.sizes] or [("", 1)]
    positions: Positions = {selector: {thread.key[:2]: thread for thread in threads} for selector in selectors}
    parts: list[Rollout] = []
    while threads:
        part = _roll_out_turn(setup, threads, positions, rewarded)
        parts.append(part)
        answers = _selected_answers(part)
        positions = {
            selector: {
                key: following
                for key, thread in own.items()
                if (text := answers.get((*selector, *thread.key))) is not None
                and (following := next_thread(thread, text, group_by_key[key])) is not None
            }
            for selector, own in positions.items()
        }
        threads = list({thread.key: thread for own in positions.values() for thread in own.values()}.values())
    judged = [part.outcomes for part in parts if part.outcomes is not None]
    return Rollout(
        pl.concat([part.candidates for part in parts]),
        pl.concat([part.rewards for part in parts]),
        pl.concat([part.selected for part in parts]),
        pl.concat(judged) if judged else None,
        rewarded,
    )


def _roll_out_turn(
    setup: RolloutSetup,
    threads: Sequence[Thread],
    positions: Positions,
    rewarded: dict[str, RewardedCandidates],
) -> Rollout:
    """Run one turn of some conversations, and add the scores to `rewarded`."""
    n = setup.sampling.n
    compared = setup.judge is not None and setup.judge.outcome.measure == "win"
    sampled = sample(setup.policy, threads, n + compared, setup.ledger, seed=setup.seed)
    check_candidates(sampled, setup.policy.record.name)
    candidates = sampled.filter(pl.col("sample") < n)
    parts = []
    for name in setup.models:
        own = [thread for (model, _), threads in positions.items() if model == name for thread in threads.values()]
        distinct = list({thread.key: thread for thread in own}.values())
        parts.append(_score_candidates(setup, name, distinct, candidates, rewarded))
    rewards = pl.concat([pl.DataFrame(schema=REWARDS), *parts])
    selected = _selected(setup, positions, candidates, rewards)
    if setup.judge is None:
        return Rollout(sampled, rewards, selected, None, rewarded)
    judgeable = _judgeable(threads, sampled, n, compared=compared)
    if setup.judge.outcome.judged == "selected":
        chosen = set(selected.drop_nulls("sample").select(*THREAD_KEY, "sample").iter_rows())
        judgeable = [one for one in judgeable if (*one.thread.key, one.sample) in chosen]
    outcomes = setup.judge.values(judgeable, setup.ledger, seed=setup.seed)
    return Rollout(sampled, rewards, selected, outcomes, rewarded)


def _score_candidates(
    setup: RolloutSetup,
    name: str,
    threads: Sequence[Thread],
    candidates: pl.DataFrame,
    rewarded: dict[str, RewardedCandidates],
) -> pl.DataFrame:
    """Score the candidates with a text as groups; a frame with the columns `REWARDS`."""
    with_text = candidates.drop_nulls("text").group_by(THREAD_KEY, maintain_order=True).agg("sample", "text")
    texts = {tuple(key): (numbers, answers) for *key, numbers, answers in with_text.iter_rows()}
    answered = [thread for thread in threads if thread.key in texts]
    if not answered:
        return pl.DataFrame(schema=REWARDS)
    scoring = scoring_config(setup.models[name], setup.scoring)
    model = find_model(setup.models[name], scoring, setup.cluster).load()
    groups = [replace(thread.group, responses=texts[thread.key][1]) for thread in answered]
    folder = setup.work / "rewards" / digest([name, threads[0].turn])[:16]
    folder.mkdir(parents=True, exist_ok=True)
    pairs = [] if isinstance(model, RewardModel) else [all_pairs(len(group.responses)) for group in groups]
    sizes = [2 * len(own) for own in pairs] or [len(group.responses) for group in groups]
    with open_journal(folder, sizes) as (journaled, record):
        compared = None
        if isinstance(model, RewardModel):
            scored = model.score(groups, cached=journaled, on_scored=record)
        else:
            compared = compare_items(model, groups, pairs, journaled, record)
            scored = _rewards_of_pairs(groups, compared)
    own = rewarded.setdefault(name, RewardedCandidates(model.record()))
    own.scored.append(scored)
    if compared is not None:
        own.comparisons.append(_comparisons(name, answered, texts, compared))
    missing: list[float | None] = [None] * setup.sampling.n  # rewards of a dropped prompt
    rows = [
        {"model": name, **dict(zip(THREAD_KEY, thread.key, strict=True)), "sample": number, "reward": value}
        for thread, values in zip(answered, scored.scores, strict=True)
        for number, value in zip(texts[thread.key][0], values or missing[: len(texts[thread.key][0])], strict=True)
    ]
    frame = pl.DataFrame(rows, schema=REWARDS)
    return frame.with_columns(reward=pl.when(pl.col("reward").is_finite()).then("reward"))


def _rewards_of_pairs(groups: Sequence[Group], compared: Scored) -> Scored:
    scores = [
        [] if place in compared.dropped else mean_probabilities(len(group.responses), compared.scores[place])
        for place, group in enumerate(groups)
    ]
    return replace(compared, scores=scores)


def _comparisons(
    name: str, threads: Sequence[Thread], texts: Mapping[tuple[Any, ...], tuple[list[int], Any]], compared: Scored
) -> pl.DataFrame:
    rows = []
    for thread, values in zip(threads, compared.scores, strict=True):
        numbers = texts[thread.key][0]
        pairs = in_both_orders(all_pairs(len(numbers))) if values else []
        for (one, other), value in zip(pairs, values, strict=True):
            keys = dict(zip(THREAD_KEY, thread.key, strict=True))
            rows.append({"model": name, **keys, "sample": numbers[one], "other": numbers[other], "probability": value})
    frame = pl.DataFrame(rows, schema=COMPARISONS)
    return frame.with_columns(probability=pl.when(pl.col("probability").is_finite()).then("probability"))


def _selected(
    setup: RolloutSetup, positions: Positions, candidates: pl.DataFrame, rewards: pl.DataFrame
) -> pl.DataFrame:
    """Select the best of the first k candidates for each reward model. Without one, the model "" selects the first."""
    n = setup.sampling.n
    if not setup.models:
        rewards = candidates.drop_nulls("text").select(
            pl.lit("").alias("model"), *THREAD_KEY, "sample", reward=pl.lit(0.0)
        )
    arrays: dict[tuple[Any, ...], Any] = {}
    for *key, number, reward in rewards.select("model", *THREAD_KEY, "sample", "reward").iter_rows():
        arrays.setdefault(tuple(key), np.full(n, np.nan))[number] = np.nan if reward is None else reward
    no_rewards = np.full(n, np.nan)
    rows = [
        {
            "model": name,
            "k": k,
            **dict(zip(THREAD_KEY, thread.key, strict=True)),
            "sample": best_of_first(arrays.get((name, *thread.key), no_rewards), k),
        }
        for (name, k), threads in positions.items()
        for thread in threads.values()
    ]
    return pl.DataFrame(rows, schema=SELECTED)


def _judgeable(threads: Sequence[Thread], sampled: pl.DataFrame, n: int, *, compared: bool) -> list[JudgedCandidate]:
    """Return the candidates with a text and, if they are compared, with a text to compare with."""
    texts = {tuple(key): text for *key, text in sampled.select(*THREAD_KEY, "sample", "text").iter_rows()}
    return [
        JudgedCandidate(thread, number, text, texts.get((*thread.key, n)))
        for thread in threads
        if not compared or texts[(*thread.key, n)] is not None
        for number in range(n)
        if (text := texts[(*thread.key, number)]) is not None
    ]


def _selected_answers(part: Rollout) -> dict[tuple[Any, ...], str]:
    texts = {tuple(key): text for *key, text in part.candidates.select(*THREAD_KEY, "sample", "text").iter_rows()}
    chosen = part.selected.drop_nulls("sample").select("model", "k", *THREAD_KEY, "sample")
    return {row[:-1]: texts[row[2:]] for row in chosen.iter_rows()}


def sampling_record(setup: RolloutSetup, candidates: pl.DataFrame, groups: Sequence[Group]) -> SamplingRecord:
    """Record how candidates of conversations were sampled, and which calls failed."""
    counts = candidates["outcome"].value_counts().sort("outcome")
    without_text = candidates.filter(pl.col("text").is_null())
    texts = candidates.group_by("config", "id", maintain_order=True).agg(pl.col("text").count())
    return SamplingRecord(
        sizes=setup.sampling.sizes,
        turns=max(len(user_turns(group)) for group in groups),
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
