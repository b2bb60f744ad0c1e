"""Layouts with any number of responses per row: what they share, and the pairs of responses that a row can list."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pluralbench.data.fields import Columns
from pluralbench.data.layouts.layout import SourceRows
from pluralbench.data.texts import Row, parsed_value, shortened

Responses = tuple[list[str], list[str], list[int | None]]
"""Names, texts and ranks."""
ITEM_COLUMNS = ("response_ids", "responses", "rank", "pairs", "compared")
PAIR = 2
MARKS = {"1": 1, "2": -1, "s": 0}  # response that a mark prefers: 1 the first, -1 the second, 0 none


def read_lists(source: SourceRows, read: Callable[[Row], Responses], *names: str | None) -> dict[str, list[Any]]:
    """Read the responses of each row by a function that needs the columns `names`, and the pairs that it lists."""
    columns = source.columns
    rows = source.each(partial(_entry, read, columns), *names, columns.pairs, columns.compared)
    return dict(zip(ITEM_COLUMNS, map(list, zip(*rows, strict=True)), strict=True))


def _entry(read: Callable[[Row], Responses], columns: Columns, row: Row) -> tuple[Any, ...]:
    names, texts, rank = read(row)
    return names, texts, rank, training_pairs(row, columns, names, rank), compared_pairs(row, columns, rank)


def compared_pairs(row: Row, columns: Columns, rank: Sequence[int | None]) -> list[list[int]] | None:
    """Read the (right, wrong) positions of the pairs that count, with repetitions; None if there is no column of pairs.

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
    """Read the (better, worse) positions of the pairs of a row to train on; None if there is no column of pairs.

    Pairs of responses with equal ranks are left out, since equal ranks resolve conflicts.

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
