"""Read tables of preferences: Chatbot Arena and PRISM as published for personalized reward models, or your own.

Each row is a pair: the user, the prompt, the preferred response and the other one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from pluralbench_release import read_tables
from pluralbench_release.errors import SourceError
from pluralbench_runs import public_location
from pluralbench_schemas import ROLES

from build_personalized.sources.loaded import PAIRS, POSTS, Preferences, drops_frame, preferences_digest, table_entry
from build_personalized.training.recipe import COLUMNS, TrainingSource

STEP = "source"
REQUIRED = COLUMNS[:4]
SPLIT_ORDER = {"train": 0, "val": 1, "validation": 1, "test": 2}

Message = dict[str, str]


@dataclass(frozen=True)
class Corpus:
    """Table on the Hub as published for personalized reward models, with the columns of `PUBLISHED`."""

    name: str
    hub: str
    attribution: str


PUBLISHED = {"user": "user_id", "prompt": "context", "conversation": "conversation_id"}
CORPORA = {
    "arena": Corpus(
        "Chatbot Arena-Personalized",
        "MichaelR207/chatbot_arena_personalized_0125",
        "Conversations of Chatbot Arena (Chiang et al., 2024), by user as in SynthesizeMe (Ryan et al., 2025).",
    ),
    "prism": Corpus(
        "PRISM-Personalized",
        "MichaelR207/prism_personalized_0125",
        "Conversations of PRISM (Kirk et al., 2024), by user as in SynthesizeMe (Ryan et al., 2025).",
    ),
}


def load(
    location: str,
    columns: Mapping[str, str],
    source: TrainingSource,
    *,
    name: str,
    attribution: str,
    config: str | None = None,
    shown: str | None = None,
) -> Preferences:
    """Read the preferences in all splits of a table (see `pluralbench_release.read_tables`).

    Dropped and counted are rows without a user, with an empty text, with a prompt that does not end with a user
    message, with identical responses, and repeated rows. The recipe has precedence over `name` and `attribution`.
    `columns` names the table's columns by those of `training.recipe.COLUMNS`; `config` is the name of the table's only
    config in the release, or the prefix of its configs.

    Raises:
        SourceError: The table lacks a column, or a cell has a wrong type.
    """
    needed = {columns.get(name, name) for name in COLUMNS}
    tables = read_tables(location, split="all", needed=needed.__contains__)
    rows: list[dict[str, Any]] = []
    drops: list[tuple[str, str, str, str]] = []
    for original, frame in tables.frames.items():
        renamed = original if config is None else config if len(tables.frames) == 1 else f"{config}_{original}"
        _read_rows(rows, drops, renamed, frame, tables.paths[original], columns)
    pairs = pl.DataFrame(rows, schema=PAIRS)
    repeated = pairs.filter(pairs.select("config", "id").is_duplicated())
    if repeated.height:
        raise SourceError(f"{tables.location} has the id {repeated['id'][0]!r} more than once.")
    posts = [
        {
            "config": row["config"],
            "user_id": row["user_id"],
            "post": {"id": row["source_id"], "category": None, "text": _first_question(row["prompt"])},
        }
        for row in pairs.unique(["config", "user_id", "source_id"], keep="first", maintain_order=True).to_dicts()
    ]
    post_frame = pl.DataFrame(posts, schema=POSTS)
    place = shown or public_location(tables.location)
    digest = preferences_digest(pairs, post_frame)
    entry = table_entry(tables, source, name, attribution, place, digest, pairs.height)
    return Preferences(pairs, post_frame, drops_frame(drops), [entry])


def _read_rows(
    rows: list[dict[str, Any]],
    drops: list[tuple[str, str, str, str]],
    config: str,
    frame: pl.DataFrame,
    where: str,
    columns: Mapping[str, str],
) -> None:
    names = _column_names(frame, where, columns)
    seen: set[tuple[str, ...]] = set()
    for number, row in enumerate(_sort_by_time(frame, names, where).iter_rows(named=True), start=1):
        cells = {name: row.get(column) for name, column in names.items()}
        place = f"{where}, row {row['row number']}"
        row_id = f"{config}-{number:06}" if cells.get("id") is None else str(cells["id"])
        prompt = _messages(cells["prompt"], f"{place}: `{names['prompt']}`")
        chosen, rejected = (_answer(cells[side], f"{place}: `{names[side]}`") for side in ("chosen", "rejected"))
        user = "" if cells["user"] is None else str(cells["user"])
        key = (user, str(prompt), chosen, rejected)
        reason = "given before" if key in seen else _drop_reason(user, prompt, chosen, rejected)
        if reason:
            drops.append((config, STEP, reason, row_id))
            continue
        seen.add(key)
        rows.append(
            {
                "config": config,
                "id": row_id,
                "user_id": user,
                "prompt": prompt,
                "chosen": chosen,
                "rejected": rejected,
                "source_id": row_id if cells.get("conversation") is None else str(cells["conversation"]),
                "original_split": None if cells.get("split") is None else str(cells["split"]),
            }
        )


def _column_names(frame: pl.DataFrame, where: str, columns: Mapping[str, str]) -> dict[str, str]:
    """Map `COLUMNS` to the table's columns; optional ones that it lacks are left out."""
    names = {name: columns.get(name, name) for name in COLUMNS}
    for name, column in names.items():
        if column not in frame.columns and (name in REQUIRED or name in columns):
            raise SourceError(
                f"{where} has no column `{column}`; it has {', '.join(frame.columns)}. Name the right one with "
                f'`source.columns=["{name}=COLUMN"]`.'
            )
    return {name: column for name, column in names.items() if column in frame.columns}


def _sort_by_time(frame: pl.DataFrame, names: Mapping[str, str], where: str) -> pl.DataFrame:
    """Sort rows by the column `order`, else by split and row."""
    frame = frame.with_row_index("row number", offset=1)
    if "order" in names:
        if frame[names["order"]].null_count():
            raise SourceError(f"{where}: the column `{names['order']}` has rows without a value.")
        return frame.sort(_sort_key(frame[names["order"]]), maintain_order=True)
    if "split" in names:
        rank = pl.col(names["split"]).cast(pl.String).replace_strict(SPLIT_ORDER, default=0, return_dtype=pl.Int64)
        return frame.sort(rank, maintain_order=True)
    return frame


def _sort_key(order: pl.Series) -> pl.Series:
    """Convert a column of texts that are all numbers, as in a CSV, to numbers."""
    if order.dtype != pl.String:
        return order
    numbers = order.cast(pl.Float64, strict=False)
    return order if numbers.null_count() else numbers


def _messages(cell: Any, where: str) -> list[Message]:
    if cell is None or isinstance(cell, str):
        return [{"role": "user", "content": cell or ""}]
    if not isinstance(cell, list) or not all(map(_is_message, cell)):
        raise SourceError(f"{where} is neither a text nor a list of messages with `role` and `content`.")
    unknown = next((part["role"] for part in cell if part["role"] not in ROLES), None)
    if unknown is not None:
        raise SourceError(f"{where} has a message with the role {unknown!r}; the roles are {', '.join(ROLES)}.")
    return [{"role": part["role"], "content": part["content"] or ""} for part in cell]


def _is_message(part: Any) -> bool:
    return isinstance(part, dict) and {"role", "content"} <= part.keys()


def _answer(cell: Any, where: str) -> str:
    cell = cell[0] if isinstance(cell, list) and len(cell) == 1 else cell
    text = cell.get("content", 0) if isinstance(cell, dict) else cell
    if text is None:
        return ""
    if not isinstance(text, str):
        raise SourceError(f"{where} is neither a text nor one message with `role` and `content`.")
    return text


def _first_question(prompt: list[Message]) -> str:
    return next(message["content"] for message in prompt if message["role"] == "user")


def _drop_reason(user: str, prompt: list[Message], chosen: str, rejected: str) -> str:
    reasons = {
        "no user": not user.strip(),
        "empty text": not all(text.strip() for text in (chosen, rejected, *(turn["content"] for turn in prompt))),
        "prompt does not end with the user": not prompt or prompt[-1]["role"] != "user",
        "identical answers": chosen == rejected,
    }
    return next((reason for reason, applies in reasons.items() if applies), "")
