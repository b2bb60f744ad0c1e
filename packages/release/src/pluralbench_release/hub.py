"""Read datasets on the Hub at fixed commits."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from pluralbench_runs import check_commit, one_line, redact
from pluralbench_tables import frame_from_rows

from pluralbench_release.card import read_card
from pluralbench_release.errors import NoSplit, TablesError
from pluralbench_release.manifest import CARD
from pluralbench_release.table_files import ALL, concat_tables

if TYPE_CHECKING:
    from datasets import DatasetBuilder
    from huggingface_hub import CardData

MAX_TAGS = 5  # in an error
OFFLINE_FIX = "use a local copy, or try again online"


@dataclass(frozen=True)
class Repository:
    """A dataset, `ORG/NAME`, at a commit, with the YAML of its card and the names of its configs."""

    repo: str
    commit: str
    card: "CardData"
    configs: list[str]

    def __str__(self) -> str:
        return _name_of(self.repo, self.commit)


def commit_of(repo: str, revision: str | None) -> str:
    """Look up the current commit of a branch, a tag or the beginning of a commit; None is the main branch.

    Raises:
        TablesError: The dataset or the revision does not exist, or the Hub cannot be reached or serves another commit.
    """
    with translate_read_errors(repo, revision, f"The Hub cannot be reached for {repo} ({{}}); {OFFLINE_FIX}."):
        from huggingface_hub import HfApi

        commit = HfApi().dataset_info(repo, revision=revision).sha or ""
        check_commit(repo, revision, commit, TablesError)
        return commit


def open_repository(repo: str, commit: str) -> Repository:
    """Read the card and the configs of a dataset, from the cache if offline. Raises `TablesError`."""
    with translate_read_errors(repo, commit):
        from datasets import get_dataset_config_names

        card = _card(repo, commit)
        names = [config["config_name"] for config in card.get("configs") or []]
        # Offline, `datasets` finds the configs of its cache only by name, and the card has the names.
        return Repository(repo, commit, card, names or get_dataset_config_names(repo, revision=commit))


def read_config(
    repository: Repository, config: str, split: str, needed: Callable[[str], object] | None = None
) -> pl.DataFrame:
    """Read the rows of a config's split, or of all splits in sequence (see `read_tables`).

    Raises:
        NoSplit: The config does not have the split.
        TablesError: The rows cannot be read.
    """
    with translate_read_errors(repository.repo, repository.commit):
        builder = _builder(repository, config)
        builder.download_and_prepare()
        splits = list(builder.info.splits or [])
        all_splits = split == ALL and ALL not in splits
        if split not in splits and not all_splits:
            raise NoSplit(f"{repository} has no split {split!r} in {config}; it has {', '.join(splits)}.")
        names = splits if all_splits else [split]
        frames = {name: _rows(builder, name, f"{repository} {config}/{name}", needed) for name in names}
        return concat_tables(frames, f"{repository} {config}")


def _rows(builder: "DatasetBuilder", split: str, where: str, needed: Callable[[str], object] | None) -> pl.DataFrame:
    dataset = builder.as_dataset(split=split)
    # `datasets` stores objects with different keys as JSON in an extension type; convert them as for local files.
    if any("arrow.json" in str(field.type) for field in dataset.data.schema):
        return frame_from_rows(dataset.to_list(), where, TablesError, needed=needed)
    frame: pl.DataFrame = dataset.to_polars()
    return frame


def _builder(repository: Repository, config: str) -> "DatasetBuilder":
    from datasets import load_dataset_builder
    from datasets.packaged_modules.cache.cache import Cache

    repo, commit = repository.repo, repository.commit
    try:
        builder = load_dataset_builder(repo, config, revision=commit)
    except ValueError as error:
        if "Couldn't find cache" not in str(error):  # its message for a config without any cached commit
            raise
        raise _not_cached(repo, commit) from None
    if builder.hash == commit:
        return builder
    if not isinstance(builder, Cache):
        check_commit(repo, commit, builder.hash or "", TablesError)
    # Offline, `datasets` uses the newest commit of its cache instead of the requested one.
    version = str(builder.config.version)
    cached = Cache(repo_id=repo, dataset_name=repo.split("/")[1], config_name=config, version=version, hash=commit)
    if not Path(cached.cache_dir).is_dir():
        raise _not_cached(repo, commit)
    return cached


def _card(repo: str, commit: str) -> "CardData":
    from huggingface_hub import CardData

    card = file_at(repo, commit, CARD)
    return CardData() if card is None else read_card(card.parent)


def file_at(repo: str, commit: str, path: str) -> Path | None:
    """Download a file of a dataset, or take it from the Hub's cache; None if the dataset does not have it.

    Raises:
        TablesError: The Hub cannot be reached, and the cache does not have the file; or the Hub serves another commit.
    """
    from huggingface_hub import _CACHED_NO_EXIST, hf_hub_download, try_to_load_from_cache
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    with translate_read_errors(repo, commit):
        try:
            file = Path(hf_hub_download(repo, path, repo_type="dataset", revision=commit))
        except LocalEntryNotFoundError:
            if try_to_load_from_cache(repo, path, repo_type="dataset", revision=commit) is not _CACHED_NO_EXIST:
                raise _not_cached(repo, commit) from None
            return None
        except EntryNotFoundError:
            return None
        check_commit(repo, commit, file.parents[path.count("/")].name, TablesError)
        return file


def _name_of(repo: str, commit: str) -> str:
    return f"{repo} at {commit[:12]}"


def _not_cached(repo: str, commit: str) -> TablesError:
    return TablesError(f"{_name_of(repo, commit)} is not in the cache, and the Hub cannot be reached; {OFFLINE_FIX}.")


def _tags(repo: str) -> str:
    """The tags of a dataset, for an error; empty if they cannot be read."""
    with suppress(Exception):  # the error is another one
        from huggingface_hub import HfApi

        names = sorted(one.name for one in HfApi().list_repo_refs(repo, repo_type="dataset").tags)
        return f"; it has the tags {', '.join(names[:MAX_TAGS])}{', …' * (len(names) > MAX_TAGS)}" if names else ""
    return ""


@contextmanager
def translate_read_errors(repo: str, revision: str | None, template: str = "") -> Iterator[None]:
    """Convert the errors of the Hub's clients to `TablesError`.

    `template` is the message for other errors, with `{}` for the reason. Default: the revision cannot be loaded.
    """
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    try:
        yield
    except TablesError:
        raise
    except RevisionNotFoundError:
        raise TablesError(f"{repo} on the Hub has no revision {revision!r}{_tags(repo)}.") from None
    except RepositoryNotFoundError:
        raise TablesError(
            f"{repo} is neither a local directory nor a dataset on the Hub that you may read; fix the name, or log in "
            "with `hf auth login`."
        ) from None
    except Exception as error:  # noqa: BLE001 - clients raise the errors of many libraries
        template = template or f"{_name_of(repo, revision or '')} cannot be loaded: {{}}."
        reason = f"its answer has no {error}" if isinstance(error, KeyError) else str(error)
        raise TablesError(template.format(one_line(redact(reason), 300))) from None
