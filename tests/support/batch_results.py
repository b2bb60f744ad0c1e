"""Whatever works through files of calls, in imitation: a line of results for a line of calls."""

import json
from pathlib import Path
from typing import Any, Literal

from chat_server import Reply, Script, completion

Kind = Literal["openai", "vllm", "aibrix"]


def result(key: str, reply: Reply, kind: Kind = "openai") -> dict[str, Any]:
    """A line of results, as OpenAI, `vllm run_batch` and AIBrix write it.

    A reply of status 0 is a call that was never sent, as when the batch expires first.
    """
    failed = {"message": reply.text, "type": "invalid_request_error", **reply.error}
    response: dict[str, Any] | None = {"status_code": reply.status, "request_id": "r1"}
    error: dict[str, Any] | None = None
    if reply.status == 200:
        response = {**(response or {}), "body": completion(reply)}
    elif reply.status == 0 or kind == "aibrix":
        code = "batch_expired" if reply.status == 0 else "inference_failed"
        response, error = None, {"code": code, "message": reply.text}
    elif kind == "vllm":
        response, error = {**(response or {}), "body": None}, {"error": failed | {"code": reply.status}}
    else:
        response = {**(response or {}), "body": {"error": failed}}
    return {"id": f"batch_req_{key[:8]}", "custom_id": key, "response": response, "error": error}


def work_through(calls: Path, results: Path, script: Script, kind: Kind = "openai") -> Path:
    """Answer a file of calls by a script, in its order, into a file of results."""
    lines = [json.loads(line) for line in calls.read_bytes().splitlines()]
    rows = [result(line["custom_id"], script(line["body"], number), kind) for number, line in enumerate(lines)]
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return results
