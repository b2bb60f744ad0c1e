"""The requests of a Batch API: upload, create, poll, download."""

import asyncio
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import httpx2
import openai

from pluralbench_calls.backends.endpoint import Endpoint
from pluralbench_calls.batches.files import URL
from pluralbench_calls.errors import BatchRejected, CallsError

if TYPE_CHECKING:
    from openai.types import Batch

WINDOW: Literal["24h"] = "24h"  # completion window of a batch, the only value that OpenAI accepts
PAGE_SIZE = 100  # batches in a page of the list
NO_BATCHES = (
    "has no Batch API at this base URL; write the calls to a file with `connection.pending=...`, run them, for example "
    "with vLLM's run_batch, and read the results with `connection.results=...`"
)
MAY_PASS = (openai.APIConnectionError, openai.InternalServerError, openai.RateLimitError)
REJECTED = {400, 422}
NOT_SUPPORTED = {404, 405, 501}  # HTTP statuses of a server without this path


class BatchService:
    """The files and batches of an endpoint that is entered, with the client's own retries.

    Creating a batch costs money, so the client does not retry it. If its answer is lost, the endpoint's list of batches
    shows whether the batch exists.
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
            call = self._endpoint.client.files.create(file=file, purpose="batch", extra_headers=self._endpoint.headers)
            return str((await self._reply("file", call, NO_BATCHES)).id)

    async def create(self, file: str, name: str, state: Path) -> str:
        """Create the batch of an uploaded file, exactly one, and return its ID. `state` is the file that messages name.

        Raises:
            BatchRejected: No batch was created.
            CallsError: A batch may have been created.
        """
        once = self._endpoint.client.with_options(max_retries=0)
        for number, pause in enumerate(self.pauses()):
            try:
                call = once.batches.create(
                    input_file_id=file,
                    endpoint=URL,
                    completion_window=WINDOW,
                    metadata={"pluralbench": name},
                    extra_headers=self._endpoint.headers,
                )
                return str((await self._reply("batch", call)).id)
            except openai.APIError as error:
                if error_status(error) in REJECTED | NOT_SUPPORTED:
                    raise BatchRejected(str(self._failure(error, NO_BATCHES))) from None
                if number >= self._endpoint.max_retries or not isinstance(error, MAY_PASS):
                    raise self._failure(error, NO_BATCHES) from None
                await asyncio.sleep(pause)
                # After a rate limit no batch was created.
                if not isinstance(error, openai.RateLimitError) and (batch_id := await self.find(file, state)):
                    return batch_id
        raise AssertionError("pauses never end")

    async def find(self, file: str, state: Path) -> str | None:
        """Return the ID of a file's batch, or None. Raises `CallsError` if the endpoint does not list batches."""
        batches = self._endpoint.client.batches
        try:
            page = await batches.list(limit=PAGE_SIZE, extra_headers=self._endpoint.headers)
            if "data" in page.model_fields_set:
                async for batch in page:
                    if batch.input_file_id == file:
                        return batch.id
                return None
        except openai.APIError as error:
            if error_status(error) not in NOT_SUPPORTED:
                raise self._failure(error, NO_BATCHES) from None
        except Exception:  # noqa: BLE001, S110 - not a list, for which the client raises errors of several libraries
            pass
        raise CallsError(
            f"{self._endpoint.host} does not list its batches, so the batch of the file {file} may or may not exist; "
            f"check there, then write the batch's ID into {state}, or remove that file if there is no batch."
        )

    async def poll(self, batch: str, state: Path) -> "Batch":
        """Fetch the status of a batch."""
        call = self._endpoint.client.batches.retrieve(batch, extra_headers=self._endpoint.headers)
        absent = f"has no batch {batch} any more; remove {state} to send and pay for its calls again"
        reply: Batch = await self._reply("batch", call, absent)
        return reply

    async def download(self, file: str, path: Path) -> None:
        """Download a file in pieces, since results may have gigabytes."""
        files = self._endpoint.client.files.with_streaming_response
        for number, pause in enumerate(self.pauses()):
            try:
                async with files.content(file, extra_headers=self._endpoint.headers) as response:
                    await response.stream_to_file(path)
            except openai.APIError as error:
                raise self._failure(error, f"has no file {file}") from None
            except httpx2.HTTPError as error:
                if number >= self._endpoint.max_retries:
                    reason = self._endpoint.clean(error or type(error).__name__)
                    raise CallsError(f"{self._endpoint.host} aborts the file {file} ({reason}).") from None
                await asyncio.sleep(pause)
            else:
                return

    async def _reply(self, what: str, call: Awaitable[Any], absent: str = "") -> Any:
        """Return a reply with an ID. Without `absent`, errors of the client are raised as they are."""
        try:
            reply = await call
        except openai.APIError as error:
            raise self._failure(error, absent) if absent else error from None
        except Exception as error:  # noqa: BLE001 - too long or not JSON, which raises errors of several libraries
            raise self._unexpected(what, error) from None
        if not isinstance(getattr(reply, "id", None), str):
            raise self._unexpected(what, reply)
        return reply

    def _failure(self, error: openai.APIError, absent: str) -> CallsError:
        status, host = error_status(error), self._endpoint.host
        if status in NOT_SUPPORTED:
            return CallsError(f"{host} {absent} ({self._endpoint.clean(error.message)}).")
        if isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError | openai.ConflictError):
            return CallsError(f"{host} rejects the batch ({self._endpoint.clean(error.message)}).")
        return self._endpoint.failure(error, absent)

    def _unexpected(self, what: str, reason: object) -> CallsError:
        reason = self._endpoint.clean(str(reason) or type(reason).__name__, 120)
        return CallsError(f"{self._endpoint.host} sent something that is not a {what} ({reason}); check the URL.")


def error_status(error: openai.APIError) -> int:
    """Return the HTTP status of an error; 0 if there was no response."""
    return int(getattr(error, "status_code", 0))
