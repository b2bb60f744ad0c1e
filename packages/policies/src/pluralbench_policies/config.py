"""`OptimizeConfig` and `Task`: how and on what to optimize a policy. Imports no torch."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal, Self

from pluralbench_rewards import Group, Message, ModelRecord
from pluralbench_runs import FrozenModel, Recipe, Seed, digest
from pydantic import Field, model_validator

Algorithm = Literal["ppo", "rloo", "grpo"]
GENERATIONS = {"ppo": 1, "rloo": 4, "grpo": 4}


@dataclass(frozen=True)
class Task:
    """A prompt for the policy, whose last message is the user's.

    The reward model scores `group`. Its responses are replaced by completions; its id is unique.
    """

    messages: Sequence[Message]
    group: Group


class OptimizeConfig(FrozenModel):
    """Policy optimization. Defaults: Personalized RewardBench (appendix B and its PPO scripts), and verl's elsewhere.

    A step samples `num_generations` completions for each of `batch_size` prompts, scores them, and updates the weights
    once for every `mini_batch_size` prompts.
    """

    algorithm: Algorithm = Field(
        "ppo", description="ppo trains a critic; rloo and grpo compare completions of a prompt."
    )
    epochs: int = Field(1, ge=1, le=10_000, description="Passes over the training data.")
    max_steps: int | None = Field(None, ge=1, le=100_000, description="Number of steps. Default: by the epochs.")
    batch_size: int = Field(128, ge=1, description="Prompts per step.")
    num_generations: int | None = Field(
        None, ge=1, le=1_000, description="Completions per prompt. Default: 1 for ppo, 4 for rloo and grpo."
    )
    mini_batch_size: int = Field(16, ge=1, description="Prompts per update of the weights, at most --batch-size.")
    micro_batch_size: int = Field(4, ge=1, description="Completions per forward pass; lower it to save memory.")
    max_prompt_tokens: int = Field(8192, ge=1, description="Maximum tokens per prompt; longer ones are dropped.")
    max_tokens: int = Field(512, ge=1, description="Maximum tokens per completion in training.")
    temperature: float = Field(1.0, gt=0, description="Sampling temperature.")
    learning_rate: float = Field(5e-7, gt=0, description="Learning rate of the policy.")
    critic_learning_rate: float = Field(5e-6, gt=0, description="ppo: learning rate of the critic.")
    reward_divisor: float = Field(1.0, gt=0, description="Scores are divided by this; the paper's code has 10.")
    kl_coef: float = Field(0.0, ge=0, description="Weight of the KL divergence from the initial policy.")
    clip_range: float = Field(0.2, gt=0, lt=1, description="Probability ratios are clipped to 1 plus or minus this.")
    dual_clip: float = Field(3.0, gt=1, description="ppo: upper bound of the ratio where the advantage is negative.")
    value_clip_range: float = Field(0.5, gt=0, description="ppo: value predictions change by at most this.")
    gamma: float = Field(1.0, gt=0, le=1, description="ppo: discount per token.")
    gae_lambda: float = Field(1.0, ge=0, le=1, description="ppo: lambda of generalized advantage estimation.")
    weight_decay: float = Field(0.01, ge=0, description="AdamW's weight decay.")
    max_grad_norm: float = Field(1.0, gt=0, description="Gradients are clipped to this norm.")
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        "auto", description="Dtype of computation; auto: bfloat16 on a GPU, float32 on a CPU. Weights stay in float32."
    )
    gradient_checkpointing: bool = Field(default=False, description="Use less memory and a third more time.")
    kl_steps: int = Field(5, ge=0, description="Steps between two measurements of the KL divergence; 0: never.")
    save_steps: int = Field(50, ge=1, description="Steps between two checkpoints.")
    seed: Seed = Field(0, description="Random seed.")

    @property
    def completions(self) -> int:
        """Completions for each prompt."""
        return self.num_generations or GENERATIONS[self.algorithm]

    @property
    def updates(self) -> int:
        """Updates of the weights in a step."""
        return self.batch_size // min(self.mini_batch_size, self.batch_size)

    @property
    def update_size(self) -> int:
        """Completions of an update."""
        return self.batch_size * self.completions // self.updates

    @property
    def part(self) -> int:
        """Completions that are computed at a time."""
        return min(self.micro_batch_size, self.update_size)

    def in_bfloat16(self, device: str) -> bool:
        """Whether to compute in bfloat16 on this type of device."""
        return device == "cuda" if self.precision == "auto" else self.precision == "bfloat16"

    @model_validator(mode="after")
    def _whole_parts(self) -> Self:
        if self.algorithm != "ppo" and self.completions < 2:
            raise ValueError(
                f"{self.algorithm} compares completions of a prompt; set `num_generations=...` to at least 2"
            )
        if self.batch_size % min(self.mini_batch_size, self.batch_size):
            raise ValueError(
                f"`batch_size={self.batch_size}` is not a multiple of `mini_batch_size={self.mini_batch_size}`"
            )
        if self.update_size % self.part:
            raise ValueError(
                f"`micro_batch_size={self.micro_batch_size}` does not divide the {self.update_size} completions of an "
                "update"
            )
        return self


class OptimizeSettings(Recipe):
    """Settings that a resumed optimization must match."""

    verb: Literal["optimize"] = "optimize"
    policy: ModelRecord
    reward: ModelRecord
    tasks: str
    options: OptimizeConfig


def tasks_digest(tasks: Sequence[Task]) -> str:
    """Compute one digest of all tasks."""
    # A digest of digests avoids holding the canonical JSON of a large set twice in memory.
    return digest([_digest(task) for task in tasks])


def _digest(task: Task) -> str:
    group = task.group
    person = None if group.person is None else asdict(group.person)
    messages = [[dict(message) for message in conversation] for conversation in (task.messages, group.prompt)]
    return digest([group.id, *messages, list(group.context), person])
