"""Texts of strangers that would take a pattern minutes: each is read in time that is linear in its length."""

from collections.abc import Callable
from contextlib import suppress

import polars as pl
import pytest
from build_chinese.language import is_option
from build_personalized.screening import asks_back, own_sentences
from pluralbench_calls import InvalidAnswer, parse_pick, parse_rating, parse_verdict
from pluralbench_calls.verdicts import parse_certain_choice, require_single_marker
from pluralbench_policies.planner_options import read_plan
from pluralbench_release.card import merge_cards
from pluralbench_runs.console import sanitize

LONG = 200_000
REPLIES = [
    "*" * LONG + "x",
    "[[A]] a" + "_" * LONG + "a",
    "[[A]] [[1" + " " * LONG + "x]]",
    "x [[1" + " " * LONG + "x]]",
]
NESTED = ['{"a":' * LONG, '```{"a":' + '{"a":' * LONG + "}```"]


def option(text: str) -> None:
    frame = pl.DataFrame({"text": [f"A. {text}"], "prompt": [text]})
    assert frame.select(is_option(pl.col("text"), pl.col("prompt"))).item()


READERS: list[tuple[Callable[[str], object], list[str]]] = [
    *(
        (reader, REPLIES + NESTED)
        for reader in (
            parse_verdict,
            parse_rating,
            parse_certain_choice,
            require_single_marker,
            lambda reply: parse_verdict(reply, "lenient"),
            lambda reply: parse_rating(reply, "lenient"),
            lambda reply: parse_certain_choice(reply, "lenient"),
            lambda reply: parse_pick(reply, 3),
        )
    ),
    (own_sentences, ["\n" * LONG + "x", "-\n" * LONG + "x"]),
    (lambda text: asks_back(text, "en"), ["?" * LONG + "x", "? " * LONG + "x"]),
    (read_plan, ["- " + "\t" * LONG]),
    (lambda text: merge_cards("---\na: 1\n---\nx", text, None), ["z---\n" * (LONG // 5)]),
    (sanitize, ["\x9b" * LONG, "\x9d" * LONG, "\x1b]" * LONG]),
    (option, ["ab" * LONG]),
]


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("read", "text"), [(read, text) for read, texts in READERS for text in texts])
def test_a_text_takes_no_minutes(read: Callable[[str], object], text: str) -> None:
    with suppress(InvalidAnswer):
        read(text)
