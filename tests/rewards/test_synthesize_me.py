"""SynthesizeMe by a model that is asked: what is kept, what decides between demonstrations, and what is recorded."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asked_judges import judge
from chat_server import ChatServer, Reply, serve
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_calls import CallsError
from pluralbench_rewards import EarlierPair, Person
from pluralbench_rewards.synthesize_me import (
    SynthesisConfig,
    Synthesized,
    candidate_sets,
    split_in_order,
    synthesize,
)

FEW = SynthesisConfig(num_candidates=10, max_demonstrations=2)


def pair(number: int, *, plain: bool = True) -> EarlierPair:
    """A pair whose chosen answer is plain, or not: the server's model always predicts the plain one."""
    answers = [f"A plain answer {number}.", f"An ornate answer {number}."]
    return EarlierPair([{"role": "user", "content": f"Question {number}?"}], *answers[:: 1 if plain else -1])


def section(asked: str, name: str) -> str:
    found = re.search(rf"<{name}>\n(.*?)\n</{name}>", asked, re.DOTALL)
    return found[1] if found else ""


def replies(right_when: Callable[[str], bool] = lambda _: True) -> Callable[[dict[str, Any], int], Reply]:
    """A model that predicts the plain answer, writes of how many cases it knows, and judges right where it may."""

    def reply(body: dict[str, Any], _: int) -> Reply:
        system, asked = (message["content"] for message in body["messages"])
        if '"preference"' in system:
            side = "First" if "plain" in section(asked, "first_answer") else "Second"
            reasoning = f"They asked {section(asked, 'question')} and like it plain."
            return Reply(json.dumps({"reasoning": reasoning, "preference": side}))
        if '"persona"' in system:
            cases = asked.count("<case_") or asked.count("<post_")
            return Reply("Here it is:\n" + json.dumps({"persona": [f"I am known by {cases} texts.", "..."]}))
        plain_first = "plain" in section(asked, "response_a")
        return Reply("[[A]]" if plain_first == right_when(asked) else "[[B]]")

    return reply


def found(people: list[Person], tmp_path: Path, script: Any, **options: Any) -> tuple[list[Synthesized], ChatServer]:
    with serve(script) as server:
        return synthesize(people, judge(server, tmp_path, **options), FEW), server


def asked_for(server: ChatServer, mark: str) -> list[str]:
    return [body["messages"][1]["content"] for body in server.requests if mark in body["messages"][0]["content"]]


def test_only_the_reasons_of_right_predictions_are_kept(tmp_path: Path) -> None:
    earlier = [pair(number, plain=number not in {1, 3}) for number in range(10)]
    [one], server = found([Person("p", earlier=earlier)], tmp_path, replies())
    assert (one.predicted, one.correct, one.source) == (7, 5, "choices")
    [told] = asked_for(server, '"persona"')
    assert [number for number in range(10) if f"Question {number}?" in told] == [0, 2, 4, 5, 6]
    assert one.persona == ("I am known by 5 texts.",), "what says nothing is no sentence"
    predicted = asked_for(server, '"preference"')
    firsts = {"plain" in section(asked, "first_answer") for asked in predicted}
    assert (len(predicted), firsts) == (7, {True, False}), "the order is drawn"
    assert not any(section(asked, "question") in {f"Question {n}?" for n in (7, 8, 9)} for asked in predicted)


def test_the_set_that_makes_the_judge_right_most_often_is_taken(tmp_path: Path) -> None:
    person = Person("p", earlier=[pair(number) for number in range(10)])

    def knows(asked: str) -> bool:
        shown = asked.count("<earlier_question>\nQuestion 4?")
        return bool(shown) or "Question 7?" in section(asked, "question")

    [one], server = found([person], tmp_path, replies(knows))
    assert person.earlier[4] in one.demonstrations
    assert (one.accuracy, one.validated) == (1.0, 3)
    sets = candidate_sets(7, FEW, 0, "p")
    first = next(number for number, places in enumerate(sets) if 4 in places)
    assert one.demonstrations == tuple(person.earlier[place] for place in sets[first])
    assert one.tried == first + 1, "80 % and more is enough"
    verdicts = asked_for(server, "Response A and Response B")
    assert len(verdicts) == 3 * one.tried
    assert all("I am known by 7 texts." in section(asked, "about_the_person") for asked in verdicts)
    assert {section(asked, "question") for asked in verdicts} == {"Question 7?", "Question 8?", "Question 9?"}


def test_the_first_of_equal_sets_is_taken_and_it_is_empty(tmp_path: Path) -> None:
    person = Person("p", earlier=[pair(number) for number in range(6)])
    [one], _ = found([person], tmp_path / "wrong", replies(lambda _: False))
    assert (one.demonstrations, one.accuracy, one.tried) == ((), 0.0, 10)
    [one], _ = found([person], tmp_path / "right", replies())
    assert (one.demonstrations, one.accuracy, one.tried) == ((), 1.0, 1)


def test_a_person_without_right_predictions_or_pairs_is_described_by_their_posts(tmp_path: Path) -> None:
    posts = [{"text": f"Post {number}."} for number in range(12)]
    people = [
        Person("wrong", profile=posts, earlier=[pair(number, plain=False) for number in range(3)]),
        Person("new", profile=posts[:2]),
        Person("unknown"),
        Person("hopeless", earlier=[pair(9, plain=False)]),
        Person("one pair", earlier=[pair(5)]),
    ]
    (wrong, new, unknown, hopeless, single), _ = found(people, tmp_path, replies())
    assert (wrong.source, wrong.correct, wrong.persona) == ("posts", 0, ("I am known by 10 texts.",))
    assert (new.source, new.predicted, new.accuracy, new.demonstrations) == ("posts", 0, None, ())
    assert unknown.persona == hopeless.persona == ()
    assert unknown.reason == hopeless.reason == "neither an earlier pair whose prediction was right nor a post"
    assert (single.source, single.correct, single.demonstrations, single.validated) == ("choices", 1, (), 0)


def test_the_recorded_calls_give_the_same_again(tmp_path: Path) -> None:
    people = [Person(name, earlier=[pair(number) for number in range(8)]) for name in ("p", "q")]
    first, _ = found(people, tmp_path, replies(lambda asked: "Question 2?" in asked))
    again, server = found(people, tmp_path, lambda *_: Reply("down", status=503))
    assert again == first
    assert server.requests == []


def test_an_interrupted_synthesis_goes_on_where_it_was(tmp_path: Path) -> None:
    people = [Person("p", earlier=[pair(number) for number in range(8)])]
    script = replies(lambda asked: "Question 2?" in asked)

    def stops(body: dict[str, Any], number: int) -> Reply:
        return script(body, number) if number < 9 else Reply("no", status=401)

    with pytest.raises(CallsError, match="rerun the same command to resume"):
        found(people, tmp_path, stops)
    rest, server = found(people, tmp_path, script)
    whole, all_of_it = found(people, tmp_path / "whole", script)
    assert rest == whole
    assert len(server.requests) == len(all_of_it.requests) - 9


def test_a_reply_that_says_nothing_is_asked_again_warmer(tmp_path: Path) -> None:
    said = {"reasoning": "They like it plain.", "preference": "first"}
    bad = ["no", "[1]", json.dumps(said), json.dumps(said | {"reasoning": "...", "preference": "First"})]

    def script(body: dict[str, Any], number: int) -> Reply:
        return Reply(bad[number]) if number < len(bad) else replies()(body, number)

    [one], server = found([Person("p", earlier=[pair(0)])], tmp_path, script)
    assert (one.correct, one.predicted) == (0, 1)
    assert [body["temperature"] for body in server.requests] == [0.0, 0.2, 0.4, 0.6]
    dots = Reply(json.dumps({"persona": ["...", "I"]}))
    [one], _ = found([Person("p", profile=[{"text": "Tea."}])], tmp_path / "dots", lambda *_: dots)
    assert (one.persona, one.source, one.reason) == ((), None, "an empty persona")


@given(st.integers(0, 12), st.floats(0.01, 1))
def test_the_parts_keep_the_order_and_the_older_one_has_at_least_one(number: int, share: float) -> None:
    pairs = [pair(place) for place in range(number)]
    learned, apart = split_in_order(pairs, share)
    assert [*learned, *apart] == pairs
    assert len(learned) >= min(number, 1)


@given(st.integers(0, 9), st.integers(1, 12), st.integers(0, 4), st.integers(0, 3))
def test_candidate_sets_differ_and_keep_to_their_limits(number: int, most: int, size: int, seed: int) -> None:
    options = SynthesisConfig(num_candidates=most, max_demonstrations=size)
    sets = candidate_sets(number, options, seed, "p")
    assert sets[0] == ()
    assert len(sets) == len(set(sets)) <= most
    assert all(places == tuple(sorted(set(places))) and len(places) <= size for places in sets)
    assert all(place in range(number) for places in sets for place in places)
    assert sets == candidate_sets(number, options, seed, "p")
