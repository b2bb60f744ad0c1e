"""Answer requests from the ledger or a backend, and record each new answer as it arrives."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import NoReturn

from pluralbench_runs import Meter, log_status, one_line, progress

from pluralbench_calls.backends.canned import ExternalBackend, Replay, Unanswered
from pluralbench_calls.batches.backend import OpenAIBatches
from pluralbench_calls.batches.file_backend import FileBackend
from pluralbench_calls.batches.files import BatchStore
from pluralbench_calls.errors import CallsError, Interrupted, RequestFailed
from pluralbench_calls.ledger import Ledger
from pluralbench_calls.limits import BYTES_PER_TOKEN, FREE, Limits, Price, Throttle, max_completion_tokens
from pluralbench_calls.loops import run
from pluralbench_calls.prefixes import PrefixQueue
from pluralbench_calls.records import (
    NOT_ANSWERED,
    Answer,
    Backend,
    PackingBackend,
    Request,
    max_prompt_tokens,
    prompt_texts,
)

FIRST_REPLIES = 12  # if none of so many can be read, no more are requested


class FirstReplies:
    """Decides by the first answers whether more are requested, whatever order they come in: short ones come first.

    One that can be read is enough. If none can be read, the first `FIRST_REPLIES` decide in the order of sending, and
    nothing more is sent until they have come. Recorded answers and those of files are the first. `stop` gets those of
    which none can be read, and may raise a `CallsError`.
    """

    def __init__(self, can_be_read: Callable[[Answer], bool], stop: Callable[[Sequence[Answer]], None]) -> None:
        self._can_be_read, self._stop = can_be_read, stop
        self._readable = False
        self._sent: dict[str, Answer | None] = {}
        self._first: list[Answer] = []
        self._came = 0

    def sending(self, requests: Sequence[Request]) -> None:
        """Notice requests as they are sent."""
        if not self._readable:
            self._sent |= dict.fromkeys(request.key for request in requests)

    def receive(self, answers: Sequence[Answer]) -> None:
        """Notice answers. Rejections by the server do not count."""
        replies = [answer for answer in answers if answer.outcome != "error"]
        self._readable = self._readable or any(map(self._can_be_read, replies))
        if self._readable:
            return
        self._came += len(replies)
        self._first += [answer for answer in replies if answer.key not in self._sent]
        self._sent |= {answer.key: answer for answer in answers if answer.key in self._sent}
        while len(self._first) < FIRST_REPLIES and (answer := next(iter(self._sent.values()), None)):
            del self._sent[answer.key]
            self._first += [answer] if answer.outcome != "error" else []
        if len(self._first) >= FIRST_REPLIES:
            self._stop(self._first)

    @property
    def undecided(self) -> bool:
        """Whether enough answers have come, but not yet the first ones."""
        return not self._readable and self._came >= FIRST_REPLIES > len(self._first)


MAX_MESSAGE_LENGTH = 300  # characters of a server's message
LEAST_COST = 0.01  # US dollars that are worth a line
MAX_REJECTIONS = 3  # rejections without any answer that stop a run, because all requests share the problem
MAX_FAILURES = 5  # different prompts in a row that the server does not answer, which stop a run
TOO_LARGE = "413"  # HTTP status for a request that is too long for the server
FEW_CUTS, SHARE_OF_CUTS = 4, 0.05  # more answers than both of them that end at the token limit are noticed
SYSTEM_ROLE = re.compile(r"\bsystem (role|messages?|prompts?)\b", re.IGNORECASE)
BAD_REQUEST = {"400", "422", TOO_LARGE}  # HTTP statuses that reject the content of a request


def ask(
    requests: Sequence[Request],
    ledger: Ledger,
    backend: Backend,
    *,
    limits: Limits | None = None,
    label: str = "calls",
    answered: bool = False,
    first_replies: FirstReplies | None = None,
) -> list[Answer]:
    """Answer requests from the ledger, and send those without a recorded answer to a backend.

    Equal requests are sent once, in an order in which a server's prefix cache computes the beginnings that prompts
    share only once (see `PrefixQueue`). Each new answer is recorded before the next message of its worker is sent.
    After an error that concerns every request, such as a wrong key, the requests in flight are finished and recorded,
    and the error is raised. The same happens if the first requests are all rejected, and at Ctrl-C; a second one ends
    at once. A request that fails in all tries becomes an answer of the outcome "error" with the finish reason
    `NOT_ANSWERED`, which the next `ask` sends again; several in a row stop the run. Inside a running event loop, such
    as a notebook's, the work runs in its own thread.

    Args:
        requests: The requests. If the backend packs several into a message, each still has its own key and answer.
        ledger: Where answers are looked up and recorded.
        backend: Answers the requests that are not in the ledger.
        limits: Rates and cost. Default: `Limits()`.
        label: Name of the requests in messages, in the plural.
        answered: Whether the server has answered requests of this form before. If so, a rejection concerns only that
            request, and answers that are cut off are not noticed again.
        first_replies: Decides by the first answers whether more are requested. Default: all are.

    Returns:
        The answers in the order of `requests`.

    Raises:
        CallsError: The requests cannot be answered. The message counts the recorded answers; a second call sends only
            the rest. `Unanswered` if another program sends them.
    """
    unique = {request.key: request for request in requests}
    failed = set() if isinstance(backend, Replay) else ledger.failed()
    outcomes = {key: outcome for key, outcome in ledger.outcomes(unique).items() if key not in failed}
    missing = sorted((request for key, request in unique.items() if key not in outcomes), key=prompt_texts)
    if missing and isinstance(backend, ExternalBackend):
        raise Unanswered(missing)
    if missing:
        first = first_replies or FirstReplies(lambda _: True, lambda _: None)
        received: Callable[[Sequence[Answer]], None] = first.receive
        if not answered:
            received = _notice_cuts(received, label, max(max_completion_tokens(request.body) for request in missing))
        try:
            with progress(label, len(unique), done=len(unique) - len(missing)) as meter:
                answered = answered or any(outcome != "error" for outcome in outcomes.values())
                received([*ledger.find(outcomes).values()])
                limits = limits or Limits()
                if isinstance(backend, FileBackend):
                    guard = _RejectionGuard(ledger, missing, first, received, answered=answered)
                    missing = _answer_from_files(missing, ledger, backend, limits.price, meter, label, guard)
                    backend = backend.online
                else:
                    _check_batches(missing, ledger, backend, meter)
                if missing:
                    _log_cost(missing, backend, limits.price, label)
                    guard = _RejectionGuard(ledger, missing, first, received, answered=answered)
                    run(_send_all(missing, ledger, backend, limits, meter, guard))
        except (CallsError, KeyboardInterrupt) as cause:
            error = cause if isinstance(cause, CallsError) else Interrupted("Interrupted.")
            count = len(ledger.outcomes(unique).keys() - ledger.failed())
            recorded = f"{count:,} of {len(unique):,} {label} are recorded"
            hint = "; rerun the same command to resume" if error.resumable else ""
            raise type(error)(f"{error} {recorded}{hint}.") from (None if error is cause else cause)
    answers = ledger.find(unique)
    return [answers[request.key] for request in requests]


def _log_cost(missing: Sequence[Request], backend: Backend, price: Price, label: str) -> None:
    if price == FREE:
        return
    if isinstance(backend, PackingBackend) and not isinstance(backend, OpenAIBatches):
        units = float(sum(map(backend.size, missing)))
    else:
        units = sum(map(max_prompt_tokens, missing)) / BYTES_PER_TOKEN
    dollars = price.cost(round(units), sum(max_completion_tokens(request.body) for request in missing))
    if dollars >= LEAST_COST:
        log_status(f"{len(missing):,} {label} are ahead, for at most about ${dollars:,.2f}.")


def _notice_cuts(
    check: Callable[[Sequence[Answer]], None], label: str, limit: int
) -> Callable[[Sequence[Answer]], None]:
    """Return a check that also prints a line, once, when more than a few answers are cut off at the token limit."""
    cut, total, noticed = 0, 0, False

    def counting_check(answers: Sequence[Answer]) -> None:
        nonlocal cut, total, noticed
        total += len(answers)
        cut += sum(answer.is_at_limit for answer in answers)
        if not noticed and cut > max(FEW_CUTS, SHARE_OF_CUTS * total):
            noticed = True
            log_status(
                f"{cut:,} of {total:,} {label} so far ({cut / total:.0%}) are cut off at the limit of {limit:,} "
                "tokens; stop the run, and raise it with --max-tokens (`max_tokens=...`)."
            )
        check(answers)

    return counting_check


def _answer_from_files(
    missing: list[Request],
    ledger: Ledger,
    backend: FileBackend,
    price: Price,
    meter: Meter,
    label: str,
    guard: "_RejectionGuard",
) -> list[Request]:
    """Record the answers in the result files, and return the requests without one, or write them to a file."""
    for answers in backend.read_answers(missing, ledger):
        guard.record(answers)
        for answer in answers:
            meter.advance(price.cost(answer.prompt_tokens, answer.completion_tokens))
    guard.finish()
    recorded = ledger.outcomes(request.key for request in missing)
    unanswered = [request for request in missing if request.key not in recorded]
    if unanswered:
        _check_batches(unanswered, ledger, backend.online, meter)
        backend.write_pending(unanswered, ledger, label)
    return unanswered


def _check_batches(missing: Sequence[Request], ledger: Ledger, backend: Backend, meter: Meter) -> None:
    """Give a batch backend its store. For another backend, raise `CallsError` if a batch with these calls is open."""
    store = BatchStore(ledger.path.with_suffix(".batches"))
    if isinstance(backend, OpenAIBatches):
        backend.use_store(store.folder, meter.show_remote)
    elif batches := store.batches_with(missing):
        raise CallsError(
            f"{sum(len(batch.calls) for batch in batches):,} calls are in an open batch at {batches[0].base_url}; "
            f"resume with `connection.batch=True`, or remove {store.folder} to send and pay for them again."
        )


async def _send_all(
    missing: list[Request], ledger: Ledger, backend: Backend, limits: Limits, meter: Meter, guard: "_RejectionGuard"
) -> None:
    size = backend.size if isinstance(backend, PackingBackend) else max_prompt_tokens
    throttle = Throttle(limits, size, spent=limits.price.cost(*ledger.usage()))
    throttle.charge_uncounted(missing, ledger.uncounted(request.provider for request in missing))
    failures: list[CallsError] = []
    waiting: set[asyncio.Task[float]] = set()

    def stop(error: CallsError) -> None:
        failures.append(error)
        for task in list(waiting):  # a message that waits for a rate limit would fail too
            task.cancel()

    async def work(queue: Iterator[list[Request]]) -> None:
        for message in queue:
            try:
                requests = {request.key: request for request in message}
                async with guard:
                    if failures:
                        return
                    entering = asyncio.create_task(throttle.enter(message))
                    waiting.add(entering)
                    try:
                        reserved = await entering
                    finally:
                        waiting.discard(entering)
                    guard.sending(message)
                    try:
                        async for answers in _send(backend, message):
                            guard.record(answers)
                            for answer in answers:
                                meter.advance(throttle.spend(answer, requests[answer.key]))
                    finally:
                        await throttle.leave(reserved)
            except CallsError as error:
                stop(error)
            except asyncio.CancelledError:
                if not failures:
                    raise
            if failures:
                return

    messages = backend.pack(missing) if isinstance(backend, PackingBackend) else [[request] for request in missing]
    workers = min(limits.concurrency, backend.concurrency or limits.concurrency, len(messages))
    queue = iter(messages) if isinstance(backend, PackingBackend) else PrefixQueue(messages)
    async with backend:
        working = asyncio.gather(*(work(iter(queue)) for _ in range(workers)))
        try:
            # Of a chat server, the requests in flight are paid already; a batch would take hours.
            await (working if isinstance(backend, PackingBackend) else _interrupted_once(working, stop))
        except asyncio.CancelledError:
            interrupted = next((error for error in failures if isinstance(error, Interrupted)), None)
            if interrupted is None:
                raise
            raise interrupted from None  # its message names the batches that continue at the server
    if failures:
        raise failures[0]
    guard.finish()


async def _interrupted_once(working: "asyncio.Future[list[None]]", stop: Callable[[CallsError], None]) -> None:
    """Wait for the work to end; at a first Ctrl-C, stop it and wait for the requests in flight."""
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        stop(Interrupted("Interrupted."))
        log_status("The requests in flight are finished first; Ctrl-C again ends at once.")
        await working


async def _send(backend: Backend, message: list[Request]) -> AsyncIterator[list[Answer]]:
    if isinstance(backend, PackingBackend):
        async for answers in backend.send_packed(message):
            yield answers
    else:
        for request in message:
            try:
                yield [await backend.send(request)]
            except RequestFailed as error:
                yield [Answer.to(request, "error", str(error), finish_reason=NOT_ANSWERED)]


class _RejectionGuard:
    """Records answers, but withholds rejections until the server is known to accept requests of this form.

    A single rejected request, such as one that is too long, is recorded. If every request is rejected, they share a
    problem, such as a parameter that the model does not know, and recording them would fill the run with invalid
    results. So no rejection is recorded before the first answer, and `MAX_REJECTIONS` of them (or fewer, if there are
    no more requests) stop the run. Rejections arrive sooner than answers, so nothing more is sent until no request is
    in flight. A request that is too large concerns only itself if the ledger has an answer from the same server.
    Nothing more is sent either while the first replies are undecided, see `FirstReplies`.

    Requests that the server does not answer in any try are withheld likewise, until an answer or a rejection shows that
    the server works. `MAX_FAILURES` different prompts in a row, and no more than `MAX_REJECTIONS` before the first
    answer, stop the run.
    """

    def __init__(
        self,
        ledger: Ledger,
        requests: Sequence[Request],
        first_replies: FirstReplies,
        received: Callable[[Sequence[Answer]], None],
        *,
        answered: bool,
    ) -> None:
        self._ledger, self._received, self._answered = ledger, received, answered
        self._first_replies, self.sending = first_replies, first_replies.sending
        self._has_answers = any(map(ledger.has_answer_from, {request.provider for request in requests}))
        self._withheld_reasons = BAD_REQUEST - {TOO_LARGE} if self._has_answers else BAD_REQUEST
        self._withheld: list[Answer] = []
        self._failed: dict[str, Answer] = {}
        self._requests = requests
        self._in_flight = 0
        self._changed = asyncio.Condition()

    async def __aenter__(self) -> None:
        async with self._changed:
            await self._changed.wait_for(
                lambda: (
                    self._in_flight == 0
                    or (not self._first_replies.undecided and (self._answered or len(self._withheld) < MAX_REJECTIONS))
                )
            )
            if len(self._withheld) >= MAX_REJECTIONS:
                self.finish()
            self._in_flight += 1

    async def __aexit__(self, *exc: object) -> None:
        async with self._changed:
            self._in_flight -= 1
            self._changed.notify_all()

    def record(self, answers: Sequence[Answer]) -> None:
        """Record answers, then pass them on. The first that is no rejection also records the withheld rejections."""
        failed = {answer.key: answer for answer in answers if answer.finish_reason == NOT_ANSWERED}
        of_server = [answer for answer in answers if answer.key not in failed]
        self._answered |= any(answer.outcome != "error" for answer in of_server)
        if of_server:
            self._ledger.record(*self._failed.values())
            self._failed = {}
        received = [*self._withheld, *of_server]
        self._withheld = (
            [] if self._answered else [answer for answer in received if answer.finish_reason in self._withheld_reasons]
        )
        self._ledger.record(*(answer for answer in received if answer not in self._withheld))
        self._received(answers)
        self._failed |= failed
        most = MAX_FAILURES if self._answered or self._has_answers else MAX_REJECTIONS
        if failed and len({(*prompt_texts(one),) for one in self._requests if one.key in self._failed}) >= most:
            self._stop_failed()

    def finish(self) -> None:
        """Raise `CallsError` if all requests were rejected or failed. Call it when no request is in flight."""
        if self._withheld:
            first = self._withheld[0]
            message = one_line(first.text, MAX_MESSAGE_LENGTH)
            hint = "; use a prompt without a system message" if SYSTEM_ROLE.search(message) else ""
            raise CallsError(f"{first.provider} rejects these requests: {message}{hint}.")
        if self._failed and not (self._answered or self._has_answers):
            self._stop_failed()
        self._ledger.record(*self._failed.values())

    def _stop_failed(self) -> NoReturn:
        raise CallsError(next(iter(self._failed.values())).text)
