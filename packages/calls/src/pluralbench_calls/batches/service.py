"""The requests of a Batch API: upload, create, poll, download."""

import asyncio
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any, Literal

import httpx2
import openai
from openai.types import Batch

from pluralbench_calls.backends.endpoint import Endpoint
from pluralbench_calls.batches.files import URL
from pluralbench_calls.errors import BatchRejected, CallsError, ConnectionFailed, ModelNotServed

WINDOW: Literal["24h"] = "24h"  # completion window of a batch, the only value that OpenAI accepts
MIN_SPEED = 1_000  # bytes per second of a download, after the first `timeout`
PAGE_SIZE = 100  # batches in a page of the list
MAX_PAGES = 100  # of the list, from its newest batch; the one that is looked for was just made
NO_BATCHES = (
    "has no Batch API at this base URL; write the calls to a file with `connection.pending=...`, run them, for example "
    "with vLLM's run_batch, and read the results with `connection.results=...`"
)
NOT_SUPPORTED = {404, 405, 501}  # HTTP statuses of a server without this path


class BatchService:
    """The files and batches of an endpoint, with the client's own retries.

    Creating a batch costs money, so the client does not retry it. If its answer is lost, the endpoint's list of batches
    shows whether the batch exists.

    Args:
        endpoint: The endpoint, entered.
        first_pause: Seconds between the first two tries or polls.
        longest_pause: Maximum number of seconds between two tries or polls.
    """

    def __init__(self, endpoint: Endpoint, first_pause: float, longest_pause: float) -> None:
        self._endpoint = endpoint
        self._first, self._longest = first_pause, longest_pause
        self._upload_lock = asyncio.Lock()  # a file is up to 200 MB in memory during its upload

    def pauses(self) -> Iterator[float]:
        """Yield pauses in seconds without end, each 1.5 times the last, up to the longest."""
        seconds = self._first
        while True:
            yield seconds
            seconds = min(seconds * 1.5, self._longest)

    async def upload(self, name: str, lines: Iterator[bytes]) -> str:
        """Upload a file of calls and return its ID. This is free, so it may be repeated."""
        async with self._upload_lock:
            file = (f"pluralbench-{name}.jsonl", b"".join(lines), "application/jsonl")
            response = await self._call(
                self._endpoint.client.files.create(file=file, purpose="batch", extra_headers=self._endpoint.headers),
                NO_BATCHES,
            )
        return self._id_of(response, "file")

    async def create(self, file: str, name: str, state: Path) -> str:
        """Create the batch of an uploaded file, exactly one, and return its ID.

        Args:
            file: ID of the file.
            name: Name of the batch, stored in its metadata.
            state: File with the state of the batch, for error messages.

        Raises:
            BatchRejected: No batch was created.
            CallsError: A batch may have been created.
        """
        once = self._endpoint.client.with_options(max_retries=0)
        for number, pause in enumerate(self.pauses()):
            try:
                response = await once.batches.create(
                    input_file_id=file,
                    endpoint=URL,
                    completion_window=WINDOW,
                    metadata={"pluralbench": name},
                    extra_headers=self._endpoint.headers,
                )
                return self._id_of(response, "batch")
            except openai.RateLimitError as error:  # no batch was created
                if number >= self._endpoint.max_retries:
                    raise self._failure(error, NO_BATCHES) from None
                await asyncio.sleep(max(pause, min(_retry_after(error), self._longest)))
            except (openai.APIConnectionError, openai.InternalServerError) as error:
                if error_status(error) in NOT_SUPPORTED:
                    raise self._batch_rejected(error) from None
                if number >= self._endpoint.max_retries:
                    raise self._failure(error, NO_BATCHES) from None
                await asyncio.sleep(pause)
                if batch_id := await self.find(file, state):
                    return batch_id
            except (openai.BadRequestError, openai.NotFoundError, openai.UnprocessableEntityError) as error:
                raise self._batch_rejected(error) from None
            except openai.APIError as error:
                raise self._failure(error, NO_BATCHES) from None
            except (ValueError, openai.OpenAIError) as error:
                raise self._unexpected("batch", error) from None
        raise AssertionError("pauses never end")

    async def find(self, file: str, state: Path) -> str | None:
        """Return the ID of a file's batch, or None. Raises `ModelNotServed` if the endpoint does not list batches."""
        try:
            page = await self._endpoint.client.batches.list(limit=PAGE_SIZE, extra_headers=self._endpoint.headers)
            for _ in range(MAX_PAGES):
                if not isinstance(getattr(page, "data", None), list):
                    break
                for batch in page.data:
                    if batch.input_file_id == file:
                        return self._id_of(batch, "batch")
                if not page.has_next_page():
                    return None
                page = await page.get_next_page()
        except openai.APIError as error:
            if error_status(error) not in NOT_SUPPORTED:
                raise self._failure(error, NO_BATCHES) from None
        except (ValueError, AttributeError):
            pass  # raised by the client for a page that is not a list
        raise ModelNotServed(
            f"{self._endpoint.host} does not list its batches, so the batch of the file {file} may or may not exist; "
            f"check there, then write the batch's ID into {state}, or remove that file if there is no batch."
        )

    async def poll(self, batch: str, state: Path) -> Batch:
        """Fetch the status of a batch.

        Args:
            batch: ID of the batch.
            state: File with the state of the batch, for error messages.
        """
        response = await self._call(
            self._endpoint.client.batches.retrieve(batch, extra_headers=self._endpoint.headers),
            f"has no batch {batch} any more; remove {state} to send and pay for its calls again",
        )
        self._id_of(response, "batch")
        batch_status: Batch = response
        return batch_status

    async def download(self, file: str, path: Path, max_bytes: int) -> None:
        """Download a file in pieces, since results may have gigabytes.

        Args:
            file: ID of the file.
            path: Where to write it.
            max_bytes: Maximum size.

        Raises:
            ConnectionFailed: The file is larger, or arrives at less than `MIN_SPEED`.
        """
        files = self._endpoint.client.files.with_streaming_response
        for number, pause in enumerate(self.pauses()):
            try:
                async with files.content(file, extra_headers=self._endpoint.headers) as response:
                    # The deadline also ends a compressed body without content, which gives no parts.
                    async with asyncio.timeout(self._endpoint.timeout) as limit:
                        began = asyncio.get_running_loop().time()
                        with path.open("wb") as output:
                            async for part in response.iter_bytes():
                                output.write(part)
                                if output.tell() > max_bytes:
                                    raise ConnectionFailed(
                                        f"{self._endpoint.host} sends more than {max_bytes:,} bytes as the file "
                                        f"{file}, more than its calls can have as answers."
                                    )
                                limit.reschedule(began + self._endpoint.timeout + output.tell() / MIN_SPEED)
            except TimeoutError:
                raise ConnectionFailed(
                    f"{self._endpoint.host} sends the file {file} at less than {MIN_SPEED:,} bytes per second; rerun "
                    "the same command."
                ) from None
            except openai.APIError as error:
                raise self._failure(error, f"has no file {file}") from None
            except httpx2.HTTPError as error:
                if number >= self._endpoint.max_retries:
                    reason = self._endpoint.clean(error or type(error).__name__)
                    raise ConnectionFailed(f"{self._endpoint.host} aborts the file {file} ({reason}).") from None
                await asyncio.sleep(pause)
            else:
                return

    async def _call(self, call: Awaitable[Any], absent: str) -> Any:
        try:
            return await call
        except openai.APIError as error:
            raise self._failure(error, absent) from None
        except (ValueError, openai.OpenAIError) as error:  # not JSON, or too long
            raise self._unexpected("answer of a Batch API", error) from None

    def _batch_rejected(self, error: openai.APIError) -> BatchRejected:
        return BatchRejected(str(self._failure(error, NO_BATCHES)))

    def _failure(self, error: openai.APIError, absent: str) -> CallsError:
        status, host = error_status(error), self._endpoint.host
        if status in NOT_SUPPORTED:
            return ModelNotServed(f"{host} {absent} ({self._endpoint.clean(error.message)}).")
        if isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError | openai.ConflictError):
            return ModelNotServed(f"{host} rejects the batch ({self._endpoint.clean(error.message)}).")
        return self._endpoint.failure(error, absent)

    def _id_of(self, response: Any, what: str) -> str:
        """Return the ID in a response. Raises `ModelNotServed` for anything else, such as a page of HTML."""
        response_id = getattr(response, "id", None)
        if not isinstance(response_id, str) or not response_id:
            raise self._unexpected(what, response)
        return response_id

    def _unexpected(self, what: str, response: object) -> ModelNotServed:
        content = self._endpoint.clean(response or type(response).__name__, 120)
        article = "an" if what[0] in "aeiou" else "a"
        return ModelNotServed(
            f"{self._endpoint.host} sent something that is not {article} {what} ({content}); check the URL."
        )


def error_status(error: openai.APIError) -> int:
    """Return the HTTP status of an error; 0 if there was no response."""
    return int(getattr(error, "status_code", 0))


def _retry_after(error: openai.APIStatusError) -> float:
    try:
        return float(error.response.headers.get("retry-after", "0"))
    except ValueError:
        return 0.0  # a date, which only the client's own retries support
