"""The contract of everything that scores: groups of responses in, numbers out. Nothing here needs torch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol, Self, runtime_checkable

from pluralbench_runs import FrozenModel
from pydantic import Field

Message = dict[str, str]
"""A message with `role` and `content`."""

OnScored = Callable[[int, list[float]], None]
"""Called with a group's place and its scores as soon as all of them are there."""

Mode = Literal["fast", "exact"]
Overflow = Literal["error", "drop", "truncate-left", "truncate-prompt"]

COMPARED = 16  # conversations that are computed alone to measure a tolerance

MODEL_FIELDS = "{context}\n\nMy question:\n{question}"


@dataclass(frozen=True)
class EarlierPair:
    """Two responses between which a person chose before. prompt: messages, the user's last."""

    prompt: Sequence[Message]
    chosen: str
    rejected: str


@dataclass(frozen=True)
class Person:
    """Who asks, as data.

    id: of the user. profile: past posts (`id`, `category`, `text`), in the data's order. persona: sentences that
    describe them. plan: what a planner thinks they expect of an answer. earlier: pairs they decided before, the oldest
    first.
    """

    id: str | None = None
    profile: Sequence[Mapping[str, Any]] = ()
    persona: Sequence[str] = ()
    plan: str | None = None
    earlier: Sequence[EarlierPair] = ()


@dataclass(frozen=True)
class Group:
    """One prompt and the responses to it.

    prompt: messages with `role` and `content`, the user's last; nothing in them is about the person.
    person: who asks, for a model that takes a person as data.
    context: what a model that reads text is told about the person, in blocks, in the data's order.
    """

    id: str
    prompt: Sequence[Message]
    responses: Sequence[str]
    person: Person | None = None
    context: Sequence[str] = ()

    @property
    def messages(self) -> list[Message]:
        """The prompt as a model reads it that knows text alone: the context precedes the last message."""
        messages = [dict(message) for message in self.prompt]
        if self.context:
            question = messages[-1]["content"]
            messages[-1]["content"] = MODEL_FIELDS.format(context="\n".join(self.context), question=question)
        return messages

    def without_least_relevant(self) -> Self:
        """This group without the last block of its context."""
        return replace(self, context=self.context[:-1])


class ModelRecord(FrozenModel):
    """What a reward model is, as a run records it. What says nothing about a kind of model is left out.

    name: a folder, ORG/NAME on the Hub, a model of an endpoint, or the function's name. kind: "classifier",
    "implicit", "generative", "function", or a name of one's own. digest: SHA-256 of the files of a folder, or of a
    function's code. commit: of the Hub's repository.
    """

    name: str
    kind: str
    digest: str | None = None
    commit: str | None = None
    provider: str | None = None
    reference: str | None = None
    reference_digest: str | None = None
    reference_commit: str | None = None
    label: str | None = None
    chat_template_digest: str | None = None
    architecture: str | None = None
    parameters: int | None = None
    device: str | None = None
    dtype: str | None = None
    trust_remote_code: bool | None = None
    settings: dict[str, Any] = Field(default_factory=dict)


@dataclass
class Work:
    """What scoring took.

    strategy: "fast" or "exact", or "padded" where the architecture cannot be packed (`unpackable` says why).
    unique_tokens: each group's longest common token prefix once, and the rest of each different response once.
    computed_tokens: padding included; fewer than the unique ones where several groups of a batch begin alike; of the
    policy alone for an implicit reward. token_budget: at the end.
    """

    strategy: str
    unpackable: str
    token_budget: int
    max_length: int
    conversations: int = 0
    unique_tokens: int = 0
    computed_tokens: int = 0
    batches: int = 0
    seconds: float = 0.0


def sum_work(works: Sequence[Work]) -> Work | None:
    """What several parts of the work took; the budget is the smallest. None where none was seen."""
    if not works:
        return None
    sums = ("conversations", "unique_tokens", "computed_tokens", "batches", "seconds")
    return replace(
        works[0],
        **{name: sum(getattr(work, name) for work in works) for name in sums},
        token_budget=min(work.token_budget for work in works),
    )


class CheckRecord(FrozenModel):
    """How scores of servers were compared before the first.

    against: "weights" (in the process that asked), "servers" (among one another), null where nothing was compared.
    items, conversations: how many. largest_difference: between two scores of one conversation. decisions: pairs of
    responses to one prompt; decisions_changed: those that the two do not decide alike.
    """

    against: Literal["weights", "servers"] | None = None
    items: int = 0
    conversations: int = 0
    largest_difference: float = 0.0
    decisions: int = 0
    decisions_changed: int = 0


class ServedRecord(FrozenModel):
    """The servers that scored. engines: with their versions, such as "vllm 0.32.0". servers: how many, those of a
    reference not counted; left_out: how many of them did not last. model: its name there.
    """

    engines: tuple[str, ...]
    servers: int
    servers_excluded: int = 0
    model: str
    check: CheckRecord


@dataclass
class Scored:
    """Scores by group and response, in the order given.

    scores: not finite where the model gave no number; empty lists for groups that were dropped (`dropped` says why).
    tokens: of each conversation as it was scored. cut: tokens that the group's longest conversation lost.
    work: None where another machine, or a function, did it. tolerance: how far scores of another mode may lie from
    these, where that was measured. reasons: why scores are not finite, as often as it happened. served: by which
    servers, where it was servers. alike: groups in which responses that differ made the same tokens.
    """

    scores: list[list[float]]
    tokens: list[list[int]] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    dropped: dict[int, str] = field(default_factory=dict)
    work: Work | None = None
    tolerance: float = 0.0
    reasons: list[str] = field(default_factory=list)
    served: ServedRecord | None = None
    alike: int = 0


@runtime_checkable
class RewardModel(Protocol):
    """Anything that gives scores to groups: a model in this process, a judge behind an endpoint, a server."""

    def record(self) -> ModelRecord:
        """What it is, for the provenance of a run."""

    def score(
        self,
        groups: Sequence[Group],
        *,
        known: Mapping[int, list[float]] | None = None,
        on_scored: OnScored | None = None,
    ) -> Scored:
        """Score the responses of every group.

        known: scores of an earlier run by the group's place; these groups are not computed again.
        """


@runtime_checkable
class MeasuresTolerance(Protocol):
    """A reward model that measures how far its scores may lie from those of another mode, as `Scored.tolerance`."""

    def unmeasured(self) -> RewardModel:
        """The same, which measures nothing when it scores."""

    def tolerance(self, groups: Sequence[Group], scored: Scored) -> float:
        """How far scores of another mode may lie from these, measured on the groups of `tolerance_sample`."""


def tolerance_sample(scores: Sequence[Sequence[float]]) -> list[int]:
    """The places of the groups on which a tolerance is measured: `COMPARED`, evenly spread over those with scores."""
    places = [place for place, values in enumerate(scores) if values]
    return [places[len(places) * part // COMPARED] for part in range(min(COMPARED, len(places)))]


class ScoringConfig(FrozenModel):
    """Inference of a reward model in this process."""

    runtime_only: ClassVar[frozenset[str]] = frozenset({"token_budget"})

    mode: Mode = Field(
        "fast", description="fast: compute a shared prompt once; exact: each conversation by itself, unpadded."
    )
    max_length: int | None = Field(
        None, ge=1, description="Maximum tokens per conversation. Default: the model's limit."
    )
    on_overflow: Overflow = Field("error", description="How to handle longer conversations.")
    token_budget: int | None = Field(
        None, ge=1, description="Maximum tokens per forward pass, padding included. Default: by device and model."
    )


@runtime_checkable
class ModelConfig(Protocol):
    """A frozen description of a reward model, from which it is loaded. Each kind of model has one."""

    @property
    def loader(self) -> str:
        """What loads it, "module:function", called with the description and a `ScoringConfig`, for a `RewardModel`.

        A name, so that to describe a model imports nothing of what runs it.
        """

    def record(self) -> ModelRecord:
        """What is known of the model before it is loaded; a run goes on only under the same."""
