"""What to optimise a policy on and how, described before anything is loaded. Nothing here needs torch."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal, Self

from pluralbench_rewards import Group, Message, ModelRecord
from pluralbench_runs import FrozenModel, Recipe, digest
from pydantic import Field, model_validator

Algorithm = Literal["ppo", "rloo", "grpo"]
GENERATIONS = {"ppo": 1, "rloo": 4, "grpo": 4}


@dataclass(frozen=True)
class Task:
    """A prompt for the policy. messages: what the policy reads, the user's last.

    group: what the reward model is given; its responses are filled in, whatever stands there. Its id has to differ from
    that of each other task.
    """

    messages: Sequence[Message]
    group: Group


class OptimizeConfig(FrozenModel):
    """How to optimise; the defaults are those of Personalized RewardBench (appendix B and its PPO scripts), and where
    these set nothing those of verl, which they run.

    A step samples `generations` completions for each of `prompts` prompts, scores them, and takes an update of the
    weights for every `mini_batch` prompts of them.
    """

    algorithm: Algorithm = Field(
        "ppo", description="PPO has a critic; RLOO and GRPO compare completions of one prompt."
    )
    epochs: int = Field(1, ge=1, description="How often each item is used.")
    steps: int | None = Field(None, ge=1, description="How many steps, in place of the epochs.")
    prompts: int = Field(128, ge=1, description="Prompts of a step.", json_schema_extra={"flag": "--prompts-per-step"})
    generations: int | None = Field(
        None, ge=1, description="Completions for each prompt; without it 1 for PPO and 4 for RLOO and GRPO."
    )
    mini_batch: int = Field(16, ge=1, description="Prompts of an update, or all of a step where it has fewer.")
    micro_batch: int = Field(4, ge=1, description="Completions computed at a time; says how much memory it takes.")
    max_prompt_tokens: int = Field(8192, ge=1, description="Tokens of a prompt; longer ones are left out.")
    max_tokens: int = Field(512, ge=1, description="The most tokens of an answer.")
    temperature: float = Field(1.0, gt=0, description="Of sampling; 0 takes the likeliest token.")
    learning_rate: float = Field(5e-7, gt=0, description="Of the policy.")
    critic_learning_rate: float = Field(5e-6, gt=0, description="Of PPO's critic.")
    reward_divisor: float = Field(1.0, gt=0, description="Scores are divided by it; by 10 in the paper's code.")
    kl: float = Field(0.0, ge=0, description="Weight of the divergence from the policy at the start.")
    clip: float = Field(0.2, gt=0, lt=1, description="How far from 1 a ratio of probabilities counts.")
    dual_clip: float = Field(3.0, gt=1, description="How large a ratio of PPO counts where an answer was bad.")
    value_clip: float = Field(0.5, gt=0, description="How far PPO's critic may move from its last value.")
    discount: float = Field(1.0, gt=0, le=1, description="PPO's gamma, a token.")
    gae_lambda: float = Field(1.0, ge=0, le=1, description="Of PPO's advantages.")
    weight_decay: float = Field(0.01, ge=0, description="Of AdamW.")
    max_gradient_norm: float = Field(1.0, gt=0, description="The largest norm of a gradient.")
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        "auto", description="Of computing; auto is bfloat16 on a GPU and float32 on a CPU. Weights are kept in float32."
    )
    gradient_checkpointing: bool = Field(default=False, description="Less memory for a third more time.")
    kl_every: int = Field(5, ge=0, description="Steps between two measures of the divergence; 0 is never.")
    checkpoint_every: int = Field(50, ge=1, description="Steps between two checkpoints.")
    seed: int = Field(0, description="Seed of every draw.")

    @property
    def completions(self) -> int:
        """Completions for each prompt."""
        return self.generations or GENERATIONS[self.algorithm]

    @property
    def updates(self) -> int:
        """Updates of the weights in a step."""
        return self.prompts // min(self.mini_batch, self.prompts)

    @property
    def update_size(self) -> int:
        """Completions of an update."""
        return self.prompts * self.completions // self.updates

    @property
    def part(self) -> int:
        """Completions that are computed at a time."""
        return min(self.micro_batch, self.update_size)

    def in_bfloat16(self, device: str) -> bool:
        """Whether to compute in bfloat16 on this type of device."""
        return device == "cuda" if self.precision == "auto" else self.precision == "bfloat16"

    @model_validator(mode="after")
    def _whole_parts(self) -> Self:
        if self.algorithm != "ppo" and self.completions < 2:
            raise ValueError(
                f"{self.algorithm} compares completions of one prompt, so `generations` has to be at least 2"
            )
        if self.prompts % min(self.mini_batch, self.prompts):
            raise ValueError(f"`prompts` {self.prompts} is no multiple of `mini_batch` {self.mini_batch}")
        if self.update_size % self.part:
            raise ValueError(
                f"`micro_batch` {self.micro_batch} does not divide the {self.update_size} completions of an update"
            )
        return self


class OptimizeSettings(Recipe):
    """All that the weights depend on; optimisation goes on only under the same.

    policy: the base, by the digest of its folder or the commit on the Hub. tasks: digest of the tasks.
    """

    verb: Literal["optimize"] = "optimize"
    policy: ModelRecord
    reward: ModelRecord
    tasks: str
    options: OptimizeConfig


def tasks_digest(tasks: Sequence[Task]) -> str:
    """What the policy reads and the reward model is given, in one digest."""
    # A digest of digests: the canonical JSON of a large set would be held twice in memory.
    return digest([_digest(task) for task in tasks])


def _digest(task: Task) -> str:
    group = task.group
    person = None if group.person is None else asdict(group.person)
    given = [[dict(message) for message in several] for several in (task.messages, group.prompt)]
    return digest([group.id, *given, list(group.context), person])
