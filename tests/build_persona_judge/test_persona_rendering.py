"""Personas: a sentence a variable, missing values before anything is rendered, and the sets of the ablations."""

import math
from collections.abc import Sequence

import pytest
from build_persona_judge.persona import (
    MISSING,
    PERSONAS,
    Variable,
    clean_value,
    is_empty,
    render,
    text_of,
    variables_of,
)
from hypothesis import given
from hypothesis import strategies as st

WORK = Variable("work", "work", "The person works in {}.")


def in_set(variables: Sequence[Variable], name: str) -> list[str]:
    return [variable.name for variable in variables if name in variable.sets]


@pytest.mark.parametrize(
    "value",
    [None, "", "  \n", math.nan, "nan", "NaN", "Prefer not to say", " prefer not to SAY ", "Refused", "unknown"],
)
def test_a_missing_value_has_no_sentence(value: object) -> None:
    assert clean_value(value) is None
    [entry] = render({"work": value}, [WORK])
    assert (entry["variable"], entry["value"], entry["sentence"]) == ("work", None, None)
    assert is_empty([entry])
    assert text_of([entry]) == ""


@pytest.mark.parametrize("value", ["Finance", "Nankin", "None", "{} and {0}", "St. Helens, Co."])
def test_a_value_is_missing_only_as_a_whole_and_told_as_it_is(value: str) -> None:
    [entry] = render({"work": value}, [WORK])
    assert (entry["value"], entry["sentence"]) == (value, f"The person works in {value.rstrip('.')}.")


def test_codes_become_words_and_numbers_stay_numbers() -> None:
    values = {
        "gender": "2.0",
        "race": 3,
        "education": "7",
        "age": "41.0",
        "income": 1_250_000,
        "personality_openess": 4,
    }
    told = {entry["variable"]: entry for entry in render(values, PERSONAS["empathic_conversations"])}
    assert told["gender"]["value"] == "female"
    assert told["ethnicity"]["value"] == "Black"
    assert (told["age"]["value"], told["age"]["number"]) == ("41", 41.0)
    assert told["income"]["sentence"] == "The person earns 1250000 US dollars a year."
    assert (told["openness"]["number"], told["stability"]["number"]) == (4.0, None)
    assert told["gender"]["number"] is None


def test_a_number_in_words_is_told_as_it_is() -> None:
    [age, *_] = render({"age": "in their forties"}, PERSONAS["personal_reddit"])
    assert (age["value"], age["number"]) == ("in their forties", None)


def test_the_sets_are_the_papers_and_the_codes() -> None:
    """Paper, section 5: education, location and ethnicity; religion. D4 has what the code shows instead."""
    places = ["birth_country", "residence_country"]
    assert (
        in_set(PERSONAS["prism"], "key") == ["education", "ethnicity", *places] == in_set(PERSONAS["prism"], "key-code")
    )
    assert (in_set(PERSONAS["prism"], "least"), in_set(PERSONAS["prism"], "least-code")) == (["religion"], ["age"])
    assert in_set(PERSONAS["opinion_qa"], "key") == ["ethnicity", "region", "education"]
    assert in_set(PERSONAS["opinion_qa"], "key-code") == ["age", "education", "party", "ideology"]
    assert in_set(PERSONAS["opinion_qa"], "least") == ["religion", "religious_attendance"]
    assert in_set(PERSONAS["opinion_qa"], "least-code") == ["marital_status"]


@pytest.mark.parametrize("task", PERSONAS)
def test_a_full_persona_has_a_sentence_of_its_own_for_each_variable(task: str) -> None:
    variables = PERSONAS[task]
    persona = render({variable.column: "1" for variable in variables}, variables)
    sentences = [entry["sentence"] for entry in persona]
    assert len(set(sentences)) == len(variables) == len({variable.name for variable in variables})


def test_columns_that_nobody_knows_are_told_by_name_or_by_sentence() -> None:
    variables = variables_of(["home_town", "age"], {"age": "They are {}."}, {"key": ["age"], "least": ["home_town"]})
    persona = render({"home_town": "Cork", "age": "34"}, variables)
    assert text_of(persona) == "The person's home town: Cork. They are 34."
    assert [entry["sets"] for entry in persona] == [["least"], ["key"]]


@given(value=st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none()))
def test_every_value_is_either_missing_or_told(value: object) -> None:
    [entry] = render({"work": value}, [WORK])
    assert (entry["value"] is None) == (entry["sentence"] is None) == (clean_value(value, MISSING) is None)
    if entry["value"] is not None:
        assert entry["value"] == " ".join(str(value).split())
        assert entry["sentence"].endswith(".")
