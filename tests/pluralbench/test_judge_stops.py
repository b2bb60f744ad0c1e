"""A judge's run that stops halfway, goes on, is asked for again, or is asked for under other settings."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pluralbench_rewards.judge_prompts
import pytest
import verbs
from chat_server import ChatServer, Reply, Script, serve
from pluralbench.errors import EvaluationError
from pluralbench.results import Run
from pluralbench_calls import CallsError
from pluralbench_runs import OutputError
from verbs import judging, value
from written_tables import write

Rows = list[dict[str, Any]]


@pytest.fixture
def data(pairs: Callable[..., Rows], tmp_path: Path) -> Path:
    return write(tmp_path / "p.jsonl", pairs(10))


def judge(server: ChatServer, data: Path, out: Path, **options: Any) -> Run:
    defaults: dict[str, Any] = {"benchmark": "pairs", "concurrency": 1}
    return verbs.judge("judge-1", data=str(data), base_url=server.base_url, out=out, **(defaults | options))


def says(text: str, *, until: int = 10**9) -> Script:
    """Says so until it has answered so many requests, and then refuses the key."""
    return lambda _, number: Reply(text) if number < until else Reply("no such key", status=401)


@pytest.mark.heavy
def test_fresh_asks_again(data: Path, tmp_path: Path) -> None:
    with serve(says("[[A]]")) as server:
        judge(server, data, tmp_path / "run")
        run = judge(server, data, tmp_path / "run", fresh=True, orders="one")
        assert len(server.requests) == 30
    assert judging(run).calls == 10
    with serve(says("[[A]]", until=3)) as dying, pytest.raises(CallsError):
        judge(dying, data, tmp_path / "run", fresh=True)
    with serve(says("[[B]]")) as server:
        run = judge(server, data, tmp_path / "run", fresh=True)
        assert len(server.requests) == 20, "what an interrupted run had recorded is forgotten too"
    assert value(run, "share_of_first") == 0.0


def test_another_prompt_is_refused_by_name(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(says("[[A]]")) as server:
        judge(server, data, tmp_path / "run")
        monkeypatch.setitem(pluralbench_rewards.judge_prompts.PROMPTS, "language", "In other words.")
        with pytest.raises(OutputError, match=r"other settings \(prompts_digest "):
            judge(server, data, tmp_path / "run")


def test_what_only_says_how_fast_or_how_dear_may_change(data: Path, tmp_path: Path) -> None:
    with serve(says("[[A]]", until=5)) as dying, pytest.raises(CallsError):
        judge(dying, data, tmp_path / "run")
    with serve(says("[[A]]")) as server:
        judge(server, data, tmp_path / "run", concurrency=3, price="1/2", max_cost=5.0)
        assert len(server.requests) == 15


def test_a_ceiling_stops_and_a_higher_one_goes_on(data: Path, tmp_path: Path) -> None:
    with serve(says("[[A]]")) as server:
        with pytest.raises(CallsError, match=r"spending ceiling of \$0\.007 .* of 20 verdicts are recorded"):
            judge(server, data, tmp_path / "run", price="1/10", max_cost=0.007)
        assert 0 < len(server.requests) < 20
        judge(server, data, tmp_path / "run", price="1/10", max_cost=10.0)
        assert len(server.requests) == 20


def test_a_table_without_a_decision_is_nothing_to_judge(tmp_path: Path) -> None:
    row = {"id": "a", "prompt": "?", "responses": ["x", "y"], "rank": [1, 1]}
    with serve(says("[[A]]")) as server, pytest.raises(EvaluationError, match="nothing to judge"):
        judge(server, write(tmp_path / "r.jsonl", [row]), tmp_path / "run", benchmark="rankings")
    assert not (tmp_path / "run.work").exists()
