"""Read a row's prompt as messages, and its responses with their ranks, from the supported shapes."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from pluralbench.data.fields import Columns
from pluralbench.data.labels import FIRST, SECOND, TIE, Labels, label_key

Row = Mapping[str, Any]
Responses = tuple[list[str], list[str], list[int | None]]
"""Names, texts and ranks."""
MAX_IDS = 5  # ids in a message
MAX_CHARACTERS = 40  # characters of a value in an error
ROLES = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human", "prompter"), "user"),
    **dict.fromkeys(("assistant", "gpt", "chatgpt", "bing", "bard", "model", "bot", "ai"), "assistant"),
}
"""Role of a message by its names in files of OpenAI, ShareGPT, Open-Assistant, Gemini and LangChain."""
MESSAGE_KEYS = (("role", "content"), ("from", "value"))
"""Keys of a message's role and text."""
LETTERS = ("A", "B")
RANKS = {TIE: (1, 1), FIRST: (1, 2), SECOND: (2, 1)}
PAIR = 2
MARKS = {"1": 1, "2": -1, "s": 0}  # response that a mark prefers: 1 the first, -1 the second, 0 none


def first_ids(ids: Sequence[str]) -> str:
    """Return the first ids of a list, for a message."""
    return ", ".join(ids[:MAX_IDS]) + (", …" if len(ids) > MAX_IDS else "")


def shortened(value: object) -> str:
    """Return the repr of a value, cut to a few characters, for a message."""
    return repr(value if len(str(value)) <= MAX_CHARACTERS else f"{str(value)[:MAX_CHARACTERS]}…")


def as_texts(values: pl.Series) -> pl.Series:
    """Convert values to texts as `str` does."""
    if values.dtype.is_integer() or values.dtype == pl.String:
        return values.cast(pl.String)
    return pl.Series(values.name, [None if value is None else str(value) for value in values], pl.String)


def parse_messages(row: Row, columns: Columns, *, user_turns: bool = False) -> list[dict[str, str]]:
    """Read the prompt of a row as messages.

    Args:
        row: The row.
        columns: Columns of the table.
        user_turns: Whether a list of texts has the user's turns.

    Raises:
        KeyError, TypeError, ValueError: If the row has another shape.
    """
    parts = [(name, _cell(row, name, columns)) for name in columns.prompt]
    name, first = parts[0]
    system_text = _plain_text(row.get(columns.system), columns.system) if columns.system else ""
    system = [{"role": "system", "content": system_text}] if system_text else []
    if len(parts) == 1 and isinstance(first, list):
        if not first:
            raise ValueError("the prompt has no message")
        if len(first) > 1 and not user_turns and any(isinstance(part, str) for part in first):
            raise TypeError(
                f"`{name}` is a list of {len(first)} texts, which do not say whose they are; give messages, or set "
                "`user_turns = true` in the benchmark's file if all are the user's"
            )
        return [*system, *(_message(part, name) for part in first)]
    texts = [_plain_text(part, name) for name, part in parts]
    return [*system, {"role": "user", "content": "\n\n".join(text for text in texts if text.strip())}]


def _message(part: Any, column: str) -> dict[str, str]:
    """Read a message of a list; a text is a user message."""
    if isinstance(part, str):
        return {"role": "user", "content": part}
    return {"role": _role(part, column), "content": _plain_text(part, column)}


def _role(message: Any, column: str) -> str:
    name = _value(message, _message_keys(message)[0], column)
    role = ROLES.get(name.lower()) if isinstance(name, str) else None
    if role is None:
        raise ValueError(f"the role {shortened(name)} of a message in `{column}` is none of {', '.join(ROLES)}")
    return role


def _message_keys(message: Any) -> tuple[str, str]:
    has = message if isinstance(message, Mapping) else {}
    return next((keys for keys in MESSAGE_KEYS if has.get(keys[0]) is not None), MESSAGE_KEYS[0])


def _cell(row: Row, name: str, columns: Columns) -> Any:
    return parsed_value(row, name) if name in (columns.json_texts or ()) else row[name]


def parse_responses(
    row: Row, columns: Columns, labels: Labels | None = None, *, several: bool = False, in_place: bool = False
) -> Responses:
    """Read the responses of a row and their ranks.

    Args:
        row: The row.
        columns: Columns of the table.
        labels: Meaning of the labels. Default: 1 and 2.
        several: Whether `chosen` and `rejected` are lists of responses.
        in_place: Whether the responses of a labeled pair keep their places, under the names A and B.

    Returns:
        Names, texts and ranks of the responses.

    Raises:
        KeyError, TypeError, ValueError: If the row has another shape.
    """
    if columns.right:
        return _parse_right(row, columns, labels or Labels())
    if columns.responses:
        ranks = parsed_value(row, columns.rank or "rank")
        return _parse_ranking(parsed_value(row, columns.responses), ranks, columns, partial=columns.pairs in row)
    if columns.first and columns.second:
        better = (labels or Labels()).majority(row[label] for label in columns.labels)
        texts = [_response_text(_cell(row, name, columns), name) for name in (columns.first, columns.second)]
        if in_place:
            return [*LETTERS], texts, list(RANKS[better])
        chosen, rejected = reversed(texts) if better == SECOND else texts
        return ["chosen", "rejected"], [chosen, rejected], [1, 1] if better == TIE else [1, 2]
    sides = (columns.chosen, columns.rejected)
    if not several:
        return ["chosen", "rejected"], [_response_text(_cell(row, name, columns), name) for name in sides], [1, 2]
    names, texts, ranks = [], [], []
    single = [isinstance(row[name], str) for name in sides] in ([True, False], [False, True])
    for rank, (side, name) in enumerate(zip(("chosen", "rejected"), sides, strict=True), start=1):
        # A text beside a list is one response, not a list that was written as JSON.
        responses = [row[name]] if single and isinstance(row[name], str) else parsed_value(row, name)
        if responses == []:
            raise ValueError(f"`{name}` is empty; each item needs a right and a wrong response")
        if not isinstance(responses, list):
            raise TypeError(
                f"`{name}` is not a list of responses, which `multiple_responses` requires: {shortened(responses)}"
            )
        names += [f"{side} {number}" for number in range(len(responses))]
        texts += [_plain_text(response, name) for response in responses]
        ranks += [rank] * len(responses)
    return names, texts, ranks


def _parse_right(row: Row, columns: Columns, labels: Labels) -> Responses:
    """Read responses that are right (rank 1) or wrong (rank 2), named by their positions from 0."""
    column = str(columns.responses)
    responses, right = (parsed_value(row, str(name)) for name in (columns.responses, columns.right))
    for name, values in ((columns.responses, responses), (columns.right, right)):
        if not isinstance(values, list):
            raise TypeError(f"`{name}` is not a list: {shortened(values)}")
    if len(responses) != len(right):
        raise ValueError(f"`{column}` has {len(responses)} responses and `{columns.right}` has {len(right)} labels")
    texts = ["\n".join(one) if _is_texts(one) else _plain_text(one, column) for one in responses]
    return [*map(str, range(len(texts)))], texts, [labels.meaning(label) for label in right]


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


def compared_pairs(row: Row, columns: Columns, rank: Sequence[int | None]) -> list[list[int]] | None:
    """Read the pairs of a right and a wrong response that count.

    Args:
        row: The row.
        columns: Columns of the table.
        rank: Ranks of the responses: 1 for right, 2 for wrong.

    Returns:
        The (right, wrong) positions of the pairs, with repetitions; None if the benchmark has no column of pairs.

    Raises:
        TypeError, ValueError: If an entry is not a pair of positions of a right and a wrong response.
    """
    if columns.compared is None:
        return None
    pairs = []
    for entry in parsed_value(row, columns.compared) or ():
        if not isinstance(entry, list) or len(entry) != PAIR or not all(type(place) is int for place in entry):
            raise ValueError(f"{shortened(entry)} in `{columns.compared}` is not a pair of positions")
        if not all(0 <= place < len(rank) for place in entry):
            raise ValueError(f"the pair {entry} in `{columns.compared}` is outside the {len(rank)} responses")
        if rank[entry[0]] == rank[entry[1]]:
            raise ValueError(f"the pair {entry} in `{columns.compared}` is not one of a right and a wrong response")
        pairs.append(sorted(entry, key=lambda place: rank[place] or 0))
    return pairs


def training_pairs(
    row: Row, columns: Columns, names: Sequence[str], rank: Sequence[int | None]
) -> list[list[int]] | None:
    """Read the pairs of a row to train on.

    Pairs of responses with equal ranks are left out, since equal ranks resolve conflicts.

    Args:
        row: The row.
        columns: Columns of the table.
        names: Names of the responses.
        rank: Ranks of the responses; None for unranked ones.

    Returns:
        The (better, worse) positions of the pairs; None if the benchmark has no column of pairs.

    Raises:
        TypeError, ValueError: If an entry has another shape, names an unranked response, or contradicts the ranks.
    """
    if columns.pairs is None or columns.pairs not in row:
        return None
    entries = parsed_value(row, columns.pairs)
    if entries is None:
        raise ValueError(f"`{columns.pairs}` is missing")
    rank_of, place = dict(zip(names, rank, strict=True)), {name: number for number, name in enumerate(names)}
    pairs: dict[tuple[int, int], None] = {}
    for entry in entries:
        if not isinstance(entry, list) or len(entry) not in {2, 3}:
            raise ValueError(f"{shortened(entry)} is neither [better, worse] nor [first, second, mark]")
        first, second, mark, *_ = [*map(str, entry), "1"]
        first_rank, second_rank = (rank_of.get(name) for name in (first, second))
        if mark not in MARKS:
            raise ValueError(f"the mark {mark!r} of {first} and {second} is not one of {', '.join(MARKS)}")
        if first_rank is None or second_rank is None:
            raise ValueError(f"the pair of {first} and {second} has an unranked response")
        if MARKS[mark] * (second_rank - first_rank) < 0:
            raise ValueError(f"the pair of {first} and {second} contradicts the ranks")
        if MARKS[mark] and first_rank != second_rank:
            better, worse = (first, second) if MARKS[mark] > 0 else (second, first)
            pairs[place[better], place[worse]] = None
    return [list(pair) for pair in pairs]


def _parse_ranking(responses: Any, rank: Any, columns: Columns, *, partial: bool) -> Responses:
    column, rank_column = str(columns.responses), columns.rank or "rank"
    if not responses or rank is None:
        raise ValueError(f"it has no {'ranks' if responses else 'responses'}")
    for name, value, kinds in ((column, responses, list), (rank_column, rank, list | Mapping)):
        if not isinstance(value, kinds):
            raise TypeError(f"`{name}` is not a list: {shortened(value)}")
    texts = [one if isinstance(one, str) else _value(one, "content", column) for one in responses]
    names = [str(number) if isinstance(r, str) else str(_value(r, "id", column)) for number, r in enumerate(responses)]
    if len(set(names)) < len(names):
        raise ValueError("two responses share an id")
    ranks = list(rank)
    if isinstance(rank, Mapping) or any(isinstance(one, Mapping) for one in ranks):
        pairs = ([_value(one, key, rank_column) for key in ("id", "rank")] for one in ranks)
        by_id = rank if isinstance(rank, Mapping) else {str(name): place for name, place in pairs}
        if len(by_id) < len(ranks):
            raise ValueError("two ranks share an id")
        unknown = [str(name) for name, place in by_id.items() if place is not None and name not in names]
        if unknown:
            raise ValueError(f"it ranks {first_ids(unknown)} and has no such response")
        unranked = [name for name in names if by_id.get(name) is None]
        if unranked and not partial:
            raise ValueError(f"the responses {first_ids(unranked)} have no rank")
        ranks = [by_id.get(name) for name in names]
    if len(ranks) != len(texts):
        raise ValueError(f"{len(texts)} responses have {len(ranks)} ranks")
    keys = [label_key(place) for place in ranks]
    if any(not re.fullmatch("-?[0-9]{1,15}", key) if key else not partial for key in keys):
        raise ValueError(f"the ranks {shortened(ranks)} are not whole numbers")
    return names, [_plain_text(text, column) for text in texts], [int(key) if key else None for key in keys]


def parsed_value(row: Row, column: str) -> Any:
    """Return a list or mapping, which the table may hold as JSON text.

    Raises:
        ValueError: If the text is not JSON.
    """
    value = row[column]
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        raise ValueError(f"`{column}` is a text and not a list: {shortened(value)}") from None


def _response_text(value: Any, column: str) -> str:
    """Read a response: a text, a message, or a conversation that ends with it."""
    if isinstance(value, list):
        if not value:
            raise ValueError(f"`{column}` is an empty list")
        if len(value) > 1 and any(isinstance(part, str) for part in value):
            raise TypeError(
                f"`{column}` is a list of {len(value)} texts ({first_ids([*map(shortened, value)])}) instead of one "
                "response; set `multiple_responses = true` in the benchmark's file if each is a response, or join them"
            )
        value = value[-1]
    if isinstance(value, Mapping) and value.get(_message_keys(value)[0]) is not None:
        role = _role(value, column)
        if role != "assistant":
            raise ValueError(f"the last message in `{column}` has the role {role}, so it is not a response")
    return _plain_text(value, column)


def _plain_text(value: Any, column: str) -> str:
    """Return a text, or the content of a message; "" for None."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        value = _value(value, _message_keys(value)[1], column)
    if not isinstance(value, str):
        raise TypeError(f"{shortened(value)} in `{column}` is not text")
    return value


def _value(part: Any, key: str, column: str) -> Any:
    if not isinstance(part, Mapping):
        raise TypeError(f"{shortened(part)} in `{column}` is not an object with `{key}`")
    if key not in part:
        raise ValueError(f"an object in `{column}` has no `{key}`; it has {', '.join(map(str, part))}")
    return part[key]
