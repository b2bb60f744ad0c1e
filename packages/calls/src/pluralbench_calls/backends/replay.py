"""Answers from the ledger alone: nothing is ever sent, and what is missing is named."""

from pluralbench_calls.errors import MissingAnswers
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
