"""What the recorded calls are good for, and what happens when the disk is full."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from build_personalized.cli import main
from chat_server import Reply, serve
from commands import in_process
from dumps import dump, post
from pluralbench_release import ReleaseError, diff, rebuild

Run = Callable[..., tuple[int, str]]

SAMPLE = ("--llm", "scripted", "--limit", "2")


def answer(body: dict[str, Any], number: int) -> Reply:
    return Reply(f"answer {number}")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `build-personalized` with these words in this process."""
    return in_process("build-personalized", main, monkeypatch, capsys)


def test_reuse_asks_for_the_rest(run: Run, tmp_path: Path) -> None:
    small = tmp_path / "small"
    with serve(answer) as server:
        url = ("--base-url", server.base_url)
        status, said = run(*SAMPLE, *url, "--out", small)
        assert (status, len(server.requests)) == (0, 12), said
        larger = ("--llm", "scripted", "--limit", "3", *url)
        status, said = run(*larger, "--out", tmp_path / "more", "--reuse", small)
        assert (status, len(server.requests)) == (0, 18), said
    for table in diff(small, tmp_path / "more"):
        assert (len(table.added), table.removed, table.changed) == (1, [], {})


@pytest.mark.heavy
def test_what_a_server_rejects_is_dropped_and_asked_again_only_on_request(run: Run, tmp_path: Path) -> None:
    rejecting = [True]

    def sometimes(body: dict[str, Any], number: int) -> Reply:
        if rejecting[0] and "fingerstyle" in body["messages"][1]["content"]:
            return Reply("the request exceeds the context", status=400)
        return Reply(f"answer {number}")

    with serve(sometimes) as server:
        words = (*SAMPLE, "--base-url", server.base_url, "--out", tmp_path / "out")
        _, said = run(*words)
        assert "chosen: rejected by the server" in said
        rejecting[0] = False
        sent = len(server.requests)
        assert "0 of them new" in run(*words)[1]
        assert len(server.requests) == sent
        _, said = run(*words, "--retry-errors")
        assert "rejected by the server" not in said, said
        assert len(server.requests) == sent + 2


def test_a_spending_ceiling_stops_the_build_and_raising_it_goes_on(run: Run, tmp_path: Path) -> None:
    with serve(lambda _, number: Reply(f"answer {number}", tokens=(1000, 100))) as server:
        words = (*SAMPLE, "--base-url", server.base_url, "--price", "10/10", "--out", tmp_path / "out")
        status, said = run(*words, "--max-cost", "0.06")
        assert (status, "The spending ceiling of $0.06 is reached" in said) == (2, True), said
        assert said.endswith(" are recorded; rerun the same command to resume.\n")
        assert 0 < len(server.requests) * 0.011 <= 0.06
        assert run(*words, "--max-cost", "1")[0] == 0
        assert len(server.requests) == 12


def test_a_moved_source_rebuilds(run: Run, tmp_path: Path) -> None:
    body = "<p>I want loose tea number {}. It must be cheap.</p>"
    posts = [post(number, "7", Title=f"Tea {number}?", Body=body.format(number)) for number in range(1, 6)]
    place = dump(tmp_path, posts, "tea.stackexchange.Posts.xml")

    def script(body: dict[str, Any], number: int) -> Reply:
        wants_json = "response_format" in body
        aspects = '{"aspects": [{"sentence": 2, "aspect": "A cheap tea", "reason": "They say so."}]}'
        return Reply(aspects if wants_json else f"answer {number}")

    with serve(script) as server:
        words = ("--source", f"stack-exchange:{place}", "--llm", "scripted", "--base-url", server.base_url)
        status, said = run(*words, "--out", tmp_path / "out")
        assert status == 0, said
    (tmp_path / "elsewhere").mkdir()
    moved = place.rename(tmp_path / "elsewhere" / place.name)
    with pytest.raises(ReleaseError, match=rf"The dump {re.escape(place.name)} does not exist\. .* with `sources="):
        rebuild(tmp_path / "out", tmp_path / "again")
    assert not any(rebuild(tmp_path / "out", tmp_path / "again", sources=[f"stack-exchange:{moved}"]))
