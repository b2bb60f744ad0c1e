"""The command with a model behind an endpoint: what is asked, what fails, what is kept, and what is never shown."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import tomli_w
from chat_server import Reply, serve
from commands import refused
from dumps import dump, post

SECRET = "sk-very-secret"  # noqa: S105 - it opens nothing
NO_KEY = {"api_key_env": "PLURALBENCH_NO_KEY"}
Run = Callable[..., tuple[int, str]]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in the environment, for recipes that name the variable."""
    monkeypatch.setenv("PLURALBENCH_TEST_KEY", SECRET)


def recipe(folder: Path, base_url: str, **tables: Any) -> Path:
    """The sample's first person of each config, for a model at `base_url`, without retries."""
    values: dict[str, Any] = {"connection": {"base_url": base_url, "max_retries": 0}, "attempts": 2}
    values |= {"source": {"locations": ["sample"], "limit": 1}, "llm": {"provider": "loopback", "model": "m"}}
    path = folder / "recipe.toml"
    path.write_text(tomli_w.dumps(values | tables), encoding="utf-8")
    return path


def holds(folder: Path, text: str) -> list[str]:
    """The files under `folder` that hold `text`."""
    return [path.name for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def test_no_request_shows_narrative_evidence_or_reason(run: Run, tmp_path: Path) -> None:
    row = {
        "id": "HIDDEN-id",
        "question": "Welches Bier? 哪种？",
        "category": "c",
        "narrative": "HIDDEN narrative, HIDDEN evidence",
        "rubric_aspects": [{"aspect": "Price first", "evidence": "HIDDEN evidence", "reason": "HIDDEN reason"}],
        "profile": [{"id": "HIDDEN-post", "category": "c", "text": f"post {number}"} for number in range(12)],
    }
    (tmp_path / "Beer.jsonl").write_text(json.dumps(row), encoding="utf-8")
    with serve(lambda body, number: Reply(f"{number} {len(body)}")) as server:
        words = ["--source", f"lamp-qa:{tmp_path}", "--llm", "m", "--base-url", server.base_url]
        status, output = run(*words, "--profile-size", "5", "--out", tmp_path / "out")
    assert status == 0, output
    assert "3 recorded calls, 3 of them new" in output
    assert len(server.requests) == 2
    for request in server.requests:
        assert "HIDDEN" not in json.dumps(request)
        assert "Price first" in request["messages"][1]["content"]
        assert "[Post 5, c]" in request["messages"][1]["content"]
        assert "[Post 6, c]" not in request["messages"][1]["content"]
    pairs = pl.read_parquet(tmp_path / "out/data/Beer/test.parquet")
    assert pairs["profile"].list.len().to_list() == [12], "all posts stay in the data"
    assert set(pairs["generator"]) == {"model-2026-01-01"}


def test_a_model_that_answers_nothing_leaves_no_pair(run: Run, tmp_path: Path) -> None:
    with serve(lambda *_: Reply("")) as server:
        path = recipe(tmp_path, server.base_url)
        result = run("--recipe", path, "--out", tmp_path / "out")
        refused(
            result,
            "No question became a pair: 3 dropped (chosen: empty answer); the calls are recorded",
            "`--fresh` starts over",
        )
        assert len(server.requests) == 6
        refused(run("--recipe", path, "--out", tmp_path / "out"), "3 dropped (chosen: empty answer)")
        assert len(server.requests) == 6, "what is recorded is not asked again"
    assert not (tmp_path / "out").exists()


def test_another_source_than_the_recipes_has_its_quotations_checked(run: Run, tmp_path: Path) -> None:
    source = f"stack-exchange:{dump(tmp_path, [post(number) for number in range(1, 6)])}"

    def script(body: dict[str, Any], number: int) -> Reply:
        aspects = {"aspects": [{"sentence": 1, "aspect": "A small purse", "reason": "They say so."}]}
        return Reply(json.dumps(aspects) if "response_format" in body else f"An answer of its own, {number}.")

    with serve(script) as server:
        words = ["--recipe", "paper", "--llm", "m", "--base-url", server.base_url, "--retriever", "bm25"]
        status, output = run(*words, "--source", source, "--out", tmp_path / "out")
    assert status == 0, output
    assert "quoted from the narrative, which is checked" in (tmp_path / "out/README.md").read_text(encoding="utf-8")


def test_a_larger_limit_asks_for_the_new_items_alone_and_a_build_without_calls_binds_nothing(
    run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    missing = recipe(tmp_path, "http://127.0.0.1:9/v1", connection={"base_url": "http://127.0.0.1:9/v1"} | NO_KEY)
    refused(run("--recipe", missing, "--out", out), "needs a key; set the environment variable PLURALBENCH_NO_KEY")
    with serve(lambda _, number: Reply(f"An answer of its own, {number}.")) as server:
        path = recipe(tmp_path, server.base_url, seed=9)
        assert run("--recipe", path, "--out", out)[0] == 0
        first = [*server.requests]
        status, output = run("--recipe", path, "--limit", "2", "--out", out)
        assert (status, len(server.requests)) == (0, 2 * len(first)), output
        again = [body for body in server.requests[len(first) :] if body in first]
        assert again == []
        refused(run("--recipe", path, "--out", out), "(limit 2, now 1)", f"`--reuse {out}`")
        before = len(server.requests)
        assert run("--recipe", path, "--out", tmp_path / "other", "--reuse", out)[0] == 0
        assert len(server.requests) == before
    assert pl.read_parquet(out / "data/*/test.parquet").height == 6


@pytest.mark.heavy
def test_a_broken_limit_of_the_audit_exits_with_1_and_keeps_the_calls(run: Run, tmp_path: Path) -> None:
    with serve(lambda _, number: Reply("word " * (9 if number < 3 else 2) + str(number))) as server:
        words = ["--recipe", recipe(tmp_path, server.base_url, audit={"max_mean_length_gap": 5}), "--out"]
        result = run(*words, tmp_path / "out")
        refused(result, "The audit fails: max_mean_length_gap = 5 (found 7)", "recorded calls are kept", status=1)
        assert not (tmp_path / "out").exists()
        recipe(tmp_path, server.base_url, audit={"max_mean_length_gap": 7})
        status, output = run(*words, tmp_path / "out")
        assert (status, len(server.requests)) == (0, 6), output


def test_hand_written_answers_are_for_the_sample_alone(run: Run, tmp_path: Path) -> None:
    row = '<row Id="{0}" PostTypeId="1" CreationDate="2016" OwnerUserId="1" Title="t{0}" Body="b{0}" />'
    rows = "".join(row.format(number) for number in range(4))
    (tmp_path / "beer.stackexchange.Posts.xml").write_text(f"<posts>{rows}</posts>", encoding="utf-8")
    source = f"stack-exchange:{tmp_path / 'beer.stackexchange.Posts.xml'}"
    result = run("--source", source, "--out", tmp_path / "out")
    refused(result, "hand-written answers exist only for the questions of the sample", "`--llm`")


@pytest.mark.parametrize("provider", ["loopback", "hand-written"])
def test_a_secret_in_a_recipes_base_url_is_never_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    llm = {"provider": provider, "model": "hand-written"}
    path = recipe(tmp_path, f"http://user:{SECRET}@127.0.0.1:9/v1", llm=llm)
    message = "`connection.base_url` contains the value of the environment variable PLURALBENCH_TEST_KEY; remove it"
    refused(run("--recipe", path, "--out", tmp_path / "out"), message)
    monkeypatch.delenv("PLURALBENCH_TEST_KEY")
    refused(run("--recipe", path, "--out", tmp_path / "out"), "has a user, a password")
    assert holds(tmp_path, SECRET) == ["recipe.toml"], "the user's own file alone"


def test_a_secret_in_a_base_url_is_refused_and_not_shown(run: Run, tmp_path: Path) -> None:
    result = run("--llm", "m", "--base-url", f"http://user:{SECRET}@127.0.0.1:9/v1", "--out", tmp_path / "out")
    refused(result, "The base URL of 127.0.0.1 has a user, a password or a query")
    assert SECRET not in result[1]
    assert list(tmp_path.iterdir()) == []
