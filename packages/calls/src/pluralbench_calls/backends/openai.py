"""Any endpoint that speaks OpenAI's chat protocol."""

import os
import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Self, cast
from urllib.parse import urlsplit

from pluralbench_runs import one_line
from pluralbench_runs.secrets import redacted

from pluralbench_calls.backends.completions import LONGEST_MESSAGE, Rejection, adapted, body_without, said_by
from pluralbench_calls.errors import AccessDenied, CallsError, ConnectionFailed, NotServed
from pluralbench_calls.records import TOO_LONG, Answer, Outcome, Request

if TYPE_CHECKING:
    import openai

MAX_ANSWER_BYTES = 4 * 2**20
# What the client reads from the environment when it is made, and may not understand.
PROXIES, CERTIFICATES = {"http_proxy", "https_proxy", "all_proxy"}, {"ssl_cert_file", "ssl_cert_dir"}

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
    timeout: seconds for one try, to the last byte of the answer. max_answer_bytes: of an answer's body as it is sent,
    decompressed; a longer one is not read to its end, and is an answer without text of outcome "length".
    max_retries: further tries; a server that has never answered gets one more connection at most.
    """

    concurrency: int | None = None

    def __init__(
        self,
        base_url: str,
        *,
        api_key_env: str | None = None,
        timeout: float = 120.0,
        max_retries: int = 6,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        self._host = provider_of(base_url)
        self._base_url, self._key_env = base_url, api_key_env
        self._timeout, self._max_retries, self._max_answer_bytes = timeout, max_retries, max_answer_bytes
        self._key = ""
        self._answered = False
        self._refused: dict[str, set[str]] = {}  # by model, the parameters that it refuses

    async def __aenter__(self) -> Self:
        """Open the connections. Raises `AccessDenied` when the environment holds no key."""
        if self._key_env is not None:
            self._key = os.environ.get(self._key_env, "").strip()
            if not self._key:
                raise AccessDenied(f"{self._host} wants a key: set the environment variable {self._key_env}.")
            if not (self._key.isascii() and self._key.isprintable()):
                raise AccessDenied(f"The environment variable {self._key_env} holds something that is no key.")
        # A second that a command's --help saves.
        import openai  # noqa: PLC0415

        from pluralbench_calls.backends.bounded import BoundedClient  # noqa: PLC0415

        try:
            self._http = BoundedClient(
                self._timeout, self._max_answer_bytes, answered=self._answered, tries=self._max_retries + 1
            )
            self._client = openai.AsyncOpenAI(
                base_url=self._base_url,
                api_key=self._key or "none",
                timeout=self._http.timeout,
                max_retries=self._max_retries,
                http_client=self._http,
                # The key is for this endpoint alone: nothing else from the environment goes along.
                organization="",
                project="",
            )
        except Exception as error:  # noqa: BLE001 - it reads proxies and certificates, each with errors of its own
            raise self._no_client(error) from None
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the connections."""
        self._answered = self._http.answered
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

        from pluralbench_calls.backends.bounded import AnswerTooLong  # noqa: PLC0415

        body = body_without(request, refused)
        messages = cast("Any", body.pop("messages"))
        try:
            completion = await self._client.chat.completions.create(
                model=request.model,
                messages=messages,
                # As an extra body, fields that only this server knows go out too.
                extra_body=body,
                extra_headers=withheld(authorization=not self._key),
            )
        except AnswerTooLong:
            return self._recorded(request, "length", "", finish_reason=TOO_LONG, adapted=adapted(request, refused))
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            rejection = Rejection.of(error)
            parameter = rejection.refused
            if parameter in body:
                raise _Refusal(parameter) from None
            return self._rejected(request, rejection, refused)
        except openai.APIStatusError as error:
            if error.status_code == 413:
                return self._rejected(request, Rejection.of(error), refused)
            raise self._failure(request, error) from None
        except openai.APIError as error:
            raise self._failure(request, error) from None
        except Exception as error:  # noqa: BLE001 - several libraries read what came, each with errors of its own
            raise self._no_completion(str(error)) from None
        return self._answer(request, completion, adapted(request, refused))

    def _answer(self, request: Request, completion: Any, adapted: str) -> Answer:
        failed = getattr(completion, "error", None)
        if failed:
            raise ConnectionFailed(f"{self._host} sent an error as if it were an answer ({self._line(failed)}).")
        said = said_by(completion)
        if said is None:
            raise self._no_completion(str(completion))
        return self._recorded(
            request,
            said.outcome,
            said.text,
            model=said.model,
            finish_reason=said.finish_reason,
            tokens=said.tokens,
            adapted=adapted,
        )

    def _recorded(self, request: Request, outcome: Outcome, text: str, **said: Any) -> Answer:
        return Answer.to(request, outcome, text, secrets=self._secrets(), **said)

    def _rejected(self, request: Request, rejection: Rejection, refused: Collection[str]) -> Answer:
        if rejection.of_the_key:
            said = self._line(rejection.sentence)
            raise AccessDenied(f"{self._host} does not accept the key in {self._key_env} ({said}).") from None
        sentence = self._line(rejection.sentence, LONGEST_MESSAGE)
        if rejection.of_the_schema(request):
            raise NotServed(
                f"{self._host} takes no JSON schema ({self._line(sentence)}); set `structured_output` of the model to "
                "false."
            ) from None
        outcome, reason = rejection.recorded_as()
        return self._recorded(request, outcome, sentence, finish_reason=reason, adapted=adapted(request, refused))

    def _failure(self, request: Request, error: "openai.APIError") -> CallsError:
        import openai  # noqa: PLC0415 - as above

        from pluralbench_calls.backends.bounded import Unreachable  # noqa: PLC0415

        message = self._line(error.message)
        tries = self._max_retries + 1
        kind: type[CallsError] = ConnectionFailed
        match error:
            case openai.AuthenticationError() | openai.PermissionDeniedError():
                source = f"the key in {self._key_env}" if self._key_env else "a request without a key"
                kind, said = AccessDenied, f"does not accept {source} ({message})"
            case openai.APIStatusError(status_code=402):
                kind, said = AccessDenied, f"wants to be paid first ({message})"
            case openai.NotFoundError():
                kind, said = NotServed, f"has no model {request.model!r} at this base URL ({message})"
            case openai.APIStatusError(status_code=status) if status < 400:
                place = self._line(error.response.headers.get("location", "nowhere"))
                kind = NotServed
                said = f"redirects to {place}, where nothing is sent; give the base URL that answers itself"
            case openai.APITimeoutError():
                said = f"did not answer in full within {self._timeout:g} s, in {_times(tries)}"
            case Unreachable():
                said = f"cannot be reached ({self._line(error.__cause__)}), in {_times(error.tries)}"
            case openai.APIConnectionError():
                said = f"cannot be reached ({self._line(error.__cause__ or message)}), in {_times(tries)}"
            case openai.RateLimitError():
                said = f"keeps refusing for its rate limit or quota ({message})"
            case _:
                said = f"keeps failing ({message})"
        return kind(f"{self._host} {said}.")

    def _no_completion(self, shown: str) -> ConnectionFailed:
        shown = self._line(shown, 120)
        return ConnectionFailed(f"{self._host} sent something that is no chat completion ({shown}); is the URL right?")

    def _no_client(self, error: Exception) -> CallsError:
        said = re.sub(r"//[^/\s]*@", "//", self._line(error))  # the user of a proxy
        names = CERTIFICATES if isinstance(error, OSError) else PROXIES
        set_here = sorted(name for name in os.environ if name.lower() in names and os.environ[name])
        blamed = f"; look at {', '.join(set_here)} in the environment" if set_here else "; is the URL right?"
        return CallsError(f"No connection to {self._host} can be set up ({said}){blamed}.")

    def _secrets(self) -> tuple[str, ...]:
        return (self._key_env,) if self._key_env else ()

    def _line(self, said: object, limit: int = 200) -> str:
        """On one line, without the key, which must go before it could be cut in half."""
        return one_line(redacted(str(said), *self._secrets()), limit)


class _Refusal(Exception):
    """The model refuses this parameter of a request, and takes another in its place or none."""

    def __init__(self, parameter: str) -> None:
        super().__init__(parameter)
        self.parameter = parameter


def _times(tries: int) -> str:
    return "1 try" if tries == 1 else f"{tries} tries"


def withheld(*, authorization: bool) -> dict[str, Any]:
    """Headers that the client would add from its environment, or without a key; each is left out instead."""
    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
    names = [line.partition(":")[0].strip() for line in lines if ":" in line]
    import openai  # noqa: PLC0415 - as above

    return dict.fromkeys(names + ["Authorization"] * authorization, openai.Omit())
