"""Config and result of `plan` and `synthesize`: plans and personas for prompts."""

from pluralbench_calls import ChatModel
from pluralbench_rewards import ModelRecord
from pydantic import Field

from pluralbench.config import AspectMatchingConfig, PlanConfig, SynthesizeConfig
from pluralbench.results.record import BenchmarkRecord, ChatRunConfig, DataRecord, RunResult, UsageRecord

PLANS_FILE = "plans.jsonl"
"""File of plans in the directory of `plan`, for the prompts of `score` and `judge`."""


class PlanRunConfig(ChatRunConfig):
    """Settings that determine plans and their numbers.

    Attributes:
        profile_size: Maximum number of posts per profile.
        matching: Rules to match plan aspects with true ones.
        encoder: Digest of the encoder for matching; null without one.
    """

    verb = "plan"
    planner: ChatModel
    benchmark: BenchmarkRecord
    data: DataRecord
    profile_size: int
    sampling: PlanConfig
    matching: AspectMatchingConfig
    encoder: str | None = None


class PlanResult(RunResult, UsageRecord):
    """Result of `plan`, without its plans and numbers.

    Attributes:
        checked: Whether the planner's directory records its training items and none of them is planned.
        listed: Number of plans with a list of aspects.
        as_text: Number of plans without a list, which prompts quote as written.
        missing: Number of items without a plan, because the call returned no text.
        cut: Number of plans that reached the maximum number of tokens.
    """

    planner: ModelRecord
    checked: bool
    items: int
    listed: int
    as_text: int
    missing: int
    cut: int
    reasons: dict[str, int] = Field(default_factory=dict)


class SynthesizeRunConfig(ChatRunConfig):
    """Settings that determine personas and demonstrations."""

    verb = "synthesize"
    model: ChatModel
    judge_digest: str
    benchmark: BenchmarkRecord
    data: DataRecord
    synthesizing: SynthesizeConfig


class SynthesizeResult(RunResult, UsageRecord):
    """Result of `synthesize`.

    Attributes:
        from_choices: Number of personas written from explained choices.
        from_posts: Number of personas written from posts alone.
        without_persona: Reason why a user has no persona, by id of the user.
        accuracy: Accuracy of the judge with the demonstrations on held-out pairs, averaged over users that have any.
    """

    model: ModelRecord
    people: int
    from_choices: int
    from_posts: int
    without_persona: dict[str, str] = Field(default_factory=dict)
    predicted: int
    correct: int
    demonstrations: int
    accuracy: float | None = None
