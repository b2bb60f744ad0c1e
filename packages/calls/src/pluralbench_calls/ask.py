"""Ask requests: answer what the ledger knows, send the rest, record each answer as it arrives."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from aiolimiter import AsyncLimiter
from pluralbench_runs import FrozenModel, Json, Meter, one_line, progress
from pydantic import Field

from pluralbench_calls.batches.backend import OpenAIBatches
from pluralbench_calls.batches.file_backend import FileBackend
from pluralbench_calls.batches.store import BatchStore
from pluralbench_calls.errors import CallsError, Interrupted, MaxCostReached, RequestsRejected
from pluralbench_calls.ledger import Ledger
from pluralbench_calls.loops import run
from pluralbench_calls.records import Answer, Backend, PackingBackend, Request, max_prompt_tokens

BYTES_A_TOKEN = 4  # on average; never less than one, by which the ceiling is reckoned
LONGEST = 300  # characters of a server's sentence
FEW = 3  # rejected requests, and none answered, are enough to see that the fault is not one request's alone
TOO_LARGE = "413"  # the HTTP status of a request that is longer than a server takes
WRONG_FORM = {"400", "422", TOO_LARGE}  # of all that a server finds wrong


class Price(FrozenModel):
    """US dollars for a million tokens."""

    input: float = Field(0.0, ge=0, allow_inf_nan=False, description="US dollars for a million tokens that are sent.")
    output: float = Field(
        0.0, ge=0, allow_inf_nan=False, description="US dollars for a million tokens that are answered."
    )

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """US dollars for so many tokens."""
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1e6


FREE = Price()


@dataclass(frozen=True)
class Limits:
    """How fast requests are sent, and how much they may cost.

    concurrency: requests in flight at once. max_cost: the most US dollars for all answers that the ledger holds and all
    requests that are sent; None is no ceiling. An answer whose server says no tokens counts as the most that it can
    cost while the run goes on.
    """

    concurrency: int = 8
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    price: Price = FREE
    max_cost: float | None = None


def ask(
    requests: Sequence[Request],
    ledger: Ledger,
    backend: Backend,
    *,
    limits: Limits | None = None,
    label: str = "calls",
    answered: bool = False,
) -> list[Answer]:
    """Answer `requests`, in their order; equal requests are asked once and known ones not at all.

    Where the backend packs several requests into a message, each still has its own key and answer. Each new answer is
    in the ledger before the next message of its worker goes out. At the first error that concerns every request, what
    is in flight is finished and recorded and the error raised; so are the first rejections where nothing is answered
    (see `_RejectionGuard`). Inside a running event loop, such as a notebook's, it works in a thread of its own.

    label: what the requests are, in the plural. answered: requests of this form have been answered before, so a
    rejection is the trouble of one request.

    Raises a `CallsError` that says how many answers are recorded; asking again goes on from there.
    """
    unique = {request.key: request for request in requests}
    known = ledger.outcomes(unique)
    missing = [request for key, request in unique.items() if key not in known]
    if missing:
        try:
            with progress(label, len(missing)) as meter:
                answered = answered or any(outcome != "error" for outcome in known.values())
                limits = limits or Limits()
                if isinstance(backend, FileBackend):
                    missing = _filed(missing, ledger, backend, limits.price, meter, label, answered=answered)
                    backend = backend.online
                else:
                    _mind_batches(missing, ledger, backend, meter)
                if missing:
                    trial = _RejectionGuard(ledger, missing, answered=answered)
                    run(_send_all(missing, ledger, backend, limits, meter, trial))
        except (CallsError, KeyboardInterrupt) as error:
            said = error if isinstance(error, CallsError) else Interrupted("Interrupted.")
            recorded = f"{len(ledger.outcomes(unique)):,} of {len(unique):,} {label} are recorded"
            go_on = "; run the same command again to go on" if said.resumable else ""
            raise type(said)(f"{said} {recorded}{go_on}.") from None
    answers = ledger.find(unique)
    return [answers[request.key] for request in requests]


def _filed(
    missing: list[Request],
    ledger: Ledger,
    backend: FileBackend,
    price: Price,
    meter: Meter,
    label: str,
    *,
    answered: bool,
) -> list[Request]:
    """Record the answers that files hold; the requests that are to be sent. Raises `CallsPending` for written ones."""
    trial = _RejectionGuard(ledger, missing, answered=answered)
    for answers in backend.take(missing, ledger):
        trial.record(answers)
        for answer in answers:
            meter.advance(price.cost(answer.prompt_tokens, answer.completion_tokens))
    trial.end()
    taken = ledger.outcomes(request.key for request in missing)
    left = [request for request in missing if request.key not in taken]
    if left:
        _mind_batches(left, ledger, backend.online, meter)
        backend.write(left, ledger, label)
    return left


def _mind_batches(missing: Sequence[Request], ledger: Ledger, backend: Backend, meter: Meter) -> None:
    """Tell a backend of batches where it keeps them. Raises `CallsError` for another where one of them is out."""
    batches = BatchStore(ledger.path.with_suffix(".batches"))
    if isinstance(backend, OpenAIBatches):
        backend.keep(batches.folder, meter.show_remote)
    elif out := batches.out_for(missing):
        raise CallsError(
            f"{sum(len(kept.calls) for kept in out):,} calls are out in a batch at {out[0].base_url}; go on with "
            f"--batch, or remove {batches.folder} to have them sent, and paid, again."
        )


async def _send_all(
    missing: list[Request], ledger: Ledger, backend: Backend, limits: Limits, meter: Meter, trial: "_RejectionGuard"
) -> None:
    size = backend.size if isinstance(backend, PackingBackend) else max_prompt_tokens
    gate = _Throttle(limits, size, spent=limits.price.cost(*ledger.usage()))
    failures: list[CallsError] = []
    entering: set[asyncio.Task[float]] = set()

    async def work(queue: Iterator[list[Request]]) -> None:
        for message in queue:
            try:
                requests = {request.key: request for request in message}
                async with trial:
                    if failures:
                        return
                    at_gate = asyncio.create_task(gate.enter(message))
                    entering.add(at_gate)
                    try:
                        reserved = await at_gate
                    finally:
                        entering.discard(at_gate)
                    try:
                        async for answers in _send(backend, message):
                            trial.record(answers)
                            for answer in answers:
                                meter.advance(gate.spend(answer, requests[answer.key]))
                    finally:
                        await gate.leave(reserved)
            except CallsError as error:
                failures.append(error)
            except asyncio.CancelledError:
                if not failures:
                    raise
            if failures:
                for task in list(entering):  # what waits for a rate would only fail too
                    task.cancel()
                return

    messages = backend.pack(missing) if isinstance(backend, PackingBackend) else [[request] for request in missing]
    workers = min(limits.concurrency, backend.concurrency or limits.concurrency, len(messages))
    queue = iter(messages)
    async with backend:
        try:
            await asyncio.gather(*(work(queue) for _ in range(workers)))
        except asyncio.CancelledError:
            said = next((one for one in failures if isinstance(one, Interrupted)), None)
            if said is None:
                raise
            raise said from None  # what goes on without this process
    if failures:
        raise failures[0]
    trial.end()


async def _send(backend: Backend, message: list[Request]) -> AsyncIterator[list[Answer]]:
    if isinstance(backend, PackingBackend):
        async for answers in backend.send_packed(message):
            yield answers
    else:
        for request in message:
            yield [await backend.send(request)]


class _RejectionGuard:
    """Records answers, but holds rejections back until it is clear that the server takes requests of this form.

    One text may be too long: its rejection is recorded, and the rest of the run goes on. But where every request is
    rejected, they have a fault in common, such as a parameter that the model does not know. Recorded, such rejections
    would fill a run with invalid results and stand in its way after the fault is mended. So none is recorded before the
    first answer, and `FEW` of them, or fewer where there are no more requests, stop the run. A rejection comes back
    sooner than an answer: whether nothing is answered is known only when nothing is in flight any more, and until then
    nothing more is sent. Where the server answered other requests of the work, one that is too large is so by itself.

    A context manager around each message that is sent; raises `RequestsRejected`.
    """

    def __init__(self, ledger: Ledger, requests: Sequence[Request], *, answered: bool) -> None:
        self._ledger, self._answered = ledger, answered
        takes_some = any(map(ledger.has_answer_from, {request.provider for request in requests}))
        self._wrong = WRONG_FORM - {TOO_LARGE} if takes_some else WRONG_FORM
        self._held: list[Answer] = []
        self._in_flight = 0
        self._changed = asyncio.Condition()

    async def __aenter__(self) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._answered or len(self._held) < FEW or self._in_flight == 0)
            if len(self._held) >= FEW:
                self.end()
            self._in_flight += 1

    async def __aexit__(self, *exc: object) -> None:
        async with self._changed:
            self._in_flight -= 1
            self._changed.notify_all()

    def record(self, answers: Sequence[Answer]) -> None:
        """Record answers that came back, and what was held back once one of them shows that the form is right."""
        self._answered |= any(answer.outcome != "error" for answer in answers)
        came = [*self._held, *answers]
        self._held = [] if self._answered else [answer for answer in came if answer.finish_reason in self._wrong]
        self._ledger.record(*(answer for answer in came if answer not in self._held))

    def end(self) -> None:
        """Nothing is in flight. Raises `RequestsRejected` where all that came back are rejections."""
        if self._held:
            said = self._held[0]
            raise RequestsRejected(f"{said.provider} rejects these requests: {one_line(said.text, LONGEST)}.")


class _Throttle:
    """Lets a message pass when the rates and the ceiling allow it."""

    def __init__(self, limits: Limits, size: Callable[[Request], int], spent: float) -> None:
        self._limits, self._size, self._spent = limits, size, spent
        self._reserved, self._in_flight = 0.0, 0
        self._changed = asyncio.Condition()
        self._requests = _limiter(limits.requests_per_minute)
        self._tokens = _limiter(limits.tokens_per_minute)

    async def enter(self, message: Sequence[Request]) -> float:
        """Wait for the rates; reserve and return the most that the message can cost, so no ceiling is crossed."""
        size, longest = self._longest(message)
        cost = self._most(message)
        await self._reserve(cost, unbounded=longest == 0 and self._limits.price.output > 0)
        try:
            if self._requests is not None:
                await self._requests.acquire()
            if self._tokens is not None:
                tokens = size / BYTES_A_TOKEN + longest
                while tokens > 0:
                    await self._tokens.acquire(min(tokens, self._tokens.max_rate))
                    tokens -= self._tokens.max_rate
        except BaseException:
            await self.leave(cost)
            raise
        return cost

    async def leave(self, reserved: float) -> None:
        """Give back what was reserved, once what was spent is counted."""
        async with self._changed:
            self._reserved -= reserved
            self._in_flight -= 1
            self._changed.notify_all()

    async def _reserve(self, cost: float, *, unbounded: bool) -> None:
        ceiling = self._limits.max_cost
        async with self._changed:
            if ceiling is not None:
                if unbounded:
                    raise MaxCostReached(
                        "A request without a limit of tokens may cost any amount, so the spending ceiling of "
                        f"${ceiling:.2f} cannot be kept; set the limit."
                    )
                # While others are in flight their reserve may come back, so only an idle gate gives up.
                await self._changed.wait_for(
                    lambda: self._spent + self._reserved + cost <= ceiling or self._in_flight == 0
                )
                if self._spent + cost > ceiling:
                    raise MaxCostReached(
                        f"The spending ceiling of ${ceiling:.2f} is reached: ${self._spent:.4f} is spent and the next "
                        f"call could cost ${cost:.4f}; raise `max_cost` to go on."
                    )
            self._reserved += cost
            self._in_flight += 1

    def spend(self, answer: Answer, request: Request) -> float:
        """Count what an answer cost, in US dollars; under a ceiling the most it can have, where nobody says."""
        said = answer.outcome == "error" or answer.prompt_tokens or answer.completion_tokens
        tokens = answer.prompt_tokens, answer.completion_tokens
        cost = self._limits.price.cost(*tokens) if said else self._most([request])
        self._spent += cost
        return cost

    def _longest(self, message: Sequence[Request]) -> tuple[int, int]:
        """The most tokens, or what else is billed, of a message and of its answers."""
        return sum(map(self._size, message)), sum(_longest(request.body) for request in message)

    def _most(self, message: Sequence[Request]) -> float:
        """The most that a message can cost; 0 without a ceiling."""
        return 0.0 if self._limits.max_cost is None else self._limits.price.cost(*self._longest(message))


def _limiter(per_minute: float | None) -> AsyncLimiter | None:
    if per_minute is None:
        return None
    # A tenth of the minute's allowance, and at least one, may go at once; the rest is spread evenly.
    at_once = max(1.0, per_minute / 10)
    return AsyncLimiter(at_once, 60 * at_once / per_minute)


def _longest(body: Mapping[str, Json]) -> int:
    """The most tokens that can be answered; 0 where the request does not limit them."""
    limits = [body.get(name) for name in ("max_tokens", "max_completion_tokens")]
    samples = body.get("n")
    return max((limit for limit in limits if isinstance(limit, int)), default=0) * (
        samples if isinstance(samples, int) else 1
    )
