"""Put texts into as few messages as an endpoint's limits allow."""

from collections.abc import Callable, Hashable, Sequence

from pluralbench_calls import Answer, Outcome, Request


def pack(
    requests: Sequence[Request], group: Callable[[Request], Hashable], *, strings: int, code_points: int
) -> list[list[Request]]:
    """Messages of at most `strings` texts and `code_points` in all; only requests of one group share a message.

    Longest first into the first message that has room: where texts are small beside a message, that is hardly ever more
    messages than the least possible.
    """
    groups: dict[Hashable, list[Request]] = {}
    for request in requests:
        groups.setdefault(group(request), []).append(request)
    messages: list[list[Request]] = []
    for members in groups.values():
        open_messages: list[tuple[list[Request], int]] = []
        shortest = min(map(text_length, members))
        for request in sorted(members, key=text_length, reverse=True):
            size = text_length(request)
            for place, (message, left) in enumerate(open_messages):
                if size <= left and len(message) < strings:
                    message.append(request)
                    open_messages[place] = (message, left - size)
                    break
            else:
                message = [request]
                messages.append(message)
                open_messages.append((message, code_points - size))
            # A message without room for any text is not looked at again.
            open_messages = [entry for entry in open_messages if entry[1] >= shortest and len(entry[0]) < strings]
    return messages


def text_of(request: Request) -> str:
    """The text of a request."""
    text = request.body["text"]
    assert isinstance(text, str)  # noqa: S101 - made by `Translator.body`
    return text


def text_length(request: Request) -> int:
    """Code points of the text of a request."""
    return len(text_of(request))


def answer_to(request: Request, translated: str, *, model: str | None = None, whole: bool = True) -> Answer:
    """A translation as an answer, which counts the characters that were sent. whole: whether it came to its end."""
    outcome: Outcome = "length" if not whole else "answer" if translated.strip() else "empty"
    return Answer.to(request, outcome, translated, model=model, tokens=(text_length(request), 0))
