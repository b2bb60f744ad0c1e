"""The texts of a row: its prompt as messages, its responses and which is better, in whichever shape they are given."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from pluralbench.data.benchmarks import Columns
from pluralbench.data.labels import SECOND, TIE, Labels

Row = Mapping[str, Any]
Responses = tuple[list[str], list[str], list[int | None]]
"""Names, texts and ranks."""
NAMED = 5
SHOWN = 40  # characters of a value in an error
ASKING = ("user", "human", "system")
SIDES = {"1": 1, "2": -1, "s": 0}  # which of two responses a mark prefers


def first_ids(ids: Sequence[str]) -> str:
    """The first few of some ids."""
    return ", ".join(ids[:NAMED]) + (", …" if len(ids) > NAMED else "")


def shortened(value: object) -> str:
    """A value as an error shows it."""
    return repr(value if len(str(value)) <= SHOWN else f"{str(value)[:SHOWN]}…")


def as_texts(values: pl.Series) -> pl.Series:
    """Values as Python prints them."""
    if values.dtype.is_integer() or values.dtype == pl.String:
        return values.cast(pl.String)
    return pl.Series(values.name, [None if value is None else str(value) for value in values], pl.String)


def messages_of(row: Row, columns: Columns) -> list[dict[str, str]]:
    """The prompt as messages. Raises `ValueError` and its like for a row of another shape."""
    parts = [(name, row[name]) for name in columns.prompt]
    name, first = parts[0]
    said = _plain(row.get(columns.system), columns.system) if columns.system else ""
    system = [{"role": "system", "content": said}] if said else []
    if len(parts) == 1 and isinstance(first, list):
        if not first:
            raise ValueError("the prompt has no message")
        return [*system, *(_message(part, name) for part in first)]
    texts = [_plain(part, name) for name, part in parts]
    return [*system, {"role": "user", "content": "\n\n".join(text for text in texts if text.strip())}]


def _message(part: Any, column: str) -> dict[str, str]:
    """A message of a list; a text is what the user says in a turn."""
    if isinstance(part, str):
        return {"role": "user", "content": part}
    role = _of(part, "role", column)
    if not isinstance(role, str):
        raise TypeError(f"the role {shortened(role)} of a message in `{column}` is no text")
    return {"role": role, "content": _plain(part, column)}


def responses_of(row: Row, columns: Columns, labels: Labels | None = None, *, several: bool = False) -> Responses:
    """The responses and their ranks. Raises `ValueError` and its like for a row of another shape.

    labels, several: as of a `Benchmark`.
    """
    if columns.responses:
        ranks = parsed_value(row, columns.rank or "rank")
        return _ranking(parsed_value(row, columns.responses), ranks, columns.responses, partial=columns.pairs in row)
    if columns.first and columns.second:
        better = (labels or Labels()).majority(row[label] for label in columns.labels)
        texts = [_text(row[name], name) for name in (columns.first, columns.second)]
        chosen, rejected = reversed(texts) if better == SECOND else texts
        return ["chosen", "rejected"], [chosen, rejected], [1, 1] if better == TIE else [1, 2]
    sides = (columns.chosen, columns.rejected)
    if not several:
        return ["chosen", "rejected"], [_text(row[name], name) for name in sides], [1, 2]
    names, texts, ranks = [], [], []
    for rank, name in enumerate(sides, start=1):
        responses = parsed_value(row, name)
        if not isinstance(responses, list) or not responses:
            raise ValueError(f"`{name}` is no list of responses, as `several` says: {shortened(responses)}")
        names += [f"{name} {number}" for number in range(len(responses))]
        texts += [_plain(response, name) for response in responses]
        ranks += [rank] * len(responses)
    return names, texts, ranks


def training_pairs(
    row: Row, columns: Columns, names: Sequence[str], rank: Sequence[int | None]
) -> list[list[int]] | None:
    """The (better, worse) places of a row's compared responses that its ranks keep; None where it names no pairs.

    What the ranks have equal is no pair: so conflicts were resolved. Raises `ValueError` and its like for an entry of
    another shape, a response that the row does not have or does not rank, and a pair that the ranks turn round.
    """
    if columns.pairs is None or columns.pairs not in row:
        return None
    entries = parsed_value(row, columns.pairs)
    if entries is None:
        raise ValueError(f"it has no `{columns.pairs}`")
    rank_of, place = dict(zip(names, rank, strict=True)), {name: number for number, name in enumerate(names)}
    kept: dict[tuple[int, int], None] = {}
    for entry in entries:
        if not isinstance(entry, list) or len(entry) not in {2, 3}:
            raise ValueError(f"{shortened(entry)} is neither [better, worse] nor [first, second, mark]")
        first, second, mark, *_ = [*map(str, entry), "1"]
        one, other = (rank_of.get(name) for name in (first, second))
        if mark not in SIDES:
            raise ValueError(f"the mark {mark!r} on {first} and {second} is none of {', '.join(SIDES)}")
        if one is None or other is None:
            raise ValueError(f"it compares {first} and {second}, and does not rank both")
        if SIDES[mark] * (other - one) < 0:
            raise ValueError(f"its ranks turn the pair of {first} and {second} round")
        if SIDES[mark] and one != other:
            better, worse = (first, second) if SIDES[mark] > 0 else (second, first)
            kept[place[better], place[worse]] = None
    return [list(pair) for pair in kept]


def _ranking(responses: Any, rank: Any, column: str, *, partial: bool) -> Responses:
    if not responses or rank is None:
        raise ValueError(f"it has no {'ranks' if responses else 'responses'}")
    texts = [one if isinstance(one, str) else _of(one, "content", column) for one in responses]
    names = [str(number) if isinstance(r, str) else str(_of(r, "id", column)) for number, r in enumerate(responses)]
    if len(set(names)) < len(names):
        raise ValueError("two responses share an id")
    ranks = list(rank)
    if isinstance(rank, Mapping) or any(isinstance(one, Mapping) for one in ranks):
        by_id = rank if isinstance(rank, Mapping) else {str(one["id"]): one["rank"] for one in ranks}
        if len(by_id) < len(ranks):
            raise ValueError("two ranks share an id")
        strange = [str(name) for name, place in by_id.items() if place is not None and name not in names]
        if strange:
            raise ValueError(f"it ranks {first_ids(strange)}, and has no such response")
        unranked = [name for name in names if by_id.get(name) is None]
        if unranked and not partial:
            raise ValueError(f"the responses {first_ids(unranked)} have no rank")
        ranks = [by_id.get(name) for name in names]
    if len(ranks) != len(texts):
        raise ValueError(f"{len(texts)} responses have {len(ranks)} ranks")
    known = [place for place in ranks if place is not None or not partial]
    if any(not isinstance(place, int | float) or place != int(place) for place in known):
        raise ValueError(f"the ranks {ranks} are no whole numbers")
    return names, [_plain(text, column) for text in texts], [None if place is None else int(place) for place in ranks]


def parsed_value(row: Row, column: str) -> Any:
    """A list or mapping, which tables may carry as JSON text. Raises `ValueError` for other text."""
    value = row[column]
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError(f"`{column}` is a text and no list: {shortened(value)}") from None


def _text(value: Any, column: str) -> str:
    """A response: a text, a message, or a conversation whose last message it is."""
    if isinstance(value, list):
        if not value:
            raise ValueError(f"`{column}` is an empty list")
        if any(isinstance(part, str) for part in value):
            raise TypeError(
                f"`{column}` is a list of {len(value)} texts ({first_ids([*map(shortened, value)])}), where one "
                "response belongs; if each is a response, say `several = true` in the benchmark's file, and if they "
                "are parts of one, join them"
            )
        value = value[-1]
    if isinstance(value, Mapping) and value.get("role") in ASKING:
        raise ValueError(f"the last message in `{column}` is of the role {value['role']}, and no response")
    return _plain(value, column)


def _plain(value: Any, column: str) -> str:
    """A text, or that of a message; "" where there is neither."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        value = _of(value, "content", column)
    if not isinstance(value, str):
        raise TypeError(f"{shortened(value)} in `{column}` is no text")
    return value


def _of(part: Any, key: str, column: str) -> Any:
    """What an object has under a key."""
    if not isinstance(part, Mapping):
        raise TypeError(f"{shortened(part)} in `{column}` is no object with `{key}`")
    if key not in part:
        raise ValueError(f"an object in `{column}` has no `{key}`; it has {', '.join(map(str, part))}")
    return part[key]
