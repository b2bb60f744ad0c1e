"""Backend for a Batch API, which answers within hours and costs less."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pluralbench_runs import plural

from pluralbench_calls.backends.endpoint import Endpoint
from pluralbench_calls.batches.files import (
    MAX_REQUESTS,
    BatchResult,
    BatchState,
    BatchStore,
    Tally,
    batch_lines,
    batches,
    in_parts,
    read_results,
)
from pluralbench_calls.errors import BatchRejected, CallsError, Interrupted
from pluralbench_calls.records import Answer, Request, max_prompt_tokens

if TYPE_CHECKING:
    from openai.types import Batch

MAX_TRIES = 3  # of a call in one command, if its batch expires, is canceled or fails
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 60.0  # seconds between two polls of a batch, with backoff
FINAL_STATUSES = {"completed", "failed", "expired", "cancelled"}


class OpenAIBatches(Endpoint):
    """Chat completions through the Batch API of `base_url`; a `PackingBackend` whose messages are batches.

    The state of a batch is saved before each step, so another process can resume after a kill, and no call is paid
    twice. If a batch expires, is canceled or fails, its finished calls are recorded and the others are sent again, up
    to `MAX_TRIES` times in all. Refused parameters are handled as in `OpenAIChat`, one batch at a time. Its pauses
    between polls are in seconds; `options` are those of `Endpoint`.
    """

    def __init__(
        self,
        base_url: str,
        *,
        first_pause: float = FIRST_PAUSE,
        longest_pause: float = LONGEST_PAUSE,
        max_requests: int = MAX_REQUESTS,
        **options: Any,
    ) -> None:
        super().__init__(base_url, **options)
        self._pauses = first_pause, longest_pause
        self._max_requests = max_requests
        self._resumed: dict[str, BatchState] = {}  # open batches by the key of a message's first call
        self._polled: dict[str, Batch] = {}  # open batches as last polled, by name

    def use_store(self, folder: Path, show_progress: Callable[[int, str], None]) -> None:
        """Set where the state of open batches is saved. Call it before `pack`.

        `show_progress` is called with the number of finished calls in open batches and a short note.
        """
        self._store, self._show_progress = BatchStore(folder), show_progress

    def pack(self, requests: Sequence[Request]) -> list[list[Request]]:
        """Group requests by open batches, and the others into as few new batches as possible."""
        missing = {request.key: request for request in requests}
        messages = []
        for state in self._store.batches_with(requests):
            if state.base_url != self.base_url:
                raise CallsError(
                    f"{len(state.calls):,} calls are in an open batch at {state.base_url}; resume with that base URL, "
                    f"or remove {self._store.path(state)} to send and pay for them again."
                )
            message = [missing.pop(key) for key in state.calls if key in missing]
            self._resumed[message[0].key] = state
            messages.append(message)
        return messages + list(batches(missing.values(), max_requests=self._max_requests))

    def size(self, request: Request) -> int:
        """Bound the number of prompt tokens."""
        return max_prompt_tokens(request)

    async def __aenter__(self) -> Self:
        """Open the connections. Raises `CallsError` if the environment has no key."""
        from pluralbench_calls.batches.service import BatchService

        await super().__aenter__()
        self._service = BatchService(self, *self._pauses)
        self._failing = asyncio.Event()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the connections. Open batches continue at the endpoint."""
        await super().__aexit__(*exc)
        self._polled.clear()

    async def send(self, request: Request) -> Answer:
        """Send one request in its own batch."""
        [[answer]] = [answers async for answers in self.send_packed([request])]
        return answer

    async def send_packed(self, requests: Sequence[Request]) -> AsyncIterator[list[Answer]]:
        """Send a batch, and further ones for its unanswered calls; yield the answers of each when it ends."""
        missing = {request.key: request for request in requests}
        resumed = self._resumed.pop(requests[0].key, None)
        tries = 0
        try:
            while missing:
                state = await self._open(resumed, list(missing.values()))
                batch = await self._wait(state)
                tally = Tally()
                for results in in_parts(await self._results(state, batch, missing)):
                    tally.add(results, missing)
                    answers = [result.answer for result in results if result.answer is not None]
                    for answer in answers:
                        missing.pop(answer.key, None)
                    yield answers  # the caller records them before the next ones are read
                self._store.remove(state)
                self._polled.pop(state.name, None)
                resumed = None
                if missing and not self._add_refused(requests[0].model, tally):
                    tries += 1
                    self._check(batch, tally, len(missing), tries)
        except CallsError:
            self._failing.set()
            raise
        except asyncio.CancelledError:
            raise Interrupted(f"Interrupted.{self._describe_open()}") from None

    async def _open(self, state: BatchState | None, requests: list[Request]) -> BatchState:
        """Open a batch with these calls, or continue with `state`. Each step is saved before the next."""
        batch_id = None
        if state is None or not state.file:
            without = {model: tuple(sorted(refused)) for model, refused in self._refused.items() if refused}
            calls = tuple(request.key for request in requests)
            state = self._store.save(BatchState(base_url=self.base_url, calls=calls, without=without))
            file = await self._service.upload(state.name, batch_lines(requests, without))
            state = self._store.save(state.model_copy(update={"file": file}))
        elif not state.batch:
            batch_id = await self._service.find(state.file, self._store.path(state))
        for model, refused in state.without.items():
            self._refused.setdefault(model, set()).update(refused)
        if state.batch:
            return state
        try:
            batch_id = batch_id or await self._service.create(state.file, state.name, self._store.path(state))
        except BatchRejected:
            self._store.remove(state)
            raise
        return self._store.save(state.model_copy(update={"batch": batch_id}))

    async def _wait(self, state: BatchState) -> "Batch":
        """Poll a batch until its status is final. Raises `Interrupted` if another batch fails meanwhile."""
        for pause in self._service.pauses():
            batch = await self._service.poll(state.batch, self._store.path(state))
            self._polled[state.name] = batch
            self._report()
            if batch.status in FINAL_STATUSES:
                return batch
            try:
                await asyncio.wait_for(self._failing.wait(), pause)
            except TimeoutError:
                continue
            raise Interrupted(f"Stopped.{self._describe_open()}")
        raise AssertionError("pauses never end")

    async def _results(self, state: BatchState, batch: "Batch", pending: dict[str, Request]) -> Iterator[BatchResult]:
        paths = []
        for number, file in enumerate(file for file in (batch.output_file_id, batch.error_file_id) if file):
            paths.append(self._store.path(state).with_suffix(f".{number}.jsonl"))
            await self._service.download(file, paths[-1])
        return read_results(
            paths,
            pending,
            refused=state.without,
            max_answer_bytes=self.max_answer_bytes,
            secrets=self.secrets,
        )

    def _add_refused(self, model: str, tally: Tally) -> bool:
        """Add the parameters that the model refused; whether there was a new one, so that a retry may succeed."""
        refused = self._refused.setdefault(model, set())
        before = len(refused)
        refused |= tally.refused.get(model, set())
        return len(refused) > before

    def _check(self, batch: "Batch", tally: Tally, missing: int, tries: int) -> None:
        """Raise `CallsError` if the missing calls should not be sent again."""
        host = self.host
        if batch.status == "failed" and not tally.answered:
            raise CallsError(f"{host} refuses the batch {batch.id}: {self._first_error(batch)}.")
        is_futile = batch.status == "completed" and not tally.answered
        if is_futile or tries == MAX_TRIES:
            reason = next(iter(tally.reasons.values()), "")
            details = f" ({self.clean(reason)})" if reason else ""
            raise CallsError(
                f"{host} left {plural(missing, 'call')} unanswered in the batch {batch.id}, which is "
                f"{batch.status}{details}."
            )

    def _first_error(self, batch: "Batch") -> str:
        problems = batch.errors.data if batch.errors else None
        first = problems[0] if problems else None
        return self.clean((first and (first.message or first.code)) or "no reason given")

    def _report(self) -> None:
        counts = [batch.request_counts for batch in self._polled.values()]
        done = sum(count.completed + count.failed for count in counts if count is not None)
        statuses = Counter(batch.status for batch in self._polled.values())
        parts = ", ".join(f"{number} {status}" for status, number in sorted(statuses.items()))
        self._show_progress(done, f"{plural(len(self._polled), 'batch', 'batches')} at {self.host}: {parts}")

    def _describe_open(self) -> str:
        ids = [batch.id for batch in self._polled.values() if batch.status not in FINAL_STATUSES]
        if not ids:
            return ""
        subject = "The batch continues" if len(ids) == 1 else f"{len(ids)} batches continue"
        return f" {subject} at {self.host} ({', '.join(ids)})."
