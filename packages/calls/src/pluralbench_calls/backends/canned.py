"""Backends that send nothing: a replay, hand-written answers of a sample, and another program that sends."""

from collections.abc import Callable, Mapping, Sequence
from typing import Self

from pluralbench_runs import UserError

from pluralbench_calls.errors import PermanentError
from pluralbench_calls.records import Answer, Backend, Request


class Replay(Backend):
    """A backend without answers: a request reaches it only if the ledger has no answer."""

    concurrency: int | None = 1

    async def send(self, request: Request) -> Answer:
        """Raise `PermanentError` with the name of the call."""
        raise PermanentError(
            f"The ledger has no answer for {request.label or 'a call'} "
            f"(model {request.model} at {request.provider}, key {request.key[:12]}…), and a replay sends nothing."
        )


class Unanswered(PermanentError):
    """Requests have no answer yet."""

    def __init__(self, requests: Sequence[Request]) -> None:
        super().__init__(f"{len(requests):,} requests have no answer yet.")
        self.requests = requests


class ExternalBackend(Replay):
    """A backend for requests that another program sends.

    `ask` raises `Unanswered` with all requests that the ledger does not answer. The caller sends them, records the
    answers, and repeats the same work, until nothing is missing.
    """


class CannedBackend(Backend):
    """A backend that looks up answers by the label of the call.

    Args:
        read: Reads the answers by label, without the attempt; called when first needed.
        missing: What to do about a call without an answer, as the end of a sentence.
    """

    concurrency: int | None = None

    def __init__(self, read: Callable[[], Mapping[str, str]], missing: str) -> None:
        self._read, self._missing = read, missing

    async def __aenter__(self) -> Self:
        """Read the answers."""
        self._answers = self._read()
        return self

    async def send(self, request: Request) -> Answer:
        """Return the hand-written answer to a call. Raises `UserError` if there is none."""
        text = self._answers.get(request.label.rsplit(", ", 1)[0])
        if text is None:
            raise UserError(f"There is no hand-written answer for {request.label}: {self._missing}.")
        return Answer.to(request, "answer", text, finish_reason="stop")
