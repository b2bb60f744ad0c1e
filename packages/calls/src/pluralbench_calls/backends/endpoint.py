"""Connection to a server with OpenAI's protocols, and its errors."""

import os
import re
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from pluralbench_runs import one_line, plural
from pluralbench_runs.secrets import redact

from pluralbench_calls.errors import CallsError, RequestFailed

if TYPE_CHECKING:
    import openai

MAX_ANSWER_BYTES = 4 * 2**20
RETRIED = {408, 409}  # HTTP statuses below 500 that the client tries again, besides that of a rate limit

API_VERSION = re.compile(r"api-version=([\w.-]+)")
"""Query of the base URL of a deployment at Azure, whose requests have the key in a header of their own."""
REQUESTS = "/chat/completions"
VERSIONED = re.compile(r"/v\d|/deployments/")  # in the path of nearly every base URL
# A key in place of the name of its variable seldom has this form. Other names are not repeated in messages.
SHOWN_NAME = re.compile("[A-Z][A-Z0-9_]*")
# The message does not repeat the URL, which may contain a key.
NO_BASE_URL = "The base URL is not of the form https://HOST/v1."


def provider_of(base_url: str) -> str:
    """Return the host in a base URL, which is the provider's name.

    Raises:
        CallsError: The URL is not valid, has a user, a password or a query other than Azure's API version, or ends in
            the path of requests.
    """
    base_url = base_url.strip()
    try:
        parts = urlsplit(base_url)
        port = parts.port
    except ValueError:
        raise CallsError(NO_BASE_URL) from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0 or " " in base_url:
        raise CallsError(NO_BASE_URL)
    is_allowed = not parts.query or API_VERSION.fullmatch(parts.query)
    if parts.username or parts.password or parts.fragment or not is_allowed:
        raise CallsError(
            f"The base URL of {parts.hostname} has a user, a password or a query; leave them out and put the key in an "
            "environment variable. A query may be Azure's api-version."
        )
    if parts.path.rstrip("/").endswith(REQUESTS):
        raise CallsError(f"The base URL of {parts.hostname} ends in {REQUESTS}, which is added to it; leave that out.")
    return parts.hostname


class Endpoint:
    """Base class of backends that send to an OpenAI-compatible server.

    Args:
        base_url: URL of the server, such as https://HOST/v1, or of a deployment at Azure with its `?api-version=...`.
        api_key_env: Environment variable of the key. None: send no key.
        timeout: Seconds for one try, until the last byte of the answer.
        max_retries: Number of retries. A server that has never answered gets at most one.
        max_answer_bytes: Maximum size of an answer's body, decompressed. A longer answer is recorded without text, with
            the outcome "length".

    Attributes:
        host: Name of the server.
        client: The OpenAI client while the backend is entered.
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
        self._url, _, query = base_url.strip().partition("?")
        self._api_version = API_VERSION.fullmatch(query)
        self._answered = False
        self._refused: dict[str, set[str]] = {}  # by model

    async def __aenter__(self) -> Self:
        """Open the connections. Raises `CallsError` if the environment has no key."""
        if self._key_env is not None:
            self._key = os.environ.get(self._key_env, "").strip()
            if not self._key:
                is_shown = SHOWN_NAME.fullmatch(self._key_env)
                variable = self._key_env if is_shown else "that `connection.api_key_env=...` names"
                raise CallsError(f"{self.host} needs a key; set the environment variable {variable}.")
            if not (self._key.isascii() and self._key.isprintable()):
                raise CallsError(f"The value of the environment variable {self._key_env} is not a key.")
        # Imported here, because it takes a second, which --help saves.
        import openai

        from pluralbench_calls.backends.bounded import BoundedClient

        try:
            self._http = BoundedClient(
                self.timeout, self.max_answer_bytes, answered=self._answered, tries=self.max_retries + 1
            )
            self.client = openai.AsyncOpenAI(
                base_url=self._url,
                default_query=None if self._api_version is None else {"api-version": self._api_version[1]},
                api_key=self._key or "none",
                timeout=self._http.timeout,
                max_retries=self.max_retries,
                http_client=self._http,
                # Keep the client from sending other settings of the environment.
                organization="",
                project="",
            )
        except Exception as error:  # noqa: BLE001 - proxies and certificates raise errors of several libraries
            raise self._no_client(error) from None
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the connections."""
        self._answered = self._http.answered
        await self.client.close()

    async def check(self) -> None:
        """Check that the server can be reached and takes the key, by its list of models, which costs nothing.

        A server without such a list has answered, too.

        Raises:
            CallsError: It cannot be reached, or the key is missing or not accepted.
        """
        async with self:
            import openai

            from pluralbench_calls.backends.bounded import Unreachable

            try:
                await self.client.with_options(max_retries=0).models.list(extra_headers=self.headers)
            except (openai.AuthenticationError, Unreachable) as error:
                raise self.failure(error, "has no models") from None
            except Exception:  # noqa: BLE001 - another status, or a body that several libraries cannot parse
                return

    @property
    def headers(self) -> dict[str, Any]:
        """Headers for each request, which remove those that the client would add by itself."""
        if self._api_version is not None and self._key:
            return omit_headers(authorization=True) | {"api-key": self._key}
        return omit_headers(authorization=not self._key)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The environment variables that contain the key."""
        return (self._key_env,) if self._key_env else ()

    def clean(self, text: object, limit: int = 200) -> str:
        """Put a text on one line without the key, which is removed before the text is truncated."""
        return one_line(redact(str(text), *self.secrets), limit)

    def failure(self, error: "openai.APIError", absent: str) -> CallsError:
        """Convert an error of the client: a `RequestFailed` if it may concern one request, else of all requests.

        `absent` is the predicate of the message if the server does not have what was requested.
        """
        import openai

        from pluralbench_calls.backends.bounded import CONNECTION_ERRORS, Unreachable
        from pluralbench_calls.backends.completions import find_reason

        reason, _ = find_reason(error.body)
        message = self.clean(error.message if reason in error.message else f"{error.message} - {reason}")
        tries = plural(self.max_retries + 1, "try", "tries")
        kind = CallsError
        match error:
            case openai.AuthenticationError() | openai.PermissionDeniedError():
                source = f"the key in {self._key_env}" if self._key_env else "a request without a key"
                text = f"does not accept {source} ({message})"
            case openai.NotFoundError():
                hint = "" if VERSIONED.search(self._url) else "; does the base URL lack /v1 at its end?"
                text = f"{absent} ({message}){hint}"
            case openai.APIStatusError(status_code=status) if status < 400:
                location = self.clean(error.response.headers.get("location", "nowhere"))
                text = f"redirects to {location}, which is not followed; give the base URL without a redirect"
            case openai.APITimeoutError():
                kind = RequestFailed
                text = f"did not answer completely within {self.timeout:g} s, in {tries}"
            case Unreachable():
                text = f"cannot be reached ({self.clean(error.__cause__)}), in {plural(error.tries, 'try', 'tries')}"
            case openai.APIConnectionError():
                kind = CallsError if isinstance(error.__cause__, CONNECTION_ERRORS) else RequestFailed
                text = f"cannot be reached ({self.clean(error.__cause__ or message)}), in {tries}"
            case openai.RateLimitError():
                text = f"keeps refusing because of a rate limit or quota ({message})"
            case _:
                status = getattr(error, "status_code", 0)
                kind = RequestFailed if status >= 500 or status in RETRIED else CallsError
                text = f"keeps failing ({message})"
        return kind(f"{self.host} {text}.")

    def _no_client(self, error: Exception) -> CallsError:
        reason = re.sub(r"//[^/\s]*@", "//", self.clean(error))  # without the user of a proxy
        return CallsError(
            f"No connection to {self.host} can be set up ({reason}); check the URL, and the variables of proxies and "
            "certificates in the environment."
        )


def omit_headers(*, authorization: bool) -> dict[str, Any]:
    """Remove headers that the client would add from the environment, and on request its Authorization header."""
    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
    names = [line.partition(":")[0].strip() for line in lines if ":" in line]
    import openai

    return dict.fromkeys(names + ["Authorization"] * authorization, openai.Omit())
