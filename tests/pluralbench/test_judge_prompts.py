"""Runs of `judge` with a prompt from a file: what is sent, how replies are read, and what the run records."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import verbs
from chat_server import Reply, Script, serve
from pluralbench.results import Run
from pluralbench_rewards.prompts import load_prompt
from verbs import judging
from written_tables import write

Rows = list[dict[str, Any]]


def judged(script: Script, data: Path, out: Path, **options: Any) -> tuple[Run, list[dict[str, Any]]]:
    """A run on pairs and the requests that it made."""
    with serve(script) as server:
        run = verbs.judge("judge-1", benchmark="pairs", data=str(data), base_url=server.base_url, out=out, **options)
        return run, server.requests


@pytest.fixture
def data(pairs: Callable[..., Rows], tmp_path: Path) -> Path:
    rows = pairs(6)
    for row in rows:
        row["chosen"] += " right"
    return write(tmp_path / "p.jsonl", rows)


def knows(body: dict[str, Any], _: int) -> Reply:
    """A judge that knows what is right and says so after its reasons."""
    asked = body["messages"][-1]["content"]
    first = "right" in asked.split("Answer A:")[1].split("Answer B:")[0]
    return Reply(f"<think>[[B]] or [[A]]?</think>Answer A or B.\n[[{'A' if first else 'B'}]]")


def test_a_shipped_prompt_is_sent_read_and_recorded(data: Path, tmp_path: Path) -> None:
    run, requests = judged(knows, data, tmp_path / "run", prompt="letter")
    assert (run.headline.value, judging(run).calls, len(requests)) == (1.0, 12, 12)
    system, user = requests[0]["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert "[[A]]" in user["content"]
    config = json.loads((tmp_path / "run/run.json").read_text(encoding="utf-8"))["config"]
    assert config["judging"]["prompt"]["messages"][0]["text"] == system["content"]
    assert config["judging"]["prompt"]["name"] == "letter"
    assert config["prompts_digest"] == load_prompt("letter").digest
