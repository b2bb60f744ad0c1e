"""Requests, recorded answers, and the protocols of backends."""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Literal, Protocol, Self, runtime_checkable

from pluralbench_runs import Json, canonical_json, digest
from pluralbench_runs.secrets import redactor

from pluralbench_calls.errors import PermanentError

Outcome = Literal["answer", "empty", "refusal", "content_filter", "length", "error"]
"""Outcome of a request. Only "answer" is complete; "length" was truncated, and "error" has the server's message."""

TOO_LONG = "too long"
"""Finish reason of an answer over the size limit; its outcome is "length", and it has no text."""
PROMPT_TOO_LONG = "prompt too long"
"""Finish reason of an error: a model in this process has too few positions for the prompt."""
BROKEN_OFF = frozenset(
    {"error", "abort", "aborted", "cancelled", "canceled", "failed", "timeout", "time_limit", "other"}
)
"""Finish reasons, in lower case, of an answer that the server did not complete; its outcome is "length"."""
STOPS: Mapping[str, Outcome] = {
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "max_length", "model_length"), "length"),
    **dict.fromkeys(("token_limit", "error_limit", "model_context_window_exceeded", *BROKEN_OFF), "length"),
    **dict.fromkeys(("content_filter", "content_filtered", "guardrail_intervened", "error_toxic"), "content_filter"),
    **dict.fromkeys(("safety", "recitation", "blocklist", "prohibited_content", "spii"), "content_filter"),
    "refusal": "refusal",
}
"""Outcomes by finish reason, in lower case. Gateways pass on what Anthropic, Cohere, Google or watsonx call it."""
NOT_ANSWERED = "not answered"
"""Finish reason of an error: the server failed in all tries. The call is sent again by the next command."""
TEMPLATE_TOKENS = 64  # added by a chat template
LABEL_PART = re.compile("[0-9A-Za-z]")
MAX_NAME_LENGTH = 200  # characters of a model's name or a finish reason from a server


@dataclass(frozen=True)
class Request:
    """A request to a model.

    Attributes:
        kind: "chat", or a backend's own kind, such as "rank".
        provider: Server of the model. It is part of the key; a base URL, which may change, is not.
        model: Name of the model.
        body: Messages or texts, and all sampling parameters, as sent.
        sample: Number of the sample, so that the same prompt can be sent several times.
        label: What the call is for, in words; not part of the key.
    """

    kind: str
    provider: str
    model: str
    body: Mapping[str, Json]
    sample: int = 0
    label: str = field(default="", compare=False)

    @cached_property
    def key(self) -> str:
        """SHA-256 of the request's canonical JSON, as 64 hexadecimal digits."""
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
    """The recorded answer to a request, whose key, kind, provider and label it has.

    Attributes:
        text: Raw text. For the outcome "error", the server's message.
        finish_reason: Finish reason from the server. For the outcome "error", the HTTP status.
        prompt_tokens: 0 if the server does not report it, like the other numbers of tokens.
        recorded_at: Time in UTC, ISO 8601.
        adapted: How the request was changed because the model refuses a parameter, such as "without temperature".
        cached_tokens: Number of the prompt tokens that the server took from its prefix cache.
        logprobs: Probabilities of the labels in the text, if the request asks for them; see `logprobs.record_labels`.
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
    cached_tokens: int = 0
    logprobs: str = ""

    @property
    def is_at_limit(self) -> bool:
        """Whether the answer was cut off at the token limit, which the caller can raise."""
        reason = self.finish_reason
        return self.outcome == "length" and reason != TOO_LONG and reason.lower() not in BROKEN_OFF

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
        cached_tokens: int = 0,
        adapted: str = "",
        logprobs: str = "",
        secrets: Sequence[str] = (),
    ) -> Self:
        """Create the answer to a request, recorded now, with prompt and completion `tokens`, by default of its model.

        Secrets of the environment and lone surrogates are removed from all texts; `secrets` names further variables.

        Raises:
            PermanentError: The request asks for logprobs, and the answer has letters or numbers and no logprobs.
        """
        # llama.cpp leaves them out of a reply without a whole character, which has no verdict.
        if request.body.get("logprobs") and outcome == "answer" and not logprobs and LABEL_PART.search(text):
            raise PermanentError(
                f"{request.model} at {request.provider} answers without logprobs; use a server that sends them with "
                "chat completions, or leave out `logprobs=True`."
            )

        redact = redactor(*secrets)

        def clean(value: str) -> str:
            return redact(value.encode(errors="replace").decode())

        return cls(
            key=request.key,
            kind=request.kind,
            provider=request.provider,
            label=request.label,
            outcome=outcome,
            text=clean(text),
            model=clean(model)[:MAX_NAME_LENGTH] if model else request.model,
            finish_reason=clean(finish_reason)[:MAX_NAME_LENGTH],
            prompt_tokens=tokens[0],
            completion_tokens=tokens[1],
            recorded_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            adapted=adapted,
            cached_tokens=cached_tokens,
            logprobs=logprobs,
        )


class Backend(Protocol):
    """Answers up to `concurrency` requests at a time. A context manager, entered only if there is one to send."""

    concurrency: int | None

    async def __aenter__(self) -> Self:
        """Open connections, start servers or load models. Default: do nothing."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close what `__aenter__` opened."""
        del exc

    async def send(self, request: Request) -> Answer:
        """Send one request. Raise a `CallsError` for a problem of all requests, such as a wrong key."""


@runtime_checkable
class PackingBackend(Backend, Protocol):
    """A backend whose endpoint accepts several requests in one message, as translators do.

    Each request keeps its own key and answer, whatever message it was in.
    """

    def pack(self, requests: Sequence[Request]) -> list[list[Request]]:
        """Group requests into messages for the endpoint."""

    def size(self, request: Request) -> int:
        """Return the billed size of a request, in the unit of the price (such as characters for a translator)."""

    def send_packed(self, requests: Sequence[Request]) -> AsyncIterator[list[Answer]]:
        """Send one message and yield the answers as they arrive, one for each request. Raises as `send` does."""

    async def send(self, request: Request) -> Answer:
        """Send one request in its own message."""
        [[answer]] = [answers async for answers in self.send_packed([request])]
        return answer


def prompt_texts(request: Request) -> list[str]:
    """Return the texts of a chat request's messages, in order; empty for other requests."""
    messages = request.body.get("messages")
    return [str(message.get("content")) for message in messages] if isinstance(messages, list) else []


def max_prompt_tokens(request: Request) -> int:
    """Bound the number of prompt tokens of a chat request: no token is shorter than a byte."""
    return len(canonical_json(request.body)) + TEMPLATE_TOKENS
