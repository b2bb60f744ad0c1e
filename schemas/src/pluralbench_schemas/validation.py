"""Validate a table and say in one sentence what is wrong with it, where."""

import json
from typing import Any

import pandera.polars as pa
import polars as pl
from pandera.errors import SchemaErrors

from pluralbench_schemas.errors import TableError

SHOWN = 80
RULES = {  # what pandera calls its own checks, in words; ours are named in words where they are declared
    "field_uniqueness": "must be unique",
    "not_nullable": "must not be missing",
    "column_in_dataframe": "must be there",
    "column_in_schema": "is not part of this table",
}


def validate(
    frame: pl.DataFrame, schema: type[pa.DataFrameModel], *, file: str, rows: int | None = None
) -> pl.DataFrame:
    """Check `frame` against `schema` and return it.

    file: what to call the table in an error.
    rows: the exact number of rows it must have; without it, at least one (pandera passes an empty table).

    Raises `TableError` (first failure named, all counted) and `TypeError` for a LazyFrame, which pandera would
    pass unchecked.
    """
    if not isinstance(frame, pl.DataFrame):
        raise TypeError(f"validate takes an eager frame, not {type(frame).__name__}")
    if rows is not None and frame.height != rows:
        raise TableError(f"{file} has {frame.height:,} rows where {rows:,} are expected.")
    if frame.height == 0:
        raise TableError(f"{file} has no rows.")
    try:
        schema.validate(frame, lazy=True)
    except SchemaErrors as error:
        raise _table_error(frame, error.failure_cases, file) from None
    return frame


def _table_error(frame: pl.DataFrame, cases: pl.DataFrame, file: str) -> TableError:
    # A missing column makes the checks on it fail too, so structure comes before content, then rows in order.
    structural = pl.col("check").is_in(["column_in_dataframe", "column_in_schema"]) | pl.col("check").str.starts_with(
        "dtype"
    )
    first = cases.sort(~structural, pl.col("index"), nulls_last=False, maintain_order=True).row(0, named=True)
    message = f"{file}{_where(frame, first)}: {_rule(frame, first)}"
    if cases.height > 1:
        message += f" ({cases.height:,} failures in all)"
    return TableError(f"{message}.", cases.height)


def _where(frame: pl.DataFrame, case: dict[str, Any]) -> str:
    index = case["index"]
    if index is None:
        return ""
    row_id = f" (id {frame['id'][index]!r})" if "id" in frame.columns else ""
    return f", row {index + 1}{row_id}"


def _rule(frame: pl.DataFrame, case: dict[str, Any]) -> str:
    check, column, index = str(case["check"]), case["column"], case["index"]
    if check in {"column_in_dataframe", "column_in_schema"}:
        return f"column `{case['failure_case']}` {RULES[check]}"
    if check.startswith("dtype"):
        expected = check.removeprefix("dtype('").removesuffix("')")
        return f"column `{column}` must be {expected}, not {frame.schema[column]}"
    rule = RULES.get(check, check)
    if case["schema_context"] != "Column" or index is None:
        return rule
    value = json.dumps(frame[column][index : index + 1].to_list()[0], ensure_ascii=False, default=str)
    shown = value if len(value) <= SHOWN else value[:SHOWN] + "…"
    return f"column `{column}` {rule}, got {shown}"
