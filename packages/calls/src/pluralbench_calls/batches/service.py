"""The steps of a Batch API, each as an endpoint takes it: upload, create, look, fetch."""

import asyncio
import time
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any, Literal

import httpx2
import openai
from openai.types import Batch

from pluralbench_calls.backends.endpoint import Endpoint
from pluralbench_calls.batches.files import URL
from pluralbench_calls.errors import BatchRejected, CallsError, ConnectionFailed, ModelNotServed

WINDOW: Literal["24h"] = "24h"  # in which a batch is worked through; OpenAI takes no other
SLOWEST = 1_000  # bytes a second of a file that is fetched, after a first wait of `timeout`
LISTED = 100  # batches that one page names
NO_BATCHES = (
    "has no Batch API at this base URL; write the calls to a file with --pending, have them run there, as vLLM's "
    "run_batch does, and take the results with --import"
)
NOT_THERE = {404, 405, 501}  # the HTTP statuses of a server that does not know the path


class BatchService:
    """An endpoint's files and batches, through the client's own retries.

    Creating a batch is the step that is paid for, so it is not left to them: where its answer is lost, the endpoint's
    list of batches says whether there is one.

    first_pause, longest_pause: seconds between two tries of that, which become longer.
    """

    def __init__(self, endpoint: Endpoint, first_pause: float, longest_pause: float) -> None:
        self._endpoint = endpoint
        self._first, self._longest = first_pause, longest_pause
        self._one = asyncio.Lock()  # a file is as large as 200 MB, in memory as it goes out

    def pauses(self) -> Iterator[float]:
        """Seconds, each time half as many more, up to the longest; without end."""
        seconds = self._first
        while True:
            yield seconds
            seconds = min(seconds * 1.5, self._longest)

    async def upload(self, name: str, lines: Iterator[bytes]) -> str:
        """Upload a file of calls; the endpoint's name for it. Costs nothing, so it may be done again."""
        async with self._one:
            file = (f"pluralbench-{name}.jsonl", b"".join(lines), "application/jsonl")
            said = await self._asked(
                self._endpoint.client.files.create(file=file, purpose="batch", extra_headers=self._endpoint.headers),
                NO_BATCHES,
            )
        return self._name_in(said, "file")

    async def create(self, file: str, name: str, kept: Path) -> str:
        """Have a file of calls worked through; the endpoint's name for the batch, of which there is one for the file.

        kept: what says so, for whom nobody else can tell. Raises `BatchRejected` where there is no batch, and another
        `CallsError` where there may be one.
        """
        once = self._endpoint.client.with_options(max_retries=0)
        for number, pause in enumerate(self.pauses()):
            try:
                said = await once.batches.create(
                    input_file_id=file,
                    endpoint=URL,
                    completion_window=WINDOW,
                    metadata={"pluralbench": name},
                    extra_headers=self._endpoint.headers,
                )
                return self._name_in(said, "batch")
            except openai.RateLimitError as error:  # which says that there is none
                if number >= self._endpoint.max_retries:
                    raise self._failure(error, NO_BATCHES) from None
                await asyncio.sleep(max(pause, min(_retry_after(error), self._longest)))
            except (openai.APIConnectionError, openai.InternalServerError) as error:
                if error_status(error) in NOT_THERE:
                    raise self._not_taken(error) from None
                if number >= self._endpoint.max_retries:
                    raise self._failure(error, NO_BATCHES) from None
                await asyncio.sleep(pause)
                if found := await self.find(file, kept):
                    return found
            except (openai.BadRequestError, openai.NotFoundError, openai.UnprocessableEntityError) as error:
                raise self._not_taken(error) from None
            except openai.APIError as error:
                raise self._failure(error, NO_BATCHES) from None
            except (ValueError, openai.OpenAIError) as error:
                raise self._nothing("batch", error) from None
        raise AssertionError("pauses without end")

    async def find(self, file: str, kept: Path) -> str | None:
        """The batch that works through a file, where there is one. Raises `ModelNotServed` where no list says it."""
        try:
            page = await self._endpoint.client.batches.list(limit=LISTED, extra_headers=self._endpoint.headers)
            while isinstance(getattr(page, "data", None), list):
                for batch in page.data:
                    if batch.input_file_id == file:
                        return self._name_in(batch, "batch")
                if not page.has_next_page():
                    return None
                page = await page.get_next_page()
        except openai.APIError as error:
            if error_status(error) not in NOT_THERE:
                raise self._failure(error, NO_BATCHES) from None
        except (ValueError, AttributeError):
            pass  # of the client, for a page that is no list
        raise ModelNotServed(
            f"{self._endpoint.host} lists no batches, and may or may not work through the file {file} since its answer "
            f"was lost: look there, then write the batch's name into {kept}, or remove that file if there is none."
        )

    async def look(self, batch: str, kept: Path) -> Batch:
        """How far a batch is. kept: what says that it is out, for the sentence where the endpoint knows of none."""
        said = await self._asked(
            self._endpoint.client.batches.retrieve(batch, extra_headers=self._endpoint.headers),
            f"does not know the batch {batch} any more; remove {kept} to have its calls sent, and paid, again",
        )
        self._name_in(said, "batch")
        seen: Batch = said
        return seen

    async def fetch(self, file: str, path: Path, most: int) -> None:
        """Write a file of the endpoint to `path`, piece by piece: of results there may be gigabytes.

        most: bytes. Raises `ConnectionFailed` for a longer file, and for one that comes more slowly than `SLOWEST`.
        """
        files = self._endpoint.client.files.with_streaming_response
        for number, pause in enumerate(self.pauses()):
            try:
                async with files.content(file, extra_headers=self._endpoint.headers) as response:
                    began = time.monotonic()
                    with path.open("wb") as written:
                        async for part in response.iter_bytes():
                            written.write(part)
                            if written.tell() > most:
                                raise ConnectionFailed(
                                    f"{self._endpoint.host} sends more than {most:,} bytes as the file {file}, which "
                                    "are as many as its calls can be answered with."
                                )
                            if time.monotonic() - began > self._endpoint.timeout + written.tell() / SLOWEST:
                                raise ConnectionFailed(
                                    f"{self._endpoint.host} sends the file {file} at fewer than {SLOWEST:,} bytes a "
                                    "second; run the same command again."
                                )
            except openai.APIError as error:
                raise self._failure(error, f"has no file {file}") from None
            except httpx2.HTTPError as error:
                if number >= self._endpoint.max_retries:
                    said = self._endpoint.line(error or type(error).__name__)
                    raise ConnectionFailed(f"{self._endpoint.host} breaks off the file {file} ({said}).") from None
                await asyncio.sleep(pause)
            else:
                return

    async def _asked(self, call: Awaitable[Any], absent: str) -> Any:
        try:
            return await call
        except openai.APIError as error:
            raise self._failure(error, absent) from None
        except (ValueError, openai.OpenAIError) as error:  # no JSON, or more of it than is read
            raise self._nothing("answer of a Batch API", error) from None

    def _not_taken(self, error: openai.APIError) -> BatchRejected:
        return BatchRejected(str(self._failure(error, NO_BATCHES)))

    def _failure(self, error: openai.APIError, absent: str) -> CallsError:
        status, host = error_status(error), self._endpoint.host
        if status in NOT_THERE:
            return ModelNotServed(f"{host} {absent} ({self._endpoint.line(error.message)}).")
        if isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError | openai.ConflictError):
            return ModelNotServed(f"{host} does not take the batch ({self._endpoint.line(error.message)}).")
        return self._endpoint.failure(error, absent)

    def _name_in(self, said: Any, what: str) -> str:
        """The name of what the endpoint sent. Raises `ModelNotServed` for anything else, such as a page of HTML."""
        name = getattr(said, "id", None)
        if not isinstance(name, str) or not name:
            raise self._nothing(what, said)
        return name

    def _nothing(self, what: str, said: object) -> ModelNotServed:
        shown = self._endpoint.line(said or type(said).__name__, 120)
        return ModelNotServed(f"{self._endpoint.host} sent something that is no {what} ({shown}); is the URL right?")


def error_status(error: openai.APIError) -> int:
    """The HTTP status of an error; 0 where there was no answer."""
    return int(getattr(error, "status_code", 0))


def _retry_after(error: openai.APIStatusError) -> float:
    try:
        return float(error.response.headers.get("retry-after", "0"))
    except ValueError:
        return 0.0  # a date, which the client's own retries would read
