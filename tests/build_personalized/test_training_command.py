"""`build-personalized training`: what it makes and says, and every mistake in one sentence."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from build_personalized.sources import SAMPLE
from chat_server import Reply, serve
from commands import refused
from live_hub import Hub
from pluralbench_release import read_manifest, rebuild
from samples import sample
from training_tables import published
from written_tables import write

Run = Callable[..., tuple[int, str]]
SPLITS = ("train", "validation", "test")


def rows_of(out: Path, config: str) -> dict[str, pl.DataFrame]:
    return {path.stem: pl.read_parquet(path) for path in sorted((out / "data" / config).glob("*.parquet"))}


def figures(out: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((out / "provenance/statistics.json").read_text(encoding="utf-8"))
    return result


def own(folder: Path, rows: Sequence[dict[str, Any]]) -> list[str]:
    path = write(folder / "mine.jsonl", rows)
    return ["training", "--source", f"table:{path}", "--against", "none", "--out", str(folder / "out")]


def mine(users: int, pairs: int = 2) -> list[dict[str, Any]]:
    return [
        {"user": f"user {user}", "prompt": f"Question {pair} of {user}?", "chosen": "Yes, so.", "rejected": "No, not."}
        for user in range(users)
        for pair in range(pairs)
    ]


def test_the_sample_keeps_users_apart() -> None:
    out, output = sample("build-personalized", "training")
    for part in ("12 recorded calls, 12 of them new", "hand-written", "exact question", "Splits"):
        assert part in output
    rows = rows_of(out, "everyday_questions")
    users = {split: set(frame["user_id"]) for split, frame in rows.items()}
    assert users.keys() == {*SPLITS}
    assert sum(map(len, users.values())) == len(set().union(*users.values())) == 12
    every = pl.concat(rows.values())
    assert every.height == 60
    assert every["persona"].n_unique() == 12
    assert every["profile"].list.len().to_list() == [4] * 60
    for frame in rows.values():
        for theirs in frame.partition_by("user_id"):
            assert theirs["id"].to_list() == [f"{theirs['user_id'][0]}-{number}" for number in range(1, 6)]
    manifest = read_manifest(out)
    assert manifest.builder.name == manifest.name == "personalized-training"
    assert {table.table_schema for table in manifest.tables} == {"PersonalizedPreferences"}
    shown = (out / "README.md").read_text(encoding="utf-8")
    assert "# Personalized preferences\n" in shown
    assert "It contains no question of `sample` (24 questions)." in shown


@pytest.mark.heavy
def test_a_corpus_of_the_hub_is_pinned_with_its_benchmark(run: Run, tmp_path: Path, hub: Hub) -> None:
    rows = [published(number, f"user {number % 4}") for number in range(12)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    question = json.dumps({"question": "question  5 of user 1?", "profile": [{"text": "Question 6 of user 2?"}]})
    out = tmp_path / "out"
    for _ in range(2):
        arena = hub.publish("acme/arena", {"train.jsonl": text}, {"default": {"train": "train.jsonl"}}, license="mit")
        bench = hub.publish("acme/bench", {"b.jsonl": question}, {"Art": {"test": "b.jsonl"}}, license="mit")
    words = ["training", "--source", "arena:acme/arena", "--against", "acme/bench", "--shares", "0.5/0.25/0.25"]
    status, said = run(*words, "--out", out)
    assert status == 0, said
    recipe = read_manifest(out).recipe
    assert recipe["source"]["locations"] == [f"arena:acme/arena@{arena}"]
    assert recipe["against"] == [f"acme/bench@{bench}"]
    [source] = read_manifest(out).sources
    assert (source.location, source.revision, source.license) == ("acme/arena", arena, "mit")
    assert sum(frame.height for frame in rows_of(out, "arena").values()) == 10
    result = figures(out)["contamination"]
    assert (result["pairs"]["exact question"], result["pairs"]["exact post"]) == (1, 1)
    assert (result["posts"]["exact question"], result["against"][0]["revision"]) == (1, bench)


def test_personas_are_asked_again_until_they_are_short_and_users_without_one_go(run: Run, tmp_path: Path) -> None:
    def answered(body: dict[str, Any], _: int) -> Reply:
        output = body["messages"][-1]["content"]
        assert not re.search("Yes, so|No, not", output), "a persona never sees an answer"
        if "of 0?" in output:
            return Reply("word " * 10_000)
        return Reply(f"Asks about number {re.findall('of (.)[?]', output)[0]}.")

    words = own(tmp_path, mine(4))
    with serve(answered) as server:
        model = ["--persona-llm", "m", "--base-url", server.base_url, "--api-key-env", ""]
        status, output = run(*words, *model)
        assert status == 0, output
        assert len(server.requests) == 3 + 5
        again = run(*words, *model)
        assert (again[0], len(server.requests)) == (0, 8), again[1]
    every = pl.concat(rows_of(tmp_path / "out", "mine").values())
    assert sorted(set(every["persona"])) == [f"Asks about number {number}." for number in (1, 2, 3)]
    assert figures(tmp_path / "out")["drops"] == [
        {"config": "mine", "step": "persona", "reason": "over 120 words", "count": 2}
    ]


def test_users_with_one_question_are_kept_where_they_are_wanted(run: Run, tmp_path: Path) -> None:
    words = own(tmp_path, [*mine(4, 1), *mine(3, 2)])
    assert run(*words)[0] == 0
    assert figures(tmp_path / "out")["drops"][-1]["reason"] == "no other question"
    assert figures(tmp_path / "out")["pairs"] == 6
    assert run(*words, "--min-posts", "0", "--fresh")[0] == 0
    assert (figures(tmp_path / "out")["pairs"], figures(tmp_path / "out")["profile_posts"]["min"]) == (7, 0)


def test_at_most_so_many_users_of_each_config(run: Run, tmp_path: Path) -> None:
    assert run(*own(tmp_path, mine(6)), "--limit", "4", "--shares", "1/0/0")[0] == 0
    [(split, rows)] = rows_of(tmp_path / "out", "mine").items()
    assert (split, rows["user_id"].to_list()) == ("train", [f"user {user}" for user in range(4) for _ in range(2)])


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--own-splits"], ["the user 'user 0' is in the splits train and test of the source", "`--own-splits`"]),
        (["--limit", "2"], ["mine has 2 users for the splits train, validation, test", "`--shares 1/0/0`"]),
        (["--min-posts", "9"], ["No pair is left: 8 dropped (fewer than 9 other questions)"]),
        (
            ["--persona-llm", "hand-written"],
            ["no hand-written answer for persona of user 0", "choose a model, or none, with `--persona-llm`"],
        ),
    ],
)
def test_a_mistake_is_one_sentence_and_writes_nothing(
    run: Run, tmp_path: Path, words: list[str], parts: list[str]
) -> None:
    rows = [row | {"split": split} for row, split in zip(mine(4), ["train", "test"] * 4, strict=True)]
    refused(run(*own(tmp_path, rows), *words), *parts)
    assert not (tmp_path / "out").exists()


def test_a_benchmark_may_be_a_release_of_ones_own(run: Run, tmp_path: Path) -> None:
    question = json.loads((SAMPLE / "questions/Art_and_Entertainment.jsonl").read_text(encoding="utf-8").split("\n")[0])
    rows = [*mine(4, 3), {"user": "user 0", "prompt": question["question"], "chosen": "a", "rejected": "b"}]
    words = own(tmp_path, rows)
    words[words.index("none")] = str(SAMPLE / "questions")
    assert run(*words)[0] == 0
    assert figures(tmp_path / "out")["contamination"]["pairs"]["exact question"] == 1
    held = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert str(tmp_path).encode() not in held
    assert str(SAMPLE).encode() not in held
    sources = [words[2], str(SAMPLE / "questions")]
    assert not any(rebuild(tmp_path / "out", tmp_path / "again", sources=sources))
