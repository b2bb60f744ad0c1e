"""What `show` prints of an item: its prompt, its answers with their scores, and the decisions on them."""

from collections.abc import Mapping
from math import isfinite
from typing import Any, NamedTuple

import polars as pl

Row = dict[str, Any]
Replies = Mapping[str, Row]
"""Outcome and text of a judge's replies by the keys of their calls."""


class Shown(NamedTuple):
    """An item to print, as plain JSON values.

    Attributes:
        prompt: The messages.
        answers: `name` and `text` of each answer, and what the run says of it: `rank`, `score`, `position`, `replies`,
            and `votes`, the number of people who prefer it.
        decisions: The decisions, with the verdict and the replies in each order.
        person: What the model read of the person; None: the user context of the run.
    """

    prompt: list[dict[str, str]]
    answers: list[Row]
    decisions: list[Row]
    person: Row | None = None


def show_responses(
    item: Row, rows: pl.DataFrame, decisions: pl.DataFrame, replies: Replies, variables: str | None
) -> Shown:
    """Show ranked responses; the order of the rows of `items.parquet` is that of the responses."""
    responses = zip(item["response_ids"], item["rank"], item["responses"], strict=True)
    answers = [
        {"name": name, "rank": rank, "text": text} | _votes(item, place) | _score(rows, name, place, replies)
        for place, (name, rank, text) in enumerate(responses)
    ]
    return Shown(item["prompt"], answers, [_decision(row, replies) for row in decisions.iter_rows(named=True)])


def _votes(item: Row, place: int) -> Row:
    votes = item.get("annotations")
    return {} if votes is None else {"votes": sum(vote["response"] == place for vote in votes)}


def replies_in(row: Mapping[str, Any], column: str, replies: Replies) -> Row:
    """Return the replies of a column of calls, if the row has any."""
    return {"replies": [replies[key] for key in row[column]]} if row.get(column) else {}


def _score(rows: pl.DataFrame, name: str, place: int, replies: Replies) -> Row:
    """Return the score of a response, its number in the list that a judge saw, and the replies behind the score."""
    if "response" in rows.columns:
        row = rows.row(place, named=True)
        position = {"position": row["position"]} if row.get("position") is not None else {}
        return {"score": _finite(row["score"])} | position | replies_in(row, "calls", replies)
    row = rows.row(0, named=True)
    score = {"score": _finite(row[f"score_{name}"])} if f"score_{name}" in row else {}
    return score | replies_in(row, f"calls_{name}", replies)


def _finite(score: float | None) -> float | None:
    return score if score is not None and isfinite(score) else None


def _decision(row: Row, replies: Replies) -> Row:
    columns = ("chosen", "rejected", "outcome", "margin", "verdict", "reason")
    orders = [
        {"first": row[side], "verdict": row[f"verdict_{side}_first"]}
        | ({"probability": row[name]} if (name := f"probability_{side}_first") in row else {})
        | replies_in(row, f"calls_{side}_first", replies)
        for side in ("chosen", "rejected")
        if row.get(f"verdict_{side}_first") is not None
    ]
    return {name: row[name] for name in columns if row.get(name) is not None} | ({"orders": orders} if orders else {})
