"""A loopback server with OpenAI's Files and Batch API, which does what a test tells it to, and counts what is paid."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from typing import Any

from batch_results import result
from chat_server import Reply, Script, completion
from listening import QuietHandler, listening

STATUSES = ("validating", "in_progress", "in_progress", "finalizing")


@dataclass
class Plan:
    """What becomes of a batch.

    end: its last status. finished: how many lines are worked through; all where it is None. errors: what it says where
    it fails. statuses: what is answered before the last one, one after the other.
    """

    end: str = "completed"
    finished: int | None = None
    errors: Sequence[dict[str, Any]] = ()
    statuses: Sequence[str] = STATUSES


@dataclass
class Fault:
    """status: what is answered instead of doing it; 0 hangs up. done: whether it is done all the same, unsaid.

    cut: only the first half of what is answered goes out.
    """

    status: int = 0
    done: bool = False
    cut: bool = False
    text: str = "no"
    headers: dict[str, str] = field(default_factory=dict)


def at(step: str, fault: Fault, times: int | None = None) -> Callable[[str, int], Fault | None]:
    """This fault at a step, the first so many times or always."""
    return lambda asked, before: fault if asked == step and (times is None or before < times) else None


def says_back(body: dict[str, Any], _: int) -> Reply:
    """A reply that says back what was asked."""
    return Reply(f"re: {body['messages'][-1]['content']}")


@dataclass
class BatchServer:
    """plan, script: see `serve_batches`. steps: what was asked, such as "POST /batches".

    worked: how often each call was worked through, and is paid. bodies: of the requests, as they came.
    keys: what authorised each step.
    """

    plan: Callable[[int], Plan]
    script: Script
    base_url: str = ""
    steps: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    worked: Counter[str] = field(default_factory=Counter)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)

    def inputs(self) -> list[list[dict[str, Any]]]:
        """The lines of each batch."""
        files = [self.files[batch["input_file_id"]] for batch in self.batches.values()]
        return [[json.loads(line) for line in file.splitlines()] for file in files]

    def replied(self, body: dict[str, Any]) -> Reply:
        """What comes back for a request."""
        self.bodies.append(body)
        return self.script(body, len(self.bodies) - 1)

    def create(self, asked: dict[str, Any]) -> dict[str, Any]:
        number = len(self.batches)
        name = f"batch_{number}"
        mine = self.plan(number)
        lines = [json.loads(line) for line in self.files[asked["input_file_id"]].splitlines()]
        output: list[dict[str, Any]] = []
        errors: list[dict[str, Any]] = []
        count = 0 if mine.end == "failed" else mine.finished
        for line in lines[:count]:
            reply = self.replied(line["body"])
            if reply.status == 200:
                self.worked[line["custom_id"]] += 1
            (output if reply.status == 200 else errors).append(result(line["custom_id"], reply))
        if mine.end == "expired":
            errors += [result(line["custom_id"], Reply("The window ended.", 0)) for line in lines[count:]]
        batch = {
            **asked,
            "id": name,
            "object": "batch",
            "created_at": number,
            "status": mine.statuses[0] if mine.statuses else mine.end,
            "request_counts": {"total": len(lines), "completed": 0, "failed": 0},
        }
        end = {
            "status": mine.end,
            "request_counts": {"total": len(lines), "completed": len(output), "failed": len(errors)},
            "errors": {"object": "list", "data": list(mine.errors)} if mine.errors else None,
        }
        for name_of, rows in (("output_file_id", output), ("error_file_id", errors)):
            if rows:
                self.files[f"{name}-{name_of}"] = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
                end[name_of] = f"{name}-{name_of}"
        self.batches[name] = batch | {"left": list(mine.statuses), "end": end}
        return batch

    @staticmethod
    def shown(batch: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in batch.items() if name not in {"left", "end"}}

    def look(self, name: str) -> dict[str, Any]:
        batch = self.batches[name]
        if batch["left"]:
            batch["status"] = batch["left"].pop(0)
        else:
            batch.update(batch["end"])
        return self.shown(batch)

    def answer(self, step: str, words: list[str], content: bytes, kind: str) -> tuple[int, bytes]:
        match step.split(maxsplit=1)[0], words:
            case "POST", ["files"]:
                name = f"file-{len(self.files)}"
                self.files[name] = _uploaded(content, kind)
                said: Any = {
                    "id": name,
                    "object": "file",
                    "bytes": 1,
                    "created_at": 1,
                    "filename": "f",
                    "purpose": "batch",
                }
            case "POST", ["batches"]:
                said = self.create(json.loads(content))
            case "POST", ["chat", "completions"]:
                reply = self.replied(json.loads(content))
                said = completion(reply) if reply.status == 200 else {"error": {"message": reply.text, **reply.error}}
                return reply.status, json.dumps(said).encode()
            case "GET", ["batches"]:
                every = [self.shown(batch) for batch in reversed(self.batches.values())]
                said = {"object": "list", "data": every, "has_more": False}
            case "GET", ["batches", name] if name in self.batches:
                said = self.look(name)
            case "GET", ["files", name, "content"] if name in self.files:
                return 200, self.files[name]
            case _:
                return 404, json.dumps({"error": {"message": f"no {step}"}}).encode()
        return 200, json.dumps(said).encode()


@contextmanager
def serve_batches(
    plan: Callable[[int], Plan] = lambda _: Plan(),
    fault: Callable[[str, int], Fault | None] = lambda *_: None,
    script: Script = says_back,
) -> Iterator[BatchServer]:
    """Serve on a free loopback port.

    plan: from a batch's number (from 0). fault: from a step and how often it was asked before. script: from a request's
    body and its number to what comes back, in a batch or at once.
    """
    server, lock = BatchServer(plan, script), threading.Lock()

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            self.do("POST", self.body())

        def do_GET(self) -> None:
            self.do("GET", b"")

        def do(self, method: str, content: bytes) -> None:
            words = self.path.partition("?")[0].removeprefix("/v1/").split("/")
            step = f"{method} /{words[0]}" + ("/ID" if len(words) > 1 else "")
            with lock:
                before = server.steps.count(step)
                server.steps.append(step)
                server.keys.append(self.headers.get("Authorization"))
                wrong = fault(step, before)
                kind = self.headers.get("Content-Type", "")
                status, said = server.answer(step, words, content, kind) if wrong is None or wrong.done else (0, b"")
            if wrong is not None and not wrong.cut:
                text = wrong.text if "<" in wrong.text else json.dumps({"error": {"message": wrong.text}})
                status, said = wrong.status, text.encode()
            if status == 0:
                self.hang_up()
                return
            kinds = {"GET /files/ID": "application/octet-stream"}
            kind = "text/html" if b"<html" in said[:9] else kinds.get(step, "application/json")
            headers = {"Content-Type": kind, "Content-Length": str(len(said))} | (wrong.headers if wrong else {})
            self.close_connection = wrong is not None and wrong.cut
            self.answer_with(status, said[: len(said) // 2] if self.close_connection else said, headers)

    with listening(Handler) as url:
        server.base_url = f"{url}/v1"
        yield server


def _uploaded(content: bytes, kind: str) -> bytes:
    """The file in a form that was sent in parts."""
    parts = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + content).walk()
    files = [part.get_payload(decode=True) for part in parts if part.get_filename()]
    assert len(files) == 1
    assert isinstance(files[0], bytes)
    return files[0]
