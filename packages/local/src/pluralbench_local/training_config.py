"""`TrainingConfig`: how a Bradley-Terry reward model is trained. Imports no torch."""

from typing import Literal, Self

from pluralbench_runs import FrozenModel, Seed
from pydantic import Field, field_validator, model_validator

TRAINING_FILE = "training.json"


class LoraOptions(FrozenModel):
    """Low-rank adapters (LoRA) in place of full fine-tuning, merged into the weights when the model is saved.

    Needs the extra `lora`. Base weights keep the dtype of the checkpoint; adapters and head train in float32.
    """

    rank: int = Field(16, ge=1)
    alpha: int = Field(32, ge=1)
    dropout: float = Field(0.0, ge=0, lt=1)
    target_modules: str | tuple[str, ...] = "all-linear"


class TrainingConfig(FrozenModel):
    """Training of a Bradley-Terry reward model. Defaults: CHEEMS (section 5, Table 9), 256 responses a step.

    `head_init` alone has another default: CHEEMS draws the new head from N(0, 1 / (width + 1)), the second the
    variance ("by-width"). Below a width of 2,499 the default is smaller, so rewards start near 0 and a few steps teach
    more.
    """

    epochs: int = Field(2, ge=1, le=10_000, description="Passes over the training data.")
    batch_size: int = Field(16, ge=2, description="Responses per batch; only pairs within a batch are compared.")
    gradient_accumulation_steps: int = Field(16, ge=1, description="Batches per optimizer step, equally weighted.")
    learning_rate: float = Field(
        5e-6, gt=0, description="Peak learning rate, followed by cosine decay to 0; about 0.01 for --trainable head."
    )
    warmup_ratio: float = Field(0.1, ge=0, lt=1, description="Fraction of the steps that warm up from rate 0.")
    center_rewards_coefficient: float = Field(0.1, ge=0, description="Weight of the mean squared reward in the loss.")
    weight_decay: float = Field(0.0, ge=0, description="AdamW's weight decay.")
    max_grad_norm: float = Field(1.0, gt=0, description="Gradients are clipped to this norm.")
    max_length: int = Field(2048, ge=1, description="Maximum tokens per conversation.")
    on_overflow: Literal["drop", "error"] = Field("drop", description="How to handle longer conversations.")
    trainable: Literal["all", "head"] = Field(
        "all",
        description="all weights, or the head alone: hidden states are then computed once, which makes epochs cheap.",
    )
    head_init: Literal["fixed", "by-width"] = Field(
        "fixed",
        description="Standard deviation of a language model's new head: 0.02 (fixed) or (width + 1) ** -0.5 "
        "(by-width, as CHEEMS).",
    )
    lora: LoraOptions | None = Field(
        None,
        description="Train LoRA adapters, such as 16/32; their learning rate should be about 20 times higher. "
        "Default: full fine-tuning.",
        json_schema_extra={"metavar": "RANK/ALPHA"},
    )
    gradient_checkpointing: bool = Field(default=False, description="Use less memory and a third more time.")
    save_dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="Dtype of the saved weights; auto: that of the base."
    )
    token_budget: int | None = Field(
        None, ge=1, description="Maximum tokens per forward pass, padding included. Default: by device and model."
    )
    eval_steps: int = Field(50, ge=1, description="Steps between two evaluations on held-out data.")
    save_steps: int = Field(50, ge=1, description="Steps between two checkpoints.")
    seed: Seed = Field(0, description="Random seed.")

    @field_validator("lora", mode="before")
    @classmethod
    def _rank_and_alpha(cls, lora: object) -> object:
        if not isinstance(lora, str):
            return lora
        parts = lora.split("/")
        if len(parts) != 2 or not all(part.isdecimal() for part in parts):
            raise ValueError(f"{lora!r} is not of the form RANK/ALPHA, such as 16/32")
        return {"rank": int(parts[0]), "alpha": int(parts[1])}

    @model_validator(mode="after")
    def _head_alone(self) -> Self:
        if self.trainable == "head" and self.lora is not None:
            raise ValueError('`trainable="head"` freezes the base, so it cannot be combined with `lora=...`')
        return self
