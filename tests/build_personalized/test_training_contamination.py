"""No question of a benchmark is learned from: what counts as one, what goes, and how it is counted."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from build_personalized.sources.loaded import PAIRS, POSTS, Preferences, drops_frame
from build_personalized.training.contamination import Benchmark, leave_out, read_benchmark
from written_tables import write

LONG = "How do I keep an old cast iron pan from rusting when I cook tomatoes in it every other day of the week"
POST = "My grandmother left me a bread oven in the garden and nobody knows how hot it may become before it cracks"
BENCHMARK = Benchmark("b", None, ["Which tea?", LONG], [POST, "Which tea?"])
NOTHING = {"exact question": 0, "near question": 0, "exact post": 0, "near post": 0}


def preferences(*prompts: Sequence[str]) -> Preferences:
    """A pair for each list of what a user said, and the first of it as a post."""
    pairs = [
        {"config": "c", "id": f"row {number}", "user_id": "ana", "prompt": _messages(user_text)}
        for number, user_text in enumerate(prompts)
    ]
    posts = [
        {"config": "c", "user_id": "ana", "post": {"id": f"row {number}", "category": None, "text": user_text[0]}}
        for number, user_text in enumerate(prompts)
    ]
    return Preferences(pl.DataFrame(pairs, schema=PAIRS), pl.DataFrame(posts, schema=POSTS), drops_frame([]), [])


def _messages(user_text: Sequence[str]) -> list[dict[str, str]]:
    turns = [({"role": "user", "content": text}, {"role": "assistant", "content": "Well."}) for text in user_text]
    return [message for turn in turns for message in turn][:-1]


@pytest.mark.parametrize(
    ("user_text", "kind"),
    [
        ("which  TEA?\n", "exact question"),
        ("Which tea?\nI mean in the evening, when it is cold.", "exact question"),
        (LONG + " please", "near question"),
        (POST.upper(), "exact post"),
        (POST + " again", "near post"),
        ("Which coffee?", None),
        ("I wonder. Which tea?", None),
    ],
)
def test_what_counts_as_a_question_of_a_benchmark(user_text: str, kind: str | None) -> None:
    clean, figures = leave_out(preferences([user_text], ["Another thing altogether."]), [BENCHMARK])
    wanted = NOTHING | ({kind: 1} if kind else {})
    assert figures["pairs"] == figures["posts"] == wanted
    assert clean.pairs.height == clean.posts.height == (1 if kind else 2)
    assert clean.drops.rows() == ([("c", "contamination", kind, "row 0")] if kind else [])


def test_whatever_the_user_says_in_a_prompt_counts() -> None:
    clean, figures = leave_out(preferences(["Hello", "Which tea?"], ["Which tea?", "Thanks"]), [BENCHMARK])
    assert (clean.pairs.height, clean.posts.height) == (0, 1)
    assert (figures["pairs"]["exact question"], figures["posts"]["exact question"]) == (2, 1)


def test_the_sample_is_that_of_the_personalized_benchmark() -> None:
    sample = read_benchmark("sample")
    assert (sample.location, len(sample.questions)) == ("sample", 24)
    assert len(sample.posts) > 100
    _, figures = leave_out(preferences([sample.questions[3]], [sample.posts[5]]), [sample])
    assert (figures["pairs"]["exact question"], figures["pairs"]["exact post"]) == (1, 1)
    assert figures["against"][0]["questions"] == 24


@pytest.mark.parametrize(
    ("row", "questions", "posts"),
    [
        ({"question": "Q", "profile": [{"text": "P"}]}, ["Q"], ["P"]),
        ({"prompt": "Q", "profile": ["P"]}, ["Q"], ["P"]),
        ({"context": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]}, ["Q"], []),
        ({"prompt": ["Q", "R"]}, ["Q", "R"], []),
    ],
)
def test_any_table_with_prompts_can_be_compared_with(
    tmp_path: Path, row: dict[str, Any], questions: list[str], posts: list[str]
) -> None:
    read = read_benchmark(str(write(tmp_path / "b.jsonl", [row])))
    assert (read.questions, read.posts) == (questions, posts)
