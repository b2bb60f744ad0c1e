"""`PersonalConfig`: how to train a personalized reward model. Imports no torch."""

from typing import Literal, NamedTuple, Self, get_args

from pluralbench_runs import FrozenModel, Seed
from pydantic import Field, model_validator

Method = Literal["bt", "gpo", "vpl", "pal", "synthesizeme"]
METHODS: tuple[Method, ...] = get_args(Method)

READS_PAIRS = frozenset({"gpo", "vpl"})  # the others read vectors of the user context alone
HEADS = 4  # of GPO's attention
MAX_SIZE = 65_536  # of a layer: four times the vectors of the largest models, and 17 GB if two such layers meet

ContextSource = Literal["about", "persona"]


class Defaults(NamedTuple):
    """Options whose default depends on the method."""

    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    warmup_ratio: float
    hidden_size: int


DEFAULTS: dict[Method, Defaults] = {
    "bt": Defaults(epochs=3, batch_size=32, learning_rate=3e-4, weight_decay=1e-3, warmup_ratio=0.03, hidden_size=512),
    "gpo": Defaults(epochs=3, batch_size=32, learning_rate=3e-4, weight_decay=0.0, warmup_ratio=0.0, hidden_size=128),
    "vpl": Defaults(epochs=3, batch_size=32, learning_rate=3e-4, weight_decay=1e-3, warmup_ratio=0.03, hidden_size=512),
    "pal": Defaults(epochs=3, batch_size=32, learning_rate=1e-4, weight_decay=1e-2, warmup_ratio=0.1, hidden_size=512),
    "synthesizeme": Defaults(
        epochs=3, batch_size=32, learning_rate=3e-4, weight_decay=1e-3, warmup_ratio=0.03, hidden_size=512
    ),
}


class PersonalConfig(FrozenModel):
    """Training of a personalized reward model. What is None takes the method's default (`DEFAULTS`).

    Rates, decay, warm-up and widths are those of the methods' own repositories, and for GPO and VPL the batch sizes
    too. The paper of Personalized RewardBench states none for its adaptations; BT, which has no repository, takes
    VPL's. Epochs are fewer than in the repositories, which train on fewer pairs or for days.
    """

    method: Method = Field("bt", description="Method of the personalized reward model.")
    profile: bool = Field(default=True, description="Whether the model reads the user context.")
    persona: bool = Field(default=False, description="Also read the user's persona, as a vector of its own.")
    profile_size: int = Field(5, ge=1, description="Maximum posts per user that are embedded.")
    history_size: int = Field(
        10, ge=0, description="gpo, vpl: maximum number of earlier pairs per user, the latest first."
    )
    epochs: int | None = Field(None, ge=1, le=10_000, description="Passes over the training data.")
    batch_size: int | None = Field(None, ge=1, description="Pairs per step.")
    learning_rate: float | None = Field(
        None, gt=0, description="Peak learning rate, followed by cosine decay to 0; for pal that of the projectors."
    )
    weight_decay: float | None = Field(None, ge=0, description="AdamW's weight decay.")
    warmup_ratio: float | None = Field(None, ge=0, lt=1, description="Fraction of the steps that warm up from rate 0.")
    hidden_size: int | None = Field(None, ge=1, le=MAX_SIZE, description="Width of the hidden layers.")
    num_layers: int = Field(6, ge=1, le=1000, description="gpo: transformer layers.")
    latent_size: int = Field(512, ge=1, le=MAX_SIZE, description="vpl: dimension of the latent.")
    kl_weight: float = Field(1e-4, ge=0, description="vpl: highest weight of the divergence from the prior.")
    num_prototypes: int = Field(2, ge=1, le=1000, description="pal: preference prototypes that a user mixes.")
    mixture_learning_rate: float = Field(5e-3, gt=0, description="pal: learning rate of the mixture weights.")
    temperature_learning_rate: float = Field(1e-1, gt=0, description="pal: learning rate of the temperature.")
    seed: Seed = Field(0, description="Random seed.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.persona and not self.profile:
            raise ValueError("`persona=True` needs `profile=True`")
        if self.method == "gpo" and self.chosen.hidden_size % HEADS:
            raise ValueError(f"gpo has {HEADS} attention heads, so `hidden_size=...` must be a multiple of {HEADS}")
        return self

    @property
    def chosen(self) -> Defaults:
        """The values that depend on the method: those set, and the method's defaults for the rest."""
        values = {name: getattr(self, name) for name in Defaults._fields}
        return DEFAULTS[self.method]._replace(**{name: value for name, value in values.items() if value is not None})

    @property
    def context_sources(self) -> tuple[ContextSource, ...]:
        """The user vectors that the model reads: of the posts (`about`), of the persona, or none."""
        if not self.profile:
            return ()
        return ("about", "persona") if self.persona else ("about",)

    @property
    def max_history(self) -> int:
        """Maximum number of earlier pairs per user that the model reads."""
        return self.history_size if self.profile and self.method in READS_PAIRS else 0

    def filled(self) -> Self:
        """This configuration with the method's defaults filled in."""
        return self.model_copy(update=self.chosen._asdict())
