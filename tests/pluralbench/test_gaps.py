"""What is no score is counted as what it is, named, and never a silent number."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pluralbench.contract import Group
from pluralbench.errors import DataError
from pluralbench.results import Run
from pluralbench_local import LocalError
from reward_models import conversation_ids, make_tokenizer, user
from written_tables import write

Rows = list[dict[str, Any]]
LONG = "walking with an old dog at dawn " * 30


@pytest.fixture
def data(pairs: Callable[..., Rows], tmp_path: Path) -> Path:
    """Ten pairs, of which the third and the seventh have a long prompt and the last one a long response."""
    rows = pairs(10)
    rows[2]["prompt"], rows[6]["prompt"], rows[9]["rejected"] = LONG, LONG, LONG
    return write(tmp_path / "p.jsonl", rows)


def no_numbers(groups: Sequence[Group]) -> list[list[float]]:
    """Nothing but what is no finite number."""
    return [[math.nan, math.inf, 0.0][: len(group.responses)] for group in groups]


def test_a_model_that_gives_no_numbers_is_invalid_throughout_and_no_crash(
    score: Callable[..., Run], pairs: Callable[..., Rows], tmp_path: Path
) -> None:
    run = score("pairs", write(tmp_path / "p.jsonl", pairs(30)), by=no_numbers)
    assert (run.estimate("pooled_accuracy").n, run.count("invalid"), run.count("wins")) == (30, 30, 0)
    missing = [run.estimate(metric).value for metric in ("accuracy_of_valid", "mean_margin")]
    assert (run.headline.value, missing) == (None, [None, None])
    assert set(run.items["outcome"]) == {"invalid"}
    for name in ("metrics.json", "run.json"):
        text = (run.path / name).read_text(encoding="utf-8")
        assert "NaN" not in text
        assert "Infinity" not in text


def test_a_ranking_without_numbers_is_invalid_response_by_response(score: Callable[..., Run], tmp_path: Path) -> None:
    row = {"id": "a", "prompt": "a quiet hobby", "responses": ["origami", "drumming", "x"], "rank": [2, 1, 2]}
    run = score("rankings", write(tmp_path / "r.jsonl", [row]), by=no_numbers)
    assert run.items["outcome"].to_list() == ["invalid", "invalid", "scored"]
    assert (run.count("invalid"), run.headline.value) == (2, None)


def test_what_is_dropped_is_listed_and_no_part_of_the_accuracy(
    score: Callable[..., Run], model: str, data: Path
) -> None:
    run = score("pairs", data, by=model, max_length=120, on_overflow="drop")
    dropped = run.items.filter(outcome="dropped")
    assert dropped["id"].to_list() == ["q2", "q6", "q9"]
    assert dropped["score_chosen"].null_count() == 3
    assert all("more than 120" in reason for reason in dropped["reason"])
    assert (run.headline.n, run.count("dropped"), run.count("truncated")) == (7, 3, 0)
    kept = run.items.filter(pl.col("outcome") != "dropped")
    assert run.headline.value == pytest.approx((kept["score_chosen"] > kept["score_rejected"]).mean())


@pytest.mark.parametrize("how", ["truncate-left", "truncate-prompt"])
def test_what_is_truncated_is_counted_and_listed(score: Callable[..., Run], model: str, data: Path, how: str) -> None:
    run = score("pairs", data, by=model, max_length=120, on_overflow=how)
    cut = run.items.filter("truncated")
    expected = ["q2", "q6", "q9"] if how == "truncate-left" else ["q2", "q6"]
    assert cut["id"].to_list() == expected
    assert (cut["tokens_cut"] > 0).all()
    assert run.count("truncated") == len(expected)
    lengths = run.items.filter(pl.col("outcome") != "dropped").select("tokens_chosen", "tokens_rejected")
    assert max(lengths.to_series(0).max(), lengths.to_series(1).max()) <= 120  # type: ignore[type-var, operator]


def test_tokens_are_those_of_the_conversation(
    score: Callable[..., Run], model: str, pairs: Callable[..., Rows], data: Path
) -> None:
    run = score("pairs", data, by=model)
    tokenizer = make_tokenizer()
    for row, tokens in zip(pairs(10)[:2], run.items["tokens_chosen"], strict=False):
        group = Group(row["id"], user(row["prompt"]), [row["chosen"]])
        assert tokens == len(conversation_ids(tokenizer, group, row["chosen"]))


def test_a_run_in_which_all_is_dropped_says_so(
    score: Callable[..., Run], model: str, pairs: Callable[..., Rows], tmp_path: Path
) -> None:
    run = score("pairs", write(tmp_path / "p.jsonl", pairs(3)), by=model, max_length=4, on_overflow="drop")
    assert (run.count("dropped"), run.headline.value) == (3, None)


def test_a_table_in_which_all_is_equal_says_so(score: Callable[..., Run], tmp_path: Path) -> None:
    row = {"id": "a", "prompt": "a quiet hobby", "responses": ["origami", "drumming"], "rank": [1, 1]}
    run = score("rankings", write(tmp_path / "r.jsonl", [row]))
    assert (run.count("equal"), run.headline.value) == (1, None)


def test_empty_responses_are_refused_dropped_or_scored(
    score: Callable[..., Run], pairs: Callable[..., Rows], tmp_path: Path
) -> None:
    rows = pairs(6)
    rows[1]["chosen"], rows[4]["rejected"] = "", ""
    data = write(tmp_path / "p.jsonl", rows)
    with pytest.raises(DataError, match="q1, q4"):
        score("pairs", data)
    dropped = score("pairs", data, on_empty="drop")
    assert dropped.items["id"].to_list() == ["q0", "q2", "q3", "q5"]
    kept = score("pairs", data, on_empty="keep")
    assert kept.items.height == kept.headline.n == 6
    for run in (dropped, kept):
        assert run.config.data.empty == ("q1", "q4")


@pytest.mark.heavy
def test_a_prompt_of_40_000_tokens_is_refused_or_cut(
    score: Callable[..., Run], model: str, pairs: Callable[..., Rows], tmp_path: Path
) -> None:
    rows = pairs(3)
    rows[1]["prompt"] = "🎈 origami, " * 10_000
    data = write(tmp_path / "p.jsonl", rows)
    with pytest.raises(LocalError, match=r"1 of 3 prompts .* more than 1,024 tokens, the longest \d{2},\d{3} "):
        score("pairs", data, by=model)
    run = score("pairs", data, by=model, on_overflow="truncate-left")
    assert (run.headline.n, run.count("truncated")) == (3, 1)
    assert run.scored
    assert run.scored.work
    assert run.scored.work.max_length == 1024
