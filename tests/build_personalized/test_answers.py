"""Chosen and rejected answers: what counts as one, what is asked again, and what the prompts show."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from build_personalized.answers import add_answers, parse_answer
from build_personalized.prompts import POLARITY, PROMPT_VERSION
from chat_server import Reply
from hypothesis import given
from hypothesis import strategies as st
from personal_questions import Asking, asking, question, questions
from pluralbench_calls import InvalidAnswer


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I’m really sorry, but I can’t assist with this request.",
        "Unfortunately, I'm not able to assist.",
        "I cannot provide medical advice.",
        "As an AI, I have no taste.",
        "as an ai language model I don't drink",
        "I won't be able to help with that.",
    ],
)
def test_refusals_are_no_answers(text: str) -> None:
    with pytest.raises(InvalidAnswer, match="refused"):
        parse_answer(text, 100)


@pytest.mark.parametrize(
    "text",
    [
        "I can't help loving stouts.",
        "I cannot answer for others, but I would.",
        "I'm sorry about your dog. Try rice.",
        "As an aid to memory, use a list.",
        "Take rice. " * 20 + "And ring a vet, because I cannot provide medical advice.",
        "איני יכול לסבול בירה.",
        "I can't provide enough praise for rye.",
    ],
)
def test_innocent_answers_are_answers(text: str) -> None:
    assert parse_answer(text, 100) == text


@given(words=st.integers(1, 8), limit=st.integers(1, 8), space=st.sampled_from([" ", "\n\n", "\t ", "\u3000"]))
def test_the_word_limit(words: int, limit: int, space: str) -> None:
    text = space.join(["מילה"] * words)
    if words <= limit:
        assert parse_answer(text, limit) == text
    else:
        with pytest.raises(InvalidAnswer, match=f"over {limit} words"):
            parse_answer(text, limit)


def asked(number: int, *, posts: int = 3, config: str = "beer") -> dict[str, Any]:
    aspects = [{"aspect": title, "evidence": f"EVIDENCE {title}", "reason": "REASON"} for title in ("Cost", "Noise")]
    profile = [
        {"id": f"ID{place}", "category": f"c{place}", "text": f"post {place}\nשלום {{x}}"} for place in range(posts)
    ]
    text = f"Question {number}? {{profile}}"
    return question(number, config=config, question=text, rubric_aspects=aspects, profile=profile)


def side(body: dict[str, Any]) -> str:
    text = body["messages"][1]["content"]
    return next(name for name, line in POLARITY.items() if line in text)


def answers(body: dict[str, Any], number: int) -> Reply:
    """A new answer each time, so that no two are the same."""
    return Reply(f"{side(body)} {number}")


def answered(given: Asking, *rows: dict[str, Any]) -> tuple[pl.DataFrame, list[tuple[Any, ...]]]:
    pairs, drops = add_answers(questions(*rows), *given)
    return pairs, drops.rows()


def test_pairs_know_their_calls(tmp_path: Path) -> None:
    with asking(tmp_path, answers) as (given, _):
        pairs, drops = answered(given, asked(1), asked(2), asked(1, config="coffee"))
        recorded = {row["key"]: row for row in given.ledger.frame().iter_rows(named=True)}
    assert drops == []
    assert pairs.select("config", "id").rows() == [("beer", "q1"), ("beer", "q2"), ("coffee", "q1")]
    for pair in pairs.iter_rows(named=True):
        assert recorded[pair["chosen_call"]]["text"] == pair["chosen"]
        assert recorded[pair["rejected_call"]]["text"] == pair["rejected"]
        assert recorded[pair["rejected_call"]]["label"] == f"rejected answer for {pair['id']}, attempt 1"
        assert pair["generator"] == "model-2026-01-01", "as the server calls itself"
        assert pair["prompt_version"] == PROMPT_VERSION


def test_prompts_differ_in_the_polarity_alone_and_show_no_rubric(tmp_path: Path) -> None:
    with asking(tmp_path, answers, profile_size=2) as (given, server):
        answered(given, asked(1))
    chosen, rejected = (request["messages"] for request in server.requests)
    assert chosen[0] == rejected[0]
    lines = zip(chosen[1]["content"].split("\n"), rejected[1]["content"].split("\n"), strict=True)
    assert [pair for pair in lines if pair[0] != pair[1]] == [
        (f"{POLARITY['chosen']} Cost, Noise.", f"{POLARITY['rejected']} Cost, Noise.")
    ]
    shown = json.dumps(server.requests, ensure_ascii=False)
    for secret in ("NARRATIVE", "EVIDENCE", "REASON", "ID0", "q1", "post 2"):
        assert secret not in shown
    assert "[Post 1, c0]\npost 0\nשלום {x}\n[Post 2, c1]\npost 1\nשלום {x}\n\n" in chosen[1]["content"]
    assert "Question 1? {profile}" in chosen[1]["content"], "braces in a text are text"


@pytest.mark.parametrize(("bad", "reason"), [(Reply("one two three four"), "over 3 words")])
@pytest.mark.parametrize("where", ["chosen", "rejected"])
def test_five_attempts_and_then_the_question_is_dropped(tmp_path: Path, bad: Reply, reason: str, where: str) -> None:
    def script(body: dict[str, Any], number: int) -> Reply:
        return bad if side(body) == where and "Question 1?" in body["messages"][1]["content"] else Reply(f"no {number}")

    with asking(tmp_path, script, word_limit=3) as (given, server):
        pairs, drops = answered(given, asked(1), asked(2))
        assert len(given.ledger) == len(server.requests)
    assert pairs["id"].to_list() == ["q2"]
    assert drops == [("beer", "answers", f"{where}: {reason}", "q1")]
    sides = [side(body) for body in server.requests if "Question 1?" in body["messages"][1]["content"]]
    assert sides == ["chosen"] * 5 if where == "chosen" else ["chosen"] + ["rejected"] * 5


def test_identical_answers_are_asked_for_again(tmp_path: Path) -> None:
    with asking(tmp_path, lambda _, number: Reply("rice" if number < 3 else "beans")) as (given, server):
        pairs, drops = answered(given, asked(1))
    assert (pairs["chosen"][0], pairs["rejected"][0], drops) == ("rice", "beans", [])
    assert [side(body) for body in server.requests] == ["chosen", "rejected", "rejected", "rejected"]


def test_each_attempt_is_a_draw_with_a_seed_of_its_own(tmp_path: Path) -> None:
    seeded = {"provider": "loopback", "model": "m", "seeded": True, "temperature": 0.7, "top_p": 0.9, "max_tokens": 9}
    seeds = []
    for folder, rows in (("a", [asked(1)]), ("b", [asked(2), asked(1)])):
        (tmp_path / folder).mkdir()
        with asking(tmp_path / folder, lambda *_: Reply(""), llm=seeded, attempts=3) as (given, server):
            answered(given, *rows)
        of_one = [body for body in server.requests if "Question 1?" in body["messages"][1]["content"]]
        seeds.append([body["seed"] for body in of_one])
        assert {(body["temperature"], body["top_p"], body["max_tokens"]) for body in of_one} == {(0.7, 0.9, 9)}
    assert len({*seeds[0]}) == 3
    assert seeds[0] == seeds[1], "another question beside it changes nothing"


def test_answers_that_stay_identical_drop_the_question(tmp_path: Path) -> None:
    with asking(tmp_path, lambda *_: Reply("rice")) as (given, server):
        pairs, drops = answered(given, asked(1))
    assert pairs.is_empty()
    assert len(server.requests) == 6
    assert drops == [("beer", "answers", "rejected: identical answers", "q1")]
