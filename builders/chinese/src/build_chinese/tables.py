"""Convert resolved rows to release tables, and release tables to the fields that CHEEMS published."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl
import pyarrow as pa
from pluralbench_schemas import RANKED_RESPONSES

from build_chinese.rankings import Row

PUBLISHED = ("input", "responses", "annotations", "rank", "category")
CALLS = ("vote_calls", "reward_calls")
NO_CALLS = pl.DataFrame(schema={"prompt": pl.String, "call": pl.String})


def frame_of(rows: Sequence[Row], annotated_by: str, calls: Mapping[str, pl.DataFrame] | None = None) -> pl.DataFrame:
    """Convert resolved rows to a table (`pluralbench_schemas.RankedResponses`).

    Args:
        rows: Resolved rows.
        annotated_by: Value of that column.
        calls: Frames with `prompt` and `call`, for the columns of `CALLS`.
    """
    copied = ("id", "input", "sys_prompt", "annotations", "order", "category")
    values = [
        {name: row.get(name) for name in copied}
        | {
            "responses": [response | {"model": str(response.get("model") or "")} for response in row["responses"]],
            "rank": [{"id": name, "rank": rank} for name, rank in row["rank"].items()],
            "judgements": sum(row["counts"]["judgements"].values()),
            "conflicts": sum(row["counts"]["conflicts"].values()),
            "annotated_by": annotated_by,
        }
        for row in rows
    ]
    empty = pl.DataFrame(schema={name: kind for name, kind in RANKED_RESPONSES.items() if name not in CALLS})
    # Arrow reads nested lists several times faster than polars does.
    frame = pl.DataFrame(pa.Table.from_pylist(values, schema=empty.to_arrow().schema))
    for name in CALLS:
        recorded = (calls or {}).get(name, NO_CALLS).drop_nulls("call")
        keys = recorded.group_by(id="prompt", maintain_order=True).agg(pl.col("call").alias(name))
        frame = frame.join(keys, on="id", how="left", maintain_order="left").with_columns(pl.col(name).fill_null([]))
    return frame


def published_rows(frame: pl.DataFrame) -> Iterator[Row]:
    """Yield the rows of a table in the fields that CHEEMS published, with `rank` as an object."""
    for row in frame.iter_rows(named=True):
        rank = {"rank": {entry["id"]: entry["rank"] for entry in row["rank"]}}
        system = {"sys_prompt": row["sys_prompt"]} if row["sys_prompt"] else {}
        yield {name: row[name] for name in PUBLISHED} | rank | system
