"""Convert the rows of a table to items: columns of plain text at once, other columns row by row."""

from collections.abc import Callable, Mapping
from functools import partial
from hashlib import blake2b
from typing import Any

import polars as pl
from pluralbench_schemas import POST, RUBRIC_ASPECT
from pluralbench_tables import typed_frame

from pluralbench.data.annotations import VOTE
from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.fields import ID, ROW_NUMBER, Columns
from pluralbench.data.layouts import layout_of
from pluralbench.data.layouts.layout import Layout, SourceRows
from pluralbench.data.texts import CONTEXT, Row, as_texts, cell, parse_messages
from pluralbench.errors import DataError

BATCH_ITEMS = 8192  # items that are Python objects at a time
PART_ITEMS = 16 * BATCH_ITEMS  # items whose columns are contiguous
MESSAGE: pl.DataType = pl.Struct({"role": pl.String, "content": pl.String})
ITEMS = pl.Schema(
    {
        **dict.fromkeys(("config", "id", "cluster", "person", "subset"), pl.String()),
        "prompt": pl.List(MESSAGE),
        **dict.fromkeys(("response_ids", "responses"), pl.List(pl.String())),
        "rank": pl.List(pl.Int64()),
        **dict.fromkeys(("pairs", "compared"), pl.List(pl.List(pl.Int64()))),
        "profile": pl.List(POST),
        "aspects": pl.List(RUBRIC_ASPECT),
        "persona": pl.List(pl.String()),
        **dict.fromkeys(("rubric", "reference"), pl.String()),
        "earlier": pl.UInt32(),
        "annotations": pl.List(VOTE),
        "digest": pl.String(),
    }
)
CONTENT = ("prompt", "response_ids", "responses", "rank")
"""Columns that an item's digest covers."""
MISSING = "nan|NaN|None|null|NULL|NA|N/A|<NA>"
"""Matches what programs write for a missing value."""
VISIBLE = r"[^\s\x1c-\x1f]"
"""Matches a text that is not blank, with white space as in Python."""


def rows_to_items(benchmark: Benchmark, config: str, frame: pl.DataFrame, columns: Columns, where: str) -> pl.DataFrame:
    """Convert the rows of a table, with the ids of `with_ids`, to items with the columns of `ITEMS`.

    Raises:
        DataError: If a row has another shape; the message names its id.
    """
    layout = layout_of(benchmark, columns)
    # Rows are in memory twice only in one of the larger parts.
    parts = [_part_to_items(benchmark, layout, part, columns, where) for part in frame.iter_slices(PART_ITEMS)]
    items = pl.concat(parts or [pl.DataFrame(schema=ITEMS)])
    # Row numbers, unlike ids, are not shared across configs.
    own = pl.col("id") if columns.id in frame.columns else pl.format("{}, row {}", pl.lit(config), "id")
    # Values that all items share take no memory.
    shared = {name: pl.lit(None, kind) for name, kind in ITEMS.items()} | {"config": pl.lit(config), "cluster": own}
    items = items.with_columns(**{name: value for name, value in shared.items() if name not in items.columns})
    return items.with_columns(person=pl.col("cluster")).select(*ITEMS)


def _part_to_items(
    benchmark: Benchmark, layout: Layout, frame: pl.DataFrame, columns: Columns, where: str
) -> pl.DataFrame:
    """Convert some rows; the items lack the columns that the table does not have."""
    parts, constants = [], dict[str, pl.Expr]()
    for part in frame.iter_slices(BATCH_ITEMS):
        source = SourceRows(part, columns, where, part[ID].to_list())
        values = {
            "id": part[ID],
            "subset": _subsets(part, columns),
            "prompt": _prompts(source, user_turns=benchmark.user_turns),
            **(layout.responses(benchmark, source) if layout.responses else {}),
            **{
                field: source.each(partial(_context, read, columns, name), name)
                for field, read in CONTEXT.items()
                if (name := getattr(columns, field)) in part.columns
            },
        }
        if columns.cluster in part.columns:
            values["cluster"] = as_texts(part[columns.cluster]).fill_null(str(None))
        constants = {name: value for name, value in values.items() if isinstance(value, pl.Expr)}
        kinds = {name: ITEMS[name] for name, value in values.items() if value is not None and name not in constants}
        items = typed_frame(values, pl.Schema(kinds))
        parts.append(items.with_columns(digest=_digests(items, constants)))
    names = parts[0].columns
    columns_of_items = [pl.concat([part.drop_in_place(name) for part in parts], rechunk=True) for name in names]
    return pl.DataFrame(columns_of_items).with_columns(**constants)


def with_ids(frame: pl.DataFrame, columns: Columns, where: str) -> pl.DataFrame:
    """Add the ids of a table's rows as text: from its id column, or row numbers from 0; ids that are there stay."""
    if ID in frame.columns:
        return frame
    if columns.id == ROW_NUMBER or columns.id not in frame.columns:
        return frame.with_row_index(ID).with_columns(pl.col(ID).cast(pl.String))
    ids = frame[columns.id]
    if ids.null_count():
        row = ids.is_null().to_list().index(True) + 1
        raise DataError(f"{where}: row {row} has no id; add one.")
    return frame.with_columns(as_texts(ids).alias(ID))


def empty_items(items: pl.DataFrame) -> list[str]:
    """Return the ids of items with an empty response, or an empty message of the user or the assistant."""
    turns = pl.element().filter(pl.element().struct.field("role") != "system").struct.field("content")
    texts = {"responses": pl.element(), "prompt": turns}
    blank = [pl.col(name).list.eval(~text.str.contains(VISIBLE)).list.any() for name, text in texts.items()]
    return [
        item_id for part in items.iter_slices(BATCH_ITEMS) for item_id in part.filter(pl.any_horizontal(blank))["id"]
    ]


def items_with_missing(items: pl.DataFrame) -> list[str]:
    """Return the ids of items with a response, or a user message, that is the text of a missing value."""
    user_text = pl.element().filter(pl.element().struct.field("role") == "user").struct.field("content")
    texts = {"responses": pl.element(), "prompt": user_text}
    are_missing = [
        pl.col(name).list.eval(text.str.contains(rf"^\s*({MISSING})\s*$")).list.any() for name, text in texts.items()
    ]
    return items.filter(pl.any_horizontal(are_missing))["id"].to_list()


def _subsets(frame: pl.DataFrame, columns: Columns) -> pl.Series | None:
    """Return the subset of each row; of a list of categories, as in a release, the first."""
    if columns.subset is None or columns.subset not in frame.columns:
        return None
    values = frame[columns.subset]
    return as_texts(values.list.first() if isinstance(values.dtype, pl.List) else values)


def _prompts(source: SourceRows, *, user_turns: bool) -> pl.Series | list[Any]:
    """Return the prompts as messages; several text columns are joined to one message."""
    columns = source.columns
    system = columns.system if columns.system in source.frame.columns else None
    texts = source.text(*columns.prompt, *([system] if system else []))
    if texts is None:
        return source.each(
            partial(parse_messages, columns=columns, user_turns=user_turns), *columns.prompt, columns.system
        )
    visible = [pl.when(text.str.contains(VISIBLE)).then(text) for text in texts[: len(columns.prompt)]]
    if len(visible) == 1:
        content = visible[0].fill_null("")  # without a copy of the texts
    else:
        content = pl.concat_list(visible).list.drop_nulls().list.join("\n\n")
    user = pl.struct(role=pl.lit("user"), content=content)
    if not system:
        return source.frame.select(user.reshape((-1, 1)).arr.to_list()).to_series()
    message = pl.when(texts[-1] != "").then(pl.struct(role=pl.lit("system"), content=texts[-1]))
    return source.frame.select(pl.concat_list(message, user).list.drop_nulls()).to_series()


def _context(read: Callable[..., Any], columns: Columns, name: str, row: Row) -> Any:
    return read({name: cell(row, name, columns)}, name)


def _digests(items: pl.DataFrame, constants: Mapping[str, pl.Expr]) -> pl.Series:
    """Return 32 hex digits of each item's BLAKE2b over `CONTENT`, in which each text follows its number of bytes."""
    value = pl.element()
    message = value.struct.field("content")
    text = pl.concat_str(value.str.len_bytes(), value, separator=" ")
    forms = {
        "prompt": pl.concat_str(value.struct.field("role"), message.str.len_bytes(), message, separator=" "),
        "response_ids": text,
        "responses": text,
        "rank": value.cast(pl.String),
    }
    parts = {name: pl.col(name).list.eval(forms[name].fill_null("-")).list.join("\n").fill_null("") for name in CONTENT}
    once = pl.DataFrame().select(**constants).select(parts[name] for name in parts if name in constants)
    parts |= {text.name: pl.lit(text[0]) for text in once}
    contents = items.select(pl.concat_str(parts.values(), separator="\n\n").cast(pl.Binary)).to_series().to_list()
    return pl.Series([blake2b(content, digest_size=16).hexdigest() for content in contents], dtype=pl.String)
