"""What `best-of-n` and `optimize` are asked and what comes of it: what a reward model did to a policy."""

from typing import Any

from pluralbench_calls import ChatModel
from pluralbench_policies.config import OptimizeConfig
from pluralbench_rewards import ModelRecord, ScoringConfig
from pluralbench_runs import FrozenModel
from pydantic import Field

from pluralbench.config import OutcomeConfig, SamplingConfig
from pluralbench.results.columns import schema_of
from pluralbench.results.record import (
    BenchmarkRecord,
    DataRecord,
    PromptRecord,
    RunConfig,
    RunResult,
    ScoringRecord,
)

START = "start"
"""The section of what a policy was before it was optimised."""
_SAMPLE = ("turn", "history", "sample")
CANDIDATES = schema_of("config", "id", "cluster", *_SAMPLE, "text", "outcome", "reason", "tokens")
"""A row a candidate. turn: from 0. history: names what was said before the turn. sample: from 0, in the order drawn.
text: null where there is none; then `outcome` and `reason` say why."""
OUTCOMES = schema_of("config", "id", *_SAMPLE, "value", "scores", "reason")
"""A row a candidate that was judged. value: null where no reply could be read, and `reason` says why."""
REWARDS = schema_of("model", "config", "id", *_SAMPLE, "reward")
SELECTED = schema_of("model", "k", "config", "id", *_SAMPLE)
"""A row for what a reward model takes of the first k candidates. sample: null where none has a reward."""
FRAMES = {"candidates": CANDIDATES, "rewards": REWARDS, "selected": SELECTED, "outcomes": OUTCOMES}
POLICY_FOLDER = "policy"
"""Where `optimize` leaves the optimised policy, in its directory."""


class DownstreamRunConfig(RunConfig):
    """What the numbers of both verbs depend on: whose prompts are answered, how, and how the answers are judged.

    judge: None where words are counted, or nobody judges. prompts_digest, system_digest: of what judge and policy are
    told. seed: of the candidates.
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
    seed: int


class BestOfNRunConfig(DownstreamRunConfig):
    """All that the numbers of `best_of_n` depend on. rewards: what was known of the models before they were loaded."""

    verb = "best-of-n"

    policy: ChatModel
    rewards: dict[str, ModelRecord]


class OptimizeRunConfig(DownstreamRunConfig):
    """All that the numbers of `optimize` depend on. reward: what was known of the model before it was loaded."""

    verb = "optimize"

    policy: ModelRecord
    reward: ModelRecord
    train: DataRecord
    options: OptimizeConfig


class SamplingRecord(FrozenModel):
    """What came of sampling. sizes: of how many candidates the best was taken. turns: the most of a conversation.

    seeded: whether the policy takes seeds. outcomes: candidates by what came of the call; "length" was cut at the most
    tokens and counts as it is. reasons: why there is no text, and how often.
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
    """A reward model and how it scored the candidates.

    missing: candidates with a text and without a reward, which it never selects. alike: prompts whose candidates all
    have the same reward, so that its best is the first one.
    """

    model: ModelRecord
    scoring: ScoringRecord
    missing: int
    identical: int


class OutcomeRecord(FrozenModel):
    """What came of judging. scale: what a value means. judged: candidates; invalid: those without a value."""

    judge: ModelRecord
    scale: str
    judged: int
    invalid: int
    invalid_reasons: dict[str, int] = Field(default_factory=dict)
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class DownstreamResult(RunResult):
    """What came of `best-of-n` or `optimize` beside its numbers and frames.

    rewards: by the names of the reward models. optimization: what `optimization.json` of `optimize` holds.
    """

    policy: ModelRecord
    rewards: dict[str, RewardedRecord]
    sampling: SamplingRecord
    outcome: OutcomeRecord | None = None
    optimization: dict[str, Any] | None = None
