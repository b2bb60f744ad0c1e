"""Convert the rows of a table to items: columns of plain text at once, other columns row by row."""

from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

import polars as pl
from pluralbench_schemas import POST, RUBRIC_ASPECT
from pluralbench_tables import typed_frame

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.fields import ROW_NUMBER, Columns
from pluralbench.data.labels import SECOND, TIE
from pluralbench.data.profiles import parse_persona, parse_posts, parse_structs
from pluralbench.data.texts import Row, as_texts, compared_pairs, parse_messages, parse_responses, training_pairs
from pluralbench.errors import DataError

BATCH_ITEMS = 8192  # items that are Python objects at a time
MESSAGE: pl.DataType = pl.Struct({"role": pl.String, "content": pl.String})
_ITEM_TYPES: dict[str, pl.DataType | type[pl.DataType]] = {
    "config": pl.String,
    "id": pl.String,
    "cluster": pl.String,
    "person": pl.String,
    "subset": pl.String,
    "prompt": pl.List(MESSAGE),
    "response_ids": pl.List(pl.String),
    "responses": pl.List(pl.String),
    "rank": pl.List(pl.Int64),
    "pairs": pl.List(pl.List(pl.Int64)),
    "compared": pl.List(pl.List(pl.Int64)),
    "profile": pl.List(POST),
    "aspects": pl.List(RUBRIC_ASPECT),
    "persona": pl.List(pl.String),
    "earlier": pl.UInt32,
    "digest": pl.String,
}
ITEMS = pl.Schema(_ITEM_TYPES)
ID = "#id"
"""Column of a row's id as text."""
VISIBLE = r"[^\s\x1c-\x1f]"
"""Matches a text that is not blank, with white space as in Python."""


class SourceRows(NamedTuple):
    """Rows of a table to convert.

    Attributes:
        frame: The rows.
        columns: Columns of the table.
        where: Name of the table in errors.
        ids: Ids of the rows.
    """

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


def rows_to_items(benchmark: Benchmark, config: str, frame: pl.DataFrame, columns: Columns, where: str) -> pl.DataFrame:
    """Convert the rows of a table to items with the columns of `ITEMS`.

    Args:
        benchmark: The benchmark.
        config: Config of the items.
        frame: The table, with the ids of `with_ids`.
        columns: Columns of the table.
        where: Name of the table in errors.

    Raises:
        DataError: If a row has another shape; the message names its id.
    """
    parts = [pl.DataFrame(schema=ITEMS)]
    for part in frame.iter_slices(BATCH_ITEMS):
        source = SourceRows(part, columns, where, part[ID].to_list())
        cluster = (
            part[ID] if columns.cluster not in part.columns else as_texts(part[columns.cluster]).fill_null(str(None))
        )
        if columns.cluster not in part.columns and columns.id not in part.columns:
            cluster = f"{config}, row " + cluster  # row numbers, unlike ids, are not shared across configs
        values = {
            "config": pl.repeat(config, part.height, dtype=pl.String, eager=True),
            "id": part[ID],
            "cluster": cluster,
            "person": cluster,
            "subset": _subsets(part, columns),
            "prompt": _prompts(source, user_turns=benchmark.user_turns),
            **_responses(benchmark, source),
            "profile": source.each(lambda row: parse_posts(row, columns.profile), columns.profile),
            "aspects": source.each(lambda row: parse_structs(row, columns.aspects, "aspect"), columns.aspects),
            "persona": source.each(lambda row: parse_persona(row, columns.persona), columns.persona),
        }
        items = typed_frame(values, ITEMS)
        parts.append(items.with_columns(digest=_digests(items)))
    return pl.concat(parts, rechunk=True)


def with_ids(frame: pl.DataFrame, columns: Columns, where: str) -> pl.DataFrame:
    """Add the ids of a table's rows as text: from its id column, or row numbers from 0."""
    if columns.id == ROW_NUMBER or columns.id not in frame.columns:
        return frame.with_row_index(ID).with_columns(pl.col(ID).cast(pl.String))
    ids = frame[columns.id]
    if ids.null_count():
        row = ids.is_null().to_list().index(True) + 1
        raise DataError(f"{where}: row {row} has no id; add one.")
    return frame.with_columns(as_texts(ids).alias(ID))


def empty_items(items: pl.DataFrame) -> list[str]:
    """Return the ids of items with an empty response or an empty user message."""
    user_texts = pl.element().filter(pl.element().struct.field("role") == "user").struct.field("content")
    texts = pl.col("responses").list.concat(pl.col("prompt").list.eval(user_texts))
    blank = texts.list.eval(~pl.element().str.contains(VISIBLE)).list.any()
    return [item_id for part in items.iter_slices(BATCH_ITEMS) for item_id in part.filter(blank)["id"]]


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
    content = pl.concat_list(visible).list.drop_nulls().list.join("\n\n")
    messages = [pl.struct(role=pl.lit("user"), content=content)]
    if system:
        message = pl.struct(role=pl.lit("system"), content=texts[-1])
        messages.insert(0, pl.when(texts[-1] != "").then(message))
    return source.frame.select(pl.concat_list(messages).list.drop_nulls()).to_series()


def _responses(benchmark: Benchmark, source: SourceRows) -> dict[str, Any]:
    """Return the names, texts and ranks of the responses, and the pairs to train on, as columns of `ITEMS`."""
    columns, frame = source.columns, source.frame
    empty: list[list[Any]] = [[]] * frame.height
    if benchmark.prompts_only and benchmark.history is None:
        return {"response_ids": empty, "responses": empty, "rank": empty}
    labeled = columns.first is not None and columns.second is not None
    sides = (columns.first, columns.second) if labeled else (columns.chosen, columns.rejected)
    by_row = columns.responses or benchmark.credit or (benchmark.multiple_responses and not labeled)
    texts = None if by_row else source.text(*sides)
    if texts is None:
        return _responses_by_row(benchmark, source, sides)
    swapped, equal = pl.lit(value=False), pl.lit(value=False)
    if labeled:
        labels = frame.select(columns.labels).iter_rows()
        better = pl.Series([benchmark.labels.majority(row) for row in labels], dtype=pl.Int64)
        swapped, equal = pl.lit(better == SECOND), pl.lit(better == TIE)
    first, second = texts
    responses = pl.concat_list(
        pl.when(swapped).then(second).otherwise(first), pl.when(swapped).then(first).otherwise(second)
    )
    ranks = pl.concat_list(pl.lit(1), pl.when(equal).then(1).otherwise(2))
    return frame.select(pl.lit(["chosen", "rejected"]).alias("response_ids"), responses=responses, rank=ranks).to_dict()


def _responses_by_row(benchmark: Benchmark, source: SourceRows, sides: Sequence[str | None]) -> dict[str, Any]:
    columns = source.columns

    def read(row: Row) -> tuple[Any, ...]:
        names, texts, rank = parse_responses(
            row, columns, benchmark.labels, several=benchmark.multiple_responses, in_place=bool(benchmark.credit)
        )
        return names, texts, rank, training_pairs(row, columns, names, rank), compared_pairs(row, columns, rank)

    read_columns = (columns.responses, columns.right, columns.rank or "rank", columns.pairs, columns.compared)
    rows = source.each(read, *sides, *columns.labels, *read_columns)
    names = ("response_ids", "responses", "rank", "pairs", "compared")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _digests(items: pl.DataFrame) -> pl.Series:
    """Return 16 hex digits of each item's SHA-256 over [[[role, content], ...], [[name, response, rank], ...]]."""
    message_field = pl.element().struct.field
    message = pl.format("[{},{}]", _as_json(message_field("role")), _as_json(message_field("content")))
    parts = [_as_json(pl.col(name)) for name in ("response_ids", "responses", "rank")]
    listed = ["response_ids", "responses", "rank"]
    responses = (
        items.select(*listed, place=pl.int_range(pl.len()))
        .explode(listed)
        .drop_nulls("response_ids")
        .group_by("place", maintain_order=True)
        .agg(text=pl.format("[{},{},{}]", *parts).str.join(","))
    )
    texts = (
        items.select(
            place=pl.int_range(pl.len()),
            prompt=pl.col("prompt").list.eval(message).list.join(","),
        )
        .join(responses, on="place", how="left", maintain_order="left")
        .select(pl.format("[[{}],[{}]]", "prompt", pl.col("text").fill_null("")))
        .to_series()
    )
    return pl.Series([sha256(text.encode()).hexdigest()[:16] for text in texts], dtype=pl.String)


def _as_json(value: pl.Expr) -> pl.Expr:
    """Encode texts and whole numbers as canonical JSON; polars writes JSON only for structs."""
    return pl.struct(_=value).struct.json_encode().str.slice(len('{"_":')).str.head(-1)
