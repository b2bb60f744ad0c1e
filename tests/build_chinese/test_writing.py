"""Responses from several models through servers that are told what to say."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import tomli_w
from chat_server import ChatServer, Reply, serve
from chinese_project import FIVE, Row, prompt, read_rows, write_prompts, write_rows
from pluralbench_calls import read_ledger
from pluralbench_release import LEDGER

Run = Callable[..., tuple[int, str]]
WRITERS = [f"writer-{letter}" for letter in "vwxyz"]
CONFIGS = ["open", "human", "preference"] * 2


def told(body: Mapping[str, Any], _: int) -> Reply:
    """An answer that differs by model and question."""
    question = body["messages"][-1]["content"]
    return Reply(
        f"关于{question}，{'我看' * WRITERS.index(body['model'])}这座山很高。", model=f"{body['model']}-served"
    )


def recipe(folder: Path, base_url: str, writers: list[dict[str, Any]], **more: Any) -> Path:
    """A recipe of `folder`'s prompts, answered by these writers."""
    values = {
        "prompts": {"location": str(folder / "prompts.jsonl"), "taxonomy": str(folder / "taxonomy.toml")},
        "annotators": list(FIVE),
        "writers": [{"provider": "127.0.0.1", "model": WRITERS[0], **writer} for writer in writers],
        "connection": {"base_url": base_url, "max_retries": 0},
    }
    path = folder / "recipe.toml"
    path.write_text(tomli_w.dumps(values | more), encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_prompts(tmp_path, CONFIGS)
    return tmp_path


def written(folder: Path) -> list[Row]:
    return read_rows(folder / "tasks" / "prompts.jsonl")


def test_each_writer_answers_each_prompt_once(run: Run, folder: Path) -> None:
    with serve(told) as server:
        path = recipe(folder, server.base_url, [{"model": name} for name in WRITERS])
        status, said = run("tasks", "--recipe", path, "--out", folder / "tasks")
        assert (status, "30 tasks on 6 prompts" in said) == (0, True), said
        assert Counter(body["model"] for body in server.requests) == dict.fromkeys(WRITERS, 6)
        for body in server.requests:
            assert [message["role"] for message in body["messages"]] == ["user"]
        asked = {body["messages"][0]["content"] for body in server.requests}
        assert asked == {row["input"] for row in written(folder)}
        assert run("tasks", "--recipe", path, "--out", folder / "tasks")[0] == 0
        assert len(server.requests) == 30
    assert all(
        [f"{name}-served" for name in WRITERS] == sorted(r["model"] for r in row["responses"])
        for row in written(folder)
    )
    assert read_rows(folder / "tasks/dropped.jsonl") == []
    assert read_ledger(folder / "tasks" / LEDGER).height == 30
    # Ids and files for annotators say nothing of the model.
    rows = written(folder)
    names = [response["id"] for row in rows for response in row["responses"]]
    assert len(set(names)) == 30
    assert all(len(name) == 12 and set(name) <= set("0123456789abcdef") for name in names)
    for part in ("sheets", "label_studio"):
        for shown in (path for path in (folder / "tasks" / part).rglob("*") if path.is_file()):
            text = shown.read_text(encoding="utf-8")
            assert "writer-" not in text
            assert not any(name in text for name in names)
    # The place in the ring is drawn, so no model always stands beside the same one.
    places = pl.DataFrame(
        [(place, response["model"]) for row in rows for place, response in enumerate(row["responses"])],
        schema=["place", "model"],
        orient="row",
    )
    assert places.unique().height > 12
    assert len({tuple(response["model"] for response in row["responses"]) for row in rows}) > 4
    # Nor is it the order of the ids.
    assert any([r["id"] for r in row["responses"]] != sorted(r["id"] for r in row["responses"]) for row in rows)


def test_the_same_text_of_two_writers_is_kept_once(run: Run, folder: Path) -> None:
    def script(body: dict[str, Any], number: int) -> Reply:
        return told(body | {"model": {"writer-z": "writer-y"}.get(body["model"], body["model"])}, number)

    with serve(script) as server:
        path = recipe(folder, server.base_url, [{"model": name} for name in WRITERS])
        status, said = run("tasks", "--recipe", path, "--out", folder / "tasks")
        assert status == 0, said
    assert [len(row["responses"]) for row in written(folder)] == [4] * 6
    assert all(len({r["content"] for r in row["responses"]}) == 4 for row in written(folder))
    dropped = Counter((row["rule"], row["value"]) for row in read_rows(folder / "tasks/dropped.jsonl"))
    assert dropped == {("the same text as another model's", "writer-z"): 6}


def failing(body: dict[str, Any], number: int) -> Reply:
    """writer-v is refused all but one, writer-w says nothing but thoughts, writer-x is cut off, the others answer."""
    match body["model"]:
        case "writer-v" if "第0问" not in body["messages"][-1]["content"]:
            return Reply("too long", status=413)
        case "writer-w":
            return Reply("<think>嗯</think> \n")
        case "writer-x":
            return Reply("这座山", finish_reason="length")
    return told(body, number)


def test_answers_that_fail_are_counted(run: Run, folder: Path) -> None:
    with serve(failing) as server:
        path = recipe(folder, server.base_url, [{"model": name} for name in WRITERS])
        status, said = run("tasks", "--recipe", path, "--out", folder / "tasks")
        assert status == 0, said
        # What a server rejects it would reject again; the others are asked once more.
        assert Counter(body["model"] for body in server.requests) == dict(zip(WRITERS, [6, 12, 12, 6, 6], strict=True))
    counts = [line.replace("│", " ").split()[-1] for line in said.splitlines() if "not answered" in line]
    assert sum(map(int, counts)) == 17
    assert [len(row["responses"]) for row in written(folder)] == [3, 2, 2, 2, 2, 2]
    dropped = read_rows(folder / "tasks/dropped.jsonl")
    assert Counter((row["response"], row["rule"], row["value"]) for row in dropped) == {
        (None, "not answered", "writer-v: rejected by the server"): 5,
        (None, "not answered", "writer-w: empty answer"): 6,
        (None, "not answered", "writer-x: cut off at the token limit"): 6,
    }
    assert {row["prompt"] for row in dropped} == {row["id"] for row in written(folder)}


def test_where_every_answer_fails_nothing_is_written_and_asking_goes_on(run: Run, folder: Path) -> None:
    with serve(lambda *_: Reply("no", status=413)) as server:
        path = recipe(folder, server.base_url, [{"model": name} for name in WRITERS[:2]])
        status, said = run("tasks", "--recipe", path, "--out", folder / "tasks")
        assert status == 2
        assert "rejects these requests: no. 0 of " in said
        assert not (folder / "tasks").exists()
    with serve(lambda _, number: Reply("" if number == 0 else "no", status=413 if number else 200)) as server:
        path = recipe(folder, server.base_url, [{"model": name} for name in WRITERS[:1]])
        told_of = "(too few responses). The server rejected "
        assert told_of in run("tasks", "--recipe", path, "--out", folder / "tasks", "--fresh")[1]
        sent = len(server.requests)
        assert told_of in run("tasks", "--recipe", path, "--out", folder / "tasks")[1]
        assert len(server.requests) == sent
    with serve(told) as server:
        path = recipe(folder, server.base_url, [{"model": name} for name in WRITERS[:1]])
        run("tasks", "--recipe", path, "--out", folder / "tasks", "--retry-errors")
        assert 0 < len(server.requests) < sent


def test_each_writer_may_have_an_endpoint_of_its_own(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ONE_KEY", "OTHER_KEY"):
        monkeypatch.setenv(name, f"sk-{name}")

    def models(server: ChatServer) -> set[tuple[str, str]]:
        headers = [header.get("authorization", "none") for header in server.headers]
        return {(body["model"], header) for body, header in zip(server.requests, headers, strict=True)}

    with serve(told) as shared, serve(told) as own:
        writers: list[dict[str, Any]] = [
            {"model": "writer-v"},
            {"model": "writer-w", "base_url": own.base_url, "api_key_env": "OTHER_KEY", "seeded": True},
            {"model": "writer-x", "base_url": own.base_url, "temperature": 0.25, "max_tokens": 99},
        ]
        connection = {"base_url": shared.base_url, "api_key_env": "ONE_KEY", "max_retries": 0}
        path = recipe(folder, shared.base_url, writers, connection=connection)
        status, said = run("tasks", "--recipe", path, "--out", folder / "tasks")
        assert status == 0, said
        assert models(shared) == {("writer-v", "Bearer sk-ONE_KEY")}
        # The key of the connection is for its endpoint alone.
        assert models(own) == {("writer-w", "Bearer sk-OTHER_KEY"), ("writer-x", "none")}
        sampled = {
            (body["model"], body["temperature"], body["max_tokens"], "seed" in body)
            for body in [*shared.requests, *own.requests]
        }
    assert sampled == {("writer-v", 1.0, 512, False), ("writer-w", 1.0, 512, True), ("writer-x", 0.25, 99, False)}


def test_writers_by_the_command_line_and_a_replay(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONE_KEY", "sk-one")
    words: list[object] = ["tasks", "--prompts", folder / "prompts.jsonl", "--taxonomy", folder / "taxonomy.toml"]
    words += [word for name in FIVE for word in ("--annotator", name)]
    words += [word for name in WRITERS for word in ("--writer", name)]
    with serve(told) as server:
        words += ["--base-url", server.base_url, "--api-key-env", "ONE_KEY"]
        status, said = run(*words, "--out", folder / "tasks")
        assert status == 0, said
        status, said = run(*words, "--out", folder / "again", "--replay", folder / "tasks")
        assert status == 0, said
        assert len(server.requests) == 30
    for name in ("prompts.jsonl", "tasks.jsonl", "sheets/an.csv"):
        assert (folder / "again" / name).read_bytes() == (folder / "tasks" / name).read_bytes()
    write_rows(folder / "prompts.jsonl", [prompt(number, "open") for number in range(7)])
    status, said = run(*words, "--out", folder / "more", "--replay", folder / "tasks")
    assert status == 2
    assert said.startswith("Error: The ledger has no answer for answer to n6, attempt 1")
    assert not (folder / "more").exists()


def test_the_order_of_the_writers_changes_nothing(run: Run, folder: Path) -> None:
    with serve(told) as server:
        found = []
        for number, models in enumerate([WRITERS, WRITERS[::-1]]):
            path = recipe(folder, server.base_url, [{"model": name} for name in models])
            assert run("tasks", "--recipe", path, "--out", folder / f"tasks{number}")[0] == 0
            found.append([(folder / f"tasks{number}" / name).read_bytes() for name in ("prompts.jsonl", "tasks.jsonl")])
    assert found[0] == found[1]
