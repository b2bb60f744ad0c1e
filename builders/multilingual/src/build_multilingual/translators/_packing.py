"""Pack texts into as few messages as an endpoint's limits allow."""

from collections.abc import Callable, Hashable, Sequence

from pluralbench_calls import Answer, Outcome, Request


def pack(
    requests: Sequence[Request], group: Callable[[Request], Hashable], *, strings: int, code_points: int
) -> list[list[Request]]:
    """Pack requests into messages, longest first, each into the first message with room.

    Only requests of the same `group` share a message, of at most `strings` texts and `code_points` characters. If texts
    are short relative to a message, the number of messages is nearly always the minimum."""
    groups: dict[Hashable, list[Request]] = {}
    for request in requests:
        groups.setdefault(group(request), []).append(request)
    messages: list[list[Request]] = []
    for members in groups.values():
        open_messages: list[tuple[list[Request], int]] = []
        shortest = min(map(text_length, members))
        for request in sorted(members, key=text_length, reverse=True):
            size = text_length(request)
            for index, (message, left) in enumerate(open_messages):
                if size <= left and len(message) < strings:
                    message.append(request)
                    open_messages[index] = (message, left - size)
                    break
            else:
                message = [request]
                messages.append(message)
                open_messages.append((message, code_points - size))
            # Skip messages without room for the shortest text from now on.
            open_messages = [entry for entry in open_messages if entry[1] >= shortest and len(entry[0]) < strings]
    return messages


def request_text(request: Request) -> str:
    """Return the text of a request."""
    text = request.body["text"]
    assert isinstance(text, str)  # noqa: S101 - from `Translator.body`
    return text


def text_length(request: Request) -> int:
    """Return the code points of a request's text."""
    return len(request_text(request))


def translation_answer(request: Request, translated: str, *, model: str | None = None, complete: bool = True) -> Answer:
    """Return the answer to a request, which counts the characters that were sent.

    `model` is the name that the translator gives. A translation is `complete` if it reached its end.
    """
    outcome: Outcome = "length" if not complete else "answer" if translated.strip() else "empty"
    return Answer.to(request, outcome, translated, model=model, tokens=(text_length(request), 0))
