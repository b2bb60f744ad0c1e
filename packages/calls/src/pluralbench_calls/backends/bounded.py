"""An HTTP client that no server keeps waiting or reading for ever, and that goes nowhere else than where it is sent."""

import asyncio
from typing import Any

import httpx2
import openai

CONNECT = 10.0  # seconds in which a server that is there accepts a connection
FIRST_TRIES = 2  # connections to a server that has never answered; later failures are the client's to try again
PAUSE = 0.5  # seconds between them
OF_THE_BODY = {"content-encoding", "content-length", "transfer-encoding"}  # headers of a body as it was sent
NOT_CONNECTED = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)


class AnswerTooLong(openai.OpenAIError):
    """The body of an answer is longer than it may be. Of this class, it is not tried again."""


class Unreachable(openai.APIConnectionError):
    """No connection came about with a server that has never answered, in `tries`."""

    def __init__(self, request: httpx2.Request, tries: int) -> None:
        super().__init__(request=request)
        self.tries = tries


class BoundedClient(openai.DefaultAsyncHttpxClient):
    """The OpenAI client's own HTTP client, with a bound on each try.

    seconds: for one try, from the connection to the last byte. most_bytes: of an answer's body, decompressed; of a
    longer one the rest is never read: `AnswerTooLong` where it is an answer, while an error's is cut there.
    answered: whether the server ever answered, in this client or one before it. tries: the most tries of a request.

    Redirects are not followed: they would take what is asked to another place than the recipe names.
    """

    def __init__(self, seconds: float, most_bytes: int, *, answered: bool, tries: int) -> None:
        timeout = httpx2.Timeout(seconds, connect=min(seconds, CONNECT))
        super().__init__(timeout=timeout, follow_redirects=False)
        self.answered = answered
        self._seconds, self._most_bytes, self._tries = seconds, most_bytes, min(tries, FIRST_TRIES)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """The whole response. Raises as the client does, and `AnswerTooLong`."""
        number = 1
        while True:
            try:
                return await self._send(request, options)
            except NOT_CONNECTED as error:
                if self.answered:
                    raise
                if number >= self._tries:
                    raise Unreachable(request, number) from error
            await asyncio.sleep(PAUSE)
            number += 1

    async def _send(self, request: httpx2.Request, options: dict[str, Any]) -> httpx2.Response:
        try:
            async with asyncio.timeout(self._seconds):
                response = await super().send(request, **{**options, "stream": True})
                self.answered = True
                if options.get("stream") and response.is_success:
                    return response  # a file, for its reader to read and to bound
                try:
                    content = await self._read(response)
                finally:
                    await response.aclose()
        except TimeoutError:
            raise httpx2.ReadTimeout(f"no whole answer in {self._seconds:g} s", request=request) from None
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in OF_THE_BODY]
        whole = httpx2.Response(response.status_code, headers=headers, content=content, request=request)
        whole.encoding = "utf-8"  # as JSON is; a server may name any codec of Python, also one that makes no text
        return whole

    async def _read(self, response: httpx2.Response) -> bytes:
        content = bytearray()
        async for part in response.aiter_bytes():
            content += part
            if len(content) > self._most_bytes:
                if response.is_success:
                    raise AnswerTooLong
                return bytes(content[: self._most_bytes])
        return bytes(content)
