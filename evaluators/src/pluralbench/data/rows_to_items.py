"""Items made of a table: a column at a time where it holds plain texts, and row by row where it holds anything else."""

from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

import polars as pl
from pluralbench_schemas import POST, RUBRIC_ASPECT
from pluralbench_tables import typed_frame

from pluralbench.data.benchmarks import ROW_NUMBER, Benchmark, Columns
from pluralbench.data.labels import SECOND, TIE
from pluralbench.data.profiles import parse_persona, parse_posts, parse_structs
from pluralbench.data.texts import Row, as_texts, messages_of, responses_of, training_pairs
from pluralbench.errors import DataError

AT_ONCE = 8192  # items that are objects of Python at a time
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
    "profile": pl.List(POST),
    "aspects": pl.List(RUBRIC_ASPECT),
    "persona": pl.List(pl.String),
    "earlier": pl.UInt32,
    "digest": pl.String,
}
ITEMS = pl.Schema(_ITEM_TYPES)
ID = "#id"
"""The column of a row's id as text, beside those of the table."""
VISIBLE = r"[^\s\x1c-\x1f]"
"""What a text has that is not blank: white space is what Python takes for it."""


class SourceRows(NamedTuple):
    """Some rows of a table that are made items. ids: of the rows. where: the table, as errors name it."""

    frame: pl.DataFrame
    columns: Columns
    where: str
    ids: Sequence[str]

    def text(self, *names: str | None) -> list[pl.Expr] | None:
        """Columns as texts, "" where one is missing; None where they are not all of texts."""
        plain = all(name is not None and self.frame.schema.get(name) == pl.String for name in names)
        return [pl.col(name).fill_null("") for name in names if name] if plain else None

    def each(self, read: Callable[[Row], Any], *names: str | None) -> list[Any]:
        """What `read` makes of each row, of which it needs these columns. Raises `DataError` that names the row."""
        made: list[Any] = []
        there = [name for name in dict.fromkeys(names) if name in self.frame.columns]
        if not there:
            return [read({})] * self.frame.height
        try:
            for row in self.frame.select(there).iter_rows(named=True):
                made.append(read(row))  # noqa: PERF401 - how many are made says which row is at fault
        except (KeyError, IndexError, TypeError, ValueError) as error:
            at = self.ids[len(made)]
            raise DataError(f"{self.where} is not of the benchmark's shape at id {at}: {error}.") from None
        return made


def rows_to_items(benchmark: Benchmark, config: str, frame: pl.DataFrame, columns: Columns, where: str) -> pl.DataFrame:
    """The rows of a table as items, with the columns of `ITEMS`. Raises `DataError` for rows of another shape.

    frame: with the ids of `with_ids`. where: the table, as errors name it.
    """
    parts = [pl.DataFrame(schema=ITEMS)]
    for part in frame.iter_slices(AT_ONCE):
        source = SourceRows(part, columns, where, part[ID].to_list())
        own = part[ID] if columns.cluster not in part.columns else as_texts(part[columns.cluster]).fill_null(str(None))
        if columns.cluster not in part.columns and columns.id not in part.columns:
            own = f"{config}, row " + own  # an id may be shared across configs, the number of a row never is
        made = {
            "config": pl.repeat(config, part.height, dtype=pl.String, eager=True),
            "id": part[ID],
            "cluster": own,
            "person": own,
            "subset": _subsets(part, columns),
            "prompt": _prompts(source),
            **_responses(benchmark, source),
            "profile": source.each(lambda row: parse_posts(row, columns.profile), columns.profile),
            "aspects": source.each(lambda row: parse_structs(row, columns.aspects, "aspect"), columns.aspects),
            "persona": source.each(lambda row: parse_persona(row, columns.persona), columns.persona),
        }
        items = typed_frame(made, ITEMS)
        parts.append(items.with_columns(digest=_digests(items)))
    return pl.concat(parts, rechunk=True)


def with_ids(frame: pl.DataFrame, columns: Columns, where: str) -> pl.DataFrame:
    """A table with the ids of its rows as text: those of its column, or their numbers from 0 where it has none."""
    if columns.id == ROW_NUMBER or columns.id not in frame.columns:
        return frame.with_row_index(ID).with_columns(pl.col(ID).cast(pl.String))
    ids = frame[columns.id]
    if ids.null_count():
        raise DataError(f"{where} has a row without an id (row {ids.is_null().to_list().index(True) + 1}).")
    return frame.with_columns(as_texts(ids).alias(ID))


def empty_items(items: pl.DataFrame) -> list[str]:
    """The ids of items with an empty response, or an empty message of the user."""
    asked = pl.element().filter(pl.element().struct.field("role") == "user").struct.field("content")
    texts = pl.col("responses").list.concat(pl.col("prompt").list.eval(asked))
    blank = texts.list.eval(~pl.element().str.contains(VISIBLE)).list.any()
    return [item_id for part in items.iter_slices(AT_ONCE) for item_id in part.filter(blank)["id"]]


def _subsets(frame: pl.DataFrame, columns: Columns) -> pl.Series | None:
    """The subset of each row: of a release a list of categories, of which the first one counts."""
    if columns.subset is None or columns.subset not in frame.columns:
        return None
    values = frame[columns.subset]
    return as_texts(values.list.first() if isinstance(values.dtype, pl.List) else values)


def _prompts(source: SourceRows) -> pl.Series | list[Any]:
    """The prompts as messages; texts are joined to one."""
    columns = source.columns
    system = columns.system if columns.system in source.frame.columns else None
    texts = source.text(*columns.prompt, *([system] if system else []))
    if texts is None:
        return source.each(partial(messages_of, columns=columns), *columns.prompt, columns.system)
    said = [pl.when(text.str.contains(VISIBLE)).then(text) for text in texts[: len(columns.prompt)]]
    asked = pl.concat_list(said).list.drop_nulls().list.join("\n\n")
    messages = [pl.struct(role=pl.lit("user"), content=asked)]
    if system:
        message = pl.struct(role=pl.lit("system"), content=texts[-1])
        messages.insert(0, pl.when(texts[-1] != "").then(message))
    return source.frame.select(pl.concat_list(messages).list.drop_nulls()).to_series()


def _responses(benchmark: Benchmark, source: SourceRows) -> dict[str, Any]:
    """The names, texts and ranks of the responses, and the pairs to train on, by the columns of `ITEMS`."""
    columns, frame = source.columns, source.frame
    none: list[list[Any]] = [[]] * frame.height
    if benchmark.prompts_only and benchmark.history is None:
        return {"response_ids": none, "responses": none, "rank": none}
    labeled = columns.first is not None and columns.second is not None
    sides = (columns.first, columns.second) if labeled else (columns.chosen, columns.rejected)
    texts = None if columns.responses or (benchmark.multiple_responses and not labeled) else source.text(*sides)
    if texts is None:
        return _row_by_row(benchmark, source, sides)
    swapped, equal = pl.lit(value=False), pl.lit(value=False)
    if labeled:
        labels = frame.select(columns.labels).iter_rows()
        better = pl.Series([benchmark.labels.majority(row) for row in labels], dtype=pl.Int64)
        swapped, equal = pl.lit(better == SECOND), pl.lit(better == TIE)
    one, other = texts
    both = pl.concat_list(pl.when(swapped).then(other).otherwise(one), pl.when(swapped).then(one).otherwise(other))
    ranks = pl.concat_list(pl.lit(1), pl.when(equal).then(1).otherwise(2))
    return frame.select(pl.lit(["chosen", "rejected"]).alias("response_ids"), responses=both, rank=ranks).to_dict()


def _row_by_row(benchmark: Benchmark, source: SourceRows, sides: Sequence[str | None]) -> dict[str, Any]:
    columns = source.columns

    def read(row: Row) -> tuple[Any, ...]:
        names, texts, rank = responses_of(row, columns, benchmark.labels, several=benchmark.multiple_responses)
        return names, texts, rank, training_pairs(row, columns, names, rank)

    rank = columns.rank or "rank"
    made = source.each(read, *sides, *columns.labels, columns.responses, rank, columns.pairs)
    names = ("response_ids", "responses", "rank", "pairs")
    return dict(zip(names, map(list, zip(*made, strict=True)), strict=True))


def _digests(items: pl.DataFrame) -> pl.Series:
    """The first 16 digits of the digest of [[[role, content], ...], [[name, response, rank], ...]] of each item."""
    of = pl.element().struct.field
    message = pl.format("[{},{}]", _as_json(of("role")), _as_json(of("content")))
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
    """Texts and whole numbers as canonical JSON, which polars writes of structs."""
    return pl.struct(_=value).struct.json_encode().str.slice(len('{"_":')).str.head(-1)
