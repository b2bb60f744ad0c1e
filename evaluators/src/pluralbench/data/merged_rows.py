"""Merge rows that belong to one item: rows with one response each, and rows with the same prompt."""

import json
from collections.abc import Sequence

import polars as pl

from pluralbench.data.fields import Columns
from pluralbench.data.texts import first_ids, parsed_value
from pluralbench.errors import DataError

PLACE = "#place"
"""Column of the row number."""


def group_responses(frame: pl.DataFrame, columns: Columns, where: str) -> pl.DataFrame:
    """Merge the rows that share the value of `columns.group` into one row with lists of responses and labels.

    Other columns keep the value of the first row.

    Raises:
        DataError: If a row has no value in the column, or the rows of an item have different prompts.
    """
    key = columns.group
    if key is None or key not in frame.columns:
        return frame
    if frame[key].null_count():
        row = frame[key].is_null().to_list().index(True) + 1
        raise DataError(f"{where}: row {row} has no `{key}`, which says which responses belong together; add it.")
    lists = [name for name in (columns.responses, columns.right, columns.rank) if name in frame.columns and name != key]
    for prompt in (name for name in columns.prompt if name in frame.columns and name not in {*lists, key}):
        several = frame.group_by(key, maintain_order=True).agg(n=pl.col(prompt).n_unique()).filter(pl.col("n") > 1)
        if several.height:
            raise DataError(
                f"{where}: rows with the `{key}` {several[key][0]} have different prompts in `{prompt}`; give each "
                f"prompt its own `{key}`."
            )
    return merge_rows(frame, key, lists)


def merge_rows(frame: pl.DataFrame, key: str, lists: Sequence[str]) -> pl.DataFrame:
    """Merge the rows with the same key; the columns `lists` become lists, and others keep their first value."""
    others = [name for name in frame.columns if name not in {*lists, key}]
    merged = frame.group_by(key, maintain_order=True).agg(pl.col(others).first(), pl.col(lists))
    return merged.select(frame.columns)


def group_prompts(frame: pl.DataFrame, columns: Columns, where: str) -> pl.DataFrame:
    """Merge the rows of one prompt into one row, as CheemsBench's loader does.

    The row has the responses and pairs of all of them, the ranks of the only row with ranks, and other values of the
    first row if all rows have a value.
    """
    prompt = pl.struct(columns.prompt).struct.json_encode()
    numbered = frame.with_row_index(PLACE)
    repeated = numbered.filter(prompt.is_duplicated())
    rank = columns.rank or "rank"
    lists = [name for name in (columns.responses, columns.pairs) if name in frame.columns]
    merged_rows = []
    for _, part in repeated.group_by(prompt, maintain_order=True):
        rows = part.rows(named=True)
        numbers = [str(row[PLACE] + 1) for row in rows]
        ranked = [number for number, row in zip(numbers, rows, strict=True) if row[rank] is not None]
        if len(ranked) > 1:
            raise DataError(
                f"{where} ranks the responses to one prompt more than once (rows {first_ids(ranked)}); keep one of "
                "these rows."
            )
        merged = {
            name: value if all(row[name] is not None for row in rows) else None for name, value in rows[0].items()
        }
        for name in lists:
            try:
                entries = [entry for row in rows for entry in parsed_value(row, name) or ()]
            except ValueError:
                raise DataError(
                    f"{where}: `{name}` is not a list in one of the rows {first_ids(numbers)}; write a JSON list."
                ) from None
            unique = [entry for place, entry in enumerate(entries) if entry not in entries[:place]]
            merged[name] = json.dumps(unique, ensure_ascii=False) if frame.schema[name] == pl.String else unique
        merged_rows.append(merged | {rank: next((row[rank] for row in rows if row[rank] is not None), None)})
    grouped = pl.concat([numbered.filter(~prompt.is_duplicated()), pl.DataFrame(merged_rows, numbered.schema)])
    return grouped.sort(PLACE).drop(PLACE)
