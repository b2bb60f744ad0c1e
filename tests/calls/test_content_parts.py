"""Replies whose content comes in parts, some of them a model's thinking."""

import json
from pathlib import Path
from typing import Any

import pytest
from asking import question
from batch_results import result
from chat_server import Reply, serve
from pluralbench_calls import FileBackend, Ledger, OpenAIChat, ask

TEXT = {"type": "text", "text": "[[A]]"}
MISTRAL = {"type": "thinking", "thinking": [{"type": "text", "text": "So [[B]]?"}]}
DATABRICKS = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "So [[B]]?"}]}


@pytest.mark.parametrize(
    ("content", "text", "outcome"),
    [
        ([MISTRAL, TEXT], "[[A]]", "answer"),
        ([DATABRICKS, TEXT], "[[A]]", "answer"),
        (
            [{"type": "reasoning", "text": "So [[B]]?"}, {"text": "[["}, {"type": "text", "text": "A]]"}],
            "[[A]]",
            "answer",
        ),
        ([MISTRAL], "", "empty"),
        ([], "", "empty"),
    ],
)
@pytest.mark.parametrize("way", ["sent", "imported"])
def test_the_texts_are_joined_and_thinking_is_left_out(
    tmp_path: Path, content: list[dict[str, Any]], text: str, outcome: str, way: str
) -> None:
    reply, request = Reply(message={"content": content}), question()
    with serve(lambda *_: reply) as server, Ledger(tmp_path / "ledger") as ledger:
        chat = OpenAIChat(server.base_url)
        (tmp_path / "results.jsonl").write_text(json.dumps(result(request.key, reply)))
        files = FileBackend(chat, results=[tmp_path / "results.jsonl"])
        [answer] = ask([request], ledger, chat if way == "sent" else files)
        assert len(server.requests) == (way == "sent")
    assert (answer.text, answer.outcome) == (text, outcome)
