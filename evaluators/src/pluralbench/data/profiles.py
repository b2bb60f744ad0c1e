"""User data of a row: posts, rubric aspects and persona."""

from collections.abc import Mapping
from typing import Any


def parse_posts(row: Mapping[str, Any], column: str | None) -> list[dict[str, Any]] | None:
    """Read the posts of a profile: a list of objects with a `text`, a list of texts, or one text.

    Returns None if the row has none.

    Raises:
        TypeError: If the value has another type.
    """
    value = row.get(column) if column else None
    texts = [value] if isinstance(value, str) else value
    if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
        return [{"text": text} for text in texts if text.strip()] or None
    try:
        return parse_structs(row, column, "text")
    except TypeError:
        raise TypeError(f"`{column}` is not a text, a list of texts or a list of objects with a `text`") from None


def parse_persona(row: Mapping[str, Any], column: str | None) -> list[str] | None:
    """Read a persona: a text, or a list of sentences.

    Returns None if the row has none.

    Raises:
        TypeError: If the value has another type.
    """
    value = row.get(column) if column else None
    texts = [value] if isinstance(value, str) else value
    if texts is None:
        return None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"`{column}` is not a text or a list of texts")
    return [text.strip() for text in texts if text.strip()] or None


def parse_structs(row: Mapping[str, Any], column: str | None, key: str) -> list[dict[str, Any]] | None:
    """Read a list of objects that have at least a text under `key`.

    Returns None if the row has none.

    Raises:
        TypeError: If the value has another type.
    """
    value = row.get(column) if column else None
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(v, dict) and isinstance(v.get(key), str) for v in value):
        raise TypeError(f"`{column}` is not a list of objects with a `{key}`")
    return value
