"""A Hub on loopback for tests: `serving` runs this file as `python hub_server.py FOLDER`, which prints its URL.

A dataset is a folder `FOLDER/ORG/NAME`: one folder a commit, and a file for each branch, which holds its commit;
`publish` adds one. A model is the same, of which nothing can be asked but its commit. The YAML of its card is JSON.
What was asked is in `FOLDER/requests.log`.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from listening import QuietHandler

NO_NETWORK = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "1"}


@dataclass(frozen=True)
class Hub:
    """A Hub that serves. environment: what a command needs to ask it, and nothing else."""

    folder: Path
    environment: dict[str, str]

    @property
    def log(self) -> Path:
        return self.folder / "requests.log"


@contextmanager
def serving(folder: Path, home: Path) -> Iterator[Hub]:
    """Serve the datasets in `folder`; clients keep their caches in `home`."""
    with subprocess.Popen([sys.executable, __file__, folder], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        try:
            yield Hub(folder, {"HF_ENDPOINT": url, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1"})
        finally:
            server.terminate()


def publish(repo: Path, commit: str, files: Mapping[str, str], card: Mapping[str, Any] | None) -> None:
    """Add a commit with these files (texts by path), a card with this YAML if any, and let `main` be this commit."""
    readme = {} if card is None else {"README.md": f"---\n{json.dumps(card)}\n---\nA card.\n"}
    for path, text in {**files, **readme}.items():
        (repo / commit / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / commit / path).write_text(text, encoding="utf-8")
    (repo / "main").write_text(commit, encoding="utf-8")


def card(configs: Mapping[str, Mapping[str, str]], licence: str) -> dict[str, Any]:
    """The YAML of a card. configs: the path of each split of each config."""
    listed = [
        {"config_name": config, "data_files": [{"split": split, "path": path} for split, path in splits.items()]}
        for config, splits in configs.items()
    ]
    return {"configs": listed, "license": licence}


class NotThere(Exception):
    """Answered with 404, this `X-Error-Code`, and the commit in which it was looked for."""

    def __init__(self, code: str, commit: str = "") -> None:
        super().__init__(code)
        self.commit = commit


class Handler(QuietHandler):
    root: Path

    def _answer(self) -> None:
        try:
            self._route(unquote(urlsplit(self.path).path))
        except NotThere as error:
            headers = {"X-Error-Code": str(error), "X-Error-Message": str(error)}
            self.answer_with(404, b"{}", headers | ({"X-Repo-Commit": error.commit} if error.commit else {}))

    do_GET = do_HEAD = _answer

    def _route(self, path: str) -> None:
        match path.strip("/").split("/"):
            case ["datasets", org, name, "resolve", revision, *parts]:
                commit = self._commit(org, name, revision)
                file = commit.joinpath(*parts)
                if not file.is_file():
                    raise NotThere("EntryNotFound", commit.name)
                headers = {"ETag": f'"{_etag(file)}"', "X-Repo-Commit": commit.name, "Accept-Ranges": "bytes"}
                self.answer_with(200, file.read_bytes(), headers)
            case ["api", "datasets" | "models", org, name, *rest]:
                commit = self._commit(org, name, rest[1] if len(rest) > 1 else "main")
                self.answer_with(200, json.dumps(self._about(f"{org}/{name}", commit, rest)).encode(), {})
            case _:
                raise NotThere("Nothing")

    def _about(self, repo: str, commit: Path, rest: list[str]) -> Any:
        files = sorted(path for path in commit.rglob("*") if path.is_file())
        names = {path.relative_to(commit).as_posix(): path for path in files}
        readme = names.get("README.md")
        match rest:
            case [] | ["revision", _]:
                return {
                    "id": repo,
                    "sha": commit.name,
                    "private": False,
                    "tags": [],
                    "cardData": json.loads(readme.read_text(encoding="utf-8").split("---\n")[1]) if readme else None,
                    "siblings": [{"rfilename": name} for name in names],
                }
            case ["tree", _, *parts]:
                folder = commit.joinpath(*parts)
                if not folder.is_dir():
                    raise NotThere("EntryNotFound")
                return [_entry(path, commit) for path in sorted(folder.glob("*"))]
        raise NotThere("Nothing")

    def _commit(self, org: str, name: str, revision: str) -> Path:
        repo = self.root / org / name
        if not repo.is_dir():
            raise NotThere("RepoNotFound")
        branch = repo / revision
        commit = repo / branch.read_text(encoding="utf-8") if branch.is_file() else branch
        if not commit.is_dir():
            raise NotThere("RevisionNotFound")
        return commit

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        with (self.root / "requests.log").open("a", encoding="utf-8") as log:
            log.write(f"{self.command} {self.path} {code}\n")


def _etag(file: Path) -> str:
    return hashlib.sha1(file.read_bytes(), usedforsecurity=False).hexdigest()


def _entry(path: Path, commit: Path) -> dict[str, Any]:
    name = path.relative_to(commit).as_posix()
    if path.is_dir():
        return {"type": "directory", "path": name, "oid": "0" * 40, "size": 0}
    return {"type": "file", "path": name, "oid": _etag(path), "size": path.stat().st_size}


if __name__ == "__main__":
    Handler.root = Path(sys.argv[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    sys.stdout.write(f"http://127.0.0.1:{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()
