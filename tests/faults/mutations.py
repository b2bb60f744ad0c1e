"""Seeded changes of a file: of what it is, of its bytes, and of what it holds (TOML, JSON, CSV, XML, Parquet, SQLite).

Fuzzers of bytes rarely get past a parser of text, so most changes here are of the values that are parsed.
"""

import csv
import gzip
import io
import json
import os
import random
import shutil
import sqlite3
import stat
import tomllib
from collections.abc import Callable
from contextlib import closing
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import tomli_w
from polars.exceptions import PanicException

DEEP = 100_000
# What no writer of a format would write: put into the text for these words, once it is written.
RAW = {
    "@nested@": "[" * DEEP + "]" * DEEP,
    "@opened@": "[" * DEEP,
    "@tables@": '{"a":' * DEEP + "1" + "}" * DEEP,
    "@digits@": "9" * 5_000,
    "@exponent@": "1e999999",
    "@long@": '"' + "word " * 1_200_000 + '"',
    "@bare@": "NaN",
    "@infinite@": "-Infinity",
    "@date@": "9999-12-31T23:59:60Z",
}
TEXTS = [
    "", " ", "\0", "a\0b", "../../../x", "/etc/passwd", "/", ".", "..", "a/b", "a*b", "x[red]y", "[/]", "%s{0}{x}",
    "-", "--help", "NA", "NaN", "null", "None", "1e309", "-1", "0", "007", "x" * 300, "x" * 70_000, "é" * 150,
    "e\u0301",
    "\ud800", "\uffff", "\u202eright", "\u2028", "\x1b[31m", "a\r\nb", "a\n\nb", '"', "'", '\\"', "CON",
    "http://127.0.0.1:9/v1",
    "sample", "paper", "local", "org/name@" + "a" * 40, "~", "$HOME", "file:///etc/passwd", "::1", "🍵👨‍👩‍👧",
]  # fmt: skip
NUMBERS = [0, -1, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**30, 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf")]
CELLS: list[Any] = [None, 1, 1.5, True, "x", b"\xff", "\0", 2**63 - 1, date.min, datetime.max, timedelta.max]
OTHERS: list[Any] = [None, True, False, [], {}, [[]], {"": {}}, [None], [1, "a"], {"a": [1, {"b": None}]}]
TOKENS = [
    b"\0", b"\xef\xbb\xbf", b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80", b"\n", b"\r", b"\r\n", b",", b";", b'"', b"'",
    b"\\",
    b'\\"', b"\t", b"[", b"]", b"{", b"}", b"<", b">", b"&", b"&x;", b"]]>", b"<!--", b"=", b"#", b"null", b"9" * 5_000,
    b"1e999999", b"\xe2\x80\xa8", b"[" * DEEP, b'{"a":' * DEEP, b"<a>" * DEEP, b"x" * 200_000, b"a,b\n" * 1_000,
    b"PAR1",
    b'<!DOCTYPE a [<!ENTITY b "' + b"c" * 999 + b'"><!ENTITY d "' + b"&b;" * 999 + b'">]>',
]  # fmt: skip
SPECIAL = ["gone", "empty", "folder", "loop", "dangling", "fifo", "socket", "endless", "terminal"]
SPECIAL += ["gzip", "utf-16", "latin-1"]


def mutate(path: Path, draw: random.Random) -> str:
    """Change the file one to three times, and say how."""
    if draw.random() < 0.12:
        kind = draw.choice(SPECIAL)
        replace_file(path, kind)
        return kind
    said = []
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        structural = STRUCTURES.get(path.suffix)
        changed = False
        if structural is not None and draw.random() < 0.7:
            changed = _tried(structural, path, draw)
        if not changed:
            path.write_bytes(change_bytes(path.read_bytes(), draw))
        said.append("values" if changed else "bytes")
    return ", ".join(said)


def change_bytes(data: bytes, draw: random.Random) -> bytes:
    """One change of bytes: cut off, left out, repeated, put in, put in place of, overwritten, or one bit."""
    begin, end = sorted(draw.randint(0, len(data)) for _ in range(2))
    end = min(end, begin + draw.choice([1, 2, 8, 64, 4_096]))
    part, rest, token = data[begin:end], data[end:], draw.choice(TOKENS)
    repeated = (part * draw.choice([2, 3, 100, 1_000]))[:500_000]
    drawn = bytes(draw.randrange(256) for _ in part)
    flipped = part[:-1] + bytes([part[-1] ^ 1 << draw.randrange(8)]) if part else b"\0"
    cut_off = b""
    kept = [cut_off, rest, repeated + rest, token + part + rest, token + rest, drawn + rest, flipped + rest]
    return data[:begin] + draw.choice(kept)


def replace_file(path: Path, kind: str) -> None:
    data = path.read_bytes()
    path.unlink()
    match kind:
        case "empty":
            path.touch()
        case "folder":
            path.mkdir()
        case "loop":
            path.symlink_to(path.name)
        case "dangling":
            path.symlink_to("nowhere")
        case "fifo":
            os.mkfifo(path)
        case "socket":
            os.mknod(path, stat.S_IFSOCK | 0o600)
        case "endless":
            path.symlink_to("/dev/zero")
        case "terminal":
            path.symlink_to("/dev/tty")
        case "gzip":
            path.write_bytes(gzip.compress(data))
        case "utf-16" | "latin-1":
            path.write_bytes(data.decode("utf-8", "replace").encode(kind, "replace"))


def _tried(change: Callable[[Path, random.Random], None], path: Path, draw: random.Random) -> bool:
    copy = path.with_name("copy" + path.suffix)
    shutil.copy(path, copy)
    try:
        change(copy, draw)
    except (Exception, PanicException):  # noqa: BLE001 - an earlier change left nothing that can be parsed or written
        copy.unlink(missing_ok=True)
        return False
    copy.replace(path)
    return True


# ---- Values


def odd(draw: random.Random) -> Any:
    """A value that hardly any reader waits for."""
    return draw.choice(
        [draw.choice(TEXTS), draw.choice(TEXTS), draw.choice(NUMBERS), draw.choice([*RAW]), draw.choice(OTHERS)]
    )


def change_value(value: Any, draw: random.Random) -> Any:
    """The value with one of its parts changed, dropped, repeated, renamed or made the part of another."""
    changes: list[Callable[[], Any]]
    if isinstance(value, dict) and value and draw.random() < 0.85:
        key = draw.choice([*value])
        rest = {name: part for name, part in value.items() if name != key}
        changes = [
            lambda: rest,
            lambda: rest | {str(odd(draw)): value[key]},
            lambda: value | {draw.choice(TEXTS): odd(draw)},
            *[lambda: value | {key: change_value(value[key], draw)}] * 5,
        ]
    elif isinstance(value, list) and value and draw.random() < 0.85:
        at = draw.randrange(len(value))
        changes = [
            lambda: value[:at] + value[at + 1 :],
            lambda: value[: at + 1] + value[at:],
            lambda: [*value[:at], value[at : at + 1], *value[at + 1 :]],
            *[lambda: [*value[:at], change_value(value[at], draw), *value[at + 1 :]]] * 5,
        ]
    else:
        changes = [*[lambda: odd(draw)] * 2, lambda: [value], lambda: {"a": value}, lambda: str(value)]
    change: Callable[[], Any] = draw.choice(changes)
    return change()


def _finish(text: str, draw: random.Random) -> bytes:
    for name, raw in RAW.items():
        text = text.replace(f'"{name}"', raw, 1).replace(name, raw, 1)
    return text.encode("utf-8", "surrogatepass")


def _change_values(path: Path, draw: random.Random) -> None:
    load, dump = FORMATS[path.suffix]
    value = load(path)
    if isinstance(value, list) and value and isinstance(value[0], dict) and draw.random() < 0.1:
        name = odd(draw)  # a column of a type of its own in every row
        value = [row | {next(iter(row), "id"): name} for row in value if isinstance(row, dict)]
    else:
        value = change_value(value, draw)
    path.write_bytes(_finish(dump(value), draw))


def _csv_text(rows: Any) -> str:
    to = io.StringIO(newline="")
    csv.writer(to).writerows(rows)
    return to.getvalue()


FORMATS: dict[str, tuple[Callable[[Path], Any], Callable[[Any], str]]] = {
    ".toml": (lambda path: tomllib.loads(path.read_text(encoding="utf-8")), tomli_w.dumps),
    ".json": (lambda path: json.loads(path.read_text(encoding="utf-8")), partial(json.dumps, ensure_ascii=False)),
    ".jsonl": (
        lambda path: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()],
        lambda rows: "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows),
    ),
    ".csv": (
        lambda path: list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline=""))),
        _csv_text,
    ),
}
"""How the values of a file are read and written, by its suffix."""


def _parquet(path: Path, draw: random.Random) -> None:
    frame = pl.read_parquet(path)
    name = draw.choice(frame.columns)
    match draw.randrange(7):
        case 0:
            frame = frame.drop(name)
        case 1:
            frame = frame.rename({name: draw.choice(TEXTS[:40])})
        case 2:
            frame = frame.clear()
        case 3:
            frame = pl.concat([frame, frame.head(draw.randint(1, 3))])
        case 4:
            frame = frame.with_columns(pl.lit(draw.choice(CELLS)).alias(name))
        case 5:
            frame = frame.with_columns(pl.lit(pl.Series([["a"]])).alias(name))
        case _:
            rows = frame.to_dicts()
            at = draw.randrange(len(rows))
            rows[at][name] = odd(draw)
            frame = pl.DataFrame(rows, infer_schema_length=None, strict=False)
    frame.write_parquet(path)


def _sqlite(path: Path, draw: random.Random) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        [table] = draw.sample(
            [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type='table'")], 1
        )
        columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
        column, value = draw.choice(columns), odd(draw)
        if not isinstance(value, (str, float, type(None))):
            value = str(value).encode()
        match draw.randrange(6):
            case 0:
                database.execute(f'DROP TABLE "{table}"')
            case 1:
                database.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "x"')
            case 2:
                database.execute(f"PRAGMA user_version = {draw.choice([0, 2, 99])}")
            case 3:
                database.execute(f'CREATE VIEW v AS SELECT * FROM "{table}"')  # noqa: S608 - of our own names
            case _:
                database.execute(f'UPDATE OR REPLACE "{table}" SET "{column}" = ?', (value,))  # noqa: S608 - the same


STRUCTURES: dict[str, Callable[[Path, random.Random], None]] = {
    **dict.fromkeys(FORMATS, _change_values),
    ".parquet": _parquet,
    ".sqlite": _sqlite,
}
