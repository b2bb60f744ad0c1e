"""Calls through a Batch API, which is slow and costs less: uploaded, created, looked after and fetched."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pluralbench_calls.backends.endpoint import Endpoint
from pluralbench_calls.batches.files import MOST_REQUESTS, batch_lines, batches
from pluralbench_calls.batches.results import BatchResult, Tally, in_parts, read_results
from pluralbench_calls.batches.store import BatchState, BatchStore
from pluralbench_calls.errors import BatchRejected, CallsError, ConnectionFailed, Interrupted, ModelNotServed
from pluralbench_calls.records import Answer, Request, max_prompt_tokens

if TYPE_CHECKING:
    from openai.types import Batch

MOST_TIMES = 3  # that a call goes out in one command, of which the batch expired, was cancelled or failed
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 60.0  # seconds between two looks at a batch, which become rarer
ROOM = 100_000  # bytes of a line of results beside its answer
DONE = {"completed", "failed", "expired", "cancelled"}
NAMED = 3  # batches that a sentence names


class OpenAIBatches(Endpoint):
    """Chat completions through the Batch API of `base_url`; a `PackingBackend` whose messages are out for hours.

    A message is a batch. What is known of it lies on disk before each step, so that a process which is killed, at any
    moment, leaves all that the next one needs to go on, and nothing is paid twice. Finished calls of a batch that
    expired, was cancelled or failed are taken; the rest goes out again, `MOST_TIMES` in all. What a model refuses is
    learned as `OpenAIChat` learns it, a batch at a time.

    first_pause, longest_pause: seconds between two looks at a batch. options: those of `Endpoint`.
    """

    def __init__(
        self,
        base_url: str,
        *,
        first_pause: float = FIRST_PAUSE,
        longest_pause: float = LONGEST_PAUSE,
        most_requests: int = MOST_REQUESTS,
        **options: Any,
    ) -> None:
        super().__init__(base_url, **options)
        self._pauses = first_pause, longest_pause
        self._most_requests = most_requests
        self._known: dict[str, BatchState] = {}  # by the key of a message's first call, what is out for the message
        self._seen: dict[str, Batch] = {}  # what is out now, as it was last seen

    def keep(self, folder: Path, tell: Callable[[int, str], None]) -> None:
        """Where to keep what is out, beside the ledger; and whom to tell of it, before anything is packed.

        tell: takes how many requests are finished of those that are out, and a note of a few words.
        """
        self._kept, self._tell = BatchStore(folder), tell

    def pack(self, requests: Sequence[Request]) -> list[list[Request]]:
        """What is out already, as it went out, and the rest in as few batches as an endpoint takes."""
        waiting = {request.key: request for request in requests}
        messages = []
        for kept in self._kept.out_for(requests):
            if kept.base_url != self.base_url:
                raise CallsError(
                    f"{len(kept.calls):,} calls are out in a batch at {kept.base_url}; go on with that base "
                    f"URL, or remove {self._kept.path(kept)} to have them sent, and paid, again."
                )
            message = [waiting.pop(key) for key in kept.calls if key in waiting]
            self._known[message[0].key] = kept
            messages.append(message)
        return messages + list(batches(waiting.values(), most_requests=self._most_requests))

    def size(self, request: Request) -> int:
        """The most tokens of the prompt."""
        return max_prompt_tokens(request)

    async def __aenter__(self) -> Self:
        """Open the connections. Raises `AccessDenied` when the environment holds no key."""
        from pluralbench_calls.batches.service import BatchService  # noqa: PLC0415 - it imports openai, for a second

        await super().__aenter__()
        self._service = BatchService(self, *self._pauses)
        self._failing = asyncio.Event()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the connections; what is out goes on at the endpoint."""
        await super().__aexit__(*exc)
        self._seen.clear()

    async def send(self, request: Request) -> Answer:
        """One call, in a batch of its own."""
        [[answer]] = [answers async for answers in self.send_packed([request])]
        return answer

    async def send_packed(self, requests: Sequence[Request]) -> AsyncIterator[list[Answer]]:
        """One batch, and others for what it leaves unanswered; the answers of each once it is done."""
        waiting = {request.key: request for request in requests}
        known = self._known.pop(requests[0].key, None)
        times = 0
        try:
            while waiting:
                kept = await self._out(known, list(waiting.values()))
                batch = await self._done(kept)
                tally = Tally()
                for results in in_parts(await self._results(kept, batch, waiting)):
                    tally.add(results, waiting)
                    answers = [result.answer for result in results if result.answer is not None]
                    for answer in answers:
                        waiting.pop(answer.key, None)
                    yield answers  # and go on once they are recorded
                self._kept.forget(kept)
                self._seen.pop(kept.name, None)
                known = None
                if waiting and not self._learn(requests[0].model, tally):
                    times += 1
                    self._check(batch, tally, len(waiting), times)
        except CallsError:
            self._failing.set()
            raise
        except asyncio.CancelledError:
            raise Interrupted(f"Interrupted.{self._what_is_out()}") from None

    async def _out(self, kept: BatchState | None, requests: list[Request]) -> BatchState:
        """A batch of these calls that is out: the known one, or a new one. Each step is kept before the next."""
        found = None
        if kept is None or not kept.file:
            without = {model: tuple(sorted(refused)) for model, refused in self._refused.items() if refused}
            calls = tuple(request.key for request in requests)
            kept = self._kept.save(BatchState(base_url=self.base_url, calls=calls, without=without))
            file = await self._service.upload(kept.name, batch_lines(requests, without))
            kept = self._kept.save(kept.model_copy(update={"file": file}))
        elif not kept.batch:
            found = await self._service.find(kept.file, self._kept.path(kept))
        for model, refused in kept.without.items():
            self._refused.setdefault(model, set()).update(refused)
        if kept.batch:
            return kept
        try:
            batch = found or await self._service.create(kept.file, kept.name, self._kept.path(kept))
        except BatchRejected:
            self._kept.forget(kept)
            raise
        return self._kept.save(kept.model_copy(update={"batch": batch}))

    async def _done(self, kept: BatchState) -> "Batch":
        """The batch when nothing more comes of it. Raises `Interrupted` where another one fails meanwhile."""
        for pause in self._service.pauses():
            batch = await self._service.look(kept.batch, self._kept.path(kept))
            self._seen[kept.name] = batch
            self._report()
            if batch.status in DONE:
                return batch
            try:
                await asyncio.wait_for(self._failing.wait(), pause)
            except TimeoutError:
                continue
            raise Interrupted(f"Stopped.{self._what_is_out()}")
        raise AssertionError("pauses without end")

    async def _results(self, kept: BatchState, batch: "Batch", waiting: dict[str, Request]) -> Iterator[BatchResult]:
        """What a batch says of the calls that are waited for: its own file, and that of its errors."""
        paths = []
        for number, file in enumerate(file for file in (batch.output_file_id, batch.error_file_id) if file):
            paths.append(self._kept.path(kept).with_suffix(f".{number}.jsonl"))
            # A line has more than the answer: the key, and what the server says of itself.
            most = (len(kept.calls) + 1) * (self.max_answer_bytes + ROOM)
            await self._service.fetch(file, paths[-1], most)
        return read_results(
            paths,
            waiting,
            refused=kept.without,
            max_answer_bytes=self.max_answer_bytes,
            secrets=self.secrets,
        )

    def _learn(self, model: str, tally: Tally) -> bool:
        """Whether it is clear now that the model refuses something more, so that what is left goes out without."""
        refused = self._refused.setdefault(model, set())
        before = len(refused)
        refused |= tally.refused.get(model, set())
        return len(refused) > before

    def _check(self, batch: "Batch", tally: Tally, count: int, times: int) -> None:
        """Raise `ModelNotServed` or `ConnectionFailed` where the calls that are left should not go out once more."""
        host = self.host
        if batch.status == "failed" and not tally.answered:
            raise ModelNotServed(f"{host} refuses the batch {batch.id}: {self._first_error(batch)}.")
        in_vain = batch.status == "completed" and not tally.answered
        if in_vain or times == MOST_TIMES:
            why = next(iter(tally.whys.values()), "")
            said = f" ({self.line(why)})" if why else ""
            calls = "1 call" if count == 1 else f"{count:,} calls"
            raise ConnectionFailed(
                f"{host} leaves {calls} unanswered in the batch {batch.id}, which is {batch.status}{said}."
            )

    def _first_error(self, batch: "Batch") -> str:
        errors = getattr(batch.errors, "data", None) or []
        said = f"{getattr(errors[0], 'message', None) or errors[0]}" if errors else "it gives no reason"
        line = getattr(errors[0], "line", None) if errors else None
        more = f", and {len(errors) - 1:,} more" if len(errors) > 1 else ""
        return (f"line {line}: " if line else "") + self.line(said) + more

    def _report(self) -> None:
        counts = [batch.request_counts for batch in self._seen.values()]
        done = sum(count.completed + count.failed for count in counts if count is not None)
        statuses = Counter(batch.status for batch in self._seen.values())
        said = ", ".join(f"{number} {status}" for status, number in sorted(statuses.items()))
        batches = "1 batch" if len(self._seen) == 1 else f"{len(self._seen)} batches"
        self._tell(done, f"{batches} at {self.host}: {said}")

    def _what_is_out(self) -> str:
        names = [batch.id for batch in self._seen.values() if batch.status not in DONE]
        if not names:
            return ""
        shown = ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")
        going = "The batch goes" if len(names) == 1 else f"{len(names)} batches go"
        return f" {going} on at {self.host} ({shown})."
