"""Resolved rows as the tables of a release, and these in the fields that CHEEMS published."""

from collections.abc import Mapping, Sequence

import polars as pl
from pluralbench_schemas import RANKED_RESPONSES

from build_chinese.rankings import Row

PUBLISHED = ("input", "responses", "annotations", "rank", "category")


def frame_of(rows: Sequence[Row], annotated_by: str, calls: Mapping[str, pl.DataFrame] | None = None) -> pl.DataFrame:
    """Resolved rows as a table (`pluralbench_schemas.RankedResponses`). calls: `prompt` and `call` by column."""
    by_prompt = {
        name: dict(frame.drop_nulls("call").group_by("prompt", maintain_order=True).agg("call").iter_rows())
        for name, frame in (calls or {}).items()
    }
    # By way of arrow, since polars takes four times as long to read nested lists.
    import pyarrow as pa  # noqa: PLC0415 - takes long to import

    table = pa.Table.from_pylist(
        [
            {
                "id": row["id"],
                "input": row["input"],
                "sys_prompt": row.get("sys_prompt"),
                "responses": [
                    {"id": response["id"], "content": response["content"], "model": str(response.get("model") or "")}
                    for response in row["responses"]
                ],
                "annotations": row["annotations"],
                "rank": [{"id": name, "rank": rank} for name, rank in row["rank"].items()],
                "order": row["order"],
                "category": row["category"],
                "judgements": sum(row["counts"]["judgements"].values()),
                "conflicts": sum(row["counts"]["conflicts"].values()),
                "annotated_by": annotated_by,
                "vote_calls": by_prompt.get("vote_calls", {}).get(row["id"], []),
                "reward_calls": by_prompt.get("reward_calls", {}).get(row["id"], []),
            }
            for row in rows
        ],
        schema=pl.DataFrame(schema=RANKED_RESPONSES).to_arrow().schema,
    )
    return pl.DataFrame(pl.from_arrow(table), schema=RANKED_RESPONSES)


def published_rows(frame: pl.DataFrame) -> list[Row]:
    """The rows of a table in the fields that CHEEMS published, `rank` as an object."""
    return [
        {name: row[name] for name in PUBLISHED}
        | {"rank": {entry["id"]: entry["rank"] for entry in row["rank"]}}
        | ({"sys_prompt": row["sys_prompt"]} if row["sys_prompt"] else {})
        for row in frame.iter_rows(named=True)
    ]
