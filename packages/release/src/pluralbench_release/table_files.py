"""Local table files: map the files of a directory to configs and splits, and read them."""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path

import polars as pl
from pluralbench_runs import one_line
from pluralbench_tables import SPREADSHEET, Dialect, frame_from_rows, read_csv, read_objects, read_parquet
from polars.exceptions import PolarsError, SchemaError

from pluralbench_release.errors import TablesError

SUFFIXES = (".parquet", ".jsonl", ".json", ".csv", ".tsv")
JSON = (".jsonl", ".json")
SPLITS = ("train", "validation", "test")
MAX_FILES = 50_000  # below a directory of tables; a log of another person may name any directory as its data
ALL = "all"
"""All splits of a config, in sequence."""
HUB_PART = r"(?:-\d+-of-(?P<parts>\d+)(?:-[0-9a-f]{16})?)?"


def kind_of(path: Path) -> str | None:
    """Return the suffix of a table file, ignoring `.gz`; None if it is not in `SUFFIXES`."""
    name = path.name.removesuffix(".gz")
    return next((suffix for suffix in SUFFIXES if name.endswith(suffix)), None)


def stem_of(path: Path) -> str:
    """Return the name of a table file without its suffix."""
    return path.name.removesuffix(".gz").removesuffix(kind_of(path) or "")


def find_tables(directory: Path, split: str) -> dict[str, dict[str, list[Path]]]:
    """Map the table files of a directory, at any depth, to configs and splits; without `provenance` and hidden folders.

    `split` is recognized even if it is not one of `SPLITS`. Files are sorted by name.

    Raises:
        TablesError: The directory has more than `MAX_FILES` files.
    """
    tables: dict[str, dict[str, list[Path]]] = {}
    paths: list[Path] = []
    for place, inside, files in os.walk(directory):
        inside[:] = [name for name in inside if name != "provenance" and not name.startswith(".")]
        paths += [Path(place, name) for name in files]
        if len(paths) > MAX_FILES:
            raise TablesError(f"{directory} has more than {MAX_FILES:,} files; give the folder that has the tables.")
    for path in sorted(paths):
        *folders, _ = path.relative_to(directory).parts
        if kind_of(path) and path.is_file():
            config, own_split = _config_and_split(folders, stem_of(path), split)
            tables.setdefault(config, {}).setdefault(own_split, []).append(path)
    return tables


def _config_and_split(folders: Sequence[str], stem: str, split: str) -> tuple[str, str]:
    if folders:
        config = "default" if folders == ["data"] else folders[-1]
        return config, split if _is_of(stem, split) else stem.partition("-")[0]
    if _is_of(stem, split):
        return "default", split
    for name in (split, *SPLITS):
        if match := re.fullmatch(rf"(?:(?P<config>.+)_)?{re.escape(name)}{HUB_PART}", stem):
            return match["config"] or "default", name
    return stem, split


def _is_of(stem: str, split: str) -> bool:
    """Whether a file is a split or a part of it: `test-00000-of-00002` and `test_1` are, `test_hard` is not.

    Names of splits have no hyphen on the Hub, so a hyphen starts the name of the part.
    """
    return re.fullmatch(rf"{re.escape(split)}(-.*|[._]?\d+)?", stem, re.DOTALL) is not None


def check_parts(files: Sequence[Path], config: str, split: str, directory: Path) -> None:
    """Raise `TablesError` unless `files` are one file or all its parts; otherwise rows would be doubled or lost."""
    complete = any(stem_of(path) in {split, config, f"{config}_{split}"} for path in files)
    if len(files) > 1 and (complete or len({(path.parent, kind_of(path)) for path in files}) > 1):
        raise TablesError(
            f"{directory} holds the split {split!r} of the config {config!r} twice, in "
            f"{files[0].relative_to(directory)} and {files[-1].relative_to(directory)}; remove one."
        )
    match = re.search(rf"{HUB_PART}$", stem_of(files[0]))
    parts = int(match["parts"]) if match and match["parts"] else len(files)
    if parts != len(files):
        raise TablesError(
            f"{files[0].parent} holds {len(files)} of the {parts} files that the name {files[0].name} announces."
        )


def read_files(
    paths: Sequence[Path], dialect: Dialect = SPREADSHEET, needed: Callable[[str], object] | None = None
) -> pl.DataFrame:
    """Read files with the same suffix and columns in sequence; for `needed` see `read_parquet` and `frame_from_rows`.

    Raises:
        TablesError: A file cannot be read, or the columns or types of the files differ.
    """
    if kind_of(paths[0]) in JSON:
        parts = [(path, read_objects(path, TablesError)) for path in paths]

        def place(row: int) -> str:
            places = (f"{path}, row {number:,}" for path, rows in parts for number in range(1, len(rows) + 1))
            return next(islice(places, row, None))

        rows = [*chain.from_iterable(rows for _, rows in parts)]
        return frame_from_rows(rows, str(paths[0]), TablesError, needed=needed, place=place)
    if kind_of(paths[0]) == ".parquet":
        frames = [read_parquet(path, error=TablesError, needed=needed) for path in paths]
    else:  # inferred types would turn the id 007 into 7
        frames = [read_csv(path, TablesError, dialect) for path in paths]
    columns = frames[0].columns
    for path, frame in zip(paths, frames, strict=True):
        if set(frame.columns) != set(columns):
            different = min(set(frame.columns) ^ set(columns))
            raise TablesError(
                f"{path} and {paths[0].name} have different columns: `{different}` is in only one of them."
            )
    try:
        _check_kinds(frames)
        return pl.concat([frame.select(columns) for frame in frames], how="vertical_relaxed")
    except PolarsError as error:
        raise TablesError(
            f"{paths[0]} and the other files of its split have different types: {one_line(error, 300)}."
        ) from None


def concat_tables(parts: Mapping[str, pl.DataFrame], where: str) -> pl.DataFrame:
    """Concatenate splits or configs by name; columns that one of them lacks become null.

    Raises:
        TablesError: They have columns of different types.
    """
    try:
        _check_kinds(parts.values())
        return pl.concat(parts.values(), how="diagonal_relaxed")
    except PolarsError as error:
        raise TablesError(
            f"The tables {', '.join(parts)} of {where} have different types: {one_line(error, 300)}."
        ) from None


def _check_kinds(frames: Iterable[pl.DataFrame]) -> None:
    """Raise `SchemaError` for a column whose values polars would convert to others, such as True to 1 or "true"."""
    kinds: dict[str, pl.DataType] = {}
    for name, dtype in chain.from_iterable(frame.schema.items() for frame in frames):
        other = kinds.setdefault(name, dtype)
        if not _mixable(dtype, other):
            raise SchemaError(f"`{name}` is {other} and {dtype}")
        kinds[name] = dtype if other == pl.Null else other


def _mixable(one: pl.DataType, other: pl.DataType) -> bool:
    if isinstance(one, pl.List) and isinstance(other, pl.List):
        return _mixable(one.inner, other.inner)  # type: ignore[arg-type]
    if isinstance(one, pl.Struct) and isinstance(other, pl.Struct):
        fields = {field.name: field.dtype for field in one.fields}
        return all(_mixable(fields[own.name], own.dtype) for own in other.fields if own.name in fields)  # type: ignore[arg-type]
    kinds = {one.base_type(), other.base_type()}
    if len(kinds) == 1 or pl.Null in kinds:
        return True
    if pl.String in kinds:
        return not any(kind.is_float() or kind.is_nested() or kind == pl.Boolean for kind in kinds)
    return pl.Boolean not in kinds
