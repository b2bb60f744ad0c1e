"""Tables of preferences: Chatbot Arena and PRISM as published for personalized reward models, or any other.

Each row is a pair: who decided it, the prompt, the response they preferred and the other one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from pluralbench_release import Source, read_tables
from pluralbench_release.errors import SourceError
from pluralbench_runs import public_location
from pluralbench_schemas import ROLES

from build_personalized.sources.loaded import drops_frame
from build_personalized.training.recipe import COLUMNS, TrainingSource
from build_personalized.training.sources.loaded import PAIRS, POSTS, Preferences, preferences_digest

STEP = "source"
REQUIRED = COLUMNS[:4]
IN_TIME = {"train": 0, "val": 1, "validation": 1, "test": 2}

Message = dict[str, str]


@dataclass(frozen=True)
class Corpus:
    """A table on the Hub as it is published for personalized reward models, with the columns of `PUBLISHED`."""

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
    """The preferences in every split of a table (see `pluralbench_release.read_tables`).

    columns: which of its columns is what. config: what its one config is called in the release, or its configs begin
    with; by default they keep their names. shown: what the release says of where the table is.

    Left out, each counted: rows without a user, with an empty text, whose prompt does not end with the user, whose
    responses are the same, or that are there already.

    Raises `SourceError` for a table that has not the columns, or a cell that is none of theirs.
    """
    tables = read_tables(location, split="all")
    rows: list[dict[str, Any]] = []
    drops: list[tuple[str, str, str, str]] = []
    for given, frame in tables.frames.items():
        called = given if config is None else config if len(tables.frames) == 1 else f"{config}_{given}"
        _read_rows(rows, drops, called, frame, tables.paths[given], columns)
    pairs = pl.DataFrame(rows, schema=PAIRS)
    twice = pairs.filter(pairs.select("config", "id").is_duplicated())
    if twice.height:
        raise SourceError(f"{tables.location} has the id {twice['id'][0]!r} more than once.")
    posts = [
        {
            "config": row["config"],
            "user_id": row["user_id"],
            "post": {"id": row["source_id"], "category": None, "text": _first_question(row["prompt"])},
        }
        for row in pairs.unique(["config", "user_id", "source_id"], keep="first", maintain_order=True).to_dicts()
    ]
    asked = pl.DataFrame(posts, schema=POSTS)
    entry = Source(
        name=source.name or name,
        location=shown or public_location(tables.location),
        revision=tables.revision,
        digest=preferences_digest(pairs, asked),
        rows=pairs.height,
        licence=tables.licence or source.licence or "unknown",
        attribution=source.attribution or attribution,
    )
    return Preferences(pairs, asked, drops_frame(drops), [entry])


def _read_rows(
    rows: list[dict[str, Any]],
    drops: list[tuple[str, str, str, str]],
    config: str,
    frame: pl.DataFrame,
    where: str,
    columns: Mapping[str, str],
) -> None:
    there = _there(frame, where, columns)
    seen: set[tuple[str, ...]] = set()
    for number, row in enumerate(_in_time(frame, there, where).iter_rows(named=True), start=1):
        cells = {what: row.get(column) for what, column in there.items()}
        place = f"{where}, row {row['row number']}"
        row_id = f"{config}-{number:06}" if cells.get("id") is None else str(cells["id"])
        prompt = _messages(cells["prompt"], f"{place}: `{there['prompt']}`")
        chosen, rejected = (_answer(cells[side], f"{place}: `{there[side]}`") for side in ("chosen", "rejected"))
        user = "" if cells["user"] is None else str(cells["user"])
        key = (user, str(prompt), chosen, rejected)
        reason = "given before" if key in seen else _fault(user, prompt, chosen, rejected)
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


def _there(frame: pl.DataFrame, where: str, columns: Mapping[str, str]) -> dict[str, str]:
    """The columns that a table has, by what they are."""
    names = {what: columns.get(what, what) for what in COLUMNS}
    for what, column in names.items():
        if column not in frame.columns and (what in REQUIRED or what in columns):
            raise SourceError(
                f"{where} has no column `{column}`; it has {', '.join(frame.columns)}: name the right one under "
                f"[source.columns] with `{what} = ...` (or --column {what}=...)."
            )
    return {what: column for what, column in names.items() if column in frame.columns}


def _in_time(frame: pl.DataFrame, there: Mapping[str, str], where: str) -> pl.DataFrame:
    """Each user's rows in their order in time: by the column of the order, else by the split and the row."""
    frame = frame.with_row_index("row number", offset=1)
    if "order" in there:
        if frame[there["order"]].null_count():
            raise SourceError(f"{where}: the column `{there['order']}` has rows without a value.")
        return frame.sort(_number_or_text(frame[there["order"]]), maintain_order=True)
    if "split" in there:
        rank = pl.col(there["split"]).cast(pl.String).replace_strict(IN_TIME, default=0, return_dtype=pl.Int64)
        return frame.sort(rank, maintain_order=True)
    return frame


def _number_or_text(order: pl.Series) -> pl.Series:
    """A column by which rows are sorted: texts that are all numbers, as those of a CSV, by their size."""
    if order.dtype != pl.String:
        return order
    numbers = order.cast(pl.Float64, strict=False)
    return order if numbers.null_count() else numbers


def _messages(cell: Any, where: str) -> list[Message]:
    if cell is None or isinstance(cell, str):
        return [{"role": "user", "content": cell or ""}]
    if not isinstance(cell, list) or not all(map(_is_message, cell)):
        raise SourceError(f"{where} is neither a text nor a list of messages with `role` and `content`.")
    strange = next((part["role"] for part in cell if part["role"] not in ROLES), None)
    if strange is not None:
        raise SourceError(f"{where} has a message of the role {strange!r}; the roles are {', '.join(ROLES)}.")
    return [{"role": part["role"], "content": part["content"] or ""} for part in cell]


def _is_message(part: Any) -> bool:
    return isinstance(part, dict) and {"role", "content"} <= part.keys()


def _answer(cell: Any, where: str) -> str:
    said = cell.get("content", 0) if isinstance(cell, dict) else cell
    if said is None:
        return ""
    if not isinstance(said, str):
        raise SourceError(f"{where} is neither a text nor a message with `role` and `content`.")
    return said


def _first_question(prompt: list[Message]) -> str:
    return next(message["content"] for message in prompt if message["role"] == "user")


def _fault(user: str, prompt: list[Message], chosen: str, rejected: str) -> str:
    """Why a pair is left out; "" for one that is kept."""
    faults = {
        "no user": not user.strip(),
        "empty text": not all(text.strip() for text in (chosen, rejected, *(said["content"] for said in prompt))),
        "prompt does not end with the user": not prompt or prompt[-1]["role"] != "user",
        "identical answers": chosen == rejected,
    }
    return next((reason for reason, found in faults.items() if found), "")
