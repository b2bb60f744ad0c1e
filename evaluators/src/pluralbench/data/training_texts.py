"""Prompts and responses in the rows of any training set: pairs, conversations, transcripts, instructions."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import polars as pl

from pluralbench.data.fields import parse_changes
from pluralbench.data.texts import ROLES
from pluralbench.errors import DataError

Part = Literal["prompt", "response"]
PARTS: tuple[Part, ...] = ("prompt", "response")
Fields = Mapping[str, Sequence[str]]
"""Columns by field: `prompt`, `response` and `conversation`."""

KNOWN_COLUMNS = {
    "prompt": r"prompt|question|instruction|input|query|problem|context|turns",
    "response": r"(chosen|rejected|responses?|outputs?|completion|answers?|solution)([_ ]?([a-z]|[0-9]+))?",
    "conversation": r"messages|conversations?|conversation_input|dialog\w*|text",
}
"""Names of columns by field, as patterns for lower-case names."""

NO_TEXTS = ("response_id", "response_ids")
OF_ROLE: Mapping[str, Part | None] = {"user": "prompt", "assistant": "response", "system": None}
PART_OF = {name: OF_ROLE[role] for name, role in ROLES.items()} | dict.fromkeys(("tool", "function"))
"""Part of a message by its role; other texts of a conversation are not compared."""

CONTENT = ("content", "value", "text", "answer")
SPEAKER = re.compile(r"(?:^|\n\n)[ \t]*(Human|User|Assistant):")
TEXTS = pl.Schema({"row": pl.Int64(), "column": pl.String(), "part": pl.String(), "text": pl.String()})


class Message(NamedTuple):
    """A text of a cell, and whether it is of a prompt or a response; None if the cell does not say."""

    part: Part | None
    text: str


def may_have_texts(named: Sequence[str]) -> Callable[[str], object]:
    """Return a function that says whether `text_columns` may return a column; see there."""
    columns = {column for _, column in parse_changes(named, KNOWN_COLUMNS)}
    known = re.compile("|".join(KNOWN_COLUMNS.values()), re.IGNORECASE).fullmatch
    return columns.__contains__ if columns else known


def text_columns(frame: pl.DataFrame, named: Sequence[str], where: str) -> Fields:
    """Return the columns with prompts, responses and conversations.

    Those that the caller names, such as "prompt=text"; else those with names that are common in training sets.

    Raises:
        DataError: If a name has another form, a column is missing, or no column is known.
    """
    if named:
        pairs = []
        for field, column in parse_changes(named, KNOWN_COLUMNS):
            if column not in frame.columns:
                raise DataError(f"{where} has no column `{column}`; it has {', '.join(frame.columns)}.")
            pairs.append((field, column))
        return {field: [column for own, column in pairs if own == field] for field in KNOWN_COLUMNS}
    names = [name for name in frame.columns if name.lower() not in NO_TEXTS]
    fields = {
        field: [name for name in names if re.fullmatch(pattern, name.lower())]
        for field, pattern in KNOWN_COLUMNS.items()
    }
    if not any(fields.values()):
        raise DataError(
            f"{where} has no known column of prompts, responses or conversations; it has {', '.join(frame.columns)}: "
            'name one with `columns=["prompt=COLUMN"]`, or the field response or conversation.'
        )
    return fields


def table_texts(frame: pl.DataFrame, fields: Fields, where: str, first_row: int = 0) -> pl.DataFrame:
    """Return the prompts and responses in the rows of a table, with the columns `TEXTS`.

    Each message is a text, and so is everything before the response that ends a conversation, and all columns of a
    prompt together. System messages are left out. A conversation without roles counts as prompt and as response.

    Raises:
        DataError: If a cell of these columns has another shape than a text, a message, or a list of them.
    """
    columns = [(field, name) for field, names in fields.items() for name in names]
    rows = []
    for number, cells in enumerate(frame.select(name for _, name in columns).iter_rows(), start=first_row):
        prompts: list[str] = []
        for (field, name), cell in zip(columns, cells, strict=True):
            try:
                messages = list(_messages(cell, field))
            except TypeError as error:
                raise DataError(
                    f"{where}: `{name}` of row {number:,} (from 0) is {error}, which is neither a text nor messages; "
                    'name the columns to read with `columns=["prompt=COLUMN"]`.'
                ) from None
            if field == "prompt" and (whole := _joined(_prompt(messages))) and whole not in prompts:
                prompts.append(whole)
            rows += [(number, name, part, text) for part, text in _parts(messages)]
        if len(prompts) > 1:
            rows.append((number, " + ".join(fields["prompt"]), "prompt", "\n\n".join(prompts)))
    texts = pl.DataFrame(rows, TEXTS, orient="row")
    return texts.unique(["row", "part", "text"], keep="first", maintain_order=True)


def _parts(messages: Sequence[Message]) -> Iterator[tuple[Part, str]]:
    """Yield the prompts and responses of a cell, and the prompt of a conversation as a whole."""
    for message in messages:
        for part in PARTS if message.part is None else (message.part,):
            yield part, message.text
    whole = _prompt(messages)
    if len(whole) > 1 and any(message.part == "prompt" for message in whole):
        yield "prompt", _joined(whole)


def _prompt(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages of a cell before the response that ends them."""
    return messages[:-1] if messages and messages[-1].part == "response" else messages


def _joined(messages: Sequence[Message]) -> str:
    return "\n\n".join(message.text for message in messages)


def _messages(cell: Any, field: str) -> Iterator[Message]:
    """Yield the texts of a cell. Raises `TypeError` for another value, with its description."""
    default: Part | None = {"prompt": "prompt", "response": "response"}.get(field)  # type: ignore[assignment]
    if cell is None:
        return
    if isinstance(cell, str):
        parsed = _parsed(cell)
        if parsed is not None:
            yield from _messages(parsed, field)
        elif cell.lstrip().startswith(("Human:", "User:")) and "\n\nAssistant:" in cell:
            yield from _transcript(cell)
        elif cell.strip():
            yield Message(default, cell)
    elif isinstance(cell, Mapping):
        role = cell.get("role", cell.get("from"))
        part = default if role is None else PART_OF.get(str(role).lower(), default)
        left_out = role is not None and PART_OF.get(str(role).lower(), default) is None
        text = next((cell[name] for name in CONTENT if isinstance(cell.get(name), str | list)), None) or ""
        if isinstance(text, list):  # parts
            text = _joined([*_messages(text, field)])
        if text.strip() and not left_out:
            yield Message(part, text)
    elif isinstance(cell, list):
        for one in cell:
            yield from _messages(one, field)
    else:
        raise TypeError(f"{type(cell).__name__} {str(cell)[:40]!r}")


def _transcript(text: str) -> Iterator[Message]:
    """Yield the turns of a transcript with "Human:" and "Assistant:" at the beginning of paragraphs (HH-RLHF)."""
    _, *parts = SPEAKER.split(text)
    for speaker, turn in zip(parts[::2], parts[1::2], strict=True):
        if turn.strip():
            yield Message("response" if speaker == "Assistant" else "prompt", turn.strip())


def _parsed(text: str) -> Any:
    """Return the messages that a text holds as JSON; None for other texts."""
    if not text.startswith(("[{", '{"')):
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    first = value[0] if isinstance(value, list) else value
    return value if isinstance(first, dict) and first.keys() & {*CONTENT} else None
