"""Local files of rows: which of a directory's files hold which config and split, and what is in them."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
from pluralbench_runs import one_line
from pluralbench_tables import SPREADSHEET, Dialect, frame_from_rows, read_csv, read_objects, read_parquet
from polars.exceptions import PolarsError

from pluralbench_release.errors import TablesError

SUFFIXES = (".parquet", ".jsonl", ".json", ".csv", ".tsv")
SPLITS = ("train", "validation", "test")
ALL = "all"
"""Every split of a config, one after the other."""
HUB_PART = r"(?:-\d+-of-(?P<parts>\d+)(?:-[0-9a-f]{16})?)?"


def kind_of(path: Path) -> str | None:
    """The suffix in `SUFFIXES` of a file, also where `.gz` follows it; None for no table."""
    name = path.name.removesuffix(".gz")
    return next((suffix for suffix in SUFFIXES if name.endswith(suffix)), None)


def stem_of(path: Path) -> str:
    """The name of a table's file without its suffix."""
    return path.name.removesuffix(".gz").removesuffix(kind_of(path) or "")


def find_tables(directory: Path, split: str) -> dict[str, dict[str, list[Path]]]:
    """The files of each config and split, in the order of their names; splits other than `split` as far as known."""
    found: dict[str, dict[str, list[Path]]] = {}
    for path in sorted(directory.rglob("*")):
        *folders, _ = path.relative_to(directory).parts
        left_alone = any(name == "provenance" or name.startswith(".") for name in folders)
        if kind_of(path) and not left_alone and path.is_file():
            config, its_split = _place(folders, stem_of(path), split)
            found.setdefault(config, {}).setdefault(its_split, []).append(path)
    return found


def _place(folders: Sequence[str], stem: str, split: str) -> tuple[str, str]:
    """The config and the split of a file, by its folders and its name without the suffix."""
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
    """Whether a file is `SPLIT` or a part of it: `test-00000-of-00002` and `test_1` are, `test_hard` is not.

    A split's name has no hyphen on the Hub, so what stands after one is the part's.
    """
    return re.fullmatch(rf"{re.escape(split)}(-.*|[._]?\d+)?", stem, re.DOTALL) is not None


def check_parts(files: Sequence[Path], config: str, split: str, directory: Path) -> None:
    """Raise `TablesError` when `files` are not one file or all parts of one: their rows would be doubled or lost."""
    whole = any(stem_of(path) in {split, config, f"{config}_{split}"} for path in files)
    if len(files) > 1 and (whole or len({(path.parent, kind_of(path)) for path in files}) > 1):
        raise TablesError(
            f"{directory} holds the split {split!r} of the config {config!r} twice, in "
            f"{files[0].relative_to(directory)} and {files[-1].relative_to(directory)}; take one away."
        )
    match = re.search(rf"{HUB_PART}$", stem_of(files[0]))
    parts = int(match["parts"]) if match and match["parts"] else len(files)
    if parts != len(files):
        raise TablesError(
            f"{files[0].parent} holds {len(files)} of the {parts} files that {files[0].name} says there are."
        )


def read_files(paths: Sequence[Path], dialect: Dialect = SPREADSHEET) -> pl.DataFrame:
    """The rows of files with the same suffix and columns, one after the other. Raises `TablesError`.

    dialect: of CSV and TSV.
    """
    if kind_of(paths[0]) in {".jsonl", ".json"}:
        rows = [row for path in paths for row in read_objects(path, TablesError)]
        return frame_from_rows(rows, str(paths[0]), TablesError)
    frames = [_typed_rows(path, dialect) for path in paths]
    columns = frames[0].columns
    for path, frame in zip(paths, frames, strict=True):
        if set(frame.columns) != set(columns):
            different = min(set(frame.columns) ^ set(columns))
            raise TablesError(
                f"{path} and {paths[0].name} do not have the same columns: `{different}` is in one of them."
            )
    try:
        return pl.concat([frame.select(columns) for frame in frames], how="vertical_relaxed")
    except PolarsError as error:
        raise TablesError(f"{paths[0]} and the files beside it do not fit together: {one_line(error, 300)}.") from None


def joined(parts: Mapping[str, pl.DataFrame], where: str) -> pl.DataFrame:
    """The rows of several splits, one split after the other; a column that a split lacks is null there.

    Raises `TablesError` where they do not fit together.
    """
    try:
        return pl.concat(parts.values(), how="diagonal_relaxed")
    except PolarsError as error:
        raise TablesError(
            f"The splits {', '.join(parts)} of {where} do not fit together: {one_line(error, 300)}."
        ) from None


def _typed_rows(path: Path, dialect: Dialect) -> pl.DataFrame:
    # A guess of types would make 7 of the id 007.
    parquet = kind_of(path) == ".parquet"
    return read_parquet(path, error=TablesError) if parquet else read_csv(path, TablesError, dialect)
