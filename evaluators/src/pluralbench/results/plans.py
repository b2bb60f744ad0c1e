"""What `plan` and `synthesize` are asked and what comes of it: plans and personas that models are told."""

from typing import ClassVar

from pluralbench_calls import ChatModel, ConnectionConfig
from pluralbench_rewards import ModelRecord
from pydantic import Field

from pluralbench.config import AspectMatchingConfig, PlanConfig, SynthesizeConfig
from pluralbench.results.record import BenchmarkRecord, DataRecord, RunConfig, RunResult

PLANS_FILE = "plans.jsonl"
"""What `score --profile plan --plans` takes, in the directory of `plan`. Its items have a row each: the plan as it was
written, the aspects read from it, and what it has of the true ones."""


class PlanRunConfig(RunConfig):
    """All that plans and their numbers depend on. posts: of a profile, at most. encoder: digest of its folder.

    prompts_digest: of what the planner is told.
    """

    verb = "plan"
    runtime_only: ClassVar[frozenset[str]] = frozenset({"connection"})

    planner: ChatModel
    benchmark: BenchmarkRecord
    data: DataRecord
    profile_size: int
    sampling: PlanConfig
    matching: AspectMatchingConfig
    encoder: str | None = None
    prompts_digest: str
    seed: int
    connection: ConnectionConfig = ConnectionConfig()


class PlanResult(RunResult):
    """What came of `plan` beside its plans and numbers.

    checked: the planner's folder records what it learned from, and no item is of that; false where none is recorded.
    items: how many there are; listed: plans with a list of aspects; as_text: plans without one, which are told as they
    were written; missing: items whose call gave no text, which have no plan. cut: plans that ended at the most tokens.
    reasons: why plans are missing.
    """

    planner: ModelRecord
    checked: bool
    items: int
    listed: int
    as_text: int
    missing: int
    cut: int
    reasons: dict[str, int] = Field(default_factory=dict)
    calls: int
    prompt_tokens: int
    completion_tokens: int


class SynthesizeRunConfig(RunConfig):
    """All that personas and demonstrations depend on."""

    verb = "synthesize"
    runtime_only: ClassVar[frozenset[str]] = frozenset({"connection"})

    model: ChatModel
    prompts_digest: str
    judge_digest: str
    benchmark: BenchmarkRecord
    data: DataRecord
    synthesizing: SynthesizeConfig
    seed: int
    connection: ConnectionConfig = ConnectionConfig()


class SynthesizeResult(RunResult):
    """What came of `synthesize`. choices, posts: personas written from kept reasons, and from posts alone.

    without: why somebody has no persona, by the id of the person. predicted, kept: predictions about earlier pairs, and
    the right ones. demonstrations: of all people. accuracy: of the judge with them over the pairs set apart, the mean
    over people who have such.
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
    calls: int
    prompt_tokens: int
    completion_tokens: int
