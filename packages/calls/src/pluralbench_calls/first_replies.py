"""Stop a run whose first replies cannot be read."""

from collections.abc import Callable, Sequence

from pluralbench_calls.records import Answer, Request

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
