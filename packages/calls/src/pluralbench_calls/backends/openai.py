"""Any endpoint that speaks OpenAI's chat protocol."""

import os
import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Self, cast
from urllib.parse import urlsplit

from pluralbench_runs import Json

from pluralbench_calls.errors import AccessDenied, CallsError, ConnectionFailed, NotServed
from pluralbench_calls.records import Answer, Outcome, Request

if TYPE_CHECKING:
    import openai

# What some models refuse (reasoning models: `max_tokens`, and any temperature but their own), and under which name it
# goes out to them instead; None leaves it out, so that the model's own value holds.
INSTEAD: dict[str, str | None] = {"max_tokens": "max_completion_tokens", "temperature": None, "top_p": None}
REFUSED = re.compile(r"\bunsupported\b|\bnot support|\bdeprecated\b", re.IGNORECASE)
SCHEMA_WORDS = ("response_format", "json_schema", "structured output", "guided_json", "guided decoding")

# The URL is not repeated: what is no URL may well hold a key.
NO_BASE_URL = "The base URL is not of the form https://HOST/v1."


def provider_of(base_url: str) -> str:
    """The provider's name in a base URL: its host.

    Raises `CallsError` for a URL that carries a secret (user, password, query) or is none.
    """
    try:
        parts = urlsplit(base_url)
        port = parts.port
    except ValueError:
        raise CallsError(NO_BASE_URL) from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0 or " " in base_url:
        raise CallsError(NO_BASE_URL)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise CallsError(
            f"The base URL of {parts.hostname} carries a user, a password or a query; leave them out and put the key "
            "in an environment variable."
        )
    return parts.hostname


class OpenAIChat:
    """Chat completions from `base_url`, with the client's own retries (429, 5xx, time-outs; Retry-After honoured).

    A parameter that a model refuses (see `INSTEAD`) is sent as the model takes it or left out, from then on for as long
    as this object lives; the answer says so in `adapted`, and its key stays that of the request.

    api_key_env: the environment variable that holds the key; None sends no key, for servers that want none.
    timeout: seconds for one try.
    """

    concurrency: int | None = None

    def __init__(
        self, base_url: str, *, api_key_env: str | None = None, timeout: float = 120.0, max_retries: int = 6
    ) -> None:
        self._host = provider_of(base_url)
        self._base_url, self._key_env = base_url, api_key_env
        self._timeout, self._max_retries = timeout, max_retries
        self._key = ""
        self._refused: dict[str, set[str]] = {}  # by model, the parameters that it refuses

    async def __aenter__(self) -> Self:
        """Open the connections. Raises `AccessDenied` when the environment holds no key."""
        if self._key_env is not None:
            self._key = os.environ.get(self._key_env, "").strip()
            if not self._key:
                raise AccessDenied(f"{self._host} wants a key: set the environment variable {self._key_env}.")
            if not (self._key.isascii() and self._key.isprintable()):
                raise AccessDenied(f"The environment variable {self._key_env} holds something that is no key.")
        import openai  # noqa: PLC0415 - a second that a command's --help saves

        self._client = openai.AsyncOpenAI(
            base_url=self._base_url,
            api_key=self._key or "none",
            timeout=self._timeout,
            max_retries=self._max_retries,
            # The key is for this endpoint alone: nothing else from the environment goes along.
            organization="",
            project="",
        )
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the connections."""
        await self._client.close()

    async def send(self, request: Request) -> Answer:
        """One chat completion. A request that the server rejects (400, 413, 422) is an answer of outcome "error"."""
        refused = self._refused.setdefault(request.model, set())
        while True:
            before = set(refused)  # another request may learn more while this one is out
            try:
                return await self._complete(request, before)
            except _Refusal as refusal:
                refused.add(refusal.parameter)

    async def _complete(self, request: Request, refused: Collection[str]) -> Answer:
        """Send the request without what the model refuses. Raises `_Refusal` when it refuses one thing more."""
        import openai  # noqa: PLC0415 - as above

        body = _body(request, refused)
        messages = cast("Any", body.pop("messages"))
        try:
            completion = await self._client.chat.completions.create(
                model=request.model,
                messages=messages,
                # As an extra body, fields that only this server knows go out too.
                extra_body=body,
                extra_headers=_withheld(authorization=not self._key),
            )
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            parameter = _refused_parameter(error)
            if parameter in body:
                raise _Refusal(parameter) from None
            return self._rejected(request, error, refused)
        except openai.APIStatusError as error:
            if error.status_code == 413:
                return self._rejected(request, error, refused)
            raise self._failure(request, error) from None
        except openai.APIError as error:
            raise self._failure(request, error) from None
        except ValueError as error:  # JSON that does not parse
            raise self._no_completion(str(error)) from None
        return self._answer(request, completion, _adapted(request, refused))

    def _answer(self, request: Request, completion: Any, adapted: str) -> Answer:
        """Read a completion as servers really send it: fields may be missing, or be of another type than declared."""
        failed = getattr(completion, "error", None)
        if failed:
            raise ConnectionFailed(
                f"{self._host} sent an error as if it were an answer ({self._redacted(str(failed))})."
            )
        choices: Any = getattr(completion, "choices", None)
        message = getattr(choices[0], "message", None) if isinstance(choices, list) and choices else None
        content = _joined(getattr(message, "content", None))
        if not isinstance(choices, list) or (choices and message is None) or not isinstance(content, str | None):
            raise self._no_completion(str(completion))
        refusal = getattr(message, "refusal", None)
        reason = str(getattr(choices[0], "finish_reason", None) or "") if choices else ""
        usage = getattr(completion, "usage", None)
        tokens = (getattr(usage, "prompt_tokens", None) or 0, getattr(usage, "completion_tokens", None) or 0)
        # Half of a surrogate pair, from a server that cut a text in bytes, fits in no file.
        text = (content or refusal or "").encode(errors="replace").decode()
        outcome = _outcome(content or "", refusal, reason)
        model = getattr(completion, "model", None)
        return Answer.to(request, outcome, text, model=model, finish_reason=reason, tokens=tokens, adapted=adapted)

    def _no_completion(self, shown: str) -> ConnectionFailed:
        shown = " ".join(self._redacted(shown).split())[:120]
        return ConnectionFailed(f"{self._host} sent something that is no chat completion ({shown}); is the URL right?")

    def _rejected(self, request: Request, error: "openai.APIStatusError", refused: Collection[str]) -> Answer:
        message = self._redacted(_sentence(error))
        if "api key" in message.lower():  # some endpoints call a wrong key a bad request
            raise AccessDenied(f"{self._host} does not accept the key in {self._key_env} ({message}).") from None
        if "response_format" in request.body and any(word in message.lower() for word in SCHEMA_WORDS):
            raise NotServed(
                f"{self._host} takes no JSON schema ({message}); set `structured_output` of the model to false."
            ) from None
        adapted = _adapted(request, refused)
        if error.code == "content_filter":  # some endpoints reject a text where others stop an answer
            return Answer.to(request, "content_filter", message, finish_reason=error.code, adapted=adapted)
        return Answer.to(request, "error", message, finish_reason=str(error.status_code), adapted=adapted)

    def _failure(self, request: Request, error: "openai.APIError") -> CallsError:
        import openai  # noqa: PLC0415 - as above

        message = self._redacted(error.message).rstrip(".")
        kind: type[CallsError] = ConnectionFailed
        match error:
            case openai.AuthenticationError() | openai.PermissionDeniedError():
                source = f"the key in {self._key_env}" if self._key_env else "a request without a key"
                kind, said = AccessDenied, f"does not accept {source} ({message})"
            case openai.APIStatusError(status_code=402):
                kind, said = AccessDenied, f"wants to be paid first ({message})"
            case openai.NotFoundError():
                kind, said = NotServed, f"has no model {request.model!r} at this base URL ({message})"
            case openai.APITimeoutError():
                said = f"did not answer within {self._timeout:g} s, in {self._max_retries + 1} tries"
            case openai.APIConnectionError():
                said = f"cannot be reached ({error.__cause__ or message})"
            case openai.RateLimitError():
                said = f"keeps refusing for its rate limit or quota ({message})"
            case _:
                said = f"keeps failing ({message})"
        return kind(f"{self._host} {said}.")

    def _redacted(self, message: str) -> str:
        return message.replace(self._key, "[key]") if self._key else message


class _Refusal(Exception):
    """The model refuses this parameter of a request, and takes another in its place or none."""

    def __init__(self, parameter: str) -> None:
        super().__init__(parameter)
        self.parameter = parameter


def _refused_parameter(error: "openai.APIStatusError") -> str | None:
    """Which parameter of `INSTEAD` a rejection says that the model does not take, whatever its value.

    That it says so is a matter of its words: a value that is off the scale names the parameter too.
    """
    sentence = _sentence(error)
    if not REFUSED.search(sentence):
        return None
    quoted = re.search(rf"""["'`]({"|".join(INSTEAD)})["'`]""", sentence)
    named = error.param or (quoted[1] if quoted else None)
    return named if named in INSTEAD else None


def _body(request: Request, refused: Collection[str]) -> dict[str, Json]:
    named = {INSTEAD[name] if name in refused else name: value for name, value in request.body.items()}
    return {name: value for name, value in named.items() if name is not None}


def _adapted(request: Request, refused: Collection[str]) -> str:
    said = [
        f"{name} as {other}" if other else f"without {name}"
        for name, other in INSTEAD.items()
        if name in refused and name in request.body
    ]
    return ", ".join(said)


def _sentence(error: "openai.APIStatusError") -> str:
    """What the server says, without the JSON around it where that is of the usual form."""
    message = error.body.get("message") if isinstance(error.body, dict) else None
    return message if isinstance(message, str) and message.strip() else error.message


def _joined(content: Any) -> Any:
    """The text of a message's content, which some servers send in parts."""
    if isinstance(content, list) and all(
        isinstance(part, dict) and isinstance(part.get("text"), str) for part in content
    ):
        return "".join(part["text"] for part in content)
    return content


def _withheld(*, authorization: bool) -> dict[str, Any]:
    """Headers that the client would add from its environment, or without a key; each is left out instead."""
    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
    names = [line.partition(":")[0].strip() for line in lines if ":" in line]
    import openai  # noqa: PLC0415 - as above

    return dict.fromkeys(names + ["Authorization"] * authorization, openai.Omit())


def _outcome(text: str, refusal: str | None, finish_reason: str) -> Outcome:
    if refusal:
        return "refusal"
    if finish_reason == "content_filter":
        return "content_filter"
    if finish_reason == "length":
        return "length"
    return "answer" if text.strip() else "empty"
