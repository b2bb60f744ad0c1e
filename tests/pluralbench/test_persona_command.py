"""`pluralbench judge-personas` and `judge-metrics`, as they are called."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from chat_server import Reply, serve
from persona_tables import knows, release, rows
from pluralbench import load_run
from pluralbench_calls.backends import local

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return release(tmp_path / "data", prism=rows("prism", 6, ties=2), opinion_qa=rows("opinion_qa", 4))


def test_a_run_says_what_it_found_and_judge_metrics_reads_it(run: Command, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serve(lambda body, _: Reply(f"[[{knows(body)}]] [[90]]")) as server:
        words = ["judge-personas", "j", "--data", data, "--base-url", server.base_url]
        status, said, error = run(*words, "--limit", "3", "--price", "0.1/0.1", "--max-cost", "1", "--out", out)
        assert (status, error) == (0, "")
        assert {(body["temperature"], body["top_p"]) for body in server.requests} == {(0.7, 0.95)}
        assert len(server.requests) == 6
        assert run(*words, "--limit", "3", "--out", out) == (0, said, "")
        assert len(server.requests) == 6
    assert f"{out}: items.parquet, metrics.json, run.json, verdicts.csv" in said
    assert "Persona judge (data), setting certainty, variables all, 6 of 8 items" in said
    assert re.search(r"(?m)^j +100\.0 \[[\d.]+, 100\.0\].* +100\.0 +100\.0$", said), "the run and its tasks"
    cost = load_run(out).result.cost
    assert cost is not None
    assert cost.dollars == pytest.approx(6 * 15 * 0.1 / 1e6)
    assert f"Cost: 6 calls, 90 tokens, ${cost.dollars:.2g} at 0.1/0.1 per million, " in " ".join(said.split())
    status, said, _ = run("judge-metrics", out / "verdicts.csv", "--format", "json")
    assert status == 0
    assert [(row["task"], row["n"], row["correct"], row["high"]) for row in json.loads(said)] == [
        ("opinion_qa", 3, 3, {"correct": 3, "total": 3}),
        ("prism", 3, 3, {"correct": 3, "total": 3}),
    ]
    for words in (["report", out], ["report", out, "--format", "markdown"], ["compare", out, out]):
        assert run(*words)[0] == 0


def test_local_is_the_embedded_model(run: Command, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another server replies in its place; that it keeps to a schema is for the tests of the model itself."""
    with serve(lambda *_: Reply('{"verdict": "A", "certainty": 90}')) as server:
        embedded = SimpleNamespace(listening_address=server.base_url.removesuffix("/v1"))
        monkeypatch.setattr(local, "_start", lambda: embedded)
        words = ["judge-personas", "local", "--data", data, "--limit", "1", "--reply-format", "structured"]
        status, _, error = run(*words, "--out", tmp_path / "run")
    assert status == 0, error
    assert {body["model"] for body in server.requests} == {local.LOCAL_MODEL}
    assert all(body["response_format"]["type"] == "json_schema" for body in server.requests)
    _, measured, _ = run("judge-metrics", tmp_path / "run" / "verdicts.csv", "--format", "json")
    assert [(row["n"], row["invalid"]) for row in json.loads(measured)] == [(1, 0)] * 2
