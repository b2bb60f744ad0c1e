"""Schemas of tables, with rules whose names complete the sentence "column `x` ...".

Nothing here needs pandera, so a command that needs columns alone starts without it, and without pandas.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

CALL_KEY = r"\A[0-9a-f]{64}\z"


class Rule(NamedTuple):
    """A check of columns, named to complete the sentence "column `x` ...".

    `holds` maps the name of a column to an expression that is true for valid rows.
    """

    error: str
    columns: tuple[str, ...]
    holds: Callable[[str], pl.Expr]


@dataclass(frozen=True)
class Schema:
    """What a table must look like: it has these columns and no others, and ids are unique.

    Attributes:
        columns: Types of all columns.
        rules: Checks of the columns.
        nullable: Columns in which values may be missing.
    """

    columns: Mapping[str, Any]
    rules: Sequence[Rule]
    nullable: Sequence[str] = ()


def rule(error: str, *columns: str, holds: Callable[[str], pl.Expr]) -> Rule:
    """Create a rule; see `Rule`."""
    return Rule(error, columns, holds)


def non_blank(*columns: str) -> Rule:
    """Check that columns have more than white space."""
    return rule("must have text", *columns, holds=lambda name: pl.col(name).str.contains(r"\S"))


def one_of(column: str, values: Sequence[str]) -> Rule:
    """Check that a column has one of these values."""
    return rule(f"must be one of {', '.join(values)}", column, holds=lambda name: pl.col(name).is_in(values))


def differs(column: str, other: str) -> Rule:
    """Check that two columns differ in each row."""
    return rule(f"must differ from `{other}`", column, holds=lambda name: pl.col(name) != pl.col(other))


def same_in_all(column: str) -> Rule:
    """Check that a column has the same value in all rows."""
    return rule("must be the same in all rows", column, holds=lambda name: pl.col(name) == pl.col(name).first())


def not_negative(*columns: str) -> Rule:
    """Check that the numbers in columns are at least 0."""
    return rule("must not be negative", *columns, holds=lambda name: pl.col(name) >= 0)


def is_call_key(*columns: str) -> Rule:
    """Check that each value is the key of a recorded call, a SHA-256."""
    error = "must be the key of a recorded call, 64 hexadecimal digits"
    return rule(error, *columns, holds=lambda name: pl.col(name).str.contains(CALL_KEY))


def are_call_keys(*columns: str) -> Rule:
    """Check that each value in columns of lists is the key of a recorded call."""
    error = "must be keys of calls, 64 hexadecimal digits"
    return rule(error, *columns, holds=lambda name: each(name, pl.element().str.contains(CALL_KEY)))


def have_fields(error: str, column: str, *fields: str) -> Rule:
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
