"""Keys of messages that are not read, such as `reasoning_content`: a report names them, as it does columns."""

import json
from collections.abc import Iterator
from typing import Any

import polars as pl

from pluralbench.data.texts import MESSAGE_KEYS


def unread_keys(values: pl.Series) -> set[str]:
    """Return the keys, each after the column's name and a point, that some message has besides its role and text.

    `values` are messages, lists of them, or either as JSON; other values have no such keys.
    """
    if values.dtype == pl.String:
        return {f"{values.name}.{key}" for text in values.drop_nulls() for key in _keys_in(_parsed(text))}
    while isinstance(values.dtype, pl.List | pl.Array):
        values = values.explode()
    fields = {field.name for field in values.dtype.fields} if isinstance(values.dtype, pl.Struct) else set[str]()
    read = next((keys for keys in MESSAGE_KEYS if fields.issuperset(keys)), None)
    if read is None:
        return set()
    return {f"{values.name}.{key}" for key in fields.difference(read) if _has_values(values.struct.field(key))}


def _has_values(values: pl.Series) -> bool:
    """Whether a value is neither null nor empty: tables of messages fill in keys that only some of them have."""
    values = values.drop_nulls()
    if values.dtype == pl.String:
        return bool((values != "").any())
    return bool((values.list.len() > 0).any()) if isinstance(values.dtype, pl.List) else len(values) > 0


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None  # is named where it is read


def _keys_in(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for part in value:
            yield from _keys_in(part)
    elif isinstance(value, dict):
        read = next((keys for keys in MESSAGE_KEYS if value.keys() >= {*keys}), None)
        if read is not None:
            yield from (key for key in value if key not in read and value[key] not in (None, "", []))
