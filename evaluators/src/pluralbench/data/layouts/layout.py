"""What a layout is: a shape of items, with the columns that it needs and how rows of a table become items."""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.fields import Columns
from pluralbench.data.layouts.shown import Replies, Shown, show_responses
from pluralbench.data.texts import Row, cell, check_earlier_messages, parse_messages, response_text
from pluralbench.errors import DataError

SCORING = ("score", "judge", "train", "best-of-n", "optimize")
"""Commands that accept items with responses."""


class SourceRows(NamedTuple):
    """Rows of a table to convert, with their ids, and the table's columns and name in errors."""

    frame: pl.DataFrame
    columns: Columns
    where: str
    ids: Sequence[str]

    def text(self, *names: str | None) -> list[pl.Expr] | None:
        """Return columns as texts, with "" for missing values; None unless all columns have texts that are not JSON."""
        as_json = self.columns.json_texts or ()
        plain = all(name and self.frame.schema.get(name) == pl.String and name not in as_json for name in names)
        return [pl.col(name).fill_null("") for name in names if name] if plain else None

    def each(self, read: Callable[[Row], Any], *names: str | None) -> list[Any]:
        """Apply `read` to these columns of each row. Raises `DataError` that names the row."""
        values: list[Any] = []
        existing = [name for name in dict.fromkeys(names) if name in self.frame.columns]
        if not existing:
            return [read({})] * self.frame.height
        try:
            for row in self.frame.select(existing).iter_rows(named=True):
                values.append(read(row))  # noqa: PERF401 - the number of values tells which row failed
        except (KeyError, IndexError, TypeError, ValueError) as error:
            row_id = self.ids[len(values)]
            raise DataError(f"{self.where} does not have the benchmark's shape at id {row_id}: {error}.") from None
        return values

    def response_texts(self, first: str, second: str) -> pl.DataFrame:
        """Return the texts of two columns with one response each, as the columns `first` and `second`."""
        texts = self.text(first, second)
        if texts is not None:
            return self.frame.select(first=texts[0], second=texts[1])

        def read(row: Row) -> tuple[str, ...]:
            cells = {name: cell(row, name, self.columns) for name in (first, second)}
            texts = tuple(response_text(value, name) for name, value in cells.items())
            if any(isinstance(value, list) and len(value) > 1 for value in cells.values()):
                prompt = parse_messages(row, self.columns, user_turns=True)
                for name, value in cells.items():
                    check_earlier_messages(value, name, prompt)
            return texts

        kinds = {"first": pl.String, "second": pl.String}
        names = (first, second, *self.columns.prompt, self.columns.system)
        return pl.DataFrame(self.each(read, *names), schema=kinds, orient="row")


def in_lists(*columns: pl.Series) -> pl.Series:
    """Return a list of the columns' texts for each row, as `polars.concat_list` does, without a copy of the texts."""
    height = len(columns[0])
    rows, places = np.divmod(np.arange(height * len(columns)), len(columns))
    return pl.concat(columns, rechunk=True).gather(places * height + rows).reshape((-1, len(columns))).arr.to_list()


class Layout(NamedTuple):
    """A shape of items.

    Attributes:
        unit: What an item is, in the plural.
        fields: Fields of `Columns` that hold the responses and their order.
        fits: Whether items with this description and these columns have the layout.
        responses: Returns the columns `response_ids`, `responses` and `rank` of the items of some rows, and `pairs` and
            `compared` where the layout has them; an expression is the same for all items. None: a command of its own
            reads the items.
        key: Key of a benchmark file that no table of another layout with responses may have.
        listed: Whether an item has any number of responses, so that runs record each one instead of pairs.
        texts: Those of `fields` of which each cell is one response.
        optional: Those of `fields` whose columns have a default name.
        check_rows: Raises `DataError` for wrong values in a table.
        check_items: Raises `DataError` for wrong items of a table.
        show: Returns what `show` prints of an item: of its row in the data, its rows in `items.parquet`, its decisions,
            a judge's replies, and the set of persona variables that the judge read.
        prompt: Returns the messages of an item, for its title.
        commands: Commands that accept such items.
    """

    unit: str
    fields: tuple[str, ...]
    fits: Callable[[Benchmark, Columns], bool]
    responses: Callable[[Benchmark, SourceRows], Mapping[str, Any]] | None
    key: str | None = None
    listed: bool = False
    texts: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    check_rows: Callable[[Benchmark, Columns, pl.DataFrame, str], None] = lambda benchmark, columns, frame, where: None
    check_items: Callable[[Benchmark, Columns, pl.DataFrame, str], None] = lambda benchmark, columns, frame, where: None
    show: Callable[[dict[str, Any], pl.DataFrame, pl.DataFrame, Replies, str | None], Shown] = show_responses
    prompt: Callable[[dict[str, Any]], list[dict[str, str]]] = itemgetter("prompt")
    commands: tuple[str, ...] = SCORING
