"""Files that are small or quickly read, and would take all memory if they were read without limits."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

MANY = 20_000_000
LONG = 40_000_000


def _text(content: Callable[[], bytes]) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content())


def _gzip(path: Path) -> None:
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(1_100):
            file.write(b"a,b\n" * 250_000)


def _values_of_a_row(path: Path) -> None:
    """One row, whose list has more values than fit into memory; a dictionary and run lengths hold them."""
    values = pa.DictionaryArray.from_arrays(pa.nulls(6 * MANY, pa.int32()).fill_null(0), pa.array([""]))
    table = pa.table({"a": pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)})
    pq.write_table(table, path, store_schema=False)


def _repeated(path: Path) -> None:
    """A million rows of one text of a megabyte."""
    texts = pa.DictionaryArray.from_arrays(pa.nulls(10**6, pa.int32()).fill_null(0), pa.array(["x" * 10**6]))
    pq.write_table(pa.table({"a": texts}), path, store_schema=False)


ANY = [_text(lambda: b"x" * LONG), _gzip]
BOMBS: dict[str, list[Callable[[Path], object]]] = {
    ".parquet": [_values_of_a_row, _repeated],
    ".json": [
        _text(lambda: b"[" + b'{"a":1},' * MANY + b"{}]"),
        _text(lambda: b'[{"a":[' + b"[]," * MANY + b"1]}]"),
        _text(lambda: b'{"a":"' + b"x" * LONG + b'"}'),
    ],
    ".jsonl": [_text(lambda: b"{}\n" * MANY), _text(lambda: b'{"a":[' + b'"a",' * MANY + b"1]}\n")],
    ".csv": [_text(lambda: b"a,b\n" + b"1,2\n" * 2 * MANY), _text(lambda: b'a,b\n1,"' + b"x" * LONG)],
    ".toml": [_text(lambda: b"a." * MANY + b"b = 1\n"), _text(lambda: b"x" * LONG + b" = 1\n")],
    ".xml": [_text(lambda: b'<posts><row Body="' + b"x" * LONG + b'"/></posts>')],
}
