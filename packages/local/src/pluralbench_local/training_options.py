"""How to train: `TrainingConfig`. Nothing here needs torch."""

from typing import Literal, Self

from pluralbench_runs import FrozenModel
from pydantic import Field, field_validator, model_validator


class LoraOptions(FrozenModel):
    """Low-rank adapters instead of all weights (the extra `lora`), merged into the weights when saved.

    The rest of the weights stays in the type it was saved in; adapters and head train in float32.
    alpha: the adapters' sum counts alpha / rank times. targets: "all-linear", or the names of modules.
    """

    rank: int = Field(16, ge=1)
    alpha: int = Field(32, ge=1)
    dropout: float = Field(0.0, ge=0, lt=1)
    targets: str | tuple[str, ...] = "all-linear"


class TrainingConfig(FrozenModel):
    """How to train; the defaults are those of CHEEMS (section 5, Table 9): 256 responses a step, for a large set.

    Only `new_head` has another default than CHEEMS, which draws it "large", from N(0, 1 / (width + 1)), the second the
    variance: rewards of a small one are near 0 at first, and a few steps then teach more. trainable: "head" computes
    the hidden state of each response once, without dropout, and trains the head on them; it wants a rate a thousand
    times higher and more epochs, which cost next to nothing.
    """

    epochs: int = Field(2, ge=1, description="How often each item is used.")
    batch_size: int = Field(16, ge=2, description="Responses whose pairs count together.")
    accumulation: int = Field(16, ge=1, description="Batches a step, the loss of each with the same weight.")
    learning_rate: float = Field(
        5e-6, gt=0, description="The highest rate, from which it falls by a cosine to 0; for a head alone some 0.01."
    )
    warmup: float = Field(0.1, ge=0, lt=1, description="Share of the steps in which the rate rises from 0.")
    regulariser: float = Field(0.1, ge=0, description="Weight of the mean of the squared rewards.")
    weight_decay: float = Field(0.0, ge=0, description="Of AdamW.")
    clip: float = Field(
        1.0, gt=0, description="The largest norm of a gradient.", json_schema_extra={"flag": "--max-gradient-norm"}
    )
    max_length: int = Field(2048, ge=1, description="The most tokens of a conversation.")
    on_overflow: Literal["drop", "error"] = Field("drop", description="What to do with a longer conversation.")
    trainable: Literal["all", "head"] = Field(
        "all", description="head: the base stays as it is, and each response is computed once."
    )
    new_head: Literal["small", "large"] = Field(
        "small",
        description="How a language model's new head is drawn: with a deviation of 0.02, or of (width + 1) ** -0.5, "
        "the way of CHEEMS.",
    )
    lora: LoraOptions | None = Field(
        None,
        description="Adapters in place of all weights, such as 16/32; they want a rate some twenty times higher.",
        json_schema_extra={"metavar": "RANK/ALPHA"},
    )
    gradient_checkpointing: bool = Field(default=False, description="Less memory for a third more time.")
    save_dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="Precision of the saved weights; auto is that of the base."
    )
    token_budget: int | None = Field(None, ge=1, description="The most tokens of a forward pass, padding included.")
    measure_every: int = Field(50, ge=1, description="Steps between two measures of held-out accuracy.")
    checkpoint_every: int = Field(50, ge=1, description="Steps between two checkpoints.")
    seed: int = Field(0, description="Seed of every draw.")

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
            raise ValueError("adapters change the base, and `trainable` head leaves it as it is; choose one of them")
        return self
