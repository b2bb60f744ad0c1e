"""A Hub on loopback, run as `python hub_server.py FOLDER`; prints its URL and serves until it is ended.

A dataset is a folder `FOLDER/ORG/NAME`: one folder a commit, and a file for each branch, which holds its commit. The
YAML of its card is JSON. What was asked is in `FOLDER/requests.log`.
"""

import hashlib
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ROOT = Path(sys.argv[1])


class NotThere(Exception):
    """Answered with 404 and this `X-Error-Code`."""


class Hub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        try:
            self._route(unquote(urlsplit(self.path).path))
        except NotThere as error:
            self._send(404, b"{}", {"X-Error-Code": str(error), "X-Error-Message": str(error)})

    do_GET = do_HEAD = _answer  # noqa: N815 - the names that http.server calls

    def _route(self, path: str) -> None:
        match path.strip("/").split("/"):
            case ["datasets", org, name, "resolve", revision, *parts]:
                commit = self._commit(org, name, revision)
                file = commit.joinpath(*parts)
                if not file.is_file():
                    raise NotThere("EntryNotFound")
                headers = {"ETag": f'"{_etag(file)}"', "X-Repo-Commit": commit.name, "Accept-Ranges": "bytes"}
                self._send(200, file.read_bytes(), headers)
            case ["api", "datasets", org, name, *rest]:
                commit = self._commit(org, name, rest[1] if len(rest) > 1 else "main")
                self._send(200, json.dumps(self._about(f"{org}/{name}", commit, rest)).encode(), {})
            case _:
                raise NotThere("Nothing")

    def _about(self, repo: str, commit: Path, rest: list[str]) -> Any:
        files = sorted(path for path in commit.rglob("*") if path.is_file())
        names = {path.relative_to(commit).as_posix(): path for path in files}
        match rest:
            case [] | ["revision", _]:
                return {
                    "id": repo,
                    "sha": commit.name,
                    "private": False,
                    "tags": [],
                    "cardData": json.loads(names["README.md"].read_text(encoding="utf-8").split("---\n")[1]),
                    "siblings": [{"rfilename": name} for name in names],
                }
            case ["tree", _, *parts]:
                folder = commit.joinpath(*parts)
                if not folder.is_dir():
                    raise NotThere("EntryNotFound")
                return [_entry(path, commit) for path in sorted(folder.glob("*"))]
        raise NotThere("Nothing")

    def _commit(self, org: str, name: str, revision: str) -> Path:
        repo = ROOT / org / name
        if not repo.is_dir():
            raise NotThere("RepoNotFound")
        branch = repo / revision
        commit = repo / branch.read_text(encoding="utf-8") if branch.is_file() else branch
        if not commit.is_dir():
            raise NotThere("RevisionNotFound")
        return commit

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        with (ROOT / "requests.log").open("a", encoding="utf-8") as log:
            log.write(f"{self.command} {self.path} {code}\n")


def _etag(file: Path) -> str:
    return hashlib.sha1(file.read_bytes(), usedforsecurity=False).hexdigest()


def _entry(path: Path, commit: Path) -> dict[str, Any]:
    name = path.relative_to(commit).as_posix()
    if path.is_dir():
        return {"type": "directory", "path": name, "oid": "0" * 40, "size": 0}
    return {"type": "file", "path": name, "oid": _etag(path), "size": path.stat().st_size}


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    sys.stdout.write(f"http://127.0.0.1:{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()
