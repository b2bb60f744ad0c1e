"""Rules that the columns of a table keep to, said in words that end the sentence "column `x` ..."."""

from collections.abc import Callable
from typing import Any

import pandera.polars as pa
import polars as pl

CALL_KEY = r"\A[0-9a-f]{64}\z"


class Rows(pa.DataFrameModel):
    """Rows with the columns of a schema and no others."""

    class Config:
        """No column beside these."""

        strict = True

    @classmethod
    def row_types(cls) -> pl.Schema:
        """The names and types of the columns, to make a table. `empty()` has them too, but starts polars' threads."""
        return pl.Schema({name: column.dtype.type for name, column in cls.to_schema().columns.items()})


def rule(error: str, *columns: str, holds: Callable[[str], pl.Expr]) -> Any:
    """A check of columns, an attribute of a schema. holds: from a column's name to whether each row keeps to it."""

    def check(_: type, data: pa.PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(holds(data.key))

    return pa.check(*columns, error=error)(classmethod(check))


def non_blank(*columns: str) -> Any:
    """More than white space stands in these columns."""
    return rule("must have text", *columns, holds=lambda name: pl.col(name).str.contains(r"\S"))


def differs(column: str, other: str) -> Any:
    """The two columns differ in each row."""
    return rule(f"must differ from `{other}`", column, holds=lambda name: pl.col(name) != pl.col(other))


def same_in_all(column: str) -> Any:
    """A column has one value."""
    return rule("must be the same in all rows", column, holds=lambda name: pl.col(name) == pl.col(name).first())


def not_negative(*columns: str) -> Any:
    """The numbers of these columns are 0 or more."""
    return rule("must not be negative", *columns, holds=lambda name: pl.col(name) >= 0)


def is_call_key(*columns: str) -> Any:
    """Each is the key of a recorded call, a SHA-256."""
    said = "must be the key of a recorded call, 64 hexadecimal digits"
    return rule(said, *columns, holds=lambda name: pl.col(name).str.contains(CALL_KEY))


def are_call_keys(*columns: str) -> Any:
    """The same of columns of lists."""
    said = "must be keys of calls, 64 hexadecimal digits"
    return rule(said, *columns, holds=lambda name: each(name, pl.element().str.contains(CALL_KEY)))


def have_fields(error: str, column: str, *fields: str) -> Any:
    """Each struct of a column of lists has text in these fields."""
    item = pl.element().struct
    filled = pl.all_horizontal(item.field(field).str.contains(r"\S").fill_null(value=False) for field in fields)
    return rule(error, column, holds=lambda name: each(name, filled))


def each(column: str, holds: pl.Expr) -> pl.Expr:
    """Whether an expression of `pl.element()` holds for each item of a column of lists; null does not hold."""
    return pl.col(column).list.eval(holds.fill_null(value=False)).list.all()


def fields(column: str, name: str) -> pl.Expr:
    """A field of each struct of a column of lists."""
    return pl.col(column).list.eval(pl.element().struct.field(name))
