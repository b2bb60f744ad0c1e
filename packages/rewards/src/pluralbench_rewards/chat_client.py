"""A chat model that is asked until its replies can be parsed, with recorded calls."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pluralbench_calls import (
    Backend,
    CallsError,
    ChatModel,
    ConnectionConfig,
    Ledger,
    ParsedReply,
    Request,
    ask_until_valid,
    chat_backend,
    check_connection,
    working_ledger,
)
from pluralbench_calls.chat import MAX_ATTEMPTS
from pluralbench_calls.retry import KEEP_TO_FORM

Item = TypeVar("Item")
Value = TypeVar("Value")

TEMPERATURE_STEP = 0.2  # added at each retry, because the same request at 0 would get the same reply


@dataclass(frozen=True)
class ChatClient:
    """A chat model with its connection, its recorded calls and its retries.

    No file or connection is opened before the first call.

    Attributes:
        ledger: SQLite file of recorded calls, or an open ledger.
        attempts: Maximum number of requests per item until a reply can be parsed.
        seed: Seed in the requests, if the model is `seeded`.
        temperature_step: Increase of the temperature at each retry.
        backend: Backend that answers instead of the connection, such as `Replay`.

    Raises:
        CallsError: The connection does not fit the model.
    """

    model: ChatModel
    connection: ConnectionConfig
    ledger: Path | Ledger
    attempts: int = 4
    seed: int = 0
    temperature_step: float = TEMPERATURE_STEP
    backend: Backend | None = None

    def __post_init__(self) -> None:
        if self.backend is not None:
            return
        try:
            check_connection(self.model, self.connection)
        except ValueError as error:
            raise CallsError(f"The judge {self.model.model} is not usable: {error}.") from None

    @cached_property
    def _backend(self) -> Backend:  # one for all calls: it remembers which parameters the endpoint refuses
        return self.backend or chat_backend(self.model, self.connection)

    def ask(
        self,
        items: Sequence[Item],
        request: Callable[[Item, int], Request],
        parse: Callable[[Item, str], Value],
        label: str,
        samples: int = 1,
    ) -> list[ParsedReply[Value]]:
        """Send requests to the model until `parse` accepts the replies; see `ask_until_valid`.

        With several `samples`, the first replies to each item come first, then the second ones, and so on.
        """
        with working_ledger(self.ledger) as ledger:
            return ask_until_valid(
                [(item, MAX_ATTEMPTS * sample) for sample in range(samples) for item in items],
                lambda one, attempt: request(one[0], one[1] + attempt),
                lambda one, reply: parse(one[0], reply),
                ledger,
                self._backend,
                attempts=self.attempts,
                limits=self.connection.limits(),
                label=label,
                fix=self._fix(),
            )

    def _fix(self) -> str:
        return KEEP_TO_FORM
