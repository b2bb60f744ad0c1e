"""Small tables in each format, and how reading them is refused."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
import pytest
from pluralbench_release import ReleaseError, TablesError, read_tables

SUFFIXES = [".parquet", ".jsonl", ".json", ".csv"]
TEXTS = ["أحب الشاي «الأخضر»", "我喜欢喝“龙井”茶。", "🍵👨‍👩‍👧\u200d", 'a "quoted", text\r\nwith\ttabs', "007"]
Row = Mapping[str, object]


def write(path: Path, rows: Sequence[Row]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    match path.suffix:
        case ".parquet":
            pl.DataFrame(rows).write_parquet(path)
        case ".csv":
            pl.DataFrame(rows).write_csv(path)
        case ".jsonl":
            path.write_bytes("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())
        case ".json":
            path.write_text(json.dumps(rows, indent=2), encoding="utf-8")
    return path


def ids(*names: str) -> list[Row]:
    return [{"id": name, "text": TEXTS[number % len(TEXTS)]} for number, name in enumerate(names)]


def refused(location: Path | str, split: str = "test", configs: Sequence[str] | None = None) -> str:
    with pytest.raises(TablesError) as caught:
        read_tables(str(location), split=split, configs=configs)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert isinstance(caught.value, ReleaseError)
    return message
