"""Convert resolved rows to release tables, and release tables to the fields that CHEEMS published."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl
import pyarrow as pa
from pluralbench_schemas import RANKED_PAIRS, RANKED_RESPONSES

from build_chinese.rankings import Row, preferred_pairs

PUBLISHED = ("input", "responses", "annotations", "rank", "category")
CALLS = ("vote_calls", "reward_calls")
NO_CALLS = pl.DataFrame(schema={"prompt": pl.String, "call": pl.String})


def frame_of(rows: Sequence[Row], annotated_by: str, calls: Mapping[str, pl.DataFrame] | None = None) -> pl.DataFrame:
    """Convert resolved rows to a table (`pluralbench_schemas.RANKED_RESPONSES`).

    `calls` has frames with `prompt` and `call`, for the columns of `CALLS`.
    """
    copied = ("id", "input", "sys_prompt", "annotations", "votes", "order", "category")
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
    empty = pl.DataFrame(schema={name: kind for name, kind in RANKED_RESPONSES.columns.items() if name not in CALLS})
    # Arrow reads nested lists several times faster than polars does.
    frame = pl.DataFrame(pa.Table.from_pylist(values, schema=empty.to_arrow().schema))
    for name in CALLS:
        recorded = (calls or {}).get(name, NO_CALLS).drop_nulls("call")
        keys = recorded.group_by(id="prompt", maintain_order=True).agg(pl.col("call").alias(name))
        frame = frame.join(keys, on="id", how="left", maintain_order="left").with_columns(pl.col(name).fill_null([]))
    return frame


def pairs_of(rankings: pl.DataFrame) -> pl.DataFrame:
    """Convert rankings (`RANKED_RESPONSES`) to the pairs to train on (`pluralbench_schemas.RANKED_PAIRS`).

    A pair is an annotation that prefers one response and that the ranks do not contradict; a repeated one is one pair.
    Pairs with an empty response or with equal ones are left out, since a reward model learns nothing from them.
    """
    rows = []
    for row in rankings.iter_rows(named=True):
        texts = {response["id"]: response["content"] for response in row["responses"]}
        system = [{"role": "system", "content": row["sys_prompt"]}] if (row["sys_prompt"] or "").strip() else []
        order = set(map(tuple, row["order"]))
        rows += [
            {
                "id": f"{row['id']}/{better}/{worse}",
                "prompt": [*system, {"role": "user", "content": row["input"]}],
                "chosen": [{"role": "assistant", "content": texts[better]}],
                "rejected": [{"role": "assistant", "content": texts[worse]}],
                "prompt_id": row["id"],
                "chosen_id": better,
                "rejected_id": worse,
                "annotated_by": row["annotated_by"],
                "votes": [
                    {"annotator": vote["annotator"], "vote": _side(vote, better)}
                    for vote in row["votes"]
                    if {vote["first"], vote["second"]} == {better, worse}
                ],
            }
            for better, worse in dict.fromkeys(preferred_pairs(row))
            if (better, worse) in order and texts[better].strip() and texts[worse].strip()
            if texts[better] != texts[worse]
        ]
    return pl.DataFrame(rows, schema=RANKED_PAIRS.columns)


def _side(vote: Mapping[str, str], better: str) -> str:
    if vote["vote"] == "s":
        return "tie"
    return "chosen" if (vote["first"] == better) == (vote["vote"] == "1") else "rejected"


def published_rows(frame: pl.DataFrame) -> Iterator[Row]:
    """Yield the rows of a table in the fields that CHEEMS published, with `rank` as an object."""
    for row in frame.iter_rows(named=True):
        rank = {"rank": {entry["id"]: entry["rank"] for entry in row["rank"]}}
        system = {"sys_prompt": row["sys_prompt"]} if row["sys_prompt"] else {}
        yield {name: row[name] for name in PUBLISHED} | rank | system
