"""The texts of a row: its prompt as messages, its responses and which is better, in whichever shape they are given."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pluralbench.data.benchmarks import Columns

Row = Mapping[str, Any]
Responses = tuple[list[str], list[str], list[int]]
"""Names, texts and ranks."""
NAMED = 5


def named(ids: Sequence[str]) -> str:
    """The first few of some ids."""
    return ", ".join(ids[:NAMED]) + (", …" if len(ids) > NAMED else "")


def messages_of(row: Row, columns: Columns) -> list[dict[str, str]]:
    """The prompt as messages. Raises `ValueError` and its like for a row of another shape."""
    parts = [row[name] for name in columns.prompt]
    system = [{"role": "system", "content": row[columns.system]}] if columns.system and row.get(columns.system) else []
    if len(parts) == 1 and isinstance(parts[0], list):
        if not parts[0]:
            raise ValueError("the prompt has no message")
        return [*system, *map(_message, parts[0])]
    texts = [_text(part) for part in parts]
    return [*system, {"role": "user", "content": "\n\n".join(text for text in texts if text.strip())}]


def _message(part: Any) -> dict[str, str]:
    """A message of a list; a text is what the user says in a turn."""
    if isinstance(part, str):
        return {"role": "user", "content": part}
    return {"role": str(part["role"]), "content": str(part["content"])}


def no_responses(_: Row, __: Columns) -> Responses:
    """None, where a policy answers."""
    return [], [], []


def responses_of(row: Row, columns: Columns) -> Responses:
    """The responses and their ranks. Raises `ValueError` and its like for a row of another shape."""
    if columns.responses:
        return _ranking(value_of(row[columns.responses]), value_of(row[columns.rank or "rank"]))
    if columns.first and columns.second:
        better = _majority([row[label] for label in columns.labels])
        texts = [_text(row[columns.first]), _text(row[columns.second])]
        chosen, rejected = reversed(texts) if better == 2 else texts
        return ["chosen", "rejected"], [chosen, rejected], [1, 2] if better else [1, 1]
    return ["chosen", "rejected"], [_text(row[columns.chosen]), _text(row[columns.rejected])], [1, 2]


def _ranking(responses: Any, rank: Any) -> tuple[list[str], list[str], list[int]]:
    if not responses or rank is None:
        raise ValueError(f"it has no {'ranks' if responses else 'responses'}")
    texts = [response if isinstance(response, str) else response["content"] for response in responses]
    names = [str(number) if isinstance(r, str) else str(r["id"]) for number, r in enumerate(responses)]
    if len(set(names)) < len(names):
        raise ValueError("two responses share an id")
    ranks = list(rank)
    if isinstance(rank, Mapping) or any(isinstance(one, Mapping) for one in ranks):
        by_id = rank if isinstance(rank, Mapping) else {str(one["id"]): one["rank"] for one in ranks}
        if len(by_id) < len(ranks):
            raise ValueError("two ranks share an id")
        unranked = [name for name in names if by_id.get(name) is None]
        if unranked:
            raise ValueError(f"the responses {named(unranked)} have no rank")
        ranks = [by_id[name] for name in names]
    if len(ranks) != len(texts):
        raise ValueError(f"{len(texts)} responses have {len(ranks)} ranks")
    if any(not isinstance(place, int | float) or place != int(place) for place in ranks):
        raise ValueError(f"the ranks {ranks} are no whole numbers")
    return names, [_text(text) for text in texts], [int(place) for place in ranks]


def value_of(value: Any) -> Any:
    """A list or mapping, which tables may carry as JSON text."""
    return json.loads(value) if isinstance(value, str) else value


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):  # a conversation whose last message is the response
        value = value[-1]
    if isinstance(value, Mapping):  # a message
        value = value["content"]
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _majority(labels: Iterable[Any]) -> int:
    """1 or 2 where more than half of the labels say so, else 0."""
    counts = Counter(str(label).removesuffix(".0") for label in labels)
    return next((side for side in (1, 2) if counts[str(side)] * 2 > counts.total()), 0)
