"""A request as it is sent, and the answer as it is recorded."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Literal, Protocol, Self, runtime_checkable

from pluralbench_runs import Json, canonical_json, digest
from pluralbench_runs.secrets import redact

Outcome = Literal["answer", "empty", "refusal", "content_filter", "length", "error"]
"""What came back. Only "answer" is an answer; "length" was cut off, "error" holds the server's message."""

TOO_LONG = "too long"
"""Finish reason of an answer that was longer than what is read of one; its outcome is "length", and it has no text."""
OVERHEAD = 64  # tokens that a chat template adds
LONGEST_NAME = 200  # characters of a model's name or a finish reason that a server sends


@dataclass(frozen=True)
class Request:
    """One thing to ask a model.

    kind: "chat", or a kind of the backend's own ("rank").
    provider: who serves the model; part of the identity, where a base URL (which may move) is not.
    body: messages or texts and every sampling value, as sent.
    sample: which draw this is, so that the same question can be asked again.
    label: what the call is for, in words; not part of the identity.
    """

    kind: str
    provider: str
    model: str
    body: Mapping[str, Json]
    sample: int = 0
    label: str = field(default="", compare=False)

    @cached_property
    def key(self) -> str:
        """SHA-256 of the canonical JSON of the request, 64 hexadecimal digits."""
        return digest(
            {
                "kind": self.kind,
                "provider": self.provider,
                "model": self.model,
                "body": self.body,
                "sample": self.sample,
            }
        )


@dataclass(frozen=True)
class Answer:
    """What came back for the request of this key.

    text: raw, unparsed; for outcome "error" the server's message.
    model: the model string that the server returned. finish_reason: for outcome "error" the HTTP status.
    prompt_tokens, completion_tokens: 0 where the server does not say.
    recorded_at: UTC, ISO 8601.
    adapted: how what was sent differs from the request, such as "without temperature", because the model refuses it so.
    """

    key: str
    kind: str
    provider: str
    label: str
    outcome: Outcome
    text: str
    model: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    recorded_at: str
    adapted: str = ""

    @classmethod
    def to(
        cls,
        request: Request,
        outcome: Outcome,
        text: str,
        *,
        model: str | None = None,
        finish_reason: str = "",
        tokens: tuple[int, int] = (0, 0),
        adapted: str = "",
        secrets: Sequence[str] = (),
    ) -> Self:
        """The answer to `request`, recorded now; tokens are (prompt, completion).

        Whatever a server says becomes a record here: without the secrets of the environment and those in the variables
        `secrets` (see `pluralbench_runs.secrets`), and without half characters, which fit in no file.
        """

        def kept(said: str) -> str:
            return redact(said.encode(errors="replace").decode(), *secrets) if said else ""

        return cls(
            key=request.key,
            kind=request.kind,
            provider=request.provider,
            label=request.label,
            outcome=outcome,
            text=kept(text),
            model=kept(model)[:LONGEST_NAME] if model else request.model,
            finish_reason=kept(finish_reason)[:LONGEST_NAME],
            prompt_tokens=tokens[0],
            completion_tokens=tokens[1],
            recorded_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            adapted=adapted,
        )


class Backend(Protocol):
    """Something that answers requests; entered only when there is something to send.

    concurrency: the most requests it can use at once, or None for as many as the limits allow.
    """

    concurrency: int | None

    async def __aenter__(self) -> Self:
        """Open connections, start servers, load models; by itself nothing."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close what `__aenter__` opened."""
        del exc

    async def send(self, request: Request) -> Answer:
        """Ask once; raise a `CallsError` for what concerns every request, such as a wrong key."""


@runtime_checkable
class PackingBackend(Backend, Protocol):
    """A backend whose endpoint takes several requests in one message, as translators do.

    Each request keeps its own key and its own answer, so how they were packed is no part of what was asked.
    """

    def pack(self, requests: Sequence[Request]) -> list[list[Request]]:
        """Put the requests into messages that the endpoint takes."""

    def size(self, request: Request) -> int:
        """What the endpoint bills for the request, in the unit that a price is for (characters, for a translator)."""

    def send_packed(self, requests: Sequence[Request]) -> AsyncIterator[list[Answer]]:
        """Send one message; an answer for each request, as they come. Raises as `send` does."""

    async def send(self, request: Request) -> Answer:
        """One request as a message of its own."""
        [[answer]] = [answers async for answers in self.send_packed([request])]
        return answer


def max_prompt_tokens(request: Request) -> int:
    """The most tokens that a chat request can have: no token is shorter than a byte."""
    return len(canonical_json(request.body)) + OVERHEAD
