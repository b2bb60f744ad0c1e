"""Read tables that somebody else wrote: a local directory or file, or a Hub dataset pinned to a commit."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from huggingface_hub import CardData
from pluralbench_runs import did_you_mean
from pluralbench_schemas import similar_languages
from pluralbench_tables import SPREADSHEET, Dialect

from pluralbench_release.card import read_card
from pluralbench_release.errors import NoSplit, ReleaseError, TablesError
from pluralbench_release.hub import Repository, commit_of, file_at, open_repository, read_config
from pluralbench_release.manifest import CARD, MANIFEST, Manifest, manifest_in
from pluralbench_release.table_files import (
    ALL,
    SPLITS,
    SUFFIXES,
    check_parts,
    find_tables,
    joined,
    kind_of,
    read_files,
    stem_of,
)

HUB_REPOSITORY = re.compile(r"\w[\w.-]*/\w[\w.-]*")
COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Tables:
    """The rows of one split, a frame for each config.

    location: as given for local tables; ORG/NAME for a Hub dataset.
    revision: the commit of a Hub dataset; None for local tables.
    frames: by config, rows in the source's order, columns as found (see `read_tables`).
    paths: by config, what to call the table in an error: its file, or `ORG/NAME CONFIG/SPLIT`.
    license: as the card (`README.md`) of the directory or the dataset states it, several joined by ", ".
    """

    location: str
    revision: str | None
    frames: dict[str, pl.DataFrame]
    paths: dict[str, str]
    license: str | None


def pinned(location: str) -> str:
    """`ORG/NAME@COMMIT` for `ORG/NAME` or `ORG/NAME@REVISION`; a local path as it is, also where it looks like both.

    COMMIT has 40 hexadecimal digits. The Hub is asked unless REVISION is a commit already.

    Raises `TablesError` for what is neither there nor named like a Hub dataset, and when the Hub knows no such
    dataset or revision or cannot be asked.
    """
    if _is_local(location):
        return location
    repo, _, revision = location.partition("@")
    if not HUB_REPOSITORY.fullmatch(repo) or kind_of(Path(location)):
        raise TablesError(f"There is no file or directory {location}, and a dataset on the Hub is named ORG/NAME.")
    return location if COMMIT.fullmatch(revision) else f"{repo}@{commit_of(repo, revision or None)}"


def read_tables(
    location: str, *, split: str = "test", configs: Sequence[str] | None = None, dialect: Dialect = SPREADSHEET
) -> Tables:
    """Read the rows of `split`, a frame for each config, or for each of `configs` where given.

    split: "all" is every split of a config, one after the other: train, validation, test, then others by name (of a
    Hub dataset in the order of its card); where a split has that very name, that one alone.
    location: one of

    - a directory with `CONFIG.SUFFIX`, `CONFIG_SPLIT.SUFFIX` or `CONFIG/SPLIT.SUFFIX` at any depth (so a release, or
      the clone of a Hub dataset); `SPLIT.SUFFIX` directly in it or in its `data/` is the config "default". Instead
      of one file there may be several, `SPLIT-00000-of-00002.SUFFIX` and so on, put together in the order of their
      names. `provenance/`, hidden folders and other splits are left alone;
    - a file, whose config is its name without the suffix, whatever the split;
    - a Hub dataset, `ORG/NAME@COMMIT` (or what `pinned` takes), read through `datasets` and its cache.

    SUFFIX is `parquet`, `jsonl`, `json` (an array of objects, or an object a line), `csv` or `tsv`; `.gz` may follow.
    Types are those of the file, or those that `datasets` finds. A local CSV has none, so its columns are strings, null
    where nothing stands between the commas; `dialect` says how it separates and quotes.

    In JSON a key that some rows lack is null there. Objects become structs; but where the objects of a column differ
    in their keys, as in `{"rank": {"id1": 1, "id2": 2}}` with other ids in each row, a struct would have a field for
    every key of every row, so the column is a string of canonical JSON instead (sorted keys, no spaces, characters as
    they are). The same holds for a column that has objects or lists beside other values. Lists of objects become
    lists of structs with null for the keys that an object lacks.

    Raises `TablesError`, one sentence, when the location, the split or one of `configs` is not there, when a config
    is there twice or in part, and for a file or dataset that cannot be read.
    """
    place = pinned(location)
    if not _is_local(place):
        repo, _, commit = place.partition("@")
        return _read_hub(open_repository(repo, commit), split, configs)
    path = Path(place)
    if path.is_dir():
        return _read_directory(path, place, split, configs, dialect)
    return _read_file(path, place, configs, dialect)


def manifest_at(location: str) -> Manifest | None:
    """The manifest of the release at a location that `read_tables` takes, also of one that holds it; None without one.

    Raises `ReleaseError` for a manifest that is damaged, and `TablesError` as `pinned` does.
    """
    place = pinned(location)
    if not _is_local(place):
        repo, _, commit = place.partition("@")
        found = file_at(repo, commit, MANIFEST)
        return None if found is None else manifest_in(found)
    path = Path(place).resolve()
    above = [path, *path.parents][: len(Path("RELEASE/data/CONFIG/FILE").parts)]
    # In the Hub's cache, which may be read as a folder too, files are links.
    return next((manifest_in(folder / MANIFEST) for folder in above if (folder / MANIFEST).is_file()), None)


def _is_local(location: str) -> bool:
    try:
        return bool(location) and Path(location).exists()
    except OSError:  # such as a name that is too long for any file
        return False


def _read_hub(repository: Repository, split: str, configs: Sequence[str] | None) -> Tables:
    chosen = _chosen(repository.configs, configs, str(repository))
    frames, others = {}, []
    for config in chosen:
        try:
            frames[config] = read_config(repository, config, split)
        except NoSplit as error:
            others.append(error)
    # As in a directory, a config that was not asked for by name may have other splits, but not all may.
    if others and (configs is not None or not frames):
        raise others[0]
    return Tables(
        location=repository.repo,
        revision=repository.commit,
        frames=frames,
        paths={config: f"{repository.repo} {config}/{split}" for config in frames},
        license=_license(repository.card),
    )


def _read_directory(
    directory: Path, location: str, split: str, configs: Sequence[str] | None, dialect: Dialect
) -> Tables:
    found = find_tables(directory, split)
    if not found:
        raise TablesError(
            f"{directory} holds no tables: name them CONFIG.jsonl, CONFIG_{split}.jsonl or CONFIG/{split}.jsonl "
            f"(or {', '.join(suffix for suffix in SUFFIXES if suffix != '.jsonl')})."
        )
    ours = {config: chosen for config, splits in found.items() if (chosen := _of_split(splits, split))}
    if not ours:
        raise _no_split(str(directory), split, (name for splits in found.values() for name in splits))
    for config in configs or []:
        if config in found and config not in ours:
            raise _no_split(f"The config {config!r} of {directory}", split, found[config])
    frames, paths = {}, {}
    for config in _chosen(ours, configs, str(directory)):
        parts = ours[config]
        for name, files in parts.items():
            check_parts(files, config, name, directory)
        first = next(iter(parts.values()))
        stem = f"{next(iter(parts))}*" if len(parts) == 1 else "*"
        alone = len(parts) == len(first) == 1
        paths[config] = str(first[0] if alone else first[0].with_name(f"{stem}{first[0].suffix}"))
        frames[config] = joined({name: read_files(files, dialect) for name, files in parts.items()}, paths[config])
    try:
        card = read_card(directory) if (directory / CARD).is_file() else CardData()
    except ReleaseError as error:
        raise TablesError(f"{directory}: {error}") from None
    return Tables(location, None, frames, paths, _license(card))


def _of_split(splits: dict[str, list[Path]], split: str) -> dict[str, list[Path]]:
    """The files of a split, or of all of them by split, in the order in which their rows are read."""
    if split in splits or split != ALL:
        return {split: splits[split]} if split in splits else {}
    order = [*(name for name in SPLITS if name in splits), *sorted(splits.keys() - set(SPLITS))]
    return {name: splits[name] for name in order}


def _read_file(path: Path, location: str, configs: Sequence[str] | None, dialect: Dialect) -> Tables:
    if kind_of(path) is None:
        raise TablesError(f"{path} is no table that can be read here: give {', '.join(SUFFIXES)}.")
    chosen = _chosen([stem_of(path)], configs, str(path))
    return Tables(
        location=location,
        revision=None,
        frames={config: read_files([path], dialect) for config in chosen},
        paths={config: str(path) for config in chosen},
        license=None,
    )


def _chosen(known: Iterable[str], wanted: Sequence[str] | None, shown: str) -> list[str]:
    """The configs to read, in the source's order."""
    names = list(known)
    for config in wanted or []:
        if config not in names:
            meant = next((name for name in similar_languages(config) if name in names), config)
            hint = f"did you mean `{meant}`? " if meant != config else did_you_mean(config, names)
            raise TablesError(f"{shown} has no config {config!r}; {hint}it has {', '.join(names)}.")
    return names if wanted is None else [name for name in names if name in wanted]


def _no_split(shown: str, split: str, others: Iterable[str]) -> NoSplit:
    return NoSplit(f"{shown} has no split {split!r}; it has {', '.join(sorted(set(others)))}.")


def _license(card: CardData) -> str | None:
    stated = card.get("license")
    return ", ".join(map(str, stated)) if isinstance(stated, list) else stated
