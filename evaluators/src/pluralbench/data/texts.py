"""Read the cells of a table: prompts as messages, responses as texts, lists as JSON, user context."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeGuard

import polars as pl
from pluralbench_runs import plural
from pluralbench_schemas import POST, RUBRIC_ASPECT

from pluralbench.data.fields import Columns

Row = Mapping[str, Any]
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
CALL_KEYS = ("tool_calls", "function_call")
"""Keys of what a message says besides its text, which is not read."""
STRUCT_FIELDS = {field.name for kind in (POST, RUBRIC_ASPECT) for field in kind.fields}
LETTERS = ("A", "B")


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
    """Read the prompt of a row as messages; with `user_turns`, a list of texts has the user's turns.

    Raises:
        KeyError, TypeError, ValueError: If the row has another shape.
    """
    parts = [(name, cell(row, name, columns)) for name in columns.prompt]
    name, first = parts[0]
    system_text = plain_text(row.get(columns.system), columns.system) if columns.system else ""
    system = [{"role": "system", "content": system_text}] if system_text else []
    if len(parts) == 1 and isinstance(first, list):
        if not first:
            raise ValueError("the prompt has no message")
        if len(first) > 1 and not user_turns and any(isinstance(part, str) for part in first):
            raise TypeError(
                f"`{name}` is a list of {len(first)} texts, which do not say whose they are; give messages, or set "
                "`user_turns = true` in the benchmark's file if all are the user's"
            )
        messages = [*system, *(_message(part, name) for part in first)]
        if messages[-1]["role"] == "assistant":
            raise ValueError(
                f"`{name}` ends with a message of the assistant; end it with the user's, and begin each response with "
                "that text"
            )
        return messages
    texts = [plain_text(part, name) for name, part in parts]
    return [*system, {"role": "user", "content": "\n\n".join(text for text in texts if text.strip())}]


def _message(part: Any, column: str) -> dict[str, str]:
    if isinstance(part, str):
        return {"role": "user", "content": part}
    return {"role": _role(part, column), "content": plain_text(part, column)}


def _role(message: Any, column: str) -> str:
    name = value_of(message, _message_keys(message)[0], column)
    role = ROLES.get(name.lower()) if isinstance(name, str) else None
    if role is None:
        raise ValueError(f"the role {shortened(name)} of a message in `{column}` is none of {', '.join(ROLES)}")
    return role


def _message_keys(message: Any) -> tuple[str, str]:
    has = message if isinstance(message, Mapping) else {}
    return next((keys for keys in MESSAGE_KEYS if has.get(keys[0]) is not None), MESSAGE_KEYS[0])


def cell(row: Row, name: str, columns: Columns) -> Any:
    """Return the value of a column of prompts or responses, parsed if its cells are JSON."""
    return parsed_value(row, name) if name in (columns.json_texts or ()) else row[name]


def parsed_value(row: Row, column: str) -> Any:
    """Return a list or mapping, which the table may hold as JSON text; raises `ValueError` for another text."""
    value = row[column]
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        raise ValueError(f"`{column}` is a text and not a list: {shortened(value)}") from None


def response_text(value: Any, column: str) -> str:
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
    return plain_text(value, column)


def check_earlier_messages(value: Any, column: str, prompt: Sequence[Mapping[str, str]]) -> None:
    """Raise `ValueError` if a conversation that ends with a response has earlier turns that the prompt lacks."""
    if not isinstance(value, list) or any(isinstance(part, str) for part in value):
        return
    known = " ".join(" ".join(message["content"].split()) for message in prompt)
    turns = [plain_text(part, column) for part in value[:-1] if _role(part, column)]
    lacking = [text for text in turns if " ".join(text.split()) not in known]
    if lacking:
        raise ValueError(
            f"`{column}` has {plural(len(lacking), 'turn')} before the response that the prompt lacks "
            f"({first_ids([*map(shortened, lacking)])}); make the messages before the response the prompt"
        )


def plain_text(value: Any, column: str) -> str:
    """Return a text, or the content of a message; "" for None."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        calls = next((key for key in CALL_KEYS if value.get(key)), None)
        if calls is not None:
            raise ValueError(f"a message in `{column}` has `{calls}`, which are not read; leave the item out")
        value = value_of(value, _message_keys(value)[1], column)
    if not isinstance(value, str):
        raise TypeError(f"{shortened(value)} in `{column}` is not text")
    return value


def is_texts(value: Any) -> TypeGuard[list[str]]:
    """Return whether a value is a list of texts."""
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def value_of(part: Any, key: str, column: str) -> Any:
    """Return the value of a key of an object in a column."""
    if not isinstance(part, Mapping):
        raise TypeError(f"{shortened(part)} in `{column}` is not an object with `{key}`")
    if key not in part:
        raise ValueError(f"an object in `{column}` has no `{key}`; it has {', '.join(map(str, part))}")
    return part[key]


def parse_posts(row: Mapping[str, Any], column: str | None) -> list[dict[str, Any]] | None:
    """Read posts: a list of objects with a `text`, a list of texts, or one text; None if there are none."""
    value = row.get(column) if column else None
    texts = [value] if isinstance(value, str) else value
    if is_texts(texts):
        return [{"text": text} for text in texts if text.strip()] or None
    try:
        return parse_structs(row, column, "text")
    except TypeError:
        raise TypeError(f"`{column}` is not a text, a list of texts or a list of objects with a `text`") from None


def parse_lines(row: Mapping[str, Any], column: str | None) -> str | None:
    """Read a text that may be a list of lines; None if there is none."""
    return "\n".join(parse_persona(row, column) or ()) or None


def parse_persona(row: Mapping[str, Any], column: str | None) -> list[str] | None:
    """Read a persona: a text, or a list of sentences; None if there is none."""
    value = row.get(column) if column else None
    texts = [value] if isinstance(value, str) else value
    if texts is None:
        return None
    if not is_texts(texts):
        raise TypeError(f"`{column}` is not a text or a list of texts")
    return [text.strip() for text in texts if text.strip()] or None


def parse_structs(row: Mapping[str, Any], column: str | None, key: str) -> list[dict[str, Any]] | None:
    """Read a list of objects that have at least a text under `key`; None if there is none."""
    value = row.get(column) if column else None
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(v, dict) and isinstance(v.get(key), str) for v in value):
        raise TypeError(f"`{column}` is not a list of objects with a `{key}`")
    for name, part in (pair for one in value for pair in one.items()):
        if name in STRUCT_FIELDS and type(part) not in (str, int, type(None)):
            raise ValueError(f"{shortened(part)} as `{name}` in `{column}` is not text")
    return value


CONTEXT: dict[str, Callable[..., Any]] = {
    "profile": parse_posts,
    "aspects": partial(parse_structs, key="aspect"),
    "persona": parse_persona,
    "rubric": parse_lines,
    "reference": parse_lines,
}
"""How a cell of each column of context is read."""
