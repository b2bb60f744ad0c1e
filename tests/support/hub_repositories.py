"""Repositories of a Hub for tests: bare git repositories, with large files beside them as git LFS keeps them."""

import hashlib
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

POINTER = b"version https://git-lfs.github.com/spec/v1\n"
LONGEST_POINTER = 200  # bytes
ATTRIBUTES = b"*.parquet filter=lfs diff=lfs merge=lfs -text\n*.safetensors filter=lfs diff=lfs merge=lfs -text\n"
ALONE = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0"}


@dataclass(frozen=True)
class Entry:
    """A file or folder of a commit. oid: git's. large: SHA-256 of its content, where LFS holds that."""

    path: str
    kind: str
    oid: str
    size: int
    large: str | None = None


@dataclass
class Repository:
    """A dataset or model: `folder` is its bare git repository, and `folder/lfs` has the large files by SHA-256."""

    folder: Path
    private: bool = False
    _blobs: dict[str, bytes] = field(default_factory=dict)
    _trees: dict[str, dict[str, Entry]] = field(default_factory=dict)

    def start(self) -> None:
        """Make it, with the one file that a new repository has on the Hub."""
        self.folder.mkdir(parents=True)
        self._git("init", "--quiet", "--bare", "--initial-branch=main", ".")
        (self.folder / "lfs").mkdir()
        self.commit({".gitattributes": ATTRIBUTES}, message="initial commit")

    def commit(
        self, files: Mapping[str, bytes], *, deleted: Iterable[str] = (), message: str = "A change", on: str = "main"
    ) -> str:
        """Commit files by path on a branch; what is deleted is a file or a folder. Returns the commit's id."""
        said = message.encode()
        parts = [
            f"commit refs/heads/{on}\n".encode(),
            f"committer Somebody <somebody@example.org> {int(datetime.now(UTC).timestamp())} +0000\n".encode(),
            b"data %d\n%s\n" % (len(said), said),
        ]
        if (head := self.find(on)) is not None:
            parts.append(f"from {head}\n".encode())
        parts += [f"D {path}\n".encode() for path in deleted]
        parts += [
            b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(text), text) for path, text in files.items()
        ]
        self._git("fast-import", "--quiet", "--date-format=raw", given=b"".join(parts))
        made = self.find(on)
        assert made is not None
        return made

    def find(self, revision: str) -> str | None:
        """The commit that a branch, tag or commit means; None for none."""
        found = self._git("rev-parse", "--quiet", "--verify", f"{revision}^{{commit}}", check=False).decode().strip()
        return found or None

    def tree(self, commit: str) -> dict[str, Entry]:
        """Every file and folder of a commit by path."""
        if commit not in self._trees:
            lines = self._git("ls-tree", "-r", "-t", "-l", "-z", commit).decode().split("\0")
            entries = [self._entry(line) for line in lines if line]
            self._trees[commit] = {entry.path: entry for entry in entries}
        return self._trees[commit]

    def _entry(self, line: str) -> Entry:
        about, _, path = line.partition("\t")
        _, kind, oid, size = about.split()
        if kind == "tree":
            return Entry(path, "directory", oid, 0)
        if int(size) < LONGEST_POINTER and (text := self._blob(oid)).startswith(POINTER):
            _, large, length = (value.split()[1].decode() for value in text.splitlines())
            return Entry(path, "file", oid, int(length), large.removeprefix("sha256:"))
        return Entry(path, "file", oid, int(size))

    def read(self, path: str, revision: str = "main") -> bytes:
        """The content of a file."""
        commit = self.find(revision)
        assert commit is not None, revision
        return self.content(self.tree(commit)[path])

    def files(self, revision: str = "main") -> dict[str, bytes]:
        """The content of every file."""
        commit = self.find(revision)
        assert commit is not None, revision
        return {path: self.content(entry) for path, entry in self.tree(commit).items() if entry.kind == "file"}

    def content(self, entry: Entry) -> bytes:
        """What a file holds."""
        return self._blob(entry.oid) if entry.large is None else self.large(entry.large).read_bytes()

    def large(self, digest: str) -> Path:
        """Where a large file lies, or will."""
        return self.folder / "lfs" / digest

    def keep_large(self, digest: str, content: bytes) -> bool:
        """Keep a large file; False where its digest is another."""
        if hashlib.sha256(content).hexdigest() != digest:
            return False
        self.large(digest).write_bytes(content)
        return True

    def tag(self, name: str, commit: str, message: str) -> None:
        """An annotated tag."""
        who = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")
        self._git(*who, "tag", "--annotate", "--file=-", name, commit, given=message.encode())

    def untag(self, name: str) -> None:
        """Take a tag away."""
        self._git("tag", "--delete", name)

    def references(self, kind: str) -> dict[str, str]:
        """The commits of all branches (`heads`) or `tags` by name."""
        form = "%(refname:lstrip=2)%00%(objectname)%00%(*objectname)"
        lines = self._git("for-each-ref", f"--format={form}", f"refs/{kind}").decode().splitlines()
        return {name: peeled or oid for name, oid, peeled in (line.split("\0") for line in lines)}

    def messages(self, revision: str = "main") -> list[tuple[str, str, str, str]]:
        """Of each commit the id, title, message and time, newest first."""
        found = self._git("log", "--format=%H%x00%s%x00%b%x00%cI%x1e", revision).decode().split("\x1e")
        parts = [one.strip("\n").split("\0") for one in found if one.strip()]
        return [(commit, title, said.strip(), when) for commit, title, said, when in parts]

    def tag_message(self, name: str) -> str:
        """What an annotated tag says."""
        return self._git("tag", "--list", "--format=%(contents)", name).decode().strip()

    def _blob(self, oid: str) -> bytes:
        if oid not in self._blobs:
            self._blobs[oid] = self._git("cat-file", "blob", oid)
        return self._blobs[oid]

    def _git(self, *words: str, given: bytes = b"", check: bool = True) -> bytes:
        done = subprocess.run(
            ["git", *words], cwd=self.folder, input=given, capture_output=True, env=os.environ | ALONE, check=False
        )
        assert not check or done.returncode == 0, done.stderr.decode()
        return done.stdout


def pointer(digest: str, size: int) -> bytes:
    """What git holds in place of a large file."""
    return POINTER + f"oid sha256:{digest}\nsize {size}\n".encode()
