"""Any endpoint that speaks OpenAI's chat protocol."""

import os
from typing import Any, Self, cast
from urllib.parse import urlsplit

import openai

from pluralbench_calls.errors import AccessDenied, CallsError, ConnectionFailed, NotServed
from pluralbench_calls.records import Answer, Outcome, Request

SCHEMA_WORDS = ("response_format", "json_schema", "structured output", "guided")


def provider_of(base_url: str) -> str:
    """The provider's name in a base URL: its host.

    Raises `CallsError` for a URL that carries a secret (user, password, query) or is none.
    """
    parts = urlsplit(base_url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise CallsError(f"The base URL {base_url!r} is not of the form https://HOST/v1.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise CallsError(
            f"The base URL of {parts.hostname} carries a user, a password or a query; leave them out and put the key "
            "in an environment variable."
        )
    return parts.hostname


class OpenAIChat:
    """Chat completions from `base_url`, with the client's own retries (429, 5xx, time-outs; Retry-After honoured).

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

    async def __aenter__(self) -> Self:
        """Open the connections. Raises `AccessDenied` when the environment holds no key."""
        if self._key_env is not None:
            self._key = os.environ.get(self._key_env, "")
            if not self._key:
                raise AccessDenied(f"{self._host} wants a key: set the environment variable {self._key_env}.")
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
        """One chat completion. A request that the server refuses (400, 413, 422) is an answer of outcome "error"."""
        try:
            completion = await self._client.chat.completions.create(
                model=request.model, **cast("dict[str, Any]", request.body)
            )
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            return self._refused(request, error)
        except openai.APIStatusError as error:
            if error.status_code == 413:
                return self._refused(request, error)
            raise self._failure(request, error) from None
        except openai.APIError as error:
            raise self._failure(request, error) from None
        if not completion.choices:
            return Answer.to(request, "empty", "", model=completion.model)
        choice, usage = completion.choices[0], completion.usage
        text = choice.message.content or ""
        refusal = getattr(choice.message, "refusal", None)
        tokens = (usage.prompt_tokens, usage.completion_tokens) if usage is not None else (0, 0)
        reason = str(choice.finish_reason or "")
        outcome = _outcome(text, refusal, reason)
        return Answer.to(
            request, outcome, text or refusal or "", model=completion.model, finish_reason=reason, tokens=tokens
        )

    def _refused(self, request: Request, error: openai.APIStatusError) -> Answer:
        message = self._redacted(error.message)
        if "response_format" in request.body and any(word in message.lower() for word in SCHEMA_WORDS):
            raise NotServed(
                f"{self._host} takes no JSON schema ({message}); set `structured_output = false` under [llm]."
            ) from None
        return Answer.to(request, "error", message, finish_reason=str(error.status_code))

    def _failure(self, request: Request, error: openai.APIError) -> CallsError:
        message = self._redacted(error.message).rstrip(".")
        match error:
            case openai.AuthenticationError() | openai.PermissionDeniedError():
                source = f"the key in {self._key_env}" if self._key_env else "a request without a key"
                return AccessDenied(f"{self._host} does not accept {source} ({message}).")
            case openai.NotFoundError():
                return NotServed(f"{self._host} has no model {request.model!r} at this base URL ({message}).")
            case openai.APITimeoutError():
                return ConnectionFailed(f"{self._host} did not answer within {self._timeout:g} s, retries included.")
            case openai.APIConnectionError():
                return ConnectionFailed(f"{self._host} cannot be reached ({error.__cause__ or message}).")
            case openai.RateLimitError():
                return ConnectionFailed(f"{self._host} keeps refusing for its rate limit or quota ({message}).")
            case _:
                return ConnectionFailed(f"{self._host} keeps failing ({message}).")

    def _redacted(self, message: str) -> str:
        return message.replace(self._key, "[key]") if self._key else message


def _outcome(text: str, refusal: str | None, finish_reason: str) -> Outcome:
    if refusal:
        return "refusal"
    if finish_reason == "content_filter":
        return "content_filter"
    if finish_reason == "length":
        return "length"
    return "answer" if text.strip() else "empty"
