"""Validation of tables, with one-sentence errors."""

import json
from typing import TYPE_CHECKING, Any

import polars as pl

from pluralbench_schemas.errors import TableError
from pluralbench_schemas.rules import Rule, Schema

if TYPE_CHECKING:
    import pandera.polars as pa

SHOWN_CHARACTERS = 80  # of a value in an error
RULES = {  # names of pandera's own checks; those of the schemas already have such names
    "field_uniqueness": "must be unique",
    "not_nullable": "must not be missing",
    "column_in_dataframe": "is missing",
    "column_in_schema": "is not part of this table",
}


def validate(frame: pl.DataFrame, schema: Schema, *, file: str, rows: int | None = None) -> pl.DataFrame:
    """Check a frame against a schema, and return it. `file` is its name in errors, `rows` the required number of rows.

    Default: at least one row (pandera would accept none).

    Raises:
        TableError: The frame violates the schema. The message names the first failure and counts all.
        TypeError: `frame` is a LazyFrame, which pandera would not check.
    """
    from pandera.errors import SchemaErrors

    if not isinstance(frame, pl.DataFrame):
        raise TypeError(f"validate takes an eager frame, not {type(frame).__name__}")
    if rows is not None and frame.height != rows:
        raise TableError(f"{file} has {frame.height:,} rows; expected {rows:,}.")
    if frame.height == 0:
        raise TableError(f"{file} has no rows.")
    try:
        _pandera_schema(schema).validate(frame, lazy=True)
    except SchemaErrors as error:
        raise _table_error(frame, error.failure_cases, file) from None
    return frame


def _pandera_schema(schema: Schema) -> "pa.DataFrameSchema":
    import pandera.polars as pa

    def check(rule: Rule) -> pa.Check:
        return pa.Check(lambda data: data.lazyframe.select(rule.holds(data.key)), error=rule.error)

    columns = {
        name: pa.Column(
            kind,
            [check(rule) for rule in schema.rules if name in rule.columns],
            nullable=name in schema.nullable,
            unique=name == "id",
        )
        for name, kind in schema.columns.items()
    }
    return pa.DataFrameSchema(columns, strict=True)


def _table_error(frame: pl.DataFrame, cases: pl.DataFrame, file: str) -> TableError:
    # A missing column also fails its other checks, so structural failures come first, then rows in order.
    structural = pl.col("check").is_in(["column_in_dataframe", "column_in_schema"]) | pl.col("check").str.starts_with(
        "dtype"
    )
    first = cases.sort(~structural, pl.col("index"), nulls_last=False, maintain_order=True).row(0, named=True)
    message = f"{file}{_format_row(frame, first)}: {_format_rule(frame, first)}"
    if cases.height > 1:
        message += f" ({cases.height:,} failures in all)"
    return TableError(f"{message}.", cases.height)


def _format_row(frame: pl.DataFrame, case: dict[str, Any]) -> str:
    index = case["index"]
    if index is None:
        return ""
    row_id = f" (id {frame['id'][index]!r})" if "id" in frame.columns else ""
    return f", row {index + 1}{row_id}"


def _format_rule(frame: pl.DataFrame, case: dict[str, Any]) -> str:
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
    shown = value if len(value) <= SHOWN_CHARACTERS else value[:SHOWN_CHARACTERS] + "…"
    return f"column `{column}` {rule}, got {shown}"
