"""How a planner is trained, and on what, described before anything is loaded. Nothing here needs torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

from pluralbench_rewards import Message, ModelRecord
from pluralbench_runs import FrozenModel, Recipe, digest
from pydantic import Field, model_validator

PLANNER_FILE = "planner.json"
"""In a planner's folder: how it was made."""


@dataclass(frozen=True)
class PlanExample:
    """A prompt of a planner, and the plan that it learns to answer. id: names it, and differs from all others."""

    id: str
    messages: Sequence[Message]
    plan: str


class TokenizedExample(NamedTuple):
    """A `PlanExample` as the model reads it. ids: its tokens. prompt: how many of them are the prompt's."""

    id: str
    ids: list[int]
    prompt: int


class PlannerConfig(FrozenModel):
    """How to train a planner by LoRA; the defaults are those of Personalized RewardBench's planner (LaMP-QA's code).

    A step reads `items` items, `batch` at a time; each token of their plans counts the same. The rate rises in a line
    for `warmup_steps` steps and falls in a line to 0. Without `lora_targets` adapters are put where peft puts them by
    itself: of Llama and Qwen at queries and values.
    """

    steps: int = Field(2000, ge=1, description="How many steps are trained.")
    items: int = Field(64, ge=1, description="Items of a step.", json_schema_extra={"flag": "--items-per-step"})
    batch: int = Field(
        1,
        ge=1,
        description="Items computed at a time; says how much memory it takes.",
        json_schema_extra={"flag": "--items-at-a-time"},
    )
    learning_rate: float = Field(5e-5, gt=0, description="The highest rate, from which it falls in a line to 0.")
    warmup_steps: int = Field(250, ge=0, description="Steps in which the rate rises from 0.")
    weight_decay: float = Field(0.0, ge=0, description="Of AdamW.")
    max_gradient_norm: float = Field(1.0, gt=0, description="The largest norm of a gradient.")
    max_length: int = Field(8192, ge=1, description="The most tokens of a prompt with its plan.")
    on_overflow: Literal["drop", "error"] = Field("drop", description="What to do with a longer item.")
    lora_rank: int = Field(16, ge=1, description="Rank of the adapters.")
    lora_alpha: int = Field(16, ge=1, description="The adapters' sum counts alpha / rank times.")
    lora_dropout: float = Field(0.05, ge=0, lt=1, description="Share of an adapter's inputs that are left out.")
    lora_targets: tuple[str, ...] = Field(
        (),
        description="A module that gets an adapter, such as q_proj; repeatable. Without it those that peft chooses.",
        json_schema_extra={"flag": "--lora-target", "metavar": "MODULE"},
    )
    gradient_checkpointing: bool = Field(default=False, description="Less memory for a third more time.")
    loss_every: int = Field(250, ge=1, description="Steps between two measures of the held-out loss.")
    checkpoint_every: int = Field(250, ge=1, description="Steps between two checkpoints.")
    seed: int = Field(0, description="Seed of every draw.")

    @property
    def accumulation(self) -> int:
        """How many times as many items as are computed at a time make a step."""
        return self.items // self.batch

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.items % self.batch:
            raise ValueError(f"{self.batch} items at a time do not divide the {self.items} items of a step")
        if self.warmup_steps >= self.steps:
            raise ValueError(
                f"the warm-up ({self.warmup_steps:,} steps) takes all of the {self.steps:,} steps; lower warmup_steps "
                "or raise steps"
            )
        return self


class PlannerSettings(Recipe):
    """All that the weights depend on; training goes on only under the same.

    base: by the digest of its folder or the commit on the Hub. examples, held_out: digests of what is learned and
    measured on.
    """

    verb: Literal["train-planner"] = "train-planner"
    base: ModelRecord
    examples: str
    held_out: str | None = None
    options: PlannerConfig


def examples_digest(examples: Sequence[PlanExample]) -> str:
    """All prompts and plans in one digest."""
    # A digest of digests: the canonical JSON of a large set would be held twice in memory.
    return digest([digest([one.id, [dict(message) for message in one.messages], one.plan]) for one in examples])
