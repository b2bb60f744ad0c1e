"""An error about a file is short, whatever the file holds in the place that the error names."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pluralbench_calls import read_ledger
from pluralbench_release.manifest import load_manifest
from pluralbench_runs import UserError
from pluralbench_runs.toml_files import read_toml
from pluralbench_tables import read_csv, read_json, read_jsonl, read_parquet

LONG = "x" * 1_000_000
MOST = 1_600  # characters


def text(read: Callable[[Path], object], content: str) -> Callable[[Path], object]:
    def given(path: Path) -> object:
        path.write_text(content, encoding="utf-8")
        return read(path)

    return given


def parquet(table: pa.Table, *columns: str) -> Callable[[Path], object]:
    def given(path: Path) -> object:
        pq.write_table(table, path)
        return read_parquet(path, columns or None)

    return given


GIVEN: dict[str, Callable[[Path], object]] = {
    "JSON key": text(read_json, f'{{"{LONG}": 1, "{LONG}": 2}}'),
    "JSON digits": text(read_json, "1" * 1_000_000),
    "JSON Lines": text(read_jsonl, f'"{LONG}"'),
    "CSV names": text(read_csv, f"{LONG},{LONG}\n1,2\n"),
    "CSV cell": text(read_csv, f'a,b\n1,"{LONG}'),
    "CSV name of a long cell": text(read_csv, f"{LONG},b\n{'y' * 5_000_001},2\n"),
    "Parquet names": parquet(pa.Table.from_arrays([pa.array([1])] * 2, names=[LONG, LONG])),
    "Parquet name": parquet(pa.table({LONG: [1]}), "other"),
    "Parquet many names": parquet(pa.table({f"column {number}": [1] for number in range(5_000)}), "other"),
    "TOML key": text(read_toml, f"{LONG[:400_000]} = 2026-01-01"),
    "TOML table": text(read_toml, f"[{LONG[:200_000]}]\n[{LONG[:200_000]}]"),
    "manifest": text(load_manifest, json.dumps({"name": LONG, LONG: LONG})),
    "ledger": text(read_ledger, LONG),
}


@pytest.mark.parametrize("place", GIVEN)
def test_an_error_does_not_print_the_file(tmp_path: Path, place: str) -> None:
    with pytest.raises(UserError) as caught:
        GIVEN[place](tmp_path / "given")
    assert len(str(caught.value)) < MOST
    assert len(repr(caught.value)) < 2 * MOST
    assert str(caught.value).endswith(".")
