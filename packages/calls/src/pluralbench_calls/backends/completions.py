"""What a chat completion or a rejection says, as servers really send them: any field may be missing or of any type."""

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pluralbench_runs import Json

from pluralbench_calls.records import TOO_LONG, Answer, Outcome, Request

if TYPE_CHECKING:
    import openai

# What some models refuse (reasoning models: `max_tokens`, and any temperature but their own), and under which name it
# goes out to them instead; None leaves it out, so that the model's own value holds.
INSTEAD: dict[str, str | None] = {"max_tokens": "max_completion_tokens", "temperature": None, "top_p": None}
REFUSED = re.compile(r"\bunsupported\b|\bnot support|\bdeprecated\b", re.IGNORECASE)
SCHEMA_WORDS = ("response_format", "json_schema", "structured output", "guided_json", "guided decoding")
LONGEST_MESSAGE = 1_000  # characters of a server's sentence that are recorded
MOST_TOKENS = 100_000_000  # of one answer; no model takes or writes as many


class CompletionReply(NamedTuple):
    """What a completion says; tokens are (prompt, completion), 0 where the server does not say a possible number."""

    outcome: Outcome
    text: str
    finish_reason: str
    model: str | None = None
    tokens: tuple[int, int] = (0, 0)

    def answer(self, request: Request, refused: Collection[str], secrets: Sequence[str] = ()) -> Answer:
        """The answer to a request that went out as a model takes it that refuses these parameters."""
        return Answer.to(
            request,
            self.outcome,
            self.text,
            model=self.model,
            finish_reason=self.finish_reason,
            tokens=self.tokens,
            adapted=describe_adaptation(request, refused),
            secrets=secrets,
        )


LONGER = CompletionReply("length", "", TOO_LONG)
"""What is recorded of an answer that is longer than what is read of one."""


def parse_completion(completion: Any) -> CompletionReply | None:
    """What a completion says; None for what is no completion."""
    choices: Any = getattr(completion, "choices", None)
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = getattr(choice, "message", None)
    content = _joined(getattr(message, "content", None))
    if not isinstance(choices, list) or (choices and message is None) or not isinstance(content, str | None):
        return None
    refusal, reason = _text(getattr(message, "refusal", None)), _text(getattr(choice, "finish_reason", None))
    usage = getattr(completion, "usage", None)
    return CompletionReply(
        outcome=_outcome(content or "", refusal, reason),
        text=content or refusal,
        finish_reason=reason,
        model=_text(getattr(completion, "model", None)) or None,
        tokens=(_count(getattr(usage, "prompt_tokens", None)), _count(getattr(usage, "completion_tokens", None))),
    )


class Rejection(NamedTuple):
    """What a server says of a request that it does not take; `param` and `code` may be anything."""

    status: int
    sentence: str
    param: object
    code: object

    @classmethod
    def of(cls, error: "openai.APIStatusError") -> "Rejection":
        """What the server says, without the JSON around it where that is of the usual form."""
        message = error.body.get("message") if isinstance(error.body, dict) else None
        said = message if isinstance(message, str) and message.strip() else error.message
        return cls(error.status_code, said, error.param, error.code)

    @property
    def refused(self) -> str | None:
        """Which parameter of `INSTEAD` it says that the model does not take, whatever its value.

        That it says so is a matter of its words: a value that is off the scale names the parameter too.
        """
        if not REFUSED.search(self.sentence):
            return None
        quoted = re.search(rf"""["'`]({"|".join(INSTEAD)})["'`]""", self.sentence)
        named = self.param or (quoted[1] if quoted else None)
        return named if isinstance(named, str) and named in INSTEAD else None

    @property
    def of_the_key(self) -> bool:
        """Whether it is about the key: some endpoints call a wrong one a bad request."""
        return "api key" in self.sentence.lower()

    def of_the_schema(self, request: Request) -> bool:
        """Whether it is about the JSON schema of the request, which some servers do not take."""
        return "response_format" in request.body and any(word in self.sentence.lower() for word in SCHEMA_WORDS)

    def recorded_as(self, sentence: str) -> CompletionReply:
        """What is recorded of it; some endpoints reject a text where others stop an answer."""
        if self.code == "content_filter":
            return CompletionReply("content_filter", sentence, "content_filter")
        return CompletionReply("error", sentence, str(self.status))


def drop_parameters(request: Request, refused: Collection[str]) -> dict[str, Json]:
    """The body of a request as a model takes it that refuses these parameters."""
    named = {INSTEAD[name] if name in refused else name: value for name, value in request.body.items()}
    return {name: value for name, value in named.items() if name is not None}


def describe_adaptation(request: Request, refused: Collection[str]) -> str:
    """How that body differs from the request's, in words; "" where it does not."""
    said = [
        f"{name} as {other}" if other else f"without {name}"
        for name, other in INSTEAD.items()
        if name in refused and name in request.body
    ]
    return ", ".join(said)


def _outcome(text: str, refusal: str, finish_reason: str) -> Outcome:
    if refusal:
        return "refusal"
    if finish_reason == "content_filter":
        return "content_filter"
    if finish_reason == "length":
        return "length"
    return "answer" if text.strip() else "empty"


def _joined(content: Any) -> Any:
    """The text of a message's content, which some servers send in parts."""
    if isinstance(content, list) and all(
        isinstance(part, dict) and isinstance(part.get("text"), str) for part in content
    ):
        return "".join(part["text"] for part in content)
    return content


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _count(value: Any) -> int:
    possible = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS
    return int(value) if possible else 0
