"""The rubric judge: which replies are a list of scores, what is asked again, and what becomes of the rest."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from asked_judges import always, judge
from chat_server import serve
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_calls import InvalidAnswer
from pluralbench_rewards import RubricCase, mean_score, overlap, score_aspects
from pluralbench_rewards.rubric import parse_scores

ASPECTS = ["a small purse", "no meat", "little time"]
CASE = RubricCase("q1", "What should I cook?", "Lentils, they are cheap.", ASPECTS)

on_the_scale = st.lists(st.integers(0, 2), min_size=1, max_size=9)
# Words of a reply around its list: no brackets, which would be further lists, and no tags of thinking.
around = st.text(st.characters(codec="utf-8", exclude_characters="[]<>"), max_size=30)


@given(on_the_scale, around, around, st.booleans())
def test_a_list_is_read_as_it_was_written(scores: list[int], before: str, after: str, as_object: bool) -> None:
    written = json.dumps({"scores": scores} if as_object else scores)
    assert parse_scores(f"{before}{written}{after}", len(scores)) == [float(score) for score in scores]
    assert parse_scores(f"{written} I repeat: {written}", len(scores)) == scores
    assert parse_scores(f"<think>{before}[2, 2, 2, 2]</think>{written}", len(scores)) == scores


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("The answer covers all of it.", "no list of scores"),
        ("", "no list of scores"),
        ("[yes, no, no]", "no list of scores"),
        ("[0, 1, 2", "no list of scores"),
        ("[0, 1, 3]", "a score off the scale"),
        ("[0, 1]", "2 scores for 3 aspects"),
        ("[0, 1, 1.5]", "a score off the scale"),
        ("[0, 1, true]", "a score off the scale"),
        ('[0, 1, "2"]', "a score off the scale"),
        ("At first [0, 1, 2], no: [0, 1, 1].", "two different lists of scores"),
        ("<think>[0, 1, 2]", "thinking without an answer"),
        ("<think>[0, 1, 2]</think> Well.", "no list of scores"),
    ],
)
def test_a_reply_without_scores_says_why(reply: str, reason: str) -> None:
    with pytest.raises(InvalidAnswer) as caught:
        parse_scores(reply, 3)
    assert str(caught.value) == reason


def test_the_judge_sees_question_answer_and_numbered_aspects_and_no_more(tmp_path: Path) -> None:
    with serve(always("[0, 2, 1]")) as server:
        [settled] = score_aspects(judge(server, tmp_path), [CASE])
    assert (settled.value, settled.reason, settled.attempts) == ([0.0, 2.0, 1.0], "", 1)
    [body] = server.requests
    system, asked = body["messages"]
    assert (system["role"], asked["role"]) == ("system", "user")
    assert asked["content"] == (
        "<question>\nWhat should I cook?\n</question>\n\n"
        "<aspects>\n1. a small purse\n2. no meat\n3. little time\n</aspects>\n\n"
        "<answer>\nLentils, they are cheap.\n</answer>"
    )
    [scores] = body["response_format"]["json_schema"]["schema"]["properties"].values()
    assert (scores["minItems"], scores["maxItems"]) == (3, 3)
    assert scores["items"] == {"type": "integer", "minimum": 0, "maximum": 2}


def test_after_four_tries_there_is_no_score_and_a_reason(tmp_path: Path) -> None:
    good = RubricCase("q2", "Tea?", "Green.", ["green", "black"])
    with serve(always("[2, 0]")) as server:  # two scores: right for the one, wrong for the other
        bad, right = score_aspects(judge(server, tmp_path), [CASE, good])
        assert (bad.value, bad.reason, bad.attempts) == (None, "2 scores for 3 aspects", 4)
        assert (right.value, right.attempts) == ([2.0, 0.0], 1)
        assert len(server.requests) == 5
        again = score_aspects(judge(server, tmp_path), [CASE, good])
        assert [one.value for one in again] == [None, [2.0, 0.0]]
        assert len(server.requests) == 5, "what is recorded is not asked again"


@pytest.mark.parametrize(
    ("answer", "aspects", "scores"),
    [
        # words of five letters and more: "cheap"/"lentils" and, by their stems, "cooking"/"cooked"
        ("Lentils are cheap.", ["Cheap lentils"], [2.0]),
        ("They are CHEAP; lentil.", ["cheap lentils"], [2.0]),
        ("Lentils.", ["cheap lentils"], [1.0]),
        ("It is cooked slowly.", ["slow cooking in winter"], [2 * 1 / 2]),  # cook (of "cooking"), winter
        ("Rice.", ["cheap lentils", "rice"], [0.0, 0.0]),  # "rice" is too short to count
        ("", ["cheap lentils"], [0.0]),
        ("Grüne Bohnen, natürlich.", ["natürlich Grüne Erbsen"], [2 * 2 / 3]),
        ("cheap cheap cheap", ["cheap lentils, tomatoes and potatoes"], [2 * 1 / 4]),
    ],
)
def test_overlap_is_twice_the_share_of_an_aspects_words(
    answer: str, aspects: Sequence[str], scores: list[float]
) -> None:
    assert overlap(RubricCase("q", "?", answer, aspects)) == pytest.approx(scores)


@given(on_the_scale, st.integers(1, 12))
def test_a_list_of_another_length_is_none(scores: list[int], aspects: int) -> None:
    if len(scores) == aspects:
        assert len(parse_scores(str(scores), aspects)) == aspects
        return
    with pytest.raises(InvalidAnswer) as caught:
        parse_scores(str(scores), aspects)
    assert str(caught.value) == f"{len(scores)} scores for {aspects} aspects"


@given(
    st.lists(st.sampled_from(["cheap", "lentils", "tomatoes", "potatoes", "cooking"]), min_size=1), st.text(max_size=40)
)
def test_overlap_is_on_the_scale_and_full_where_all_is_said(words: list[str], more: str) -> None:
    aspect = " ".join(words)
    [full] = overlap(RubricCase("q", "?", f"{aspect} {more}", [aspect]))
    [some] = overlap(RubricCase("q", "?", more, [aspect]))
    assert (full, 0 <= some <= 2) == (2.0, True)


def test_a_score_is_the_mean_over_aspects() -> None:
    assert mean_score([0.0, 2.0, 2.0, 1.0]) == 1.25
