"""HTTP requests to one server, with the retries of the OpenAI client."""

import json
from typing import TYPE_CHECKING, Any

from pluralbench_calls.backends.endpoint import Endpoint
from pluralbench_calls.errors import CallsError

from pluralbench_rewards.served.engine import PAGES, EngineRequest, Pages, ServerError, ServingConfig

if TYPE_CHECKING:
    import httpx2

MAX_REPLY_BYTES = 64 * 2**20  # log-probabilities take about 100 bytes per token
HTML = ("<!doctype", "<html")


class Unavailable(ServerError):
    """A server that does not answer, or fails after all retries. Another server may take over its work."""


class Client(Endpoint):
    """A connection to a server, as an asynchronous context manager."""

    def __init__(self, url: str, serving: ServingConfig) -> None:
        super().__init__(
            url,
            api_key_env=serving.api_key_env,
            timeout=serving.timeout,
            max_retries=serving.max_retries,
            max_answer_bytes=MAX_REPLY_BYTES,
        )
        self.url = url

    async def pages(self) -> Pages:
        """Fetch the pages that describe the server (`PAGES`), without missing ones.

        Raises `ServerError` if the server requires a key, or all pages are HTML.
        """
        pages: dict[str, Any] = {}
        html = ""
        for path in PAGES:
            # Some engines answer an unknown page with a server error, which a retry does not fix.
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
                f"{self.url} answers with a web page (HTML at {html}) and is not an engine; use the address of the "
                "engine itself, such as http://HOST:8000."
            )
        return pages

    async def post_once(self, call: EngineRequest) -> tuple[int, Any]:
        """Send a request once; return the status and the JSON (None if it is not JSON). Raises `Unavailable`."""
        response = await self._once("post", call.path, body=call.body)
        try:
            return response.status_code, _json(response.text)
        except ValueError:
            return response.status_code, None

    async def _once(self, method: str, path: str, **body: Any) -> "httpx2.Response":
        import openai

        try:
            return await self._send(self.client.with_options(max_retries=0), method, path, **body)
        except openai.APIStatusError as error:
            return error.response

    async def post(self, call: EngineRequest) -> Any:
        """Send a request and return the JSON of the reply. Raises `Unavailable`, `Rejected` or `ServerError`."""
        import openai

        try:
            response = await self._send(self.client, "post", call.path, body=call.body)
        except (openai.AuthenticationError, openai.PermissionDeniedError):
            raise self._denied() from None
        except openai.APIStatusError as error:
            message = self.clean(error_message(error.response.text) or f"status {error.status_code}")
            if error.status_code == 429 or error.status_code >= 500:
                raise Unavailable(f"{self.url} keeps failing ({message}).") from None
            raise Rejected(self.url, call.path, error.status_code, message) from None
        try:
            return _json(response.text)
        except ValueError:
            raise ServerError(
                f"{self.url} sent a reply that is not JSON ({self.clean(response.text, 80)}); check the URL."
            ) from None

    async def _send(self, client: Any, method: str, path: str, **body: Any) -> "httpx2.Response":
        """Send a request and convert connection errors; an error status passes through."""
        import httpx2
        import openai
        from pluralbench_calls.backends.bounded import AnswerTooLong, Unreachable

        try:
            response: httpx2.Response = await getattr(client, method)(
                path, cast_to=httpx2.Response, options={"headers": self.headers}, **body
            )
        except openai.APIStatusError:
            raise
        except AnswerTooLong:
            raise ServerError(
                f"{self.url} sent a reply of more than {MAX_REPLY_BYTES >> 20} MiB; reduce `batch_size=...`."
            ) from None
        except Unreachable as error:
            raise Unavailable(
                f"No server answers at {self.url} ({self.clean(error.__cause__)}); start it, or fix the address."
            ) from None
        except openai.APITimeoutError:
            raise Unavailable(
                f"{self.url} did not finish a reply within {self.timeout:g} s; increase `timeout=...` or "
                "reduce `batch_size=...`."
            ) from None
        except openai.APIConnectionError as error:
            raise Unavailable(f"{self.url} cannot be reached ({self.clean(error.__cause__ or error)}).") from None
        except (openai.APIError, CallsError) as error:
            raise Unavailable(f"The request to {self.url} failed ({self.clean(error)}).") from None
        return response

    def _denied(self) -> ServerError:
        source = f"the key in {self._key_env}" if self._key else "a request without a key"
        return ServerError(f"{self.url} does not accept {source}; name the key's variable with `api_key_env=...`.")


class Rejected(ServerError):
    """A request that the server rejects, with its status and its message."""

    def __init__(self, url: str, path: str, status: int, message: str) -> None:
        super().__init__(f"{url} rejects the request ({path}, status {status}: {message}).")
        self.status, self.message = status, message


def _json(text: str) -> Any:
    """Parse a reply. Raises `ValueError` if it is not JSON, or too deep."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError from None


def error_message(text: str) -> str:
    """Extract the message of an error reply, which vLLM and SGLang nest."""
    try:
        body = _json(text)
    except ValueError:
        return text
    error = body.get("error", body) if isinstance(body, dict) else body
    message = error.get("message", error) if isinstance(error, dict) else error
    return str(body.get("message", message)) if isinstance(body, dict) else str(message)
