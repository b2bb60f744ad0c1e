"""Frames from JSON rows or columns of values."""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import polars as pl
from pluralbench_runs import Json, UserError, one_line
from polars.exceptions import PanicException, PolarsError

from pluralbench_tables.errors import TableFileError
from pluralbench_tables.json_files import levels

EXACT = 2**53  # Integers beyond it have no decimal number of their own.
LONG = "an integer of over 15 digits"
KINDS: Mapping[type, str] = {
    str: "text",
    bool: "a boolean",
    int: "an integer",
    float: "a decimal number",
    list: "a list",
    dict: "an object",
}
"""What a value is called in an error, by its type."""
DTYPES: Mapping[type, pl.DataType] = {str: pl.String(), bool: pl.Boolean(), int: pl.Int64(), float: pl.Float64()}
ELEMENT = object()
"""Step of a path into each element of a list; other steps are keys."""


class _MixedKindsError(Exception):
    """The values at a path, which is the only argument, are of kinds that no column holds together."""


def frame_from_rows(
    rows: Sequence[Mapping[str, Json]],
    where: str = "The rows",
    error: type[UserError] = TableFileError,
    *,
    needed: Callable[[str], object] | None = None,
    place: Callable[[int], str] | None = None,
) -> pl.DataFrame:
    """Convert JSON rows to a frame with a column for each key; missing values are null.

    Objects become structs if all have the same keys at every depth. Otherwise, and in columns that mix objects or lists
    with other values, each value becomes a string of JSON (sorted keys, no spaces, no ASCII escapes). Lists of objects
    become lists of structs; a missing key is null. Integers and booleans among texts become texts, as JSON writes them,
    and integers among decimal numbers become decimal. Other kinds of values at one place, such as texts and lists as
    the content of messages, are an error, and strings of JSON in a column that is not `needed`.

    Args:
        rows: The rows.
        where: Name of the rows, which begins the error's message.
        error: The type of the error.
        needed: Whether a column is needed. Default: all are.
        place: Name of a row in errors, by its position from 0. Default: `where` and the number of the row.

    Raises:
        UserError: Of the type `error`: values are nested deeper than `limits.DEPTH`, or are of several kinds.
    """
    place = place or (lambda row: f"{where}, row {row + 1:,}")
    try:
        names = dict.fromkeys(name for row in rows for name in row)
        deque(levels([*rows]), maxlen=0)  # raises for values that are nested too deep
        series = {}
        for name in names:
            values = [row.get(name) for row in rows]
            try:
                series[name] = _series(name, values)
            except _MixedKindsError as mixed:
                if needed is None or needed(name):
                    raise error(_mixed(name, values, mixed.args[0], place)) from None
                series[name] = _as_json(name, values)
        return pl.DataFrame(series)
    except (PolarsError, PanicException, ValueError, TypeError, OverflowError) as cause:
        raise error(f"{where} cannot be converted to a table: {one_line(cause, 300)}.") from None


def typed_frame(columns: Mapping[str, Sequence[Any] | pl.Series | None], schema: pl.Schema) -> pl.DataFrame:
    """Create a frame like `polars.DataFrame(columns, schema)`, ten times as fast. Raises as polars does.

    A missing column, or None, is null.
    """
    height = next(len(values) for values in columns.values() if values is not None)
    series = {}
    for name, kind in schema.items():
        values = columns.get(name)
        if values is None or isinstance(values, pl.Series):
            series[name] = pl.repeat(None, height, dtype=kind, eager=True) if values is None else values.cast(kind)
            continue
        try:
            own = _arrow_series(name, values, kind) if _are_plain(values) else None
        except (ValueError, TypeError, OverflowError):
            own = None
        # Values that Arrow rejects, or might convert to another type, are left to polars.
        series[name] = pl.DataFrame([{name: value} for value in values], {name: kind})[name] if own is None else own
    return pl.DataFrame(series, schema=schema)


def _arrow_series(name: str, values: Sequence[Any], dtype: pl.DataType) -> pl.Series:
    """Convert values of a known type. Texts and numbers need no Arrow, whose conversion imports pandas."""
    if dtype in DTYPES.values():
        try:
            return pl.Series(name, values, dtype, strict=dtype != pl.Float64())
        except TypeError:
            if dtype == pl.Int64():
                raise OverflowError(f"an integer of `{name}` has more than 64 bits") from None
            raise

    import pyarrow as pa

    (field,) = pl.DataFrame(schema={name: dtype}).to_arrow(compat_level=pl.CompatLevel.oldest()).schema
    return pl.Series(name, pl.from_arrow(pa.array(values, field.type)))


def _are_plain(values: Iterable[Any]) -> bool:
    """Whether the values, at every depth of lists and objects, are only strings, integers and None."""
    stack = [values]
    while stack:
        group = stack.pop()
        kinds = {*map(type, group)}
        if kinds & {list, dict}:
            stack += [value for value in group if type(value) is list]
            stack += [value.values() for value in group if type(value) is dict]
        if not kinds <= {list, dict, str, int, type(None)}:
            return False
    return True


def _series(name: str, values: Sequence[Json]) -> pl.Series:
    if not _uniform(values):
        return _as_json(name, values)
    dtype = _dtype(values, ())
    if dtype is None:  # values that are not JSON's, such as the Hub's dates
        return pl.DataFrame([{name: value} for value in values], infer_schema_length=None, strict=False)[name]
    try:
        return _arrow_series(name, values, dtype)
    except TypeError:  # other values among texts
        return _arrow_series(name, [_with_texts(value, dtype) for value in values], dtype)


def _with_texts(value: Any, dtype: pl.DataType) -> Json:
    """Replace integers and booleans among texts by their JSON."""
    if isinstance(dtype, pl.List):
        return None if value is None else [_with_texts(element, dtype.inner) for element in value]  # type: ignore[arg-type]
    if isinstance(dtype, pl.Struct):
        fields = dtype.fields if value is not None else []
        own = {field.name: _with_texts(value.get(field.name), field.dtype) for field in fields}  # type: ignore[arg-type]
        return None if value is None else own
    return json.dumps(value) if dtype == pl.String and isinstance(value, int) else value


def _dtype(values: Sequence[Json], path: tuple[object, ...]) -> pl.DataType | None:
    """Return the type that holds all values; None if polars has to find it. Raises `_MixedKindsError`."""
    kinds = {*map(type, values)} - {type(None)}
    if kinds == {list}:
        lists: list[Any] = [value for value in values if value is not None]
        inner = _dtype([*chain.from_iterable(lists)], (*path, ELEMENT))
        return None if inner is None else pl.List(inner)
    if kinds == {dict}:
        objects: list[Any] = [value for value in values if value is not None]
        keys = dict.fromkeys(chain.from_iterable(objects))
        fields = {key: _dtype([value.get(key) for value in objects], (*path, key)) for key in keys}
        return None if None in fields.values() else pl.Struct(fields)  # type: ignore[arg-type]
    if len(kinds) > 1 and not _mixable({*map(_kind, values)} - {None}):
        raise _MixedKindsError(path)
    if len(kinds) > 1:
        return pl.String() if str in kinds else pl.Float64()
    return DTYPES.get(*kinds) if kinds else pl.Null()


def _mixable(kinds: set[str | None]) -> bool:
    """Whether a column may mix kinds of values: integers and booleans with texts, integers with decimal numbers."""
    integers = {KINDS[int], LONG}
    if KINDS[str] in kinds:
        return kinds <= {KINDS[str], KINDS[bool], *integers}
    return kinds <= integers or kinds <= {KINDS[int], KINDS[float]}


def _kind(value: object) -> str | None:
    if value is None:
        return None
    if type(value) is int and abs(value) > EXACT:
        return LONG
    return KINDS.get(type(value), type(value).__name__)


def _mixed(name: str, values: Sequence[Json], path: tuple[object, ...], place: Callable[[int], str]) -> str:
    seen = dict[str, None]()
    for row, value in enumerate(values):
        for own_path, part in _values_at(value, path, name):
            kind = _kind(part)
            other = next((one for one in seen if one != kind and not _mixable({one, kind})), kind)
            if kind is not None and other != kind:
                return f"{place(row)}: `{own_path}` is {kind}, but {other} before; give all values there one type."
            if kind is not None:
                seen[kind] = None
    raise AssertionError(path)


def _values_at(value: Any, path: tuple[object, ...], name: str) -> Iterator[tuple[str, object]]:
    """Yield the values at a path with their places, such as `prompt[0].content`."""
    if not path:
        yield name, value
    elif value is not None and path[0] is ELEMENT:
        for number, element in enumerate(value):
            yield from _values_at(element, path[1:], f"{name}[{number}]")
    elif value is not None:
        yield from _values_at(value.get(path[0]), path[1:], f"{name}.{path[0]}")


def _uniform(values: Iterable[Json]) -> bool:
    """Whether all values are null or of one kind: objects with the same keys at every depth, lists, or others."""
    present = [value for value in values if value is not None]
    objects = [value for value in present if isinstance(value, dict)]
    if not objects:
        return len({isinstance(value, list) for value in present}) < 2
    if len(objects) < len(present) or any(value.keys() != objects[0].keys() for value in objects):
        return False
    return all(_uniform(value[key] for value in objects) for key in objects[0])


def _as_json(name: str, values: Iterable[Json]) -> pl.Series:
    texts = [
        None if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        for value in values
    ]
    return pl.Series(name, texts, pl.String)
