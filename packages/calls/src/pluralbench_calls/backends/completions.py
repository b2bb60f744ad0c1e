"""Parsing of chat completions and rejections. Servers may omit any field, or send it with another type."""

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pluralbench_runs import Json

from pluralbench_calls.logprobs import record_labels
from pluralbench_calls.records import STOPS, TOO_LONG, Answer, Outcome, Request

if TYPE_CHECKING:
    import openai

# Parameters that some models refuse (reasoning models refuse `max_tokens` and any temperature except the default), and
# the name under which they are sent instead; None leaves the parameter out.
REPLACEMENTS: dict[str, str | None] = {"max_tokens": "max_completion_tokens", "temperature": None, "top_p": None}
PARAMETERS = re.compile(rf"\b(?:{'|'.join(REPLACEMENTS)})\b")
REFUSED = re.compile(r"\bunsupported\b|\bnot support|\bnot permitted\b|\bdeprecated\b", re.IGNORECASE)
SCHEMA_WORDS = ("response_format", "json_schema", "structured output", "guided_json", "guided decoding")
NO_LOGPROBS = "leave out `logprobs=True`, or ask for fewer tokens (`top_logprobs` in `extra=...`)"
MAX_MESSAGE_LENGTH = 1_000  # characters of a server's message that are recorded
MAX_TOKENS = 100_000_000  # of one answer; a larger number is not plausible


class CompletionReply(NamedTuple):
    """The content of a completion, as `Answer` has it. A number of tokens that is not plausible is 0."""

    outcome: Outcome
    text: str
    finish_reason: str
    model: str | None = None
    tokens: tuple[int, int] = (0, 0)
    cached_tokens: int = 0
    logprobs: str = ""

    def answer(self, request: Request, refused: Collection[str], secrets: Sequence[str] = ()) -> Answer:
        """Create the answer to a request that was sent without the refused parameters, as `Answer.to` does."""
        return Answer.to(
            request,
            self.outcome,
            self.text,
            model=self.model,
            finish_reason=self.finish_reason,
            tokens=self.tokens,
            cached_tokens=self.cached_tokens,
            adapted=describe_adaptation(request, refused),
            logprobs=self.logprobs if request.body.get("logprobs") else "",
            secrets=secrets,
        )


TOO_LONG_REPLY = CompletionReply("length", "", TOO_LONG)
"""Recorded for an answer over the size limit."""


def parse_completion(completion: Any) -> CompletionReply | None:
    """Parse a chat completion; None if it is not one."""
    choices: Any = getattr(completion, "choices", None)
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = getattr(choice, "message", None)
    content = _join_parts(getattr(message, "content", None))
    if not isinstance(choices, list) or (choices and message is None) or not isinstance(content, str | None):
        return None
    refusal, reason = _text(getattr(message, "refusal", None)), _text(getattr(choice, "finish_reason", None))
    usage = getattr(completion, "usage", None)
    details = getattr(usage, "prompt_tokens_details", None)
    prompt_tokens = _count(getattr(usage, "prompt_tokens", None))
    # xAI and Gemini count a model's thinking in the total alone.
    with_thinking = _count(getattr(usage, "total_tokens", None)) - prompt_tokens if prompt_tokens else 0
    return CompletionReply(
        outcome=_outcome(content or "", refusal, reason),
        text=content or refusal,
        finish_reason=reason,
        model=_text(getattr(completion, "model", None)) or None,
        tokens=(prompt_tokens, max(_count(getattr(usage, "completion_tokens", None)), with_thinking)),
        cached_tokens=min(prompt_tokens, _count(getattr(details, "cached_tokens", None))),
        logprobs=record_labels(getattr(getattr(choice, "logprobs", None), "content", None), content or ""),
    )


class Rejection(NamedTuple):
    """The rejection of a request by a server, which may name a parameter and an error code of any type."""

    status: int
    message: str
    param: object
    code: object

    @classmethod
    def from_error(cls, error: "openai.APIStatusError") -> "Rejection":
        """Create a rejection from an error of the client, with the reason in its body if possible."""
        reason, parameter = find_reason(error.body)
        return cls(error.status_code, reason or error.message, error.param or parameter, error.code)

    @property
    def refused_parameter(self) -> str | None:
        """The parameter of `REPLACEMENTS` that the model does not support, whatever its value.

        The message must say that it is unsupported, because an invalid value also names the parameter.
        """
        if not REFUSED.search(self.message):
            return None
        names = [self.param] if self.param else [*dict.fromkeys(PARAMETERS.findall(self.message))]
        return next((name for name in names if isinstance(name, str) and name in REPLACEMENTS), None)

    def concerns_logprobs(self, request: Request) -> bool:
        """Whether the rejection is about the logprobs that the request asks for."""
        return bool(request.body.get("logprobs")) and "logprob" in self.message.lower()

    def problem(self, request: Request, reason: str) -> str | None:
        """Say what other requests share, after the server's name; None if it concerns this request alone."""
        message = self.message.lower()
        if "api key" in message:  # some endpoints call a wrong key a bad request
            return f"does not accept the key ({reason})"
        if self.concerns_logprobs(request):
            return f"refuses logprobs ({reason}); {NO_LOGPROBS}"
        if "response_format" in request.body and any(word in message for word in SCHEMA_WORDS):
            return f"does not support JSON schemas ({reason}); set `structured_output=False` for the model"
        return None

    def to_reply(self, message: str) -> CompletionReply:
        """Create the reply that is recorded. Some endpoints reject a filtered text, others stop the answer."""
        if self.code == "content_filter":
            return CompletionReply("content_filter", message, "content_filter")
        return CompletionReply("error", message, str(self.status))


def find_reason(body: object, depth: int = 5) -> tuple[str, str | None]:
    """Return the reason in the body of an error, "" if there is none, and the parameter that it names, if it does.

    Bodies are OpenAI's, FastAPI's (`{"detail": [{"loc": ["body", "temperature"], "msg": ...}]}`), Google's (a list),
    or a text.
    """
    match body:
        case str():
            return body.strip(), None
        case {"loc": [*places], "msg": str(text)}:
            names = [str(place) for place in places if place != "body"]
            return ": ".join([".".join(names), text] if names else [text]), names[0] if names else None
        case {"message": str(text)} if text.strip():
            return text, None
        case {"error": inner} | {"detail": inner} | {"errors": inner} | [inner, *_] if depth:
            return find_reason(inner, depth - 1)
    return "", None


def drop_parameters(request: Request, refused: Collection[str]) -> dict[str, Json]:
    """Return the body of a request with the refused parameters renamed or left out (see `REPLACEMENTS`)."""
    renamed = {REPLACEMENTS[name] if name in refused else name: value for name, value in request.body.items()}
    return {name: value for name, value in renamed.items() if name is not None}


def describe_adaptation(request: Request, refused: Collection[str]) -> str:
    """Describe how `drop_parameters` changes the body of a request; "" if it does not."""
    changes = [
        f"{name} as {other}" if other else f"without {name}"
        for name, other in REPLACEMENTS.items()
        if name in refused and name in request.body
    ]
    return ", ".join(changes)


def _outcome(text: str, refusal: str, finish_reason: str) -> Outcome:
    if refusal:
        return "refusal"
    stopped = STOPS.get(finish_reason.rpartition(".")[2].lower())  # "FinishReason.MAX_TOKENS" of a client's own class
    return stopped or ("answer" if text.strip() else "empty")


def _join_parts(content: Any) -> Any:
    """Join the texts of a content in parts, which may also have a model's thinking."""
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        return content
    texts = [part.get("text") for part in content if part.get("type", "text") == "text"]
    return "".join(texts) if all(isinstance(text, str) for text in texts) else content


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _count(value: Any) -> int:
    is_plausible = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_TOKENS
    return int(value) if is_plausible else 0
