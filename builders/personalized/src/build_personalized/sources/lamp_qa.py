"""LaMP-QA (`alireza7/LaMP-QA`): people with their past posts, a question, its narrative and its rubric."""

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
from huggingface_hub import CardData
from pluralbench_release import ReleaseError, Source, read_card
from polars.exceptions import PolarsError

from build_personalized.errors import SourceError
from build_personalized.recipe import SourceTable
from build_personalized.sources.loaded import QUESTIONS, Loaded, drops_frame, rows_digest

HUB_ID = "alireza7/LaMP-QA"
HUB_REPOSITORY = re.compile(r"^[\w.-]+/[\w.-]+$")
COMMIT = re.compile(r"^[0-9a-f]{40}$")
ATTRIBUTION = "LaMP-QA (Salemi and Zamani, 2025), whose texts come from Stack Exchange communities."
SUFFIXES = (".parquet", ".jsonl", ".json")
OTHER_SPLITS = ("_train", "_validation", "_test")


def pinned(location: str) -> str:
    """`ORG/NAME@COMMIT` for a Hub repository; a local directory as it is. Raises `SourceError`."""
    if Path(location).exists():
        return location
    repo, _, revision = location.partition("@")
    if COMMIT.match(revision):
        return location
    if not HUB_REPOSITORY.match(repo):
        raise SourceError(f"There is no directory {location} (give `lamp-qa:DIRECTORY` or `lamp-qa:ORG/NAME`).")
    return f"{repo}@{_hub_commit(repo, revision or None)}"


def load(location: str, source: SourceTable) -> Loaded:
    """Read a local directory, or a pinned Hub repository through `datasets`."""
    if Path(location).exists():
        return load_directory(Path(location), source, name="LaMP-QA", shown=location)
    repo, _, revision = location.partition("@")
    return _load_hub(repo, revision, source)


def load_directory(directory: Path, source: SourceTable, *, name: str, shown: str) -> Loaded:
    """Read `CONFIG.SUFFIX`, `CONFIG_SPLIT.SUFFIX` or `CONFIG/SPLIT*.SUFFIX` (Parquet, JSON Lines, JSON).

    The licence is that of the directory's own card (`README.md`), else the recipe's, else unknown.
    """
    files = _files(directory, source.split)
    frames = [_rows(config, _read(path), str(path), source) for config, paths in files.items() for path in paths]
    try:
        stated = _stated(read_card(directory)) if (directory / "README.md").is_file() else None
    except ReleaseError as error:
        raise SourceError(f"{directory}: {error}") from None
    licence = str(stated or source.licence or "unknown")
    attribution = "Invented for PluralBench." if shown == "sample" else ATTRIBUTION
    return _loaded(frames, source, name=name, location=shown, revision=None, licence=licence, attribution=attribution)


def _load_hub(repo: str, revision: str, source: SourceTable) -> Loaded:
    from datasets import get_dataset_config_names, load_dataset  # noqa: PLC0415 - two seconds that the sample saves

    try:
        card = _hub_card(repo, revision)
        named = [config["config_name"] for config in card.get("configs") or []]
        # Without a network `datasets` finds the configs of its cache only by name, and the card has the names.
        configs = named or get_dataset_config_names(repo, revision=revision)
        frames = [
            _rows(
                config,
                load_dataset(repo, config, split=source.split, revision=revision).to_polars(),
                f"{repo} {config}/{source.split}",
                source,
            )
            for config in configs
        ]
    except Exception as error:  # noqa: BLE001 - whatever the loader raises, the user gets a sentence
        raise SourceError(f"{repo} at {revision[:12]} cannot be loaded: {_one_line(error)}.") from None
    licence = _stated(card) or source.licence or "unknown"
    return _loaded(
        frames, source, name="LaMP-QA", location=repo, revision=revision, licence=licence, attribution=ATTRIBUTION
    )


def _hub_card(repo: str, revision: str) -> CardData:
    """The YAML of a repository's card, which the Hub's cache keeps for a rebuild without a network."""
    from huggingface_hub import hf_hub_download  # noqa: PLC0415 - reads its settings from the environment when imported
    from huggingface_hub.errors import EntryNotFoundError  # noqa: PLC0415 - the same

    try:
        card = hf_hub_download(repo, "README.md", repo_type="dataset", revision=revision)
    except EntryNotFoundError:
        return CardData()
    return read_card(Path(card).parent)


def _stated(card: CardData) -> str | None:
    licence = card.get("license")
    return ", ".join(licence) if isinstance(licence, list) else licence


def _hub_commit(repo: str, revision: str | None) -> str:
    """The commit that a revision of a Hub repository stands at now."""
    from huggingface_hub import HfApi  # noqa: PLC0415 - reads its settings from the environment when imported
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError  # noqa: PLC0415

    try:
        info = HfApi().dataset_info(repo, revision=revision)
    except RevisionNotFoundError:
        raise SourceError(f"The Hub's {repo} has no revision {revision!r}.") from None
    except RepositoryNotFoundError:
        raise SourceError(
            f"{repo} is neither a directory here nor a dataset on the Hub that you may read; mend the name, or log in "
            "with `hf auth login`."
        ) from None
    except Exception as error:  # noqa: BLE001 - whatever the client raises, the user gets a sentence
        raise SourceError(
            f"The Hub cannot be asked for {repo} ({_one_line(error)}); "
            "give a local copy as `lamp-qa:DIRECTORY`, or try again with a network."
        ) from None
    return info.sha or ""


def _files(directory: Path, split: str) -> dict[str, list[Path]]:
    files: dict[str, list[Path]] = {}
    for path in sorted(directory.rglob("*")):
        if path.suffix not in SUFFIXES:
            continue
        if path.parent == directory:
            config = path.stem.removesuffix(f"_{split}")
            if config.endswith(OTHER_SPLITS):
                continue
        elif path.stem.startswith(split):
            config = path.parent.name
        else:
            continue
        files.setdefault(config, []).append(path)
    if not files:
        raise SourceError(
            f"{directory} holds no LaMP-QA files: name them CONFIG.jsonl, CONFIG_{split}.jsonl or "
            f"CONFIG/{split}.jsonl (or .parquet, .json)."
        )
    return files


def _read(path: Path) -> pl.DataFrame:
    try:
        if path.suffix == ".parquet":
            return pl.read_parquet(path, glob=False)
        text = path.read_text(encoding="utf-8")
        rows = _json(path, text, 1) if path.suffix == ".json" else _json_lines(path, text)
        return pl.DataFrame(rows, infer_schema_length=None, strict=False)
    except (UnicodeError, PolarsError, OSError, TypeError) as error:
        raise SourceError(f"{path} cannot be read: {_one_line(error)}.") from None


def _json_lines(path: Path, text: str) -> list[Any]:
    # Only "\n" ends a line: str.splitlines would also cut at separators that JSON allows inside a text.
    lines = enumerate(text.split("\n"), start=1)
    return [_json(path, line, number) for number, line in lines if line.strip()]


def _json(path: Path, text: str, line: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise SourceError(f"{path} is not valid JSON at line {line + error.lineno - 1}: {error.msg}.") from None


def _rows(config: str, frame: pl.DataFrame, where: str, source: SourceTable) -> pl.DataFrame:
    missing = [name for name in QUESTIONS if name not in {"config", *frame.columns}]
    if missing:
        raise SourceError(f"{where} has no column `{missing[0]}`; LaMP-QA rows have {', '.join(list(QUESTIONS)[1:])}.")
    try:
        rows = frame.with_columns(config=pl.lit(config)).select(
            pl.col(name).cast(kind).alias(name) for name, kind in QUESTIONS.items()
        )
    except PolarsError as error:
        raise SourceError(f"{where} is not of LaMP-QA's shape: {_one_line(error)}.") from None
    return rows if source.limit is None else rows.head(source.limit)


def _loaded(
    frames: list[pl.DataFrame],
    source: SourceTable,
    *,
    name: str,
    location: str,
    revision: str | None,
    licence: str,
    attribution: str,
) -> Loaded:
    rows = pl.concat(frames)
    if source.limit is not None:
        rows = rows.filter(pl.int_range(pl.len()).over("config") < source.limit)
    entry = Source(
        name=name,
        location=location,
        revision=revision,
        digest=rows_digest(rows),
        rows=rows.height,
        licence=licence,
        attribution=attribution,
    )
    return Loaded(rows, drops_frame([]), [entry])


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300].rstrip(".")
