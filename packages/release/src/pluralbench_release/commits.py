"""Write to a repository on the Hub: found or made, one commit on a parent that is checked, one tag."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pluralbench_runs import one_line, redact

from pluralbench_release.errors import ReleaseError
from pluralbench_release.tables import HUB_REPOSITORY

if TYPE_CHECKING:
    from huggingface_hub import HfApi

Kind = Literal["dataset", "model"]
LOG_IN = "log in with `hf auth login` as somebody who may write there, and run the same command again"
GO_ON = "run the same command again, which goes on where this one stopped"
STALE = 412


class StaleParent(ReleaseError):
    """Somebody else committed since the repository was read."""


@dataclass(frozen=True)
class Remote:
    """A repository on the Hub that is there. name: ORG/NAME."""

    name: str
    kind: Kind = "dataset"

    @property
    def api(self) -> "HfApi":
        """A client for it."""
        from huggingface_hub import HfApi  # noqa: PLC0415 - reads its settings from the environment when imported

        return HfApi()


@dataclass(frozen=True)
class Head:
    """A repository's main branch: its commit and the paths of its files."""

    commit: str
    files: frozenset[str]


def open_remote(name: str, *, kind: Kind = "dataset", create: bool = False, private: bool = False) -> Remote:
    """The repository `name` (ORG/NAME) on the Hub, to write to.

    create: make it, where it is not there yet. private: as a private one.

    Raises `ReleaseError` for a name that is none, without a token, where there is none and none is to be made, where
    one that is to be private is there and public, and for what the Hub answers else.
    """
    from huggingface_hub import get_token  # noqa: PLC0415 - as above
    from huggingface_hub.errors import RepositoryNotFoundError  # noqa: PLC0415 - the same

    if not HUB_REPOSITORY.fullmatch(name):
        raise ReleaseError(f"{name!r} is no name of a {kind} on the Hub, which is ORG/NAME.")
    if get_token() is None:
        raise ReleaseError(f"There is no token to write to {name} on the Hub: {LOG_IN}, or set HF_TOKEN.")
    remote = Remote(name, kind)
    with translate_hub_errors(remote):
        try:
            about = remote.api.repo_info(name, repo_type=kind)
        except RepositoryNotFoundError:
            if not create:
                raise ReleaseError(
                    f"There is no {kind} {name} on the Hub that you may read; mend the name, or make it with `create` "
                    "(--create)."
                ) from None
            remote.api.create_repo(name, repo_type=kind, private=private, exist_ok=True)
            return remote
    if private and not about.private:
        raise ReleaseError(
            f"{name} is on the Hub and public, and `private` (--private) is for a new {kind}; leave it out, or give "
            "another name."
        )
    return remote


def head_of(remote: Remote) -> Head:
    """The main branch of a repository now. Raises `ReleaseError`."""
    with translate_hub_errors(remote):
        about = remote.api.repo_info(remote.name, repo_type=remote.kind)
        files = remote.api.list_repo_files(remote.name, repo_type=remote.kind, revision=about.sha)
        return Head(about.sha or "", frozenset(files))


def tags_of(remote: Remote) -> list[str]:
    """The tags of a repository. Raises `ReleaseError`."""
    with translate_hub_errors(remote):
        return [tag.name for tag in remote.api.list_repo_refs(remote.name, repo_type=remote.kind).tags]


def text_at(remote: Remote, revision: str, path: str) -> str | None:
    """The text of a file at a commit or tag; None where there is none. Raises `ReleaseError`."""
    from huggingface_hub.errors import EntryNotFoundError  # noqa: PLC0415 - as above

    from pluralbench_release.files import text_of  # noqa: PLC0415 - beside its one use

    with translate_hub_errors(remote):
        try:
            found = remote.api.hf_hub_download(remote.name, path, repo_type=remote.kind, revision=revision)
        except EntryNotFoundError:
            return None
    return text_of(Path(found), f"{path} of {remote.name}")


def commit_twice(commit: Callable[[Head], str], remote: Remote) -> str:
    """What `commit` makes of the main branch; of the new one, once more, where somebody else committed meanwhile.

    Raises `ReleaseError`, also where that happens again.
    """
    try:
        return commit(head_of(remote))
    except StaleParent:
        try:
            return commit(head_of(remote))
        except StaleParent:
            raise ReleaseError(
                f"Somebody else committed to {remote.name} twice while this was sent, so nothing was changed there; "
                "run the same command again when they are done."
            ) from None


def commit(
    remote: Remote,
    parent: str,
    files: Mapping[str, bytes | Path],
    *,
    deleted: Iterable[str] = (),
    title: str,
    about: str = "",
) -> str:
    """One commit on `parent`, the main branch, with these files by path; returns its id.

    Where nothing would change there is none, and the id is that of `parent`.

    Raises `StaleParent` where the main branch is at another commit by now, and `ReleaseError`.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete  # noqa: PLC0415 - as above

    added = [CommitOperationAdd(path, content) for path, content in files.items()]
    gone = [CommitOperationDelete(path, is_folder=False) for path in sorted(deleted)]
    with translate_hub_errors(remote):
        made = remote.api.create_commit(
            remote.name,
            [*added, *gone],
            repo_type=remote.kind,
            commit_message=title,
            commit_description=about,
            parent_commit=parent,
        )
    return made.oid


def put_tag(remote: Remote, tag: str, commit_id: str, message: str) -> None:
    """Tag a commit. Raises `ReleaseError`, also where the tag is there."""
    with translate_hub_errors(remote):
        remote.api.create_tag(remote.name, tag=tag, tag_message=message, revision=commit_id, repo_type=remote.kind)


def address(remote: Remote, revision: str) -> str:
    """Where the Hub shows a commit or tag."""
    from huggingface_hub import constants  # noqa: PLC0415 - as above

    folder = "datasets/" if remote.kind == "dataset" else ""
    return f"{constants.ENDPOINT}/{folder}{remote.name}/tree/{revision}"


@contextmanager
def translate_hub_errors(remote: Remote) -> Iterator[None]:
    """Turn whatever the Hub's client raises into a sentence with a mend."""
    from huggingface_hub.errors import HfHubHTTPError  # noqa: PLC0415 - as above

    try:
        yield
    except ReleaseError:
        raise
    except Exception as error:  # noqa: BLE001 - clients raise what the libraries under them raise
        told = [error, *([error.__cause__] if error.__cause__ else [])]  # of a broken upload it names the file alone
        status = next((one.response.status_code for one in told if isinstance(one, HfHubHTTPError)), None)
        said = one_line(": ".join(one_line(redact(str(one)), 300) for one in told), 300)
        if status == STALE:
            raise StaleParent(f"Somebody else committed to {remote.name} meanwhile ({said}).") from None
        mend = LOG_IN if status in {401, 403, 404} else GO_ON
        raise ReleaseError(f"The Hub did not take what was sent to {remote.name}: {said}; {mend}.") from None
