"""Datasets on the Hub, each at one commit."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from huggingface_hub import CardData
from pluralbench_runs import one_line, redact
from pluralbench_tables import check_texts, frame_from_rows

from pluralbench_release.card import read_card
from pluralbench_release.errors import NoSplit, TablesError
from pluralbench_release.manifest import CARD
from pluralbench_release.table_files import ALL, joined

if TYPE_CHECKING:
    from datasets import DatasetBuilder

MEND = "give a local copy, or try again with a network"


@dataclass(frozen=True)
class Repository:
    """A dataset at a commit: the YAML of its card, and the names of its configs."""

    repo: str
    commit: str
    card: CardData
    configs: list[str]

    def __str__(self) -> str:
        return _shown(self.repo, self.commit)


def commit_of(repo: str, revision: str | None) -> str:
    """The commit that a revision of a Hub dataset stands at now, None for its main branch. Raises `TablesError`."""
    with translate_read_errors(repo, revision, f"The Hub cannot be asked for {repo} ({{}}); {MEND}."):
        from huggingface_hub import HfApi  # noqa: PLC0415 - reads its settings from the environment when imported

        return HfApi().dataset_info(repo, revision=revision).sha or ""


def open_repository(repo: str, commit: str) -> Repository:
    """The card and the configs of a dataset, from the cache where there is no network. Raises `TablesError`."""
    with translate_read_errors(repo, commit):
        from datasets import get_dataset_config_names  # noqa: PLC0415 - two seconds that local tables save

        card = _card(repo, commit)
        named = [config["config_name"] for config in card.get("configs") or []]
        # Without a network `datasets` finds the configs of its cache only by name, and the card has the names.
        return Repository(repo, commit, card, named or get_dataset_config_names(repo, revision=commit))


def read_config(repository: Repository, config: str, split: str) -> pl.DataFrame:
    """The rows of a config's split, or of all of them one after the other (see `read_tables`).

    Raises `TablesError`, and of it `NoSplit` where the config has other splits.
    """
    with translate_read_errors(repository.repo, repository.commit):
        builder = _builder(repository, config)
        builder.download_and_prepare()
        splits = list(builder.info.splits or [])
        every = split == ALL and ALL not in splits
        if split not in splits and not every:
            raise NoSplit(f"{repository} has no split {split!r} in {config}; it has {', '.join(splits)}.")
        where = f"{repository} {config}"
        frames = {name: _rows(builder, name, f"{where}/{name}") for name in (splits if every else [split])}
        return joined(frames, where)


def _rows(builder: "DatasetBuilder", split: str, where: str) -> pl.DataFrame:
    dataset = builder.as_dataset(split=split)
    check_texts(dataset.data.table, where, TablesError)
    # `datasets` keeps objects with differing keys as JSON of an extension type; their rows are as in a local file.
    if any("arrow.json" in str(field.type) for field in dataset.data.schema):
        return frame_from_rows(dataset.to_list())
    frame: pl.DataFrame = dataset.to_polars()
    return frame


def _builder(repository: Repository, config: str) -> "DatasetBuilder":
    from datasets import load_dataset_builder  # noqa: PLC0415 - two seconds that local tables save
    from datasets.packaged_modules.cache.cache import Cache  # noqa: PLC0415 - the same

    repo, commit = repository.repo, repository.commit
    try:
        builder = load_dataset_builder(repo, config, revision=commit)
    except ValueError as error:
        if "Couldn't find cache" not in str(error):  # what it says of a config of which no commit is there
            raise
        raise _not_here(repo, commit) from None
    if builder.hash == commit:
        return builder
    # Without a network `datasets` takes the newest commit of its cache, whichever one was asked for.
    version = str(builder.config.version)
    cached = Cache(repo_id=repo, dataset_name=repo.split("/")[1], config_name=config, version=version, hash=commit)
    if not Path(cached.cache_dir).is_dir():
        raise _not_here(repo, commit)
    return cached


def _card(repo: str, commit: str) -> CardData:
    """The YAML of a dataset's card."""
    card = file_at(repo, commit, CARD)
    return CardData() if card is None else read_card(card.parent)


def file_at(repo: str, commit: str, path: str) -> Path | None:
    """A file of a dataset, which the Hub's cache keeps for when there is no network; None where the dataset has none.

    Raises `TablesError` where that cannot be known.
    """
    from huggingface_hub import _CACHED_NO_EXIST, hf_hub_download, try_to_load_from_cache  # noqa: PLC0415 - as above
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError  # noqa: PLC0415 - the same

    with translate_read_errors(repo, commit):
        try:
            return Path(hf_hub_download(repo, path, repo_type="dataset", revision=commit))
        except LocalEntryNotFoundError:
            if try_to_load_from_cache(repo, path, repo_type="dataset", revision=commit) is not _CACHED_NO_EXIST:
                raise _not_here(repo, commit) from None
            return None
        except EntryNotFoundError:
            return None


def _shown(repo: str, commit: str) -> str:
    return f"{repo} at {commit[:12]}"


def _not_here(repo: str, commit: str) -> TablesError:
    return TablesError(f"{_shown(repo, commit)} is not in the cache, and the Hub cannot be asked; {MEND}.")


@contextmanager
def translate_read_errors(repo: str, revision: str | None, otherwise: str = "") -> Iterator[None]:
    """Turn whatever a client raises into a `TablesError`.

    otherwise: the sentence, with a place for the error, where no other is known; that the commit cannot be loaded.
    """
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError  # noqa: PLC0415 - as above

    try:
        yield
    except TablesError:
        raise
    except RevisionNotFoundError:
        raise TablesError(f"The Hub's {repo} has no revision {revision!r}.") from None
    except RepositoryNotFoundError:
        raise TablesError(
            f"{repo} is neither a directory here nor a dataset on the Hub that you may read; mend the name, or log in "
            "with `hf auth login`."
        ) from None
    except Exception as error:  # noqa: BLE001 - clients raise what the libraries under them raise
        otherwise = otherwise or f"{_shown(repo, revision or '')} cannot be loaded: {{}}."
        raise TablesError(otherwise.format(one_line(redact(str(error)), 300))) from None
