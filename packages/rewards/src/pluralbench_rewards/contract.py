"""Types for implementing a reward model, which maps groups of responses to scores, without torch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol, Self, runtime_checkable

from pluralbench_runs import FrozenModel
from pydantic import Field

Message = dict[str, str]
"""A message with `role` and `content`."""

OnScored = Callable[[Mapping[int, list[float]]], None] | None
"""Called with the scores of some groups, by index, as soon as these are complete."""

Cached = Mapping[int, list[float]] | None
"""Scores of an interrupted run by index; these groups are not computed again."""

Mode = Literal["fast", "exact"]
Overflow = Literal["error", "drop", "truncate-left", "truncate-prompt"]
MissingContext = Literal["error", "drop"]

MISSING_CONTEXT = "no user context"
"""Why a group is dropped that lacks the user context that a personalized model reads."""

MODEL_FIELDS = "{context}\n\nMy question:\n{question}"


@dataclass(frozen=True)
class EarlierPair:
    """An earlier decision of a user between two responses to a prompt, whose last message is by the user."""

    prompt: Sequence[Message]
    chosen: str
    rejected: str


@dataclass(frozen=True)
class Person:
    """User context as data.

    Attributes:
        profile: Past posts (`id`, `category`, `text`), in the order of the data.
        plan: What the user expects of an answer, inferred by a planner.
        earlier: Earlier decided pairs, the oldest first.
    """

    id: str | None = None
    profile: Sequence[Mapping[str, Any]] = ()
    persona: Sequence[str] = ()
    plan: str | None = None
    earlier: Sequence[EarlierPair] = ()


@dataclass(frozen=True)
class Group:
    """A prompt with its responses.

    Attributes:
        prompt: Messages with `role` and `content`, the last one by the user, without user context.
        person: User context as data, for models that accept it.
        context: User context as text blocks, in the order of the data.
        steps: Steps of one answer, if `responses` are this answer up to each of its steps. A model that scores steps
            may score these instead.
        block: Number of the block whose batches are planned together, from these groups alone. So the scores of a
            block do not depend on which other blocks a process scores.
    """

    id: str
    prompt: Sequence[Message]
    responses: Sequence[str]
    person: Person | None = None
    context: Sequence[str] = ()
    steps: Sequence[str] = ()
    block: int = 0

    @property
    def messages(self) -> list[Message]:
        """The prompt with the user context before the last message, for models that read only text."""
        messages = [dict(message) for message in self.prompt]
        if self.context:
            question = messages[-1]["content"]
            messages[-1]["content"] = MODEL_FIELDS.format(context="\n".join(self.context), question=question)
        return messages

    def without_least_relevant(self) -> Self:
        """Return the group without the last block of its context."""
        return replace(self, context=self.context[:-1])


class ModelRecord(FrozenModel):
    """The identity of a reward model, as a run records it; fields that do not apply to its kind are None.

    Attributes:
        kind: "classifier", "implicit", "token", "pairwise", "generative", "function", or a custom name.
        digest: SHA-256 of the files of a folder, or of a function's code.
        commit: Commit of the Hub repository.
    """

    name: str
    kind: str
    digest: str | None = None
    commit: str | None = None
    provider: str | None = None
    base: str | None = None
    base_digest: str | None = None
    base_commit: str | None = None
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
    """The computation of a scoring call.

    Attributes:
        strategy: "fast" or "exact", or "padded" if the architecture cannot be packed.
        unpackable: Why the architecture cannot be packed; empty if it can.
        max_length: Maximum tokens per conversation.
        unique_tokens: Tokens if the longest common prefix of each group and the rest of each distinct response are
            counted once.
        computed_tokens: Computed tokens, including padding; for an implicit reward those of the policy. Smaller than
            `unique_tokens` if several groups share a prefix.
        out_of_memory: Number of batches that ran out of memory; each halved the token budget.
    """

    strategy: str
    unpackable: str
    token_budget: int
    max_length: int
    attention: str = ""
    conversations: int = 0
    unique_tokens: int = 0
    computed_tokens: int = 0
    batches: int = 0
    out_of_memory: int = 0
    seconds: float = 0.0


def sum_work(works: Sequence[Work]) -> Work | None:
    """Add up the work of several parts; the token budget is the smallest. None without any part."""
    if not works:
        return None
    sums = ("conversations", "unique_tokens", "computed_tokens", "batches", "out_of_memory", "seconds")
    return replace(
        works[0],
        **{name: sum(getattr(work, name) for work in works) for name in sums},
        token_budget=min(work.token_budget for work in works),
    )


class CheckRecord(FrozenModel):
    """The comparison of scores from servers before a run.

    Attributes:
        against: "weights" (local weights), "servers" (among the servers); null if nothing was compared.
        largest_difference: Largest difference between two scores of one conversation.
    """

    against: Literal["weights", "servers"] | None = None
    items: int = 0
    conversations: int = 0
    largest_difference: float = 0.0
    decisions: int = 0
    decisions_changed: int = 0


class ServedRecord(FrozenModel):
    """The servers of a run.

    Attributes:
        engines: Engines with their versions, such as "vllm 0.32.0".
        servers: Number of servers, without those of a reference.
    """

    engines: tuple[str, ...]
    servers: int
    servers_excluded: int = 0
    model: str
    check: CheckRecord


@dataclass
class Scored:
    """Scores by group and response, in the order of the input.

    Attributes:
        scores: Scores; not finite if the model gave no number, and an empty list for a dropped group.
        tokens_cut: Number of tokens that were cut from the longest conversation of each group.
        tolerance: Measured estimate of how far scores of another mode may differ; None if not measured.
        rendered_identically: Number of groups in which different responses have the same tokens.
        inputs_with_two_bos: Number of conversations that begin with two or more BOS tokens; None if not counted.
        inputs_without_bos: Number of conversations without a BOS token at the beginning although the tokenizer has
            one; None if not counted.
        inputs_ending_in_padding: Number of conversations that end with the padding token, which the model does not
            read; None if the last token is read.
    """

    scores: list[list[float]]
    tokens: list[list[int]] = field(default_factory=list)
    tokens_cut: list[int] = field(default_factory=list)
    dropped: dict[int, str] = field(default_factory=dict)
    work: Work | None = None
    tolerance: float | None = None
    reasons: list[str] = field(default_factory=list)
    served: ServedRecord | None = None
    rendered_identically: int = 0
    inputs_with_two_bos: int | None = None
    inputs_without_bos: int | None = None
    inputs_ending_in_padding: int | None = None


@runtime_checkable
class RewardModel(Protocol):
    """The interface of reward models: local models, judges, servers and functions."""

    def record(self) -> ModelRecord:
        """Return the identity of the model, for the record of a run."""

    def score(self, groups: Sequence[Group], *, cached: Cached = None, on_scored: OnScored = None) -> Scored:
        """Score every group; new scores go to `on_scored` a batch at a time, and those in `cached` are taken."""


@dataclass(frozen=True)
class RenderedConversation:
    """A prompt with its response as a model reads them.

    Attributes:
        content: Text as a chat template renders it, or token ids.
        add_special_tokens: Whether the tokenizer adds special tokens to the text, such as BOS.
    """

    content: str | Sequence[int]
    add_special_tokens: bool = False


@runtime_checkable
class ScoresRendered(Protocol):
    """A reward model that also scores rendered conversations, as inference servers do."""

    def score_rendered(self, conversations: Sequence[RenderedConversation]) -> Scored:
        """Score each conversation, as a group with one response."""

    def max_tokens(self) -> int:
        """Return the maximum number of tokens of a conversation."""

    def endings(self) -> Sequence[str]:
        """Return what follows a response in a text: first as the model reads it, then as a policy may write it."""


Pairs = Sequence[tuple[int, int]]
"""Pairs of responses of a group by their indices, in the order in which a model reads them."""


@runtime_checkable
class PairwiseRewardModel(Protocol):
    """The interface of models that compare two responses, and give no score of a single one."""

    def record(self) -> ModelRecord:
        """Return the identity of the model, for the record of a run."""

    def compare(
        self, groups: Sequence[Group], pairs: Sequence[Pairs], *, cached: Cached = None, on_scored: OnScored = None
    ) -> Scored:
        """Compare the responses of pairs, at least one of each group; to compare in both orders, give both.

        Arguments as in `RewardModel.score`. In place of scores it returns the probability of each pair that its first
        response is the better one.
        """


AnyRewardModel = RewardModel | PairwiseRewardModel


@runtime_checkable
class MeasuresPairTolerance(Protocol):
    """A pairwise model that measures how far probabilities of another mode may differ."""

    def tolerance(self, groups: Sequence[Group], pairs: Sequence[Pairs], scored: Scored) -> float:
        """Measure how far probabilities of another mode may differ, on all these groups."""


@runtime_checkable
class MeasuresTolerance(Protocol):
    """A reward model that measures `Scored.tolerance`: how far scores of another mode may differ."""

    def unmeasured(self) -> RewardModel:
        """Return the same model without this measurement in `score`."""

    def tolerance(self, groups: Sequence[Group], scored: Scored) -> float:
        """Measure how far scores of another mode may differ, on all these groups."""


class ScoringConfig(FrozenModel):
    """Inference settings of a local reward model."""

    runtime_only: ClassVar[frozenset[str]] = frozenset({"token_budget"})

    mode: Mode = Field(
        "fast", description="fast: compute a shared prompt once; exact: each conversation by itself, unpadded."
    )
    max_length: int | None = Field(
        None, ge=1, description="Maximum tokens per conversation. Default: the model's limit."
    )
    on_overflow: Overflow = Field("error", description="How to handle longer conversations.")
    on_missing_context: MissingContext = Field(
        "error",
        exclude_if=lambda rule: rule == "error",
        description="How to handle prompts without the user context that a personalized model was trained with.",
    )
    token_budget: int | None = Field(
        None, ge=1, description="Maximum tokens per forward pass, padding included. Default: by device and model."
    )


@runtime_checkable
class ModelConfig(Protocol):
    """A frozen configuration from which a reward model is loaded. Each kind of model has one."""

    @property
    def loader(self) -> str:
        """The loader, "module:function", called with the configuration and a `ScoringConfig`; returns a `RewardModel`.

        It is a name so that configuring a model imports nothing that is needed to run it.
        """

    def record(self) -> ModelRecord:
        """Return the record of the model before loading; a resumed run must match it."""
