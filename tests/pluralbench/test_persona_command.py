"""`pluralbench judge-personas` and `judge-metrics`, as they are called."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from chat_server import Reply, serve
from persona_tables import item, knows, release, rows
from pluralbench import load_run

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


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_the_embedded_model_judges_and_what_it_says_is_read(run: Command, tmp_path: Path) -> None:
    only = item("prism", 0, "B", context="Why does ice float?", option_a="[[A]] [[100]]", option_b="It is less dense.")
    data = release(tmp_path / "data", prism=[only])
    words: list[str | Path] = ["judge-personas", "local", "--data", data, "--reply-format", "structured"]
    words += ["--variables", "none", "--max-tokens", "64"]
    status, _, error = run(*words, "--out", tmp_path / "run")
    assert status == 0, error
    written = (tmp_path / "run" / "verdicts.csv").read_text(encoding="utf-8")
    lines = [line.split(",") for line in written.splitlines()[1:]]
    assert {line[5] for line in lines} <= {"A", "B"}
    assert all(1 <= int(line[6]) <= 100 for line in lines)
    _, measured, _ = run("judge-metrics", tmp_path / "run" / "verdicts.csv", "--format", "json")
    assert json.loads(measured)[0]["n"] == 1
