"""Rows of JSON as a frame."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl
from pluralbench_runs import Json, UserError, one_line
from polars.exceptions import PanicException, PolarsError

from pluralbench_tables.errors import TableFileError
from pluralbench_tables.json_files import levels
from pluralbench_tables.limits import CELLS, COLUMNS


def frame_from_rows(
    rows: Sequence[Mapping[str, Json]], where: str = "The rows", error: type[UserError] = TableFileError
) -> pl.DataFrame:
    """Rows of JSON as a frame, a column for each key, null where a row lacks it.

    A column of objects becomes structs where all have the same keys, all the way down; else it is a string of
    canonical JSON (sorted keys, no spaces, characters as they are), and so is one that has objects or lists beside
    other values. Lists of objects become lists of structs with null for the keys that an object lacks.

    Raises `error`, a sentence that begins with `where`, for values nested deeper than `limits.DEPTH`, for
    more than `limits.COLUMNS` columns or keys at one depth, and for lists whose values are of several kinds.
    """
    try:
        names = dict.fromkeys(name for row in rows for name in row)
        _check_fields(rows)
        as_json = [name for name in names if not _uniform(row.get(name) for row in rows)]
        changed = (dict(row) | {name: _dumped(row.get(name)) for name in as_json} for row in rows)
        return pl.DataFrame(list(changed) if as_json else rows, infer_schema_length=None, strict=False)
    except (PolarsError, PanicException, ValueError, TypeError, OverflowError) as fault:
        raise error(f"{where} cannot be made a table: {one_line(fault, 300)}.") from None


def typed_frame(columns: Mapping[str, Sequence[Any] | pl.Series | None], schema: pl.Schema) -> pl.DataFrame:
    """Values by column as a frame of this schema, as `polars.DataFrame` has it, in a tenth of its time.

    A column that is not there, or None, is null. Raises as polars does for values of other types.
    """
    import pyarrow as pa  # noqa: PLC0415 - half a second that text files save

    fields = pl.DataFrame(schema=schema).to_arrow(compat_level=pl.CompatLevel.oldest()).schema
    height = next(len(values) for values in columns.values() if values is not None)
    made = {}
    for field, (name, kind) in zip(fields, schema.items(), strict=True):
        values = columns.get(name)
        if values is None or isinstance(values, pl.Series):
            made[name] = pl.repeat(None, height, dtype=kind, eager=True) if values is None else values.cast(kind)
            continue
        try:
            array = pa.array(values, field.type) if _are_plain(values) else None
        except (ValueError, TypeError, OverflowError):
            array = None
        # What Arrow does not take, and all that it might take for something else, is left to polars.
        left = pl.DataFrame([{name: value} for value in values], {name: kind})[name] if array is None else None
        made[name] = pl.Series(name, pl.from_arrow(array)) if left is None else left
    return pl.DataFrame(made, schema=schema)


def _are_plain(values: Iterable[Any]) -> bool:
    """Whether there are only texts, whole numbers and missing values in the values, their lists and objects."""
    waiting = [values]
    while waiting:
        one = waiting.pop()
        kinds = {*map(type, one)}
        if kinds & {list, dict}:
            waiting += [inner for inner in one if type(inner) is list]
            waiting += [inner.values() for inner in one if type(inner) is dict]
        if not kinds <= {list, dict, str, int, type(None)}:
            return False
    return True


def _check_fields(rows: Sequence[Mapping[str, Json]]) -> None:
    """Raise `ValueError` where a frame would have too many columns, or structs too many fields for so many objects."""
    for level in levels([*rows]):
        objects = [value for value in level if isinstance(value, dict)]
        fields = {name for value in objects for name in value}
        if len(fields) > COLUMNS:
            raise ValueError(f"there are more than {COLUMNS:,} columns or keys, which are as many as are read")
        if len(fields) * len(objects) > CELLS:
            raise ValueError(f"there are more than {CELLS:,} cells, which are as many as are read")


def _uniform(values: Iterable[Json]) -> bool:
    """Whether all values that are not null are of one kind: objects with the same keys all the way down, or others."""
    present = [value for value in values if value is not None]
    objects = [value for value in present if isinstance(value, dict)]
    if not objects:
        return len({isinstance(value, list) for value in present}) < 2
    if len(objects) < len(present) or any(value.keys() != objects[0].keys() for value in objects):
        return False
    return all(_uniform(value[key] for value in objects) for key in objects[0])


def _dumped(value: Json) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
