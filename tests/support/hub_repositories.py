"""Repositories of a Hub for tests, in memory: commits of whole files, branches and tags."""

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

ATTRIBUTES = b"*.parquet filter=lfs diff=lfs merge=lfs -text\n*.safetensors filter=lfs diff=lfs merge=lfs -text\n"


@dataclass(frozen=True)
class File:
    """A file of a commit. large: git LFS holds it."""

    content: bytes
    large: bool = False

    @property
    def oid(self) -> str:
        """The name of its content in git, or in LFS."""
        blob = b"blob %d\0%s" % (len(self.content), self.content)
        digest = hashlib.sha256(self.content) if self.large else hashlib.sha1(blob, usedforsecurity=False)
        return digest.hexdigest()


@dataclass(frozen=True)
class Commit:
    """A commit with all its files. history: the ids of those before it, the oldest first."""

    files: dict[str, File]
    message: str
    history: tuple[str, ...] = ()
    when: str = field(default_factory=lambda: datetime.now(UTC).isoformat())
    oid: str = field(default_factory=lambda: secrets.token_hex(20))


class PullRequest(NamedTuple):
    """An open pull request, whose branch is `refs/pr/NUMBER`."""

    number: int
    title: str
    author: str


@dataclass
class Repository:
    """A dataset or model. large: files that came and that no commit has yet, by SHA-256."""

    private: bool = False
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    tag_messages: dict[str, str] = field(default_factory=dict)
    large: dict[str, bytes] = field(default_factory=dict)
    pull_requests: dict[str, PullRequest] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the one file that a new repository has on the Hub."""
        first = Commit({".gitattributes": File(ATTRIBUTES)}, "initial commit")
        self.commits, self.branches = {first.oid: first}, {"main": first.oid}

    def commit(
        self,
        files: Mapping[str, bytes | File],
        *,
        deleted: Iterable[str] = (),
        message: str = "A change",
        on: str = "main",
    ) -> str:
        """Commit files by path on a branch; what is deleted is a file or a folder. Returns the commit's id."""
        before = self.commits[self.branches[on]]
        gone = tuple(f"{path}/" for path in deleted)
        kept = {path: file for path, file in before.files.items() if not f"{path}/".startswith(gone)}
        new = {path: file if isinstance(file, File) else File(file) for path, file in files.items()}
        made = Commit(kept | new, message, (*before.history, before.oid))
        self.commits[made.oid] = made
        self.branches[on] = made.oid
        return made.oid

    def open_pull_request(self, commit: str, title: str, author: str) -> str:
        """Start the branch of a pull request at a commit. Returns the branch."""
        number = 1 + sum(name.startswith("refs/pr/") for name in self.branches)
        branch = f"refs/pr/{number}"
        self.branches[branch], self.pull_requests[branch] = commit, PullRequest(number, title, author)
        return branch

    def find(self, revision: str) -> str | None:
        """The commit that a branch, tag or commit means; None for none."""
        found = [oid for oid in self.commits if len(revision) > 6 and oid.startswith(revision)]
        return self.branches.get(revision) or self.tags.get(revision) or (found[0] if len(found) == 1 else None)

    def files(self, revision: str = "main") -> dict[str, bytes]:
        """The content of every file."""
        commit = self.find(revision)
        assert commit is not None, revision
        return {path: file.content for path, file in self.commits[commit].files.items()}

    def tag(self, name: str, commit: str, message: str) -> None:
        """An annotated tag."""
        self.tags[name], self.tag_messages[name] = commit, message

    def messages(self, revision: str = "main") -> list[tuple[str, str, str, str]]:
        """Of each commit the id, title, message and time, newest first."""
        commit = self.commits[self.find(revision) or ""]
        every = [*((oid, self.commits[oid]) for oid in commit.history), (commit.oid, commit)]
        parts = [(oid, *one.message.partition("\n\n")[::2], one.when) for oid, one in reversed(every)]
        return [(oid, title, body.strip(), when) for oid, title, body, when in parts]
