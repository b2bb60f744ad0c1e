"""Personas: what the model is shown, which answers are none, and what becomes of users without one."""

import pytest
from build_personalized.training.personas import parse_persona, persona_messages
from build_personalized.training.recipe import PersonaTable
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_calls import InvalidAnswer

TABLE = PersonaTable(questions=2, question_words=3, word_limit=5)


def test_the_newest_questions_are_shown_by_their_first_words_and_nothing_else() -> None:
    posts = [{"id": str(number), "category": "tea", "text": f"one two three four {number}"} for number in range(3)]
    system, user = persona_messages([{"id": "x", "category": None, "text": "a\nb"}, *posts], TABLE)
    assert "[Post 1]\na\nb\n[Post 2, tea]\none two three …\n\n" in user["content"]
    assert "[Post 3" not in user["content"]
    assert "at most 5 words" in system["content"]
    assert "at most 5 words" in user["content"]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("word " * 10_000, "over 5 words"),
        (" ", "empty answer"),
        ("I cannot help with that.", "refused"),
        ("<think>She grows", "thinking without an answer"),
    ],
)
def test_a_reply_that_is_no_persona_says_why(reply: str, reason: str) -> None:
    with pytest.raises(InvalidAnswer, match=reason):
        parse_persona(reply, 5)


def test_a_reply_that_repeats_the_prompt_is_none() -> None:
    said = "This person says only what the questions show, and guess no age, sex, origin or belief."
    with pytest.raises(InvalidAnswer, match="repeats the instructions"):
        parse_persona(said, 120)


@given(st.integers(1, 40), st.integers(1, 40))
def test_the_word_limit_is_kept_to_the_word(words: int, limit: int) -> None:
    text = " ".join(["tea"] * words)
    if words <= limit:
        assert parse_persona(f"<think>hm</think>\n{text}\n", limit) == text
    else:
        with pytest.raises(InvalidAnswer):
            parse_persona(text, limit)
