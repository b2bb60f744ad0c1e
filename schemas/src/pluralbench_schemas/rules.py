"""Rules for columns. Their names complete the sentence "column `x` ..."."""

from collections.abc import Callable
from typing import Any

import pandera.polars as pa
import polars as pl

CALL_KEY = r"\A[0-9a-f]{64}\z"


class Rows(pa.DataFrameModel):
    """Base class of schemas that allow no other columns."""

    class Config:
        """Allow no other columns."""

        strict = True

    @classmethod
    def row_types(cls) -> pl.Schema:
        """Return the column names and types, to create a table. `empty()` would start polars' threads."""
        return pl.Schema({name: column.dtype.type for name, column in cls.to_schema().columns.items()})


def rule(error: str, *columns: str, holds: Callable[[str], pl.Expr]) -> Any:
    """Create a check of columns, for an attribute of a schema.

    Args:
        error: Name of the rule, which completes the sentence "column `x` ...".
        columns: The columns.
        holds: Maps the name of a column to an expression that is true for valid rows.
    """

    def check(_: type, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(holds(data.key))

    return pa.check(*columns, error=error)(classmethod(check))


def non_blank(*columns: str) -> Any:
    """Check that columns have more than white space."""
    return rule("must have text", *columns, holds=lambda name: pl.col(name).str.contains(r"\S"))


def differs(column: str, other: str) -> Any:
    """Check that two columns differ in each row."""
    return rule(f"must differ from `{other}`", column, holds=lambda name: pl.col(name) != pl.col(other))


def same_in_all(column: str) -> Any:
    """Check that a column has the same value in all rows."""
    return rule("must be the same in all rows", column, holds=lambda name: pl.col(name) == pl.col(name).first())


def not_negative(*columns: str) -> Any:
    """Check that the numbers in columns are at least 0."""
    return rule("must not be negative", *columns, holds=lambda name: pl.col(name) >= 0)


def is_call_key(*columns: str) -> Any:
    """Check that each value is the key of a recorded call, a SHA-256."""
    error = "must be the key of a recorded call, 64 hexadecimal digits"
    return rule(error, *columns, holds=lambda name: pl.col(name).str.contains(CALL_KEY))


def are_call_keys(*columns: str) -> Any:
    """Check that each value in columns of lists is the key of a recorded call."""
    error = "must be keys of calls, 64 hexadecimal digits"
    return rule(error, *columns, holds=lambda name: each(name, pl.element().str.contains(CALL_KEY)))


def have_fields(error: str, column: str, *fields: str) -> Any:
    """Check that each struct in a column of lists has text in these fields."""
    item = pl.element().struct
    filled = pl.all_horizontal(item.field(field).str.contains(r"\S").fill_null(value=False) for field in fields)
    return rule(error, column, holds=lambda name: each(name, filled))


def each(column: str, holds: pl.Expr) -> pl.Expr:
    """Whether an expression of `pl.element()` is true for each item in a column of lists; null counts as false."""
    return pl.col(column).list.eval(holds.fill_null(value=False)).list.all()


def fields(column: str, name: str) -> pl.Expr:
    """Extract a field from each struct in a column of lists."""
    return pl.col(column).list.eval(pl.element().struct.field(name))
