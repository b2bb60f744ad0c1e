"""How a personalized reward model is trained: `PersonalConfig`. Nothing here needs torch."""

from typing import Literal, NamedTuple, Self, get_args

from pluralbench_runs import FrozenModel
from pydantic import Field, model_validator

Method = Literal["bt", "gpo", "vpl", "pal", "synthesizeme"]
METHODS: tuple[Method, ...] = get_args(Method)

READS_PAIRS = frozenset({"gpo", "vpl"})  # the others know a person by vectors alone
HEADS = 4  # of GPO's attention

ContextSource = Literal["about", "persona"]


class Defaults(NamedTuple):
    """What each method has a default of its own for."""

    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    warmup: float
    hidden: int


DEFAULTS: dict[Method, Defaults] = {
    "bt": Defaults(epochs=3, batch_size=32, learning_rate=3e-4, weight_decay=1e-3, warmup=0.03, hidden=512),
    "gpo": Defaults(epochs=3, batch_size=32, learning_rate=3e-4, weight_decay=0.0, warmup=0.0, hidden=128),
    "vpl": Defaults(epochs=3, batch_size=32, learning_rate=3e-4, weight_decay=1e-3, warmup=0.03, hidden=512),
    "pal": Defaults(epochs=3, batch_size=32, learning_rate=1e-4, weight_decay=1e-2, warmup=0.1, hidden=512),
    "synthesizeme": Defaults(epochs=3, batch_size=32, learning_rate=3e-4, weight_decay=1e-3, warmup=0.03, hidden=512),
}


class PersonalConfig(FrozenModel):
    """What is trained, and how. What is None takes its method's default (`DEFAULTS`).

    Rates, decay, warm-up and widths are those of the methods' own repositories; batches of GPO and VPL too. The paper
    of Personalized RewardBench states none for its adaptations; BT, which has no repository, has VPL's. Epochs are
    fewer than in the repositories, which train on fewer pairs or for days.
    """

    method: Method = Field("bt", description="The method of the personalized reward model.")
    profile: bool = Field(default=True, description="Whether the model reads anything of the person.")
    persona: bool = Field(
        default=False,
        description="Read the person's persona too, as a vector of its own.",
    )
    posts: int = Field(5, ge=1, description="The most blocks of context that are embedded.")
    pairs: int = Field(10, ge=0, description="The most earlier pairs of a person that gpo and vpl read, the latest.")
    epochs: int | None = Field(None, ge=1, description="How often each item is used.")
    batch_size: int | None = Field(None, ge=1, description="Pairs of a step.")
    learning_rate: float | None = Field(
        None, gt=0, description="The highest rate, from which it falls by a cosine to 0; of PAL's projectors."
    )
    weight_decay: float | None = Field(None, ge=0, description="Of AdamW.")
    warmup: float | None = Field(None, ge=0, lt=1, description="Share of the steps in which the rate rises from 0.")
    hidden: int | None = Field(None, ge=1, description="Width of the hidden layers.")
    layers: int = Field(6, ge=1, description="GPO: layers of its transformer.")
    latent: int = Field(512, ge=1, description="VPL: dimensions of the latent.")
    kl_weight: float = Field(1e-4, ge=0, description="VPL: weight of the divergence from the prior, at its highest.")
    prototypes: int = Field(2, ge=1, le=1000, description="PAL: prototypical preferences that a person mixes.")
    weights_rate: float = Field(5e-3, gt=0, description="PAL: learning rate of what predicts the mixture.")
    temperature_rate: float = Field(1e-1, gt=0, description="PAL: learning rate of the temperature.")
    seed: int = Field(0, description="Seed of every draw.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.persona and not self.profile:
            raise ValueError("a model without a profile reads no persona; leave out one of the two")
        if self.method == "gpo" and self.chosen.hidden % HEADS:
            raise ValueError(f"gpo has {HEADS} heads, so `hidden` must be a multiple of {HEADS}")
        return self

    @property
    def chosen(self) -> Defaults:
        """What was given, and the method's defaults for the rest."""
        given = {name: getattr(self, name) for name in Defaults._fields}
        return DEFAULTS[self.method]._replace(**{name: value for name, value in given.items() if value is not None})

    @property
    def told(self) -> tuple[ContextSource, ...]:
        """The vectors of a person that are read: of what is told of them (`about`), of their persona, or none."""
        if not self.profile:
            return ()
        return ("about", "persona") if self.persona else ("about",)

    @property
    def shown(self) -> int:
        """How many earlier pairs of a person the model reads at most."""
        return self.pairs if self.profile and self.method in READS_PAIRS else 0

    def filled(self) -> Self:
        """These options with every default spelled out."""
        return self.model_copy(update=self.chosen._asdict())
