"""Small releases, written for real, and changes with which their own lists of digests agree or do not."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_release import LEDGER, Card, Contents, ReleaseTable, Section, Source, read_manifest

MANIFEST = "provenance/manifest.json"
SUMS = "SHA256SUMS"
TEXTS = ["我喜欢喝“龙井”茶。", "أحب الشاي الأخضر וגם תה", "मैं चाय पीता हूँ 🍵👨‍👩‍👧", "\u202eright to left\u202c\ttab\r\n"]
Damage = Callable[[Path], object]


def key_of(name: str) -> str:
    """What stands for the key of a call, such as "chosen q1"."""
    return hashlib.sha256(name.encode()).hexdigest()


def contents_of(
    tables: Iterable[tuple[str, pl.DataFrame]],
    schema: str = "PersonalizedPairs",
    split: str = "test",
    *,
    scored: bool = True,
    licenses: Sequence[str] = ("cc-by-4.0",),
    records: Mapping[str, pl.DataFrame] | None = None,
    files: Mapping[str, Path] | None = None,
) -> Contents:
    """What is in a release of these tables, by their configs; a source for each license."""
    about = {"location": "somewhere", "revision": "abc123", "digest": key_of("rows"), "rows": 4}
    return Contents(
        tables=[ReleaseTable(config, split, frame, schema, scored) for config, frame in tables],
        sources=[
            Source(name=f"Source {number}", license=license, attribution=f"By {TEXTS[1]}.", **about)
            for number, license in enumerate(licenses)
        ],
        statistics={"pairs": 6, "words": {"中文": 1.5}},
        card=Card(
            pretty_name='Tiny: "benchmark" 中文',
            summary=f"A summary. {TEXTS[2]}",
            languages=["en", "zh"],
            tasks=["text-generation"],
            tags=["reward-model"],
            annotations_creators=("found",),
            columns={"id": "the row", "chosen": "the better answer"},
            sections=[Section(title="Uses", body="Not for {{ training }} <b>&amp;</b>.")],
            citation="Cite it.",
            papers=("@misc{paper,\n  title = {A paper},\n}",),
        ),
        records=records or {},
        files=files or {},
    )


def write_ledger(path: Path, *frames: pl.DataFrame) -> Path:
    """The recorded calls that these rows name."""
    calls = [frame[name].explode() for frame in frames for name in frame.columns if name.endswith(("_call", "_calls"))]
    keys = [key for column in calls for key in column.drop_nulls()]
    pl.DataFrame(
        {"key": keys, "answer": [TEXTS[0]] * len(keys)}, {"key": pl.String, "answer": pl.String}
    ).write_parquet(path)
    return path


def files_of(directory: Path) -> dict[str, bytes]:
    """The bytes of every file by its path."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


def digests_of(release: Path) -> dict[str, str]:
    """The content digest of each config, which has one table, as the manifest has it."""
    return {table.config: table.digest for table in read_manifest(release).tables}


def rows_of(release: Path, config: str) -> pl.DataFrame:
    """The test split of a config."""
    return pl.read_parquet(release / f"data/{config}/test.parquet")


def sum_again(directory: Path) -> None:
    """Let `SHA256SUMS` have the digests of the files that it names as they lie there now."""
    path = directory / SUMS
    lines = [line.split("  ", 1) for line in path.read_text(encoding="utf-8").splitlines()]
    found = {name: directory / name for _, name in lines if (directory / name).is_file()}
    digests = {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in found.items()}
    path.write_text("".join(f"{digests.get(name, digest)}  {name}\n" for digest, name in lines), encoding="utf-8")


def edit_manifest(directory: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the manifest's values, and what `SHA256SUMS` says of it."""
    path = directory / MANIFEST
    values = json.loads(path.read_text(encoding="utf-8"))
    change(values)
    path.write_text(json.dumps(values, ensure_ascii=False), encoding="utf-8")
    sum_again(directory)


def record_again(directory: Path, *paths: str) -> None:
    """Let the manifest's `provenance` have the digests of these files as they lie there now."""
    digests = {path: hashlib.sha256((directory / path).read_bytes()).hexdigest() for path in paths}
    edit_manifest(directory, lambda values: values["provenance"].update(digests))


def table(path: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Damage:
    """Change the rows of a table; polars writes them, where pyarrow did."""
    return lambda directory: change(pl.read_parquet(directory / path)).write_parquet(directory / path)


def cell(path: str, column: str, value: object, *ids: object) -> Damage:
    """Put `value` into the rows of `ids` of a table."""

    def changed(frame: pl.DataFrame) -> pl.DataFrame:
        cells = [value if row_id in ids else one for row_id, one in zip(frame["id"], frame[column], strict=True)]
        return frame.with_columns(pl.Series(column, cells, dtype=frame.schema[column]))

    return table(path, changed)


def ledger(change: Callable[[pl.DataFrame], pl.DataFrame]) -> Damage:
    """Change the ledger, and what the manifest says of it as well."""

    def edit(directory: Path) -> None:
        table(LEDGER, change)(directory)
        record_again(directory, LEDGER)
        calls = pl.read_parquet(directory / LEDGER).height
        edit_manifest(directory, lambda values: values["ledger"].update(calls=calls))

    return edit


def without_calls(*names: str) -> Damage:
    """Take the calls of these names (`key_of`) out of the ledger."""
    return ledger(lambda calls: calls.filter(~pl.col("key").is_in([key_of(name) for name in names])))
