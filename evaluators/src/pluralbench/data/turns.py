"""Conversations that are rows of a table, as one row for each turn."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl
from pluralbench_tables import typed_frame

from pluralbench.data.fields import Turns
from pluralbench.data.texts import shortened
from pluralbench.errors import DataError

TURN = "turn"
MESSAGES = pl.List(pl.Struct({"role": pl.String, "content": pl.String}))


def turn_rows(frame: pl.DataFrame, turns: Turns, where: str) -> tuple[pl.DataFrame, int]:
    """Return a row for each turn of a table's conversations, and how many turns are left out.

    Turns after one without a picked response are left out, since the conversation up to them is not known.

    Raises:
        DataError: If a turn has no column of prompts or picked responses, or picks a column that is not there.
    """
    for prefix in turns.prefixes:
        for name in (turns.prompt, turns.picked):
            if f"{prefix}{name}" not in frame.columns:
                raise DataError(f"{where} has no column `{prefix}{name}`; it has {', '.join(frame.columns)}.")
    of_turns = [[name for name in frame.columns if name.startswith(prefix)] for prefix in turns.prefixes]
    shared = [name for name in frame.columns if not any(name in names for names in of_turns)]
    prompts, left_out = _prompts(frame, turns, where)
    parts = []
    for number, (prefix, names) in enumerate(zip(turns.prefixes, of_turns, strict=True)):
        own = frame.select(*shared, *(pl.col(name).alias(name.removeprefix(prefix)) for name in names))
        asked = typed_frame({turns.prompt: prompts[number]}, pl.Schema({turns.prompt: MESSAGES}))
        own = own.with_columns(asked.to_series(), pl.lit(number + 1).alias(TURN))
        parts.append(own.with_row_index("#row").filter(pl.col(turns.prompt).is_not_null()))
    rows = pl.concat(parts, how="diagonal_relaxed").sort("#row", TURN, maintain_order=True)
    return rows.drop("#row"), left_out


def _prompts(frame: pl.DataFrame, turns: Turns, where: str) -> tuple[list[list[list[dict[str, str]] | None]], int]:
    """Return the messages up to each turn, by turn and row (None: no such turn), and the number of turns left out."""
    prompts: list[list[list[dict[str, str]] | None]] = [[None] * frame.height for _ in turns.prefixes]
    left_out = 0
    for place, row in enumerate(frame.iter_rows(named=True)):
        messages: list[dict[str, str]] | None = []
        for number, (asked, answer) in enumerate(_turns_of(row, turns, f"{where}: row {place + 1}")):
            if asked is None:
                continue
            if messages is None:
                left_out += 1
                continue
            prompt = [*messages, {"role": "user", "content": asked}]
            prompts[number][place] = prompt
            messages = None if answer is None else [*prompt, {"role": "assistant", "content": answer}]
    return prompts, left_out


def _turns_of(row: Mapping[str, Any], turns: Turns, where: str) -> Iterator[tuple[str | None, str | None]]:
    """Yield the prompt of each turn and the response with which it goes on; None: missing."""
    for prefix in turns.prefixes:
        asked, picked = (_present(row[f"{prefix}{name}"], turns) for name in (turns.prompt, turns.picked))
        if picked is not None and f"{prefix}{picked}" not in row:
            raise DataError(
                f"{where} picks {shortened(picked)} in `{prefix}{turns.picked}`, and there is no column "
                f"`{prefix}{picked}`."
            )
        yield asked, None if picked is None else _present(row[f"{prefix}{picked}"], turns)


def _present(value: Any, turns: Turns) -> str | None:
    text = None if value is None else str(value).strip()
    return None if not text or text in turns.missing else str(value)
