"""`PlannerConfig` and `PlanExample`: how and on what to train a planner; its prompt and its plans. Imports no torch.

The prompt has a user's posts and question, the plan is a list of what they expect of an answer (Personalized
RewardBench, section 4.3). Training and inference use the same prompt, and both add the generation prompt, which the
paper's code omits at inference.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

from pluralbench_rewards import Message, ModelRecord
from pluralbench_runs import FrozenModel, Recipe, Seed, digest
from pydantic import Field, model_validator

PLANNER_FILE = "planner.json"
"""File in a planner's folder that records its training."""


@dataclass(frozen=True)
class PlanExample:
    """A prompt of a planner, and the plan to train on. The id is unique."""

    id: str
    messages: Sequence[Message]
    plan: str


class TokenizedExample(NamedTuple):
    """A tokenized `PlanExample`: ids of prompt and plan, and the number of those of the prompt."""

    id: str
    ids: list[int]
    prompt: int


class PlannerConfig(FrozenModel):
    """LoRA training of a planner. Defaults: Personalized RewardBench's planner (LaMP-QA's code).

    A step reads `batch_size` items, `micro_batch_size` at a time; each token of their plans has the same weight. The
    learning rate rises linearly for `warmup_steps` steps and falls linearly to 0.
    """

    max_steps: int = Field(2000, ge=1, le=100_000, description="Number of training steps.")
    batch_size: int = Field(64, ge=1, le=1_024, description="Items per step.")
    micro_batch_size: int = Field(1, ge=1, description="Items per forward pass; lower it to save memory.")
    learning_rate: float = Field(5e-5, gt=0, description="Peak learning rate, followed by linear decay to 0.")
    warmup_steps: int = Field(250, ge=0, description="Steps that warm up from rate 0.")
    weight_decay: float = Field(0.0, ge=0, description="AdamW's weight decay.")
    max_grad_norm: float = Field(1.0, gt=0, description="Gradients are clipped to this norm.")
    max_length: int = Field(8192, ge=1, description="Maximum tokens of a prompt with its plan.")
    on_overflow: Literal["drop", "error"] = Field("drop", description="How to handle longer items.")
    lora_rank: int = Field(16, ge=1, le=4_096, description="Rank of the adapters.")
    lora_alpha: int = Field(16, ge=1, description="Adapter outputs are scaled by alpha / rank.")
    lora_dropout: float = Field(0.05, ge=0, lt=1, description="Dropout probability of adapter inputs.")
    lora_target_modules: tuple[str, ...] = Field(
        (),
        description="Module that gets an adapter, such as q_proj; repeatable. Default: PEFT's choice for the model "
        "(queries and values of Llama and Qwen).",
        json_schema_extra={"flag": "--lora-target-module", "metavar": "MODULE"},
    )
    gradient_checkpointing: bool = Field(default=False, description="Use less memory and a third more time.")
    eval_steps: int = Field(250, ge=1, description="Steps between two evaluations on held-out data.")
    save_steps: int = Field(250, ge=1, description="Steps between two checkpoints.")
    seed: Seed = Field(0, description="Random seed.")

    @property
    def accumulation(self) -> int:
        """Forward passes per step."""
        return self.batch_size // self.micro_batch_size

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.batch_size % self.micro_batch_size:
            raise ValueError(
                f"`micro_batch_size={self.micro_batch_size}` does not divide `batch_size={self.batch_size}`"
            )
        if self.warmup_steps >= self.max_steps:
            raise ValueError(f"`warmup_steps={self.warmup_steps}` is not below `max_steps={self.max_steps}`")
        return self


class PlannerSettings(Recipe):
    """Settings that a resumed training must match."""

    verb: Literal["train-planner"] = "train-planner"
    base: ModelRecord
    examples: str
    held_out: str | None = None
    options: PlannerConfig


def examples_digest(examples: Sequence[PlanExample]) -> str:
    """Compute one digest of all prompts and plans."""
    # A digest of digests avoids holding the canonical JSON of a large set twice in memory.
    return digest(
        [digest([example.id, [dict(message) for message in example.messages], example.plan]) for example in examples]
    )


# Fixed words begin here, which spelling rules leave alone.
SYSTEM = """\
You are told what a person posted earlier and what they ask now. Work out from both what this person expects of an \
answer to their question. Write one sentence that introduces a list, and then the list: one expectation a line, a few \
words each, after a hyphen."""
# Fixed words end here.
USER = "Their earlier posts:\n{posts}\n\nTheir question:\n{question}"
INTRODUCTION = "This person expects an answer that covers the following:"
WORDINGS = {"system": SYSTEM, "asked": USER, "introduction": INTRODUCTION}

BULLET = re.compile(r"^\s*(?:[-*•–]|\d{1,2}[.)])\s+(?P<title>\S.*)")
MARKS = re.compile(r"\*\*|__")


def planner_prompts_digest() -> str:
    """Compute the SHA-256 of the prompt texts."""
    return digest(dict(WORDINGS))


def planner_messages(question: str, posts: Sequence[str]) -> list[Message]:
    """Make the planner's prompt. `posts` are formatted and in the order to show."""
    user = USER.format(posts="\n".join(posts), question=question)
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": user}]


def plan_text(aspects: Sequence[str]) -> str:
    """Make the text of a plan: an introduction, and a bullet with the title of each aspect."""
    return "\n".join([INTRODUCTION, *(f"- {' '.join(aspect.split())}" for aspect in aspects)])


def read_plan(text: str) -> list[str]:
    """Parse the titles of a plan, in order and without duplicates; empty if the text has no list.

    A title is the text of a line after a hyphen, another bullet or a number, without marks of bold type.
    """
    matches = (BULLET.match(line) for line in text.splitlines())
    titles = (" ".join(MARKS.sub("", match["title"]).split()) for match in matches if match is not None)
    return list(dict.fromkeys(title for title in titles if title))
