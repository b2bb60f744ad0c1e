"""Small CheemsBench-like tables: invented prompts and responses, as published and as a release of ours has them."""

import random
from pathlib import Path
from typing import Any

import polars as pl
from written_tables import write

Row = dict[str, Any]
CATEGORIES = {"open": ["推理", "其他"], "human": ["推理", "理解", "复杂指令"]}
WORDS = ["龙井", "茶", "怎么", "泡", "才", "好喝", "先", "烫", "杯", "水温", "八十", "度", "两", "分钟", "🍵"]
RANKS = [[1, 2, 3, 2, 1], [3, 1, 2, 4, 5], [2, 2, 1, 1, 1], [1, 1, 1, 1, 1]]


def rows_of(config: str, number: int = 8) -> list[Row]:
    """Rows as published; the ids of responses are in another order in `rank`, and every fourth prompt is all ties."""
    draw = random.Random(config)
    categories = CATEGORIES[config]
    rows = []
    for place in range(number):
        ids = [f"{config}{place}-{letter}" for letter in "abcde"]
        texts = ["".join(draw.choices(WORDS, k=draw.randint(2, 14))) + str(place) for _ in ids]
        rank = dict(reversed(list(zip(ids, RANKS[place % len(RANKS)], strict=True))))
        rows.append({
            "input": f"第{place}个问题：龙井茶怎么泡才好喝？",
            "responses": [{"id": i, "content": text, "model": "m"} for i, text in zip(ids, texts, strict=True)],
            "annotations": [[ids[0], ids[1], "1"], [ids[1], ids[2], "s"]],
            "rank": rank,
            "category": [categories[place % len(categories)], "second"],
        })  # fmt: skip
    return rows


def published(folder: Path) -> Path:
    """`open.jsonl` and `human.jsonl`."""
    for config in CATEGORIES:
        write(folder / f"{config}.jsonl", rows_of(config))
    return folder


def released(folder: Path) -> Path:
    """The same as a release: Parquet, ids, ranks as lists, and a config for training besides."""
    for config in CATEGORIES:
        table = pl.DataFrame([_as_released(config, place, row) for place, row in enumerate(rows_of(config))])
        (folder / "data" / config).mkdir(parents=True)
        table.write_parquet(folder / "data" / config / "test.parquet")
    (folder / "data" / "preference").mkdir()
    table.write_parquet(folder / "data" / "preference" / "train.parquet")
    return folder


def _as_released(config: str, place: int, row: Row) -> Row:
    rank: dict[str, int] = row["rank"]
    return row | {
        "id": f"{config}-{place}",
        "rank": [{"id": one, "rank": value} for one, value in rank.items()],
        "order": [[a, b] for a in rank for b in rank if rank[a] < rank[b]],
        "conflicts": place,
    }
