"""`build-personalized rank`: any table with its profiles by relevance, and nothing else changed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pluralbench_release import read_tables

Run = Callable[..., tuple[int, str]]
POSTS = ["water for coffee", "a stout", "milk", "stout beer", "milk"]


def row(**changed: Any) -> dict[str, Any]:
    profile = [{"id": f"p{place}", "text": text, "likes": place} for place, text in enumerate(POSTS)]
    return {"id": 7, "question": "Stout?", "profile": profile, "own": {"kept": [1.5]}} | changed


def write(folder: Path, *rows: dict[str, Any]) -> Path:
    (folder / "Art").mkdir(parents=True, exist_ok=True)
    lines = "\n".join(json.dumps(one) for one in rows)
    (folder / "Art" / "train.jsonl").write_text(lines + "\n", encoding="utf-8")
    (folder / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n", encoding="utf-8")
    return folder


def ids(frame: pl.DataFrame) -> list[list[str]]:
    return [[post["id"] for post in profile] for profile in frame["profile"].to_list()]


@pytest.mark.parametrize(
    "asked",
    [
        {"question": "Stout?"},
        {"prompt": [{"role": "user", "content": "Hello"}, {"role": "user", "content": "Stout?"}], "question": None},
    ],
)
def test_posts_are_ranked_and_all_else_stays(run: Run, asked: dict[str, Any], tmp_path: Path) -> None:
    given = {name: value for name, value in row(**asked).items() if value is not None}
    source, out = write(tmp_path / "source", given, given | {"id": 8, "profile": []}), tmp_path / "out"
    words = ["rank", "--source", source, "--out", out]
    status, output = run(*words)
    assert status == 0, output
    assert f"{out / 'Art' / 'train.parquet'}: 2 profiles ranked by bm25" in output
    before, after = (read_tables(str(place), split="train") for place in (source, out))
    assert ids(after.frames["Art"]) == [["p1", "p3", "p0", "p2", "p4"], []]
    assert after.license == "cc-by-4.0"
    assert after.frames["Art"].drop("profile").equals(before.frames["Art"].drop("profile"))
    # Equal posts keep their order, and every post its id.
    assert after.frames["Art"]["profile"].list.explode().sort().equals(before.frames["Art"]["profile"].list.explode())
    recorded = pl.read_parquet(out / "provenance" / "ledger.parquet")
    assert recorded.height == 1
    assert run(*words)[0] == 0
    status, output = run(*words, "--retriever", "sentence-transformers:none")
    assert (status, "was made with other settings" in output) == (2, True)


@pytest.mark.parametrize(
    ("changed", "output"),
    [
        ({"profile": ["a"]}, "no column `profile` of posts with `text`; its columns are id, question, profile"),
        ({"profile": [{"text": "a"}, {"text": None}]}, "row 1: a post of the profile has no text; remove it."),
        (
            {"question": None},
            "has no column question, prompt or context with the questions; its columns are id, profile",
        ),
    ],
)
def test_what_cannot_be_ranked_is_named(run: Run, changed: dict[str, Any], output: str, tmp_path: Path) -> None:
    given = {name: value for name, value in row(**changed).items() if value is not None}
    status, error = run("rank", "--source", write(tmp_path / "source", given), "--out", tmp_path / "out")
    assert (status, output in error.replace("\n", " ")) == (2, True), error
