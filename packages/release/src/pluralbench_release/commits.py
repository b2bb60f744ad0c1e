"""Write to a repository on the Hub: open or create it, commit on a checked parent, tag."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pluralbench_runs import one_line, redact

from pluralbench_release.errors import ReleaseError
from pluralbench_release.files import read_text
from pluralbench_release.tables import HUB_REPOSITORY

if TYPE_CHECKING:
    from huggingface_hub import HfApi

Kind = Literal["dataset", "model"]
LOG_IN = "log in with `hf auth login` to an account with write access, and rerun the same command"
RESUME = "rerun the same command to resume"
PRECONDITION_FAILED = 412


class StaleParent(ReleaseError):
    """The main branch has a newer commit than the one that was read."""


@dataclass(frozen=True)
class Remote:
    """An existing repository on the Hub, `ORG/NAME`."""

    name: str
    kind: Kind = "dataset"

    @property
    def api(self) -> "HfApi":
        """A client of the Hub."""
        from huggingface_hub import HfApi

        return HfApi()


@dataclass(frozen=True)
class Head:
    """The main branch of a repository: its commit and the paths of its files."""

    commit: str
    files: frozenset[str]


def open_remote(name: str, *, kind: Kind = "dataset", create: bool = False, private: bool = False) -> Remote:
    """Open a repository on the Hub, `ORG/NAME`, for writing. With `create` it need not exist.

    Raises:
        ReleaseError: The name is not ORG/NAME, there is no token, the repository does not exist and `create` is False,
            it is public and `private` is True, or the Hub answers with an error.
    """
    from huggingface_hub import get_token
    from huggingface_hub.errors import RepositoryNotFoundError

    if not HUB_REPOSITORY.fullmatch(name):
        raise ReleaseError(f"{name!r} is not the name of a {kind} on the Hub; write it as ORG/NAME.")
    if get_token() is None:
        raise ReleaseError(f"No token to write to {name} on the Hub: set HF_TOKEN, or {LOG_IN}.")
    remote = Remote(name, kind)
    with translate_hub_errors(remote):
        try:
            about = remote.api.repo_info(name, repo_type=kind)
        except RepositoryNotFoundError:
            if not create:
                raise ReleaseError(
                    f"The {kind} {name} does not exist on the Hub, or you may not read it; fix the name, or create it "
                    "with `create=True`."
                ) from None
            remote.api.create_repo(name, repo_type=kind, private=private, exist_ok=True)
            return remote
    if private and not about.private:
        raise ReleaseError(
            f"{name} is a public {kind} on the Hub, and `private=True` applies to new ones; leave it out, or choose "
            "another name."
        )
    return remote


def head_of(remote: Remote) -> Head:
    """Read the current main branch of a repository. Raises `ReleaseError`."""
    with translate_hub_errors(remote):
        about = remote.api.repo_info(remote.name, repo_type=remote.kind)
        files = remote.api.list_repo_files(remote.name, repo_type=remote.kind, revision=about.sha)
        return Head(about.sha or "", frozenset(files))


def tags_of(remote: Remote) -> list[str]:
    """List the tags of a repository. Raises `ReleaseError`."""
    with translate_hub_errors(remote):
        return [tag.name for tag in remote.api.list_repo_refs(remote.name, repo_type=remote.kind).tags]


def text_at(remote: Remote, revision: str, path: str) -> str | None:
    """Read the text of a file at a commit or tag; None if it does not exist. Raises `ReleaseError`."""
    from huggingface_hub.errors import EntryNotFoundError

    with translate_hub_errors(remote):
        try:
            file = remote.api.hf_hub_download(remote.name, path, repo_type=remote.kind, revision=revision)
        except EntryNotFoundError:
            return None
    return read_text(Path(file), f"{path} of {remote.name}")


def commit_with_retry(commit: Callable[[Head], str], remote: Remote) -> str:
    """Call `commit` with the main branch, and once more if another commit came in between."""
    try:
        return commit(head_of(remote))
    except StaleParent:
        return commit(head_of(remote))


def commit(
    remote: Remote,
    parent: str,
    files: Mapping[str, bytes | Path],
    *,
    deleted: Iterable[str] = (),
    title: str,
    description: str = "",
    branch: str | None = None,
) -> str:
    """Commit files to a branch, by default the main one, which must be at the commit `parent`.

    Returns:
        The id of the commit; that of `parent` if nothing changes.

    Raises:
        StaleParent: The branch is at another commit.
        ReleaseError: The Hub answers with an error.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    added = [CommitOperationAdd(path, content) for path, content in files.items()]
    removed = [CommitOperationDelete(path, is_folder=False) for path in sorted(deleted)]
    with translate_hub_errors(remote):
        info = remote.api.create_commit(
            remote.name,
            [*added, *removed],
            repo_type=remote.kind,
            commit_message=title,
            commit_description=description,
            parent_commit=parent,
            revision=branch,
        )
    return info.oid


@dataclass(frozen=True)
class Proposal:
    """The result of proposing a text.

    Attributes:
        address: Web address of the pull request, or of the commit that has the text already.
        state: "opened" if the pull request is new, "updated" if it was open, or "unchanged" if the text was there.
    """

    address: str
    state: Literal["opened", "updated", "unchanged"]


def propose(remote: Remote, path: str, text: Callable[[str | None], str], *, title: str) -> Proposal:
    """Propose a text file in a pull request, for which no write access is needed.

    An open pull request of this account with the same title is updated. `text` maps the current text, None without one,
    to the proposed text.

    Raises:
        ReleaseError: The Hub answers with an error.
    """
    from huggingface_hub import CommitOperationAdd

    with translate_hub_errors(remote):
        mine = remote.api.get_repo_discussions(
            remote.name,
            repo_type=remote.kind,
            author=remote.api.whoami()["name"],
            discussion_type="pull_request",
            discussion_status="open",
        )
        existing = next((one for one in mine if one.title == title), None)
        branch = None if existing is None else existing.git_reference
        parent = remote.api.repo_info(remote.name, repo_type=remote.kind, revision=branch).sha or ""
    before = text_at(remote, parent, path)
    after = text(before)
    if after == before:
        return Proposal(address(remote, parent) if existing is None else existing.url, "unchanged")
    if existing is not None:
        commit(remote, parent, {path: after.encode()}, title=title, branch=branch)
        return Proposal(existing.url, "updated")
    with translate_hub_errors(remote):
        info = remote.api.create_commit(
            remote.name,
            [CommitOperationAdd(path, after.encode())],
            repo_type=remote.kind,
            commit_message=title,
            parent_commit=parent,
            create_pr=True,
        )
    return Proposal(str(info.pr_url), "opened")


def put_tag(remote: Remote, tag: str, commit_id: str, message: str) -> None:
    """Tag a commit. Raises `ReleaseError`, also if the tag exists."""
    with translate_hub_errors(remote):
        remote.api.create_tag(remote.name, tag=tag, tag_message=message, revision=commit_id, repo_type=remote.kind)


def address(remote: Remote, revision: str) -> str:
    """Return the web address of a commit or tag."""
    from huggingface_hub import constants

    folder = "datasets/" if remote.kind == "dataset" else ""
    return f"{constants.ENDPOINT}/{folder}{remote.name}/tree/{revision}"


@contextmanager
def translate_hub_errors(remote: Remote) -> Iterator[None]:
    """Convert the errors of the Hub's client to `ReleaseError`."""
    from huggingface_hub.errors import HfHubHTTPError

    try:
        yield
    except ReleaseError:
        raise
    except Exception as error:  # noqa: BLE001 - clients raise the errors of many libraries
        # For a failed upload the error itself only names the file.
        errors = [error, *([error.__cause__] if error.__cause__ else [])]
        status = next((each.response.status_code for each in errors if isinstance(each, HfHubHTTPError)), None)
        reason = one_line(": ".join(one_line(redact(str(each)), 300) for each in errors), 300)
        if status == PRECONDITION_FAILED:
            raise StaleParent(
                f"Another commit to {remote.name} arrived during the upload, so nothing was changed; {RESUME}."
            ) from None
        fix = LOG_IN if status in {401, 403, 404} else RESUME
        raise ReleaseError(f"The request to the Hub for {remote.name} failed: {reason}; {fix}.") from None
