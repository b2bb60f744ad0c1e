"""Plain functions as reward models, and what a group says of the person."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_rewards import FunctionModel, Group, Person, RewardModel, RewardsError, model_commit

SCORES = st.lists(st.lists(st.floats(allow_nan=False), min_size=1, max_size=3), max_size=150)


def group(name: str, responses: Sequence[str] = ("a", "bb"), **values: Any) -> Group:
    return Group(name, [{"role": "user", "content": f"{name}?"}], list(responses), **values)


@given(SCORES, st.data())
def test_every_group_gets_its_own_scores_whatever_is_known_already(
    values: list[list[float]], data: st.DataObject
) -> None:
    groups = [group(str(place), ["x"] * len(row)) for place, row in enumerate(values)]
    known = (
        {place: values[place] for place in data.draw(st.sets(st.sampled_from(range(len(values)))))} if values else {}
    )
    asked: list[str] = []
    reported: dict[int, list[float]] = {}

    def score(some: Sequence[Group]) -> list[list[float]]:
        asked.extend(one.id for one in some)
        return [values[int(one.id)] for one in some]

    scored = FunctionModel(score).score(groups, cached=known, on_scored=reported.update)
    assert scored.scores == values
    assert asked == [str(place) for place in range(len(values)) if place not in known]
    assert reported == {place: row for place, row in enumerate(values) if place not in known}


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda _: None, "The function <lambda> returned NoneType instead of a list of scores for each group."),
        (lambda _: [[1.0, 2.0]], "The function <lambda> returned scores of 1 groups for 2 groups."),
        (
            lambda _: [[1.0, 2.0], [1.0]],
            "The function <lambda> returned 1 score for the 2 responses of the group second.",
        ),
        (lambda _: [[1.0, 2.0], ["x", 1]], "The function <lambda> returned a score that is not a number (could not"),
        (lambda _: [[1.0, 2.0], [10**400, 1]], "The function <lambda> returned a score that is not a number (int too"),
    ],
)
def test_what_is_no_number_for_each_response_is_said(function: Callable[..., Any], sentence: str) -> None:
    with pytest.raises(RewardsError) as raised:
        FunctionModel(function).score([group("first"), group("second")])
    assert str(raised.value).startswith(sentence)


def one(groups: Any) -> Any:
    return [[float(len(response)) for response in each.responses] for each in groups]


def other(groups: Any) -> Any:
    return [[float(len(response)) + 1 for response in each.responses] for each in groups]


def times(factor: float, groups: Any) -> Any:
    return [[factor * score for score in scores] for scores in one(groups)]


class Longest:
    def __call__(self, groups: Any) -> Any:
        return one(groups)


@pytest.mark.smoke
def test_a_record_says_which_function_it_is() -> None:
    record = FunctionModel(one).record()
    assert (record.name, record.kind, record.settings) == ("one", "function", {"module": __name__})
    assert record.digest == FunctionModel(one).record().digest != FunctionModel(other).record().digest
    assert FunctionModel(Longest()).record().name == "Longest"
    assert FunctionModel(Longest()).record().digest
    assert isinstance(FunctionModel(one), RewardModel)
    made = [FunctionModel(partial(times, factor)).record() for factor in (1, 2, 2)]
    assert {record.name for record in made} == {"times"}
    assert made[0].digest != made[1].digest == made[2].digest


def test_a_functions_digest_is_the_same_in_every_process() -> None:
    code = (
        "from pluralbench_rewards import FunctionModel\n"
        "def score(groups): return [[1.0 if r in {'a', 'b', 'c', 'd'} else 0.0 for r in g.responses] for g in groups]\n"
        "print(FunctionModel(score).record().digest)"
    )
    made = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(made) == 1


def test_a_model_that_reads_text_is_told_the_context_before_the_question() -> None:
    told = group("q", person=Person(id="u", profile=[{"text": "I like tea."}]), context=["Posts:\nTea.", "Coffee."])
    assert told.messages == [{"role": "user", "content": "Posts:\nTea.\nCoffee.\n\nMy question:\nq?"}]
    assert told.without_least_relevant().messages[0]["content"] == "Posts:\nTea.\n\nMy question:\nq?"
    assert told.without_least_relevant().without_least_relevant().messages == list(told.prompt)
    assert told.prompt == [{"role": "user", "content": "q?"}], "the prompt itself stays as it was"


def test_the_contract_needs_no_torch() -> None:
    code = "import sys, pluralbench_rewards; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["pluralbench/nothing-in-the-cache", "./model"])
def test_a_hub_that_cannot_be_reached_and_a_path_name_no_commit(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    assert model_commit(name) is None
