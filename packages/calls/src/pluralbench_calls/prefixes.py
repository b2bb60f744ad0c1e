"""Order of sending in which a server's prefix cache computes what prompts share only once."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import pairwise

from pluralbench_calls.records import Request, prompt_texts


class PrefixQueue:
    """Messages for several workers, each of which iterates over the queue; a message goes to one of them.

    A message waits until the first one with the beginning that it shares is answered: a server that computes both at
    the same time may compute the beginning twice. No worker waits: if all messages do, the one that shares least is
    next. The messages are sorted by `prompt_texts` of their first request.
    """

    def __init__(self, messages: Sequence[list[Request]]) -> None:
        self._messages = messages
        texts = [prompt_texts(message[0]) for message in messages]
        shared = [0, *(shared_length(*pair) for pair in pairwise(texts))][: len(messages)]
        self._ready: list[int] = []  # a heap: the beginnings in use stay few
        self._followers: defaultdict[int, list[int]] = defaultdict(list)
        for index, first in enumerate(_first_with_beginning(shared)):
            if first is None:
                heappush(self._ready, index)
            else:
                self._followers[first].append(index)
        self._by_shared = sorted(range(len(messages)), key=lambda index: (-shared[index], -index))
        self._sent: set[int] = set()

    def __iter__(self) -> Iterator[list[Request]]:
        while (index := self._next()) is not None:
            self._sent.add(index)
            yield self._messages[index]
            for follower in self._followers[index]:
                heappush(self._ready, follower)

    def _next(self) -> int | None:
        while self._ready:
            if (index := heappop(self._ready)) not in self._sent:
                return index
        while self._by_shared:
            if (index := self._by_shared.pop()) not in self._sent:
                return index
        return None


def _first_with_beginning(shared: Sequence[int]) -> Iterator[int | None]:
    """Yield for each text the first with the whole beginning that it shares with the one before; None if nothing."""
    longer: list[tuple[int, int]] = []  # shared characters, ascending, and the first text that has them
    for index, length in enumerate(shared):
        first = index - 1
        while longer and longer[-1][0] >= length:
            first = longer.pop()[1]
        longer.append((length, first))
        yield first if length else None


def shared_length(one: Sequence[str], other: Sequence[str]) -> int:
    """Count the characters with which the texts of two prompts begin alike."""
    total = 0
    for text, other_text in zip(one, other, strict=False):
        if text != other_text:
            low, high = 0, min(len(text), len(other_text))
            while low < high:  # comparing slices is much faster than comparing characters
                middle = (low + high + 1) // 2
                low, high = (middle, high) if text[low:middle] == other_text[low:middle] else (low, middle - 1)
            return total + low
        total += len(text)
    return total
