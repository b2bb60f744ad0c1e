"""Answers that are none: what repeats the instructions, and what asks back."""

import json

import pytest
from build_personalized.recipe import RULES, PersonalizedRecipe, Rule
from build_personalized.screening import asks_back, repeats, screen
from build_personalized.sources import SAMPLE
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_calls import InvalidAnswer
from pluralbench_runs import RecipeError, check_recipe

GOOD = "Take a dry stout. It goes with oysters, and with the quiet evenings that you like."
ECHOES = [
    "Aspects that I expect your answer to cover: low price, no sugar.",
    "Take a stout.\n\nAnswer me in at most 100 words.",
    "USE the interests and the limits, that the posts show! A stout.",
    "You answer the questions of one particular person, who shows you posts. A stout.",
]
ASKING = [
    "Could you tell me more about what you like? What is your budget?",
    "I would love to help. Which beers have you had, do you like them dark or light, and what do you eat with them?",
    "你平时喜欢喝什么样的啤酒？你的预算大概是多少？",
    "ما هي ميزانيتك؟",
]


@pytest.mark.parametrize("answer", ECHOES)
def test_an_answer_that_repeats_the_instructions_is_none(answer: str) -> None:
    with pytest.raises(InvalidAnswer, match=r"^repeats the instructions$"):
        screen(answer, RULES, 100, "en")
    screen(answer, ["asking back"], 100, "en")


@pytest.mark.parametrize("answer", ASKING)
def test_an_answer_that_asks_back_is_none(answer: str) -> None:
    with pytest.raises(InvalidAnswer, match=r"^asks back$"):
        screen(answer, RULES, 100, "en")
    screen(answer, ["echo"], 100, "en")


@pytest.mark.parametrize(
    "answer",
    [
        GOOD,
        "Write at most 100 words a day, and answer the question itself.",
        "Why not a stout? It is dark, cheap and goes with the oysters that you like so much.",
        "Which is best? The one you like.",
        "Low price, no sugar: that is what I expect of a beer.",
    ],
)
def test_other_answers_are_kept(answer: str) -> None:
    screen(answer, RULES, 100, "en")


def test_the_answers_of_the_sample_break_no_rule() -> None:
    for path in SAMPLE.glob("answers/*.jsonl"):
        for line in path.read_text(encoding="utf-8").split("\n"):
            for side in ("chosen", "rejected") if line else ():
                screen(json.loads(line)[side], RULES, 100, "en")


@pytest.mark.parametrize("rules", [[], ["echo"], ["asking back"], list(RULES)])
def test_a_recipe_takes_or_leaves_each_rule(rules: list[Rule]) -> None:
    values = {"source": {"locations": ["sample"]}, "llm": {"provider": "hand-written", "model": "hand-written"}}
    assert check_recipe(PersonalizedRecipe, values | {"screening": rules}, "r.toml").screening == rules
    assert check_recipe(PersonalizedRecipe, values, "r.toml").screening == list(RULES)
    with pytest.raises(RecipeError, match=r"`screening\.0` must be one of echo, asking back; it is `echoes`"):
        check_recipe(PersonalizedRecipe, values | {"screening": ["echoes"]}, "r.toml")


@given(
    st.sampled_from([" ".join(ECHOES), "a b c d e f g h i j k l m n o p q r s t u v w x y z"]),
    st.text("ab .,", max_size=20),
    st.integers(0, 20),
    st.integers(1, 20),
)
def test_seven_words_in_a_row_are_an_echo_wherever_they_stand(line: str, around: str, start: int, count: int) -> None:
    words = line.split()[start : start + count]
    assert repeats(f"{around} {' '.join(words)} {around}".upper(), [line]) == (len(words) >= 7)


@given(st.lists(st.booleans(), min_size=1, max_size=9))
def test_more_than_half_of_the_words_decide(asked: list[bool]) -> None:
    answer = " ".join(f"The dog eats{'?' if one else '.'}" for one in asked)
    assert asks_back(answer, "en") == (2 * sum(asked) > len(asked))
