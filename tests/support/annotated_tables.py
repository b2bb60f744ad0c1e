"""Benchmarks with votes of people, and the tables that they read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pluralbench import load_items
from pluralbench.data.annotations import annotations_of
from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.items import Items
from pluralbench.errors import DataError
from written_tables import write

Rows = list[dict[str, Any]]
LABELS = {"first": ["A"], "second": ["B"], "tie": ["="]}
PAIR = {"first": "one", "second": "two"}


def benchmark(annotations: Mapping[str, Any], **values: Any) -> Benchmark:
    columns = values.pop("columns", PAIR)
    return Benchmark.model_validate(
        {"title": "Votes", "labels": LABELS, "columns": columns, "annotations": annotations} | values
    )


def read(folder: Path, rows: Rows, described: Benchmark) -> Items:
    return load_items(described, write(folder / "v.jsonl", rows))


def votes_of(items: Items, described: Benchmark) -> pl.DataFrame:
    votes = annotations_of(described, items.frame)
    assert votes is not None
    return votes


def refused(folder: Path, rows: Rows, described: Benchmark) -> str:
    with pytest.raises(DataError) as error:
        read(folder, rows, described)
    return str(error.value)
