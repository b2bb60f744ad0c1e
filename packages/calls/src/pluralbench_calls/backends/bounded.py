"""An HTTP client with bounds on time and size, which follows no redirects."""

import asyncio
import json
from typing import Any

import httpx2
import openai

CONNECT_TIMEOUT = 10.0  # seconds
FIRST_TRIES = 2  # connections to a server that has never answered; other failures are retried by the OpenAI client
RETRY_PAUSE = 0.5  # seconds between them
BODY_HEADERS = {"content-encoding", "content-length", "transfer-encoding"}  # not valid for the decoded body
MAX_ERROR_BYTES = 10_000  # of an error that a server sends with a success status
CONNECTION_ERRORS = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)


class AnswerTooLong(openai.OpenAIError):
    """The body of an answer exceeds the size limit. The OpenAI client does not retry errors of this class."""


class Unreachable(openai.APIConnectionError):
    """A server that has never answered could not be connected in `tries` tries."""

    def __init__(self, request: httpx2.Request, tries: int) -> None:
        super().__init__(request=request)
        self.tries = tries


class BoundedClient(openai.DefaultAsyncHttpxClient):
    """The HTTP client of the OpenAI client, with bounds on each try.

    Redirects are not followed: they would send requests to another server than the recipe names.

    Args:
        seconds: Time limit of one try, from the connection to the last byte.
        max_bytes: Maximum size of a body, decompressed. A longer answer raises `AnswerTooLong`; a longer error is
            truncated.
        answered: Whether the server has answered an earlier client.
        tries: Maximum number of tries of a request.
    """

    def __init__(self, seconds: float, max_bytes: int, *, answered: bool, tries: int) -> None:
        timeout = httpx2.Timeout(seconds, connect=min(seconds, CONNECT_TIMEOUT))
        super().__init__(timeout=timeout, follow_redirects=False)
        self.answered = answered
        self._seconds, self._max_bytes, self._tries = seconds, max_bytes, min(tries, FIRST_TRIES)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request and read the response. Raises as the base class, and `AnswerTooLong`."""
        number = 1
        while True:
            try:
                return await self._send(request, options)
            except CONNECTION_ERRORS as error:
                if self.answered:
                    raise
                if number >= self._tries:
                    raise Unreachable(request, number) from error
            await asyncio.sleep(RETRY_PAUSE)
            number += 1

    async def _send(self, request: httpx2.Request, options: dict[str, Any]) -> httpx2.Response:
        try:
            async with asyncio.timeout(self._seconds):
                response = await super().send(request, **{**options, "stream": True})
                self.answered = True
                if options.get("stream") and response.is_success:
                    return response  # a file, whose size the caller limits
                try:
                    content = await self._read(response)
                finally:
                    await response.aclose()
        except TimeoutError:
            raise httpx2.ReadTimeout(f"no complete answer in {self._seconds:g} s", request=request) from None
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in BODY_HEADERS]
        status = _status_in(content) if response.is_success else None
        complete = httpx2.Response(status or response.status_code, headers=headers, content=content, request=request)
        complete.encoding = "utf-8"  # JSON is UTF-8; a server may name any Python codec, also one without text
        return complete

    async def _read(self, response: httpx2.Response) -> bytes:
        content = bytearray()
        async for part in response.aiter_bytes():
            content += part
            if len(content) > self._max_bytes:
                if response.is_success:
                    raise AnswerTooLong
                return bytes(content[: self._max_bytes])
        return bytes(content)


def _status_in(content: bytes) -> int | None:
    """Return the status that an error with a success status names, as OpenRouter sends it; None if there is none."""
    if len(content) > MAX_ERROR_BYTES or b'"error"' not in content:
        return None
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return None
    error = body.get("error") if isinstance(body, dict) and not body.get("choices") else None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else None
