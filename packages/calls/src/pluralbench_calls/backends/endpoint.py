"""A server that speaks OpenAI's protocols: how it is reached, and what is said where that fails."""

import os
import re
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from pluralbench_runs import one_line
from pluralbench_runs.secrets import redact

from pluralbench_calls.errors import AccessDenied, CallsError, ConnectionFailed, ModelNotServed
from pluralbench_calls.records import Backend

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


class Endpoint(Backend):
    """A backend that asks the server behind `base_url`, through the client that reaches it.

    api_key_env: the environment variable that holds the key; None sends no key, for servers that want none.
    timeout: seconds for one try, to the last byte of the answer. max_answer_bytes: of an answer's body as it is sent,
    decompressed; a longer one is not read to its end, and is an answer without text of outcome "length".
    max_retries: further tries; a server that has never answered gets one more connection at most.

    host: what the server is called. client: there while the backend is entered.
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
        self.host = provider_of(base_url)
        self.base_url, self.max_retries, self.max_answer_bytes = base_url, max_retries, max_answer_bytes
        self._key_env, self.timeout = api_key_env, timeout
        self._key = ""
        self._answered = False
        self._refused: dict[str, set[str]] = {}  # by model, the parameters that it refuses

    async def __aenter__(self) -> Self:
        """Open the connections. Raises `AccessDenied` when the environment holds no key."""
        if self._key_env is not None:
            self._key = os.environ.get(self._key_env, "").strip()
            if not self._key:
                raise AccessDenied(f"{self.host} wants a key: set the environment variable {self._key_env}.")
            if not (self._key.isascii() and self._key.isprintable()):
                raise AccessDenied(f"The environment variable {self._key_env} holds something that is no key.")
        # A second that a command's --help saves.
        import openai  # noqa: PLC0415

        from pluralbench_calls.backends.bounded import BoundedClient  # noqa: PLC0415

        try:
            self._http = BoundedClient(
                self.timeout, self.max_answer_bytes, answered=self._answered, tries=self.max_retries + 1
            )
            self.client = openai.AsyncOpenAI(
                base_url=self.base_url,
                api_key=self._key or "none",
                timeout=self._http.timeout,
                max_retries=self.max_retries,
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
        await self.client.close()

    @property
    def headers(self) -> dict[str, Any]:
        """Headers that each request is to have: what the client would add by itself is left out."""
        return omit_headers(authorization=not self._key)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The environment variables of the key."""
        return (self._key_env,) if self._key_env else ()

    def line(self, said: object, limit: int = 200) -> str:
        """On one line, without the key, which must go before it could be cut in half."""
        return one_line(redact(str(said), *self.secrets), limit)

    def denied(self, said: str) -> AccessDenied:
        """The key is not accepted. said: what the server says."""
        return AccessDenied(f"{self.host} does not accept the key in {self._key_env} ({said}).")

    def failure(self, error: "openai.APIError", absent: str) -> CallsError:
        """The error for one that concerns every request. absent: what is said of what the server does not have."""
        import openai  # noqa: PLC0415 - as above

        from pluralbench_calls.backends.bounded import Unreachable  # noqa: PLC0415

        message = self.line(error.message)
        tries = self.max_retries + 1
        kind: type[CallsError] = ConnectionFailed
        match error:
            case openai.AuthenticationError() | openai.PermissionDeniedError():
                source = f"the key in {self._key_env}" if self._key_env else "a request without a key"
                kind, said = AccessDenied, f"does not accept {source} ({message})"
            case openai.APIStatusError(status_code=402):
                kind, said = AccessDenied, f"wants to be paid first ({message})"
            case openai.NotFoundError():
                kind, said = ModelNotServed, f"{absent} ({message})"
            case openai.APIStatusError(status_code=status) if status < 400:
                place = self.line(error.response.headers.get("location", "nowhere"))
                kind = ModelNotServed
                said = f"redirects to {place}, where nothing is sent; give the base URL that answers itself"
            case openai.APITimeoutError():
                said = f"did not answer in full within {self.timeout:g} s, in {_times(tries)}"
            case Unreachable():
                said = f"cannot be reached ({self.line(error.__cause__)}), in {_times(error.tries)}"
            case openai.APIConnectionError():
                said = f"cannot be reached ({self.line(error.__cause__ or message)}), in {_times(tries)}"
            case openai.RateLimitError():
                said = f"keeps refusing for its rate limit or quota ({message})"
            case _:
                said = f"keeps failing ({message})"
        return kind(f"{self.host} {said}.")

    def _no_client(self, error: Exception) -> CallsError:
        said = re.sub(r"//[^/\s]*@", "//", self.line(error))  # the user of a proxy
        names = CERTIFICATES if isinstance(error, OSError) else PROXIES
        set_here = sorted(name for name in os.environ if name.lower() in names and os.environ[name])
        blamed = f"; look at {', '.join(set_here)} in the environment" if set_here else "; is the URL right?"
        return CallsError(f"No connection to {self.host} can be set up ({said}){blamed}.")


def _times(tries: int) -> str:
    return "1 try" if tries == 1 else f"{tries} tries"


def omit_headers(*, authorization: bool) -> dict[str, Any]:
    """Headers that the client would add from its environment, or without a key; each is left out instead."""
    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
    names = [line.partition(":")[0].strip() for line in lines if ":" in line]
    import openai  # noqa: PLC0415 - as above

    return dict.fromkeys(names + ["Authorization"] * authorization, openai.Omit())
