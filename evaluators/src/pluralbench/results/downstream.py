"""Config and result of `best-of-n` and `optimize`, and the columns of their frames."""

from typing import Any

from pluralbench_calls import ChatModel
from pluralbench_policies.config import OptimizeConfig
from pluralbench_rewards import ModelRecord, ScoringConfig
from pluralbench_runs import FrozenModel, Seed
from pydantic import Field

from pluralbench.config import OutcomeConfig, SamplingConfig
from pluralbench.data.column_types import schema_of
from pluralbench.results.record import (
    BenchmarkRecord,
    DataRecord,
    PromptRecord,
    RunConfig,
    RunResult,
    ScoringRecord,
    UsageRecord,
)

THREAD_KEY = ("config", "id", "turn", "history")
"""Columns that identify a conversation up to a turn."""
_SAMPLE = ("turn", "history", "sample")
CANDIDATES = schema_of("config", "id", "cluster", *_SAMPLE, "text", "outcome", "reason", "tokens")
"""One row per candidate. turn: number of the user turn, from 0. history: digest of the messages. sample: number of the
candidate, from 0. text: null if the call failed; `outcome` and `reason` say why."""
OUTCOMES = schema_of("config", "id", *_SAMPLE, "value", "scores", "reason")
"""One row per judged candidate. value: null if no reply could be parsed; `reason` says why."""
REWARDS = schema_of("model", "config", "id", *_SAMPLE, "reward")
COMPARISONS = schema_of("model", "config", "id", *_SAMPLE, "other", "probability")
"""One row per pair and order, of a reward model that only compares. probability: that the candidate `sample`, shown
first, is better than the candidate `other`. The reward of a candidate is its mean over all others and both orders."""
SELECTED = schema_of("model", "k", "config", "id", *_SAMPLE)
"""One row per reward model, k and conversation: the best of the first k candidates; null if none has a reward."""
FRAMES = {
    "candidates": CANDIDATES,
    "rewards": REWARDS,
    "comparisons": COMPARISONS,
    "selected": SELECTED,
    "outcomes": OUTCOMES,
}
PEOPLE = "people"
"""Kind of the judge of a win rate by `rate`, whose run also has the frame `answers`."""
POLICY_FOLDER = "policy"
"""Directory of the optimized policy, in a run of `optimize`."""


class DownstreamRunConfig(RunConfig):
    """Settings that determine the numbers of `best-of-n` and `optimize`.

    Attributes:
        judge: Chat model of the judge; null if words are counted, or without a judge.
    """

    benchmark: BenchmarkRecord
    data: DataRecord
    prompt: PromptRecord
    sampling: SamplingConfig
    scoring: ScoringConfig
    outcome: OutcomeConfig
    judge: ChatModel | None = None
    prompts_digest: str | None = None
    system_digest: str
    seed: Seed


class BestOfNRunConfig(DownstreamRunConfig):
    """Settings that determine the numbers of `best_of_n`.

    Attributes:
        rewards: Records of the reward models before loading, by name.
    """

    verb = "best-of-n"

    policy: ChatModel
    rewards: dict[str, ModelRecord]


class OptimizeRunConfig(DownstreamRunConfig):
    """Settings that determine the numbers of `optimize`.

    Attributes:
        policy: Record of the initial policy.
        reward: Record of the reward model before loading.
        trained: Record of a policy that was trained elsewhere; null where the run trained it.
        train: Data of the training prompts; null where they are not known.
        options: Algorithm and training options; null with `trained`.
    """

    verb = "optimize"

    policy: ModelRecord
    reward: ModelRecord
    trained: ModelRecord | None = None
    train: DataRecord | None = None
    options: OptimizeConfig | None = None


class SamplingRecord(FrozenModel):
    """Record of the sampling.

    Attributes:
        sizes: Values of k of best-of-k.
        turns: Largest number of turns of a conversation.
        seeded: Whether the policy takes seeds.
        outcomes: Number of candidates by outcome of the call; `length` was cut at the maximum number of tokens, and its
            text is used.
    """

    sizes: tuple[int, ...]
    turns: int
    seeded: bool
    prompts: int
    outcomes: dict[str, int]
    reasons: dict[str, int] = Field(default_factory=dict)
    without_text: tuple[str, ...] = ()
    completion_tokens: int


class RewardedRecord(FrozenModel):
    """Record of a reward model and its scores.

    Attributes:
        missing: Number of candidates with a text but without a reward, which it never selects.
        identical: Number of prompts whose candidates all have the same reward, so that the first one is selected.
        compares: Whether it only compares two responses, so that the run has the frame `comparisons`.
    """

    model: ModelRecord
    scoring: ScoringRecord
    missing: int
    identical: int
    compares: bool = False


class OutcomeRecord(UsageRecord):
    """Record of the judging."""

    judge: ModelRecord
    scale: str
    judged: int
    invalid: int
    invalid_reasons: dict[str, int] = Field(default_factory=dict)


class DownstreamResult(RunResult):
    """Result of `best-of-n` or `optimize`, without its numbers and frames.

    Attributes:
        outcome: How they were judged; null without a judge.
        optimization: Contents of `optimization.json`, none of a policy that was trained elsewhere, and whether the
            judged prompts are those of the training; null for `best-of-n`.
    """

    policy: ModelRecord
    rewards: dict[str, RewardedRecord]
    sampling: SamplingRecord
    outcome: OutcomeRecord | None = None
    optimization: dict[str, Any] | None = None
