"""A Hub on loopback that speaks its HTTP protocol, to be driven by its unmodified clients.

It takes and serves datasets and models: create, preupload, LFS, commits, tags, files with ranges, trees. Tokens open
namespaces, and a fault that a test orders comes instead of an answer, or after what was asked is done.
"""

import base64
import hashlib
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from threading import RLock
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
import yaml
from hub_repositories import Commit, File, Repository
from listening import QuietHandler, listening

WRITER, READER = "hf_writes_for_org_0123456789", "hf_reads_what_is_public_0123456789"
USERS = {WRITER: "writer", READER: "reader"}
LARGE = (".parquet", ".safetensors", ".bin")
LARGEST = 10 * 2**20  # bytes of a file that git itself holds
GONE = 0
"""The status of a fault that ends the connection in place of an answer."""
CUT = -1
"""That of one that ends it after half of the answer."""
NO_NETWORK = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "1"}
Configs = Mapping[str, Mapping[str, str]]
"""The path of each split of each config."""

Answer = tuple[int, bytes, dict[str, str]]
"""A status, a body and headers."""


@dataclass
class Fault:
    """What happens to the next requests of a method whose path has a part.

    status: what is answered, `GONE` or `CUT`. after: what was asked is done all the same. first: is called before.
    says: the error; `{authorization}` is the header that came.
    """

    method: str
    part: str
    status: int | None = None
    times: int = 1
    after: bool = False
    first: Callable[[], object] | None = None
    says: str = "Not now."
    headers: dict[str, str] = field(default_factory=lambda: {"Retry-After": "0"})


@dataclass
class Hub:
    """A Hub that serves.

    tokens: the namespaces that each may write. asked: methods, paths and statuses. serves: the revision that is served
    whichever is asked for, as of a mirror that is behind.
    """

    url: str
    tokens: dict[str, set[str]] = field(default_factory=lambda: {WRITER: {"org"}, READER: set()})
    repositories: dict[tuple[str, str], Repository] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    serves: str | None = None
    lock: RLock = field(default_factory=RLock)

    def repository(self, name: str, kind: str = "datasets") -> Repository:
        """A dataset or one of the `models`."""
        return self.repositories[kind, name]

    def create(self, name: str, kind: str = "datasets", *, private: bool = False) -> Repository:
        """Make a dataset or model."""
        made = self.repositories[kind, name] = Repository(private)
        return made

    def publish(self, name: str, files: Mapping[str, str], configs: Configs | None = None, **card: object) -> str:
        """Add a commit with these files, by path, to a dataset; a card says its configs and more. Returns its id."""
        there = self.repositories.get(("datasets", name)) or self.create(name)
        if configs is not None:
            card["configs"] = [
                {
                    "config_name": config,
                    "data_files": [{"split": split, "path": path} for split, path in splits.items()],
                }
                for config, splits in configs.items()
            ]
        readme = {"README.md": f"---\n{json.dumps(card)}\n---\nA card.\n"} if card else {}
        return there.commit({path: text.encode() for path, text in (readme | {**files}).items()})

    def environment(self, home: Path, token: str = WRITER) -> dict[str, str]:
        """What a process needs to ask it. home: where clients keep their caches."""
        asks = {"HF_ENDPOINT": self.url, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0"}
        return asks | {"HF_TOKEN": token, "HF_HUB_DISABLE_PROGRESS_BARS": "1"}

    def wrote(self) -> list[str]:
        """What changed something, of all that was asked."""
        parts = ("/api/repos/create", "/commit/", "/tag/")
        return [one for one in self.asked if one.startswith(("POST", "DELETE")) and any(part in one for part in parts)]


class Refused(Exception):
    """Answered with a status, an error and its code (`X-Error-Code`)."""

    def __init__(self, status: int, says: str, code: str = "") -> None:
        super().__init__(says)
        self.status, self.code = status, code


class Handler(QuietHandler):
    hub: Hub

    def answer(self) -> None:
        body = self._body()
        path = unquote(urlsplit(self.path).path)
        fault = self._fault(path)
        if fault is not None and fault.first is not None:
            fault.first()
        status = None if fault is None else fault.status
        if status in {None, CUT} or (fault is not None and fault.after):
            try:
                with self.hub.lock:
                    # An address may have a branch with slashes, which are quoted, as one part.
                    found = self._route(
                        [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")], body
                    )
            except Refused as error:
                found = self._json(
                    {"error": str(error)}, error.status, {"X-Error-Code": error.code, "X-Error-Message": str(error)}
                )
        if status == GONE:
            self.hub.asked.append(f"{self.command} {path} gone")
            self.close_connection = True
            return
        if status == CUT:
            number, content, headers = found
            found = number, content[: len(content) // 2], headers | {"Content-Length": str(len(content))}
            self.close_connection = True
        elif status is not None and fault is not None:
            said = fault.says.format(authorization=self.headers.get("Authorization"))
            found = self._json({"error": said}, status, fault.headers)
        self._send(path, *found)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = answer

    def _fault(self, path: str) -> Fault | None:
        with self.hub.lock:
            found = (one for one in self.hub.faults if one.times and one.method == self.command and one.part in path)
            fault = next(found, None)
            if fault is not None:
                fault.times -= 1
            return fault

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _route(self, words: list[str], body: bytes) -> Answer:
        if self.command in {"GET", "HEAD"}:
            return self._read(words)
        match words:
            case ["api", kind, org, name, what, revision] if "create_pr=1" in urlsplit(self.path).query:
                return self._propose(kind, f"{org}/{name}", what, revision, body)
        return self._write(words, body)

    def _read(self, words: list[str]) -> Answer:
        match words:
            case ["datasets", org, name, "resolve", revision, *path]:
                return self._file(self._repository("datasets", org, name), revision, "/".join(path))
            case [org, name, "resolve", revision, *path]:
                return self._file(self._repository("models", org, name), revision, "/".join(path))
            case ["api", "whoami-v2"]:
                return self._json({"name": self._user()})
            case ["api", "datasets", org, name, "leaderboard"]:
                return self._leaderboard(self._repository("datasets", org, name), f"{org}/{name}")
            case ["api", "datasets" | "models" as kind, org, name, *rest]:
                return self._about(self._repository(kind, org, name), f"{org}/{name}", rest)
        raise Refused(404, "There is nothing of this name.")

    def _write(self, words: list[str], body: bytes) -> Answer:
        match words:
            case ["api", "repos", "create"]:
                return self._create(json.loads(body))
            case ["api", "validate-yaml"]:
                return self._check_yaml(json.loads(body)["content"])
            case [*kind, org, name, "info", "lfs", "objects", "batch"]:
                repository = self._repository("".join(kind) or "models", org, name.removesuffix(".git"), write=True)
                return self._batch(repository, "/".join([*kind, org, name]), json.loads(body))
            case [*kind, org, name, "lfs", digest]:  # of a store beside the Hub, where the address is the right
                place = "".join(kind) or "models", f"{org}/{name.removesuffix('.git')}"
                if hashlib.sha256(body).hexdigest() != digest:
                    return self._json({}, 400)
                self.hub.repositories[place].large[digest] = body
                return self._json({})
            case ["api", "datasets" | "models" as kind, org, name, what, revision]:
                repository = self._repository(kind, org, name)
                mine = (
                    revision in repository.pull_requests and self._user() == repository.pull_requests[revision].author
                )
                self._repository(kind, org, name, write=what != "paths-info" and not mine)
                return self._change(repository, f"{kind}/{org}/{name}", what, revision, body)
        raise Refused(404, "There is nothing of this name.")

    def _propose(self, kind: str, name: str, what: str, revision: str, body: bytes) -> Answer:
        """Take a pull request, for which any token will do."""
        user, repository = self._user(), self._repository(kind, *name.split("/"))
        if what != "commit":
            return self._change(repository, f"{kind}/{name}", what, revision, body)
        lines = [json.loads(line) for line in body.splitlines()]
        branch = repository.open_pull_request(
            self._commit(repository, revision).oid, lines[0]["value"]["summary"], user
        )
        made = self._take(repository, branch, lines)
        url, number = f"{self.hub.url}/{name}", repository.pull_requests[branch].number
        urls = {"commitUrl": f"{url}/commit/{made}", "pullRequestUrl": f"{url}/discussions/{number}"}
        return self._json({"commitOid": made} | urls)

    def _repository(self, kind: str, org: str, name: str, *, write: bool = False) -> Repository:
        """The repository, if this token may read or write it."""
        token = self._token()
        found = self.hub.repositories.get((kind, f"{org}/{name}"))
        mine = token is not None and org in self.hub.tokens[token]
        if found is None or (found.private and not mine):
            raise Refused(401 if token is None else 404, "Repository not found", "RepoNotFound")
        if write and not mine:
            raise Refused(401 if token is None else 403, f"You have no right to write to {org}/{name}.")
        return found

    def _token(self) -> str | None:
        """The token that came; None without any."""
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if given and given not in self.hub.tokens:
            raise Refused(401, "Invalid credentials in Authorization header")
        return given or None

    def _user(self) -> str:
        """The user whose token came."""
        token = self._token()
        if token is None:
            raise Refused(401, "Invalid username or password.")
        return USERS[token]

    def _create(self, asked: dict[str, Any]) -> Answer:
        token = self._token()
        kind, org = f"{asked.get('type', 'model')}s", asked["organization"]
        name = f"{org}/{asked['name']}"
        if token is None:
            raise Refused(401, "Invalid username or password.")
        if org not in self.hub.tokens[token]:
            raise Refused(403, f'You don\'t have the rights to create a {kind[:-1]} under the namespace "{org}"')
        url = f"{self.hub.url}/{'datasets/' if kind == 'datasets' else ''}{name}"
        if (kind, name) in self.hub.repositories:
            return self._json({"error": "You already created this repo", "url": url}, 409)
        private = asked.get("private") or asked.get("visibility") == "private"
        self.hub.create(name, kind, private=bool(private))
        return self._json({"url": url, "name": name})

    def _check_yaml(self, content: str) -> Answer:
        front = re.match(r"---\n(.*?)\n---", content, re.DOTALL)
        try:
            values = {} if front is None else yaml.safe_load(front[1])
            errors = [] if isinstance(values, dict) else [{"message": "The YAML is no mapping."}]
        except yaml.YAMLError as error:
            errors = [{"message": str(error)}]
        return self._json({"errors": errors, "warnings": []}, 400 if errors else 200)

    def _batch(self, repository: Repository, place: str, asked: dict[str, Any]) -> Answer:
        objects = []
        for one in asked["objects"]:
            href = f"{self.hub.url}/{place}/lfs/{one['oid']}"
            objects.append(
                one if one["oid"] in repository.large else one | {"actions": {"upload": {"href": href, "header": {}}}}
            )
        return self._json({"transfer": "basic", "objects": objects})

    def _change(self, repository: Repository, place: str, what: str, revision: str, body: bytes) -> Answer:
        match [self.command, what]:
            case ["POST", "paths-info"]:
                tree = _tree(self._commit(repository, revision))
                return self._json([tree[path] for path in parse_qs(body.decode()).get("paths", []) if path in tree])
            case ["POST", "preupload"]:
                there = self._commit(repository, revision).files
                return self._json({"files": [_mode(one, there.get(one["path"])) for one in json.loads(body)["files"]]})
            case ["POST", "commit"]:
                made = self._take(repository, revision, [json.loads(line) for line in body.splitlines()])
                return self._json({"commitOid": made, "commitUrl": f"{self.hub.url}/{place}/commit/{made}"})
            case ["POST", "tag"]:
                asked = json.loads(body)
                if asked["tag"] in repository.tags:
                    raise Refused(409, "Tag reference exists already")
                repository.tag(
                    asked["tag"], self._commit(repository, revision).oid, asked.get("message") or asked["tag"]
                )
                return self._json({"tag": asked["tag"]})
            case ["DELETE", "tag"]:
                del repository.tags[revision]
                return self._json({})
        raise Refused(404, "There is nothing of this name.")

    def _take(self, repository: Repository, revision: str, lines: list[dict[str, Any]]) -> str:
        """Commit what was sent and return the commit's id."""
        head = self._commit(repository, revision)
        header = lines[0]["value"]
        if header.get("parentCommit", head.oid) != head.oid:
            raise Refused(412, "A commit has happened since. Please refresh and try again.")
        files, deleted = dict[str, File](), []
        for line in lines[1:]:
            value = line["value"]
            match line["key"]:
                case "file":
                    files[value["path"]] = File(base64.b64decode(value["content"]))
                case "lfsFile" if value["oid"] in repository.large:
                    files[value["path"]] = File(repository.large[value["oid"]], large=True)
                case "deletedFile" | "deletedFolder" if value["path"].rstrip("/") in _tree(head):
                    deleted.append(value["path"].rstrip("/"))
                case "lfsFile":
                    raise Refused(400, f"No large file was uploaded for {value['path']}")
                case _:
                    raise Refused(404, "A file with this name doesn't exist", "EntryNotFound")
        message = f"{header['summary']}\n\n{header['description']}".strip()
        return repository.commit(files, deleted=deleted, message=message, on=revision)

    def _about(self, repository: Repository, name: str, rest: list[str]) -> Answer:
        match rest:
            case ["refs"]:
                found = {
                    kind: [
                        {"name": ref, "ref": f"refs/{folder}/{ref}", "targetCommit": oid} for ref, oid in own.items()
                    ]
                    for kind, folder, own in (
                        ("branches", "heads", repository.branches),
                        ("tags", "tags", repository.tags),
                    )
                }
                return self._json(found | {"converts": []})
            case ["commits", revision]:
                names = ("id", "title", "message", "date")
                told = repository.messages(self._commit(repository, revision).oid)
                return self._json([dict(zip(names, one, strict=True)) | {"authors": []} for one in told])
            case ["discussions"]:
                return self._discussions(repository, name)
            case ["tree", revision, *folder]:
                return self._json(self._below(_tree(self._commit(repository, revision)), "/".join(folder)))
            case [] | ["revision", _]:
                commit = self._commit(repository, rest[1] if rest else "main")
                about = {"id": name, "sha": commit.oid, "private": repository.private, "tags": []}
                about |= {"downloads": 0, "likes": 0, "siblings": [{"rfilename": path} for path in commit.files]}
                return self._json(about)
        raise Refused(404, "There is nothing of this name.")

    def _discussions(self, repository: Repository, name: str) -> Answer:
        """The open pull requests, of the author that is asked for."""
        asked = parse_qs(urlsplit(self.path).query)
        assert (asked["type"], asked["status"]) == (["pull_request"], ["open"])
        found = [one for one in repository.pull_requests.values() if [one.author] == asked.get("author", [one.author])]
        told = [
            {
                "num": one.number,
                "title": one.title,
                "author": {"name": one.author},
                "status": "open",
                "createdAt": "2026-01-01T00:00:00.000Z",
                "repo": {"name": name, "type": "model"},
                "isPullRequest": True,
            }
            for one in found
        ]
        return self._json({"count": len(told), "start": 0, "discussions": told})

    def _leaderboard(self, dataset: Repository, name: str) -> Answer:
        """The results of models on the first task of a dataset's `eval.yaml`, in main and in open pull requests."""
        about = self._commit(dataset, "main").files.get("eval.yaml")
        if about is None:
            raise Refused(404, "This dataset has no leaderboard.")
        [task, *_] = yaml.safe_load(about.content)["tasks"]
        of_all = parse_qs(urlsplit(self.path).query).get("base_model") == ["false"]
        models = [(own, one) for (kind, own), one in self.hub.repositories.items() if kind == "models"]
        found = []
        for model, repository in models:
            main = self._commit(repository, "main").files
            if not of_all and "README.md" in main and b"\nbase_model:" in main["README.md"].content:
                continue
            for branch in repository.branches:
                pull_request = repository.pull_requests.get(branch)
                for path, file in self._commit(repository, branch).files.items():
                    if path.startswith(".eval_results/") and (pull_request is None or main.get(path) != file):
                        entries = yaml.safe_load(file.content)
                        found += [
                            {
                                "modelId": model,
                                "value": one["value"],
                                "filename": path,
                                "verified": False,
                                "source": one.get("source"),
                                "author": {"type": "org", "name": model.partition("/")[0]},
                                "notes": one.get("notes"),
                                "pullRequest": pull_request and pull_request.number,
                            }
                            for one in entries
                            if (one["dataset"]["id"], one["dataset"]["task_id"]) == (name, task["id"])
                        ]
        found.sort(key=lambda one: str(one["value"]), reverse=True)
        return self._json([{"rank": rank} | one for rank, one in enumerate(found, start=1)])

    def _below(self, tree: dict[str, dict[str, Any]], folder: str) -> list[dict[str, Any]]:
        if folder and tree.get(folder, {}).get("type") != "directory":
            raise Refused(404, "Entry not found", "EntryNotFound")
        deep = parse_qs(urlsplit(self.path).query).get("recursive", ["false"])[0].lower() == "true"
        below = f"{folder}/" if folder else ""
        inside = [path for path in tree if path.startswith(below)]
        return [tree[path] for path in inside if deep or "/" not in path[len(below) :]]

    def _file(self, repository: Repository, revision: str, path: str) -> Answer:
        commit = self._commit(repository, revision)
        file = commit.files.get(path)
        if file is None:
            about = {"X-Error-Code": "EntryNotFound", "X-Error-Message": "Entry not found", "X-Repo-Commit": commit.oid}
            return self._json({"error": "Entry not found"}, 404, about)
        headers = {"ETag": f'"{file.oid}"', "X-Repo-Commit": commit.oid, "Accept-Ranges": "bytes"}
        content = file.content
        if file.large:
            headers |= {"X-Linked-Etag": headers["ETag"], "X-Linked-Size": str(len(content))}
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if found is None or found[0] == "bytes=-":
            return 200, content, headers
        start = int(found[1]) if found[1] else max(0, len(content) - int(found[2]))
        end = min(len(content), int(found[2]) + 1) if found[1] and found[2] else len(content)
        if start >= len(content):
            return 416, b"", headers | {"Content-Range": f"bytes */{len(content)}"}
        return 206, content[start:end], headers | {"Content-Range": f"bytes {start}-{end - 1}/{len(content)}"}

    def _commit(self, repository: Repository, revision: str) -> Commit:
        found = repository.find(self.hub.serves or revision)
        if found is None:
            raise Refused(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return repository.commits[found]

    def _json(self, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
        return status, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})}

    def _send(self, path: str, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.hub.asked.append(f"{self.command} {path} {status}")
        self.answer_with(status, content, headers)


def _tree(commit: Commit) -> dict[str, dict[str, Any]]:
    """What is said of every file and folder of a commit, by path."""
    folders = {str(parent): 0 for path in commit.files for parent in [*PurePosixPath(path).parents][:-1]}
    tree: dict[str, dict[str, Any]] = {
        path: {"type": "directory", "path": path, "oid": "0" * 40, "size": 0} for path in folders
    }
    for path, file in commit.files.items():
        tree[path] = {"type": "file", "path": path, "oid": file.oid, "size": len(file.content)}
        if file.large:
            tree[path]["lfs"] = {"oid": file.oid, "size": len(file.content), "pointerSize": 130}
    return tree


def _mode(file: dict[str, Any], there: File | None) -> dict[str, Any]:
    """How a file is to be sent, and what is there now in its place."""
    binary = b"\0" in base64.b64decode(file["sample"])
    large = file["path"].endswith(LARGE) or file["size"] > LARGEST or binary
    there_now = None if there is None else there.oid
    return {"path": file["path"], "uploadMode": "lfs" if large else "regular", "shouldIgnore": False, "oid": there_now}


@contextmanager
def live_hub() -> Iterator[Hub]:
    """A Hub on a free loopback port."""
    handler = type("ThisHub", (Handler,), {})
    with listening(handler) as url:
        hub = handler.hub = Hub(url)  # type: ignore[attr-defined]
        yield hub


def point_clients(monkeypatch: pytest.MonkeyPatch, hub: Hub, home: Path, token: str | None = WRITER) -> None:
    """Let the Hub's clients in this process ask `hub`, also those that read their settings when they were imported."""
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    # What the Hub's client says of itself when it sends a file.
    warnings.filterwarnings("ignore", "Use 'content=", DeprecationWarning)
    url = {"ENDPOINT": hub.url, "HUGGINGFACE_CO_URL_TEMPLATE": hub.url + "/{repo_id}/resolve/{revision}/{filename}"}
    places = {"HF_HUB_CACHE": str(home / "hub"), "HF_TOKEN_PATH": str(home / "token")}
    for name, value in {**url, **places, "HF_HUB_DISABLE_XET": True, "HF_HUB_OFFLINE": False}.items():
        monkeypatch.setattr(f"huggingface_hub.constants.{name}", value)
    if "datasets" in sys.modules:  # others wait two seconds for it
        own = {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": False, "HF_DATASETS_CACHE": home / "datasets"}
        for name, place in own.items():
            monkeypatch.setattr(f"datasets.config.{name}", place)
    if "transformers.utils.hub" in sys.modules:  # it keeps the first client that it made
        monkeypatch.setattr("transformers.utils.hub._hf_api", None)
    for variable, text in hub.environment(home).items():
        monkeypatch.setenv(variable, text)
    if token is None:
        monkeypatch.delenv("HF_TOKEN")
    else:
        monkeypatch.setenv("HF_TOKEN", token)
