"""Personas: what the model is shown, which answers are none, and what becomes of users without one."""

import pytest
from build_personalized.training.personas import parse_persona, persona_messages
from build_personalized.training.recipe import PersonaTable
from pluralbench_calls import InvalidAnswer

TABLE = PersonaTable(questions=2, question_words=3, word_limit=5)


def test_the_newest_questions_are_shown_by_their_first_words_and_nothing_else() -> None:
    posts = [{"id": str(number), "category": "tea", "text": f"one two three four {number}"} for number in range(3)]
    system, user = persona_messages([{"id": "x", "category": None, "text": "a\nb"}, *posts], TABLE)
    assert "[Post 1]\na\nb\n[Post 2, tea]\none two three …\n\n" in user["content"]
    assert "[Post 3" not in user["content"]
    assert "at most 5 words" in system["content"]
    assert "at most 5 words" in user["content"]


def test_a_reply_that_is_no_answer_is_no_persona() -> None:
    assert parse_persona("<think>hm</think>\nShe grows tea.\n", 5) == "She grows tea."
    with pytest.raises(InvalidAnswer, match="over 5 words"):
        parse_persona("word " * 10_000, 5)


def test_a_reply_that_repeats_the_prompt_is_none() -> None:
    message = "This person says only what the questions show, and guess no age, sex, origin or belief."
    with pytest.raises(InvalidAnswer, match="repeats the instructions"):
        parse_persona(message, 120)
