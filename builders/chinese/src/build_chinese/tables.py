"""Resolved rows as the tables of a release, and these in the fields that CHEEMS published."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl
from pluralbench_schemas import RANKED_RESPONSES

from build_chinese.rankings import Row

PUBLISHED = ("input", "responses", "annotations", "rank", "category")
CALLS = ("vote_calls", "reward_calls")
NO_CALLS = pl.DataFrame(schema={"prompt": pl.String, "call": pl.String})


def frame_of(rows: Sequence[Row], annotated_by: str, calls: Mapping[str, pl.DataFrame] | None = None) -> pl.DataFrame:
    """Resolved rows as a table (`pluralbench_schemas.RankedResponses`). calls: `prompt` and `call` by column."""
    responses = [response for row in rows for response in row["responses"]]
    annotations = [annotation for row in rows for annotation in row["annotations"]]
    ordered = [pair for row in rows for pair in row["order"]]
    frame = pl.DataFrame(
        {
            "id": [row["id"] for row in rows],
            "input": [row["input"] for row in rows],
            "sys_prompt": [row.get("sys_prompt") for row in rows],
            "responses": _nested(
                [len(row["responses"]) for row in rows],
                pl.struct("id", "content", "model"),
                id=[response["id"] for response in responses],
                content=[response["content"] for response in responses],
                model=[str(response.get("model") or "") for response in responses],
            ),
            "annotations": _nested(
                [len(row["annotations"]) for row in rows],
                pl.concat_list("first", "second", "mark"),
                first=[first for first, _, _ in annotations],
                second=[second for _, second, _ in annotations],
                mark=[mark for _, _, mark in annotations],
            ),
            "rank": _nested(
                [len(row["rank"]) for row in rows],
                pl.struct("id", "rank"),
                id=[name for row in rows for name in row["rank"]],
                rank=[rank for row in rows for rank in row["rank"].values()],
            ),
            "order": _nested(
                [len(row["order"]) for row in rows],
                pl.concat_list("better", "worse"),
                better=[better for better, _ in ordered],
                worse=[worse for _, worse in ordered],
            ),
            "category": [row["category"] for row in rows],
            "judgements": [sum(row["counts"]["judgements"].values()) for row in rows],
            "conflicts": [sum(row["counts"]["conflicts"].values()) for row in rows],
            "annotated_by": annotated_by,
        },
        schema={name: kind for name, kind in RANKED_RESPONSES.items() if name not in CALLS},
    )
    for name in CALLS:
        found = (calls or {}).get(name, NO_CALLS).drop_nulls("call")
        keys = found.group_by(id="prompt", maintain_order=True).agg(pl.col("call").alias(name))
        frame = frame.join(keys, on="id", how="left", maintain_order="left").with_columns(pl.col(name).fill_null([]))
    return frame


def published_rows(frame: pl.DataFrame) -> Iterator[Row]:
    """The rows of a table in the fields that CHEEMS published, `rank` as an object."""
    for row in frame.iter_rows(named=True):
        rank = {"rank": {entry["id"]: entry["rank"] for entry in row["rank"]}}
        system = {"sys_prompt": row["sys_prompt"]} if row["sys_prompt"] else {}
        yield {name: row[name] for name in PUBLISHED} | rank | system


def _nested(counts: Sequence[int], entry: pl.Expr, **columns: Sequence[object]) -> pl.Series:
    """A list for each row, of an entry for each of the next so many values of the columns.

    Polars reads flat columns several times faster than Python lists of lists.
    """
    places = pl.Series("row", range(len(counts)), pl.Int64)
    of_row = places.repeat_by(pl.Series(counts, dtype=pl.Int64)).explode().drop_nulls()
    flat = pl.DataFrame([of_row, *(pl.Series(name, values) for name, values in columns.items())])
    lists = flat.group_by("row").agg(entry.alias("entries"))
    return places.to_frame().join(lists, on="row", how="left", maintain_order="left")["entries"].fill_null([])
