"""Read tables from a local directory or file, or from a Hub dataset pinned to a commit."""

import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl
from pluralbench_runs import did_you_mean
from pluralbench_schemas import similar_languages
from pluralbench_tables import SPREADSHEET, Dialect

from pluralbench_release.card import license_of, read_card
from pluralbench_release.checksums import release_files
from pluralbench_release.errors import NoSplit, ReleaseError, TablesError
from pluralbench_release.hub import Repository, commit_of, file_at, open_repository, read_config, translate_read_errors
from pluralbench_release.manifest import CARD, MANIFEST, SUMS, Manifest, load_manifest
from pluralbench_release.table_files import (
    ALL,
    JSON,
    SPLITS,
    SUFFIXES,
    check_parts,
    concat_tables,
    find_tables,
    kind_of,
    read_files,
    stem_of,
)

HUB_REPOSITORY = re.compile(r"\w[\w.-]*/\w[\w.-]*")
COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Tables:
    """The rows of one split, one frame per config.

    Attributes:
        location: Path of local tables; ORG/NAME of a Hub dataset.
        revision: Commit of a Hub dataset; None for local tables.
        frames: Rows by config, in the order and with the columns of the source (see `read_tables`).
        paths: Name of the table in errors, by config: its file, or `ORG/NAME CONFIG/SPLIT`.
        license: License on the card (`README.md`) of the directory or dataset, several joined by ", ".
        split: The split; None for tables that are of no split, such as a file that is read by itself.
    """

    location: str
    revision: str | None
    frames: dict[str, pl.DataFrame]
    paths: dict[str, str]
    license: str | None
    split: str | None


def pinned(location: str) -> str:
    """Pin `ORG/NAME` or `ORG/NAME@REVISION` to `ORG/NAME@COMMIT`; an existing local path stays unchanged.

    COMMIT has 40 hexadecimal digits. The Hub is not asked if REVISION already is a commit.

    Raises:
        TablesError: The location does not exist and is not named like a Hub dataset, or its folder is here; or the Hub
            does not have the dataset or revision, or cannot be reached.
    """
    if _is_local(location):
        return location
    repo, _, revision = location.partition("@")
    if not HUB_REPOSITORY.fullmatch(repo) or kind_of(Path(location)):
        raise TablesError(f"{location} does not exist, and it is not the name of a dataset on the Hub (ORG/NAME).")
    if not revision:
        _check_not_a_path(repo)
    return location if COMMIT.fullmatch(revision) else f"{repo}@{commit_of(repo, revision or None)}"


def _check_not_a_path(repo: str) -> None:
    """Raise `TablesError` for a path whose folder is here: the Hub may have a dataset of this name of another owner."""
    path = Path(repo)
    if path.with_name(f"{path.name}.work").is_dir():
        raise TablesError(f"{repo} is not finished; rerun the command that builds it.")
    if path.parent.is_dir():
        raise TablesError(
            f"There is no {repo} in the folder {path.parent}; build it, or write {repo}@main for a dataset on the Hub."
        )


def read_tables(
    location: str,
    *,
    split: str = "test",
    configs: Sequence[str] | None = None,
    dialect: Dialect = SPREADSHEET,
    needed: Callable[[str], object] | None = None,
) -> Tables:
    """Read the rows of a split, one frame per config.

    The location is one of:

    - A directory with `CONFIG.SUFFIX`, `CONFIG_SPLIT.SUFFIX` or `CONFIG/SPLIT.SUFFIX` at any depth, such as a release
      or the clone of a Hub dataset. `SPLIT.SUFFIX` directly in it or in its `data/` is the config "default". A split
      may have several files, `SPLIT-00000-of-00002.SUFFIX` and so on, which are read in the order of their names.
      `provenance/`, hidden folders and other splits are ignored.
    - A file, whose config is its name without the suffix, for any split.
    - A Hub dataset, `ORG/NAME@COMMIT` (or any form that `pinned` accepts), read through `datasets` and its cache.

    SUFFIX is `parquet`, `jsonl`, `json` (an array of objects, or one object per line), `csv` or `tsv`, optionally
    followed by `.gz`. Types are those of the file, or those that `datasets` infers. Columns of a local CSV are strings;
    empty fields are null.

    In JSON, keys that a row lacks become null. Objects become structs, and lists of objects lists of structs with null
    for missing keys. If the objects of a column have different keys, as in `{"rank": {"id1": 1, "id2": 2}}` with other
    ids in each row, a struct would have a field for every key of every row. Such a column is a string of canonical JSON
    instead (sorted keys, no spaces, unescaped characters), and so is a column that mixes objects or lists with other
    values. Integers and booleans among texts become texts, and integers among decimal numbers become decimal; other
    mixtures of values at one place of a column are an error.

    Args:
        location: Directory, file or Hub dataset.
        split: Split to read. "all" reads all splits of a config in sequence: train, validation, test, then others by
            name (for a Hub dataset in the order of its card), unless a split has that name.
        configs: Configs to read. Default: all.
        dialect: Separator and quotes of CSV files.
        needed: Whether the values of a column are needed. Others are null in a table of local Parquet files, which take
            less time and memory without them, and may mix values in JSON, which they then are as text. Default: all
            are.

    Raises:
        TablesError: The location, the split or a config does not exist, a config is there twice or in part, or a file
            or dataset cannot be read.
    """
    location = pinned(location)
    if not _is_local(location):
        repo, _, commit = location.partition("@")
        return _read_hub(open_repository(repo, commit), split, configs, needed)
    path = Path(location)
    if path.is_dir():
        return _read_directory(path, location, split, configs, partial(read_files, dialect=dialect, needed=needed))
    return _read_file(path, location, configs, partial(read_files, dialect=dialect, needed=needed))


def manifest_at(location: str) -> Manifest | None:
    """Read the manifest of the release at, or around, a location of `read_tables`; None if it does not belong to one.

    Raises:
        ReleaseError: The manifest is damaged.
        TablesError: See `pinned`.
    """
    location = pinned(location)
    if not _is_local(location):
        repo, _, commit = location.partition("@")
        file = file_at(repo, commit, MANIFEST)
        return None if file is None else load_manifest(file)
    path = Path(location).resolve()
    folders = [path, *path.parents][: len(Path("RELEASE/data/CONFIG/FILE").parts)]
    # Links are allowed: the files of the Hub's cache are links, and it may be read as a folder too.
    return next((load_manifest(folder / MANIFEST) for folder in folders if (folder / MANIFEST).is_file()), None)


def _is_local(location: str) -> bool:
    try:
        return bool(location) and Path(location).exists()
    except OSError:  # such as a name that is too long
        return False


def _read_hub(
    repository: Repository, split: str, configs: Sequence[str] | None, needed: Callable[[str], object] | None
) -> Tables:
    frames, errors = {}, []
    for config in _select_configs(repository.configs, configs, str(repository)):
        try:
            frames[config] = read_config(repository, config, split, needed)
        except NoSplit as error:
            errors.append(error)
    # As in a directory, configs that were not requested by name may lack the split, unless all of them do.
    if errors and (configs is not None or not frames):
        raise errors[0]
    return Tables(
        location=repository.repo,
        revision=repository.commit,
        frames=frames,
        paths={config: f"{repository.repo} {config}/{split}" for config in frames},
        license=license_of(repository.card),
        split=split,
    )


def _read_directory(
    directory: Path, location: str, split: str, configs: Sequence[str] | None, read: Callable[..., pl.DataFrame]
) -> Tables:
    tables = find_tables(directory, split)
    if not tables:
        raise TablesError(
            f"{directory} holds no tables; name them CONFIG.jsonl, CONFIG_{split}.jsonl or CONFIG/{split}.jsonl "
            f"(or {', '.join(suffix for suffix in SUFFIXES if suffix != '.jsonl')})."
        )
    selected = {config: parts for config, splits in tables.items() if (parts := _select_split(splits, split))}
    if not selected:
        raise _no_split(str(directory), split, (name for splits in tables.values() for name in splits))
    for config in configs or []:
        if config in tables and config not in selected:
            raise _no_split(f"The config {config!r} of {directory}", split, tables[config])
    frames, paths = {}, {}
    for config in _select_configs(selected, configs, str(directory)):
        parts = selected[config]
        for name, own in parts.items():
            check_parts(own, config, name, directory)
        first = next(iter(parts.values()))
        stem = f"{next(iter(parts))}*" if len(parts) == 1 else "*"
        single_file = len(parts) == len(first) == 1
        paths[config] = str(first[0] if single_file else first[0].with_name(f"{stem}{first[0].suffix}"))
        files = [file for own in parts.values() for file in own]
        if all(kind_of(file) in JSON for file in files):  # whether a column is JSON as text depends on all its values
            frames[config] = read(files)
        else:
            frames[config] = concat_tables({name: read(own) for name, own in parts.items()}, paths[config])
    try:
        from huggingface_hub import CardData

        card = read_card(directory) if (directory / CARD).is_file() else CardData()
    except ReleaseError as error:
        raise TablesError(f"{directory}: {error}") from None
    read_from = ((config, path) for config in frames for parts in selected[config].values() for path in parts)
    of_split = any(stem_of(path) != config for config, path in read_from)
    return Tables(location, None, frames, paths, license_of(card), split if of_split else None)


def _select_split(splits: dict[str, list[Path]], split: str) -> dict[str, list[Path]]:
    if split in splits or split != ALL:
        return {split: splits[split]} if split in splits else {}
    order = [*(name for name in SPLITS if name in splits), *sorted(splits.keys() - set(SPLITS))]
    return {name: splits[name] for name in order}


def _read_file(path: Path, location: str, configs: Sequence[str] | None, read: Callable[..., pl.DataFrame]) -> Tables:
    if kind_of(path) is None:
        raise TablesError(f"{path} is not a supported table; use {', '.join(SUFFIXES)}.")
    selected = _select_configs([stem_of(path)], configs, str(path))
    return Tables(
        location=location,
        revision=None,
        frames={config: read([path]) for config in selected},
        paths={config: str(path) for config in selected},
        license=None,
        split=None,
    )


def _select_configs(available: Iterable[str], wanted: Sequence[str] | None, location: str) -> list[str]:
    names = list(available)
    for config in wanted or []:
        if config not in names:
            similar = next((name for name in similar_languages(config) if name in names), config)
            hint = f"did you mean `{similar}`? " if similar != config else did_you_mean(config, names)
            raise TablesError(f"{location} has no config {config!r}; {hint}it has {', '.join(names)}.")
    return names if wanted is None else [name for name in names if name in wanted]


def _no_split(location: str, split: str, others: Iterable[str]) -> NoSplit:
    return NoSplit(f"{location} has no split {split!r}; it has {', '.join(sorted(set(others)))}.")


@contextmanager
def release_at(location: str | Path) -> Iterator[Path]:
    """Provide the directory of a local release, or a temporary copy of one on the Hub, `ORG/NAME[@REVISION]`.

    A copy has only the files that the release lists. It uses the Hub's cache and is deleted when the context ends. A
    local directory takes precedence over a repository of the same name.

    Raises:
        ReleaseError: The Hub does not have the dataset or revision, or it is not a release.
    """
    location = str(location)
    repository, _, revision = location.partition("@")
    if Path(location).exists() or not HUB_REPOSITORY.fullmatch(repository):
        yield Path(location)
        return
    repository, _, commit = pinned(location).partition("@")
    with tempfile.TemporaryDirectory(prefix="pluralbench-release-") as temporary:
        folder = Path(temporary) / repository.partition("/")[2]
        _fetch(repository, commit, revision, folder)
        yield folder


def _fetch(repository: str, commit: str, revision: str, folder: Path) -> None:
    from huggingface_hub import snapshot_download

    name = f"{repository}@{revision}" if revision else repository
    manifest = file_at(repository, commit, MANIFEST)
    if manifest is None:
        raise ReleaseError(f"{name} is not a release: it has no {MANIFEST}.")
    files = [*release_files(load_manifest(manifest)), SUMS]
    with translate_read_errors(repository, commit):
        snapshot = Path(snapshot_download(repository, repo_type="dataset", revision=commit, allow_patterns=files))
    for path in files:
        if (snapshot / path).is_file():  # `verify` reports missing files
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(snapshot / path, folder / path)
