"""Columns that a benchmark reads from a table, and checks of them."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain

import polars as pl

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.derived import missing_source
from pluralbench.data.fields import LISTS, ROW_NUMBER, Columns
from pluralbench.data.layouts import LAYOUTS, layout_of
from pluralbench.data.layouts.layout import Layout
from pluralbench.data.texts import CONTEXT, first_ids
from pluralbench.errors import ColumnMissing, DataError

MIN_QUOTED_CHARACTERS = 50
MAX_ANSWERED_PROMPTS = 10
"""Prompts that may contain the better response in any table, such as requests to improve a text."""
LIST_AS_TEXT = r"""(?s)^\s*\[\s*["'{].*\]\s*$"""
OBJECT_AS_TEXT = r"""(?s)^\s*\{\s*".*\}\s*$"""
TEXT_AS_TEXT = r"""(?s)^".*"$"""
RESPONSE_FIELDS = {field for layout in LAYOUTS for field in layout.fields}
Names = dict[str, tuple[str, ...]]
"""Columns of a table by the field of `Columns`."""


def config_columns(benchmark: Benchmark, config: str, frame: pl.DataFrame) -> Columns:
    """Return the columns of a config's table."""
    columns = benchmark.columns_of(config)
    if benchmark.reference is None or config != benchmark.reference.config:
        return columns
    changed = {field: name for field, name in benchmark.reference.columns.items() if name in frame.columns}
    return columns.model_copy(update=changed)


def check_columns(benchmark: Benchmark, columns: Columns, frame: pl.DataFrame, where: str) -> None:
    """Check the columns of a table, and the values by which its layout orders the responses.

    Raises:
        DataError: If a required column is missing or is used twice, or a label is unknown.
    """
    layout = layout_of(benchmark, columns)
    texts = {"prompt": columns.prompt} | _response_columns(benchmark, columns, layout, where)
    needed = {field: _names(columns, field) for field in benchmark.required if field not in LISTS} | texts
    needed |= {field: _names(columns, field) for field in ("group", "compared") if layout.fields}
    if benchmark.history is not None:
        marks = benchmark.history.column
        needed |= {"cluster": _names(columns, "cluster"), "earlier": (marks,) if marks else ()}
    if benchmark.annotations is not None:
        needed |= {"annotations": benchmark.annotations.table_columns}
    for field, names in (needed | {"json_texts": columns.json_texts or ()}).items():
        for name in names:
            if name not in frame.columns and (field, name) != ("id", ROW_NUMBER):
                raise ColumnMissing(_missing(frame, field, name, where))
    cells = [name for field in ("prompt", *layout.texts) for name in texts[field]]
    cells += [name for field in CONTEXT if (name := getattr(columns, field)) in frame.columns]
    _check_json_texts(cells, columns, frame, where)
    for name, count in Counter(chain(*texts.values())).items():
        if count > 1:
            fields = " and ".join(f"`{field}`" for field, names in texts.items() if name in names)
            raise DataError(
                f"{where}: the column `{name}` is used as {fields}; name another column for one of them, and split "
                "texts that contain both prompt and response."
            )
    layout.check_rows(benchmark, columns, frame, where)


def _names(columns: Columns, field: str) -> tuple[str, ...]:
    names = getattr(columns, field)
    return names if isinstance(names, tuple) else (names,) if names else ()


def _missing(frame: pl.DataFrame, field: str, name: str, where: str) -> str:
    what, fix = "", f'name the right one with `columns=["{field}=COLUMN"]`'
    if field == "prompt" and {"chosen", "rejected"} <= {*frame.columns}:
        fix += ", or split it off if the responses are whole conversations"
    elif field == "annotations":
        what, fix = " of the people's votes", "add it, or name the right one in a benchmark file"
    elif field not in Columns.model_fields:
        what, fix = ", which marks users' earlier pairs", "add it, or describe the data in a benchmark file"
    source = missing_source(frame, name)
    needed = f"`{source}`" if source == name else f"`{source}`, which `{name}` needs"
    return f"{where} has no column {needed}{what}; it has {', '.join(frame.columns)}: {fix}."


def _check_json_texts(texts: Sequence[str], columns: Columns, frame: pl.DataFrame, where: str) -> None:
    """Raise `DataError` for columns whose cells are JSON, and not named as such: lists, or lists and texts."""
    if columns.json_texts == ():
        return
    named = columns.json_texts or ()
    lists = [name for name in texts if name not in named and _are_json(frame[name].drop_nulls())]
    if lists:
        names = " and ".join(f"`{name}`" for name in lists)
        raise DataError(
            f"{where}: {names} has lists written as text, or lists in some rows and texts in others; read it with "
            f'`columns=["json_texts={",".join([*named, *lists])}"]`, or say in a benchmark file that it is the text: '
            "`json_texts = []`."
        )


def _are_json(values: pl.Series) -> bool:
    """Whether all cells are lists, or a mixture of texts with lists or objects, which a table has as JSON."""
    if values.dtype != pl.String or values.is_empty():
        return False
    forms = (LIST_AS_TEXT, OBJECT_AS_TEXT, TEXT_AS_TEXT)
    if not any(values.head(1).str.contains(form).all() for form in forms):  # most texts are known by the first
        return False
    lists, objects, texts = (values.str.contains(form) for form in forms)
    return bool(lists.all() or ((lists | objects | texts).all() and texts.any() and not texts.all()))


def _response_columns(benchmark: Benchmark, columns: Columns, layout: Layout, where: str) -> Names:
    fields = layout.fields
    missing = [field for field in fields if field not in layout.optional and not getattr(columns, field)]
    others = [field for field in benchmark.required if field in RESPONSE_FIELDS and field not in fields]
    keys = [other.key for other in LAYOUTS if other.key and getattr(benchmark, other.key)]
    if missing or (fields and (others or {*keys} - {layout.key})):
        present = [f"`{field}`" for field in (*fields, *others) if getattr(columns, field)]
        present += [f"`{key}`" for key in keys]
        # Columns of another layout that only scores decide would not be those of responses.
        others_too = [one for one in LAYOUTS if one is layout or (not one.key and "judge" in one.commands)]
        ways = dict.fromkeys(" and ".join(f"`{field}`" for field in one.fields) for one in others_too)
        raise DataError(
            f"{where}: {' and '.join(present)} do not determine the better response; name the columns "
            f"{', or '.join(filter(None, ways))}."
        )
    return {field: _names(columns, field) or (field,) for field in fields}


def answered_prompts(items: pl.DataFrame) -> list[str]:
    """Return the ids of items whose prompt contains a best response and no worse one, and so reveals the answer.

    Responses with fewer than `MIN_QUOTED_CHARACTERS` characters, which a prompt may contain by chance, count only if
    they are the whole prompt.
    """
    text = pl.col("prompt").list.eval(pl.element().struct.field("content")).list.join("\n").str.strip_chars()
    shortest = pl.col("responses").list.eval(pl.element().str.strip_chars().str.len_bytes()).list.min()
    some = items.select("id", "responses", "rank", text=text).filter(shortest <= pl.col("text").str.len_bytes())
    best = pl.col("rank").list.eval(pl.element() == pl.element().min())
    each = some.with_columns(best=best).explode("responses", "best")
    response, best = pl.col("responses").str.strip_chars(), pl.col("best")
    contained = pl.col("text").str.contains(response, literal=True)
    quoted = contained & (
        (response.str.len_chars() >= MIN_QUOTED_CHARACTERS) | ((response == pl.col("text")) & (response != ""))
    )
    answered = (quoted & best).any() & ~(contained & ~best).any() & (~best).any()
    return each.group_by("id", maintain_order=True).agg(answered=answered).filter("answered")["id"].to_list()


def check_prompts(items: pl.DataFrame, answered: Sequence[str], where: str) -> None:
    """Check that most prompts are not among those of `answered_prompts`, as the prompts of transcripts are.

    Raises:
        DataError: If more than half of the prompts contain it.
    """
    if len(answered) > max(items.height / 2, MAX_ANSWERED_PROMPTS):
        raise DataError(
            f"{where}: {len(answered):,} of {items.height:,} prompts contain the better response (ids "
            f"{first_ids(answered)}); end prompts before the response."
        )
