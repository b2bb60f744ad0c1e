"""Backends that send nothing: a replay, and answers that people wrote for a sample, as if they came from a model."""

from collections.abc import Callable, Mapping
from typing import Self

from pluralbench_calls.errors import CannedReplyMissing, MissingAnswers
from pluralbench_calls.records import Answer, Backend, Request


class Replay(Backend):
    """A backend that has no answers of its own: reaching it means that the ledger lacks one."""

    concurrency: int | None = 1

    async def send(self, request: Request) -> Answer:
        """Raise `MissingAnswers`, naming the call."""
        raise MissingAnswers(
            f"The ledger has no answer for {request.label or 'a call'} "
            f"(model {request.model} at {request.provider}, key {request.key[:12]}…), and a replay sends nothing."
        )


class CannedBackend(Backend):
    """A backend that finds an answer by what the call is for.

    read: the answers by the labels of their calls, without the attempt; read when first needed. missing: how to mend a
    call that nobody wrote an answer for, as the end of a sentence.
    """

    concurrency: int | None = None

    def __init__(self, read: Callable[[], Mapping[str, str]], missing: str) -> None:
        self._read, self._missing = read, missing

    async def __aenter__(self) -> Self:
        """Read the answers."""
        self._answers = self._read()
        return self

    async def send(self, request: Request) -> Answer:
        """The answer that was written for this call. Raises `CannedReplyMissing` when nobody wrote one."""
        text = self._answers.get(request.label.rsplit(", ", 1)[0])
        if text is None:
            raise CannedReplyMissing(f"Nobody wrote the {request.label}: {self._missing}.")
        return Answer.to(request, "answer", text, finish_reason="stop")
