"""The requests of a Batch API: upload, create, poll, download."""

import asyncio
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import httpx2
import openai
from pluralbench_runs import first_validation_error
from pydantic import BaseModel, Field, ValidationError

from pluralbench_calls.backends.endpoint import Endpoint
from pluralbench_calls.batches.files import URL
from pluralbench_calls.errors import BatchRejected, CallsError

WINDOW: Literal["24h"] = "24h"  # completion window of a batch, the only value that OpenAI accepts
PAGE_SIZE = 100  # batches in a page of the list
MAX_PAGES = 100  # of the list, from its newest batch; the one that is looked for was just made
NO_BATCHES = (
    "has no Batch API at this base URL; write the calls to a file with `connection.pending=...`, run them, for example "
    "with vLLM's run_batch, and read the results with `connection.results=...`"
)
NOT_SUPPORTED = {404, 405, 501}  # HTTP statuses of a server without this path

Reply = TypeVar("Reply", bound=BaseModel)
Id = Annotated[str, Field(min_length=1)]


class UploadedFile(BaseModel):
    """The reply to an upload."""

    id: Id


class RequestCounts(BaseModel):
    """Numbers of calls of a batch."""

    completed: int = 0
    failed: int = 0


class BatchProblem(BaseModel):
    """Why a batch failed."""

    message: str | None = None
    code: str | int | None = None
    line: int | None = None


class BatchProblems(BaseModel):
    """The list of reasons."""

    data: list[BatchProblem] | None = None


class Batch(BaseModel):
    """A batch at the server, of which only these fields are read."""

    id: Id
    status: str
    input_file_id: str | None = None
    output_file_id: str | None = None
    error_file_id: str | None = None
    request_counts: RequestCounts | None = None
    errors: BatchProblems | None = None


class BatchPage(BaseModel):
    """A page of the list of batches, from the newest."""

    data: list[Batch]
    has_more: bool | None = None


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
            call = self._endpoint.client.files.with_raw_response.create(
                file=file, purpose="batch", extra_headers=self._endpoint.headers
            )
            return (await self._read(UploadedFile, "file", call, NO_BATCHES)).id

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
                response = await once.batches.with_raw_response.create(
                    input_file_id=file,
                    endpoint=URL,
                    completion_window=WINDOW,
                    metadata={"pluralbench": name},
                    extra_headers=self._endpoint.headers,
                )
                return self._parse(Batch, "batch", response.content).id
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
            except openai.OpenAIError as error:  # too long
                raise self._unexpected("batch", error) from None
        raise AssertionError("pauses never end")

    async def find(self, file: str, state: Path) -> str | None:
        """Return the ID of a file's batch, or None. Raises `CallsError` if the endpoint does not list batches."""
        after: dict[str, Any] = {}
        batches = self._endpoint.client.batches.with_raw_response
        try:
            for _ in range(MAX_PAGES):
                response = await batches.list(limit=PAGE_SIZE, extra_headers=self._endpoint.headers, **after)
                page = BatchPage.model_validate_json(response.content)
                for batch in page.data:
                    if batch.input_file_id == file:
                        return batch.id
                if page.has_more is False or not page.data:
                    return None
                after = {"after": page.data[-1].id}
        except openai.APIError as error:
            if error_status(error) not in NOT_SUPPORTED:
                raise self._failure(error, NO_BATCHES) from None
        except (ValidationError, openai.OpenAIError):
            pass  # not a list, or too long
        raise CallsError(
            f"{self._endpoint.host} does not list its batches, so the batch of the file {file} may or may not exist; "
            f"check there, then write the batch's ID into {state}, or remove that file if there is no batch."
        )

    async def poll(self, batch: str, state: Path) -> Batch:
        """Fetch the status of a batch.

        Args:
            batch: ID of the batch.
            state: File with the state of the batch, for error messages.
        """
        call = self._endpoint.client.batches.with_raw_response.retrieve(batch, extra_headers=self._endpoint.headers)
        absent = f"has no batch {batch} any more; remove {state} to send and pay for its calls again"
        return await self._read(Batch, "batch", call, absent)

    async def download(self, file: str, path: Path) -> None:
        """Download a file in pieces, since results may have gigabytes.

        Args:
            file: ID of the file.
            path: Where to write it.

        Raises:
            CallsError: The endpoint does not send the file.
        """
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

    async def _read(self, model: type[Reply], what: str, call: Awaitable[Any], absent: str) -> Reply:
        try:
            response = await call
        except openai.APIError as error:
            raise self._failure(error, absent) from None
        except openai.OpenAIError as error:  # too long
            raise self._unexpected(what, error) from None
        return self._parse(model, what, response.content)

    def _parse(self, model: type[Reply], what: str, content: bytes) -> Reply:
        """Parse a reply. Raises `CallsError` for anything else, such as a page of HTML."""
        try:
            return model.model_validate_json(content)
        except ValidationError as error:
            is_field = error.errors()[0]["loc"]
            text = first_validation_error(model, error) if is_field else content.decode(errors="replace") or "nothing"
            raise self._unexpected(what, text) from None

    def _batch_rejected(self, error: openai.APIError) -> BatchRejected:
        return BatchRejected(str(self._failure(error, NO_BATCHES)))

    def _failure(self, error: openai.APIError, absent: str) -> CallsError:
        status, host = error_status(error), self._endpoint.host
        if status in NOT_SUPPORTED:
            return CallsError(f"{host} {absent} ({self._endpoint.clean(error.message)}).")
        if isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError | openai.ConflictError):
            return CallsError(f"{host} rejects the batch ({self._endpoint.clean(error.message)}).")
        return self._endpoint.failure(error, absent)

    def _unexpected(self, what: str, reason: object) -> CallsError:
        reason = self._endpoint.clean(reason or type(reason).__name__, 120)
        return CallsError(f"{self._endpoint.host} sent something that is not a {what} ({reason}); check the URL.")


def error_status(error: openai.APIError) -> int:
    """Return the HTTP status of an error; 0 if there was no response."""
    return int(getattr(error, "status_code", 0))


def _retry_after(error: openai.APIStatusError) -> float:
    try:
        return float(error.response.headers.get("retry-after", "0"))
    except ValueError:
        return 0.0  # a date, which only the client's own retries support
