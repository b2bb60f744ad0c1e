"""Requests to one server: its pages, and what an engine asks. Retries and their pauses are the OpenAI client's own."""

import json
import os
from typing import TYPE_CHECKING, Any, Self

from pluralbench_calls.errors import CallsError
from pluralbench_runs import one_line
from pluralbench_runs.secrets import redact
from pluralbench_tables.limits import estimate_parsed_bytes

from pluralbench_rewards.served.engine import PAGES, EngineRequest, Pages, ServerError
from pluralbench_rewards.served.serving import ServingConfig

if TYPE_CHECKING:
    import httpx2

MAX_REPLY_BYTES = 64 * 2**20  # log-probabilities take some 100 bytes a token
MAX_REPLY_MEMORY = 10**9  # bytes, once it is parsed
HTML = ("<!doctype", "<html")


class Unavailable(ServerError):
    """A server that does not answer, or answers with errors until the retries are spent. Another may do its work."""


class Client:
    """A connection to the server at a URL; it opens and closes itself."""

    def __init__(self, url: str, serving: ServingConfig) -> None:
        self.url = url
        self._serving = serving
        self._key = ""

    async def __aenter__(self) -> Self:
        """Open it. Raises `ServerError` where the environment holds no key, or what it says of proxies is wrong."""
        import openai  # noqa: PLC0415 - a second that a command's --help saves
        from pluralbench_calls.backends.bounded import BoundedClient  # noqa: PLC0415 - it imports openai

        name, timeout, retries = self._serving.api_key_env, self._serving.timeout, self._serving.max_retries
        if name is not None:
            self._key = os.environ.get(name, "").strip()
            if not self._key:
                raise ServerError(f"{self.url} wants a key: set the environment variable {name}.")
        try:
            http = BoundedClient(timeout, MAX_REPLY_BYTES, answered=False, tries=retries + 1)
            self._client = openai.AsyncOpenAI(
                base_url=self.url,
                api_key=self._key or "none",
                timeout=http.timeout,
                max_retries=retries,
                http_client=http,
                organization="",
                project="",
            )
        except Exception as error:  # noqa: BLE001 - it reads proxies and certificates, each with errors of its own
            raise ServerError(f"No connection to {self.url} can be set up ({self._line(error)}).") from None
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close it."""
        await self._client.close()

    async def pages(self) -> Pages:
        """What the server says of itself. Raises `Unavailable`, and `ServerError` where HTML comes or a key is wanted.

        A page that it does not have is left out.
        """
        pages: dict[str, Any] = {}
        html = ""
        for path in PAGES:
            # Some engines answer an unknown page with an error of their own, which no second try mends.
            reply = await self._once("get", path)
            if reply.status_code in {401, 403}:
                raise self._denied()
            if reply.text.lstrip().lower().startswith(HTML):
                html = html or path
            elif reply.status_code == 200:
                try:
                    pages[path] = _json(reply.text)
                except ValueError:
                    continue
        if html and not pages:
            raise ServerError(
                f"{self.url} answers with a web page (HTML at {html}), so no engine listens there; give the address of "
                "the engine itself, such as http://HOST:8000."
            )
        return pages

    async def asked(self, call: EngineRequest) -> tuple[int, Any]:
        """The status of one try and the JSON that came with it, None where it is none. Raises `Unavailable`."""
        response = await self._once("post", call.path, body=call.body)
        try:
            return response.status_code, _json(response.text)
        except ValueError:
            return response.status_code, None

    async def _once(self, method: str, path: str, **body: Any) -> "httpx2.Response":
        """What comes of one try, whatever its status."""
        import openai  # noqa: PLC0415 - as above

        try:
            return await self._sent(self._client.with_options(max_retries=0), method, path, **body)
        except openai.APIStatusError as error:
            return error.response

    async def post(self, call: EngineRequest) -> Any:
        """The JSON of a reply. Raises `Unavailable`, and `Rejected` for a request that the server does not take."""
        import openai  # noqa: PLC0415 - as above

        try:
            response = await self._sent(self._client, "post", call.path, body=call.body)
        except (openai.AuthenticationError, openai.PermissionDeniedError):
            raise self._denied() from None
        except openai.APIStatusError as error:
            said = self._line(error_message(error.response.text) or f"status {error.status_code}")
            if error.status_code == 429 or error.status_code >= 500:
                raise Unavailable(f"{self.url} keeps failing ({said}).") from None
            raise Rejected(self.url, call.path, error.status_code, said) from None
        try:
            return _json(response.text)
        except ValueError:
            raise ServerError(
                f"{self.url} sent something that is no JSON, or too much ({self._line(response.text, 80)}); is the URL "
                "right?"
            ) from None

    async def _sent(self, client: Any, method: str, path: str, **body: Any) -> "httpx2.Response":
        """The response, or what keeps it from coming in a sentence; a status of failure passes through."""
        import httpx2  # noqa: PLC0415 - as above
        import openai  # noqa: PLC0415 - as above
        from pluralbench_calls.backends.bounded import AnswerTooLong, Unreachable  # noqa: PLC0415 - as above
        from pluralbench_calls.backends.endpoint import omit_headers  # noqa: PLC0415 - it imports openai when it is called

        options = {"headers": omit_headers(authorization=not self._key)}
        try:
            response: httpx2.Response = await getattr(client, method)(
                path, cast_to=httpx2.Response, options=options, **body
            )
        except openai.APIStatusError:
            raise
        except AnswerTooLong:
            raise ServerError(
                f"{self.url} sent a reply of more than {MAX_REPLY_BYTES >> 20} MiB; give a smaller `batch_size`."
            ) from None
        except Unreachable as error:
            raise Unavailable(
                f"Nobody answers at {self.url} ({self._line(error.__cause__)}); start the server, or give its address."
            ) from None
        except openai.APITimeoutError:
            raise Unavailable(
                f"{self.url} did not answer in full within {self._serving.timeout:g} s; give a longer `timeout` or a "
                "smaller `batch_size`."
            ) from None
        except openai.APIConnectionError as error:
            raise Unavailable(f"{self.url} cannot be reached ({self._line(error.__cause__ or error)}).") from None
        except (openai.APIError, CallsError) as error:
            raise Unavailable(f"{self.url} cannot be asked ({self._line(error)}).") from None
        return response

    def _denied(self) -> ServerError:
        source = f"the key in {self._serving.api_key_env}" if self._key else "a request without a key"
        return ServerError(f"{self.url} does not accept {source}; name the variable that holds it as `api_key_env`.")

    def _line(self, said: object, limit: int = 200) -> str:
        name = self._serving.api_key_env
        return one_line(redact(str(said), *([name] if name else [])), limit)


class Rejected(ServerError):
    """A request that the server does not take. said: its own words."""

    def __init__(self, url: str, path: str, status: int, said: str) -> None:
        super().__init__(f"{url} refuses what it was asked ({path}, status {status}: {said}).")
        self.status, self.said = status, said


def _json(text: str) -> Any:
    """The value of a reply. Raises `ValueError` for no JSON, and for what is nested or branches without end."""
    if estimate_parsed_bytes(text) > MAX_REPLY_MEMORY:
        raise ValueError
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError from None


def error_message(text: str) -> str:
    """The sentence of an error: vLLM nests it, SGLang too, TEI does not."""
    try:
        body = _json(text)
    except ValueError:
        return text
    error = body.get("error", body) if isinstance(body, dict) else body
    said = error.get("message", error) if isinstance(error, dict) else error
    return str(body.get("message", said)) if isinstance(body, dict) else str(said)
