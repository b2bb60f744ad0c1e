"""Personas: what is known of a person, a sentence a variable, and which variables an ablation shows.

The paper's ablation (section 5) shows three variables, education, location and ethnicity (`key`), or religion alone
(`least`). The authors' code shows others, which are `key-code` and `least-code`. Both ran on PRISM and OpinionQA only:
for the other two tasks `key` holds what there is of the paper's three, and the other sets are empty.
"""

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SETS = ("key", "least", "key-code", "least-code")
UNKNOWN = ("", "nan", "unknown", "refused", "prefer not to say")  # as a name or a text, too
MISSING = (*UNKNOWN, "na", "n/a", "n.a.", "#n/a", "null", "-", "--", "–", "—", ".", "?")
KEY, LEAST, KEY_CODE, LEAST_CODE = ((name,) for name in SETS)
BOTH_KEYS = (*KEY, *KEY_CODE)
Rendered = list[dict[str, Any]]


@dataclass(frozen=True)
class Variable:
    """A variable of a persona.

    column: where its value stands in the source, a dot between the levels of an object. sentence: with {} where the
    value goes. instead: whole sentences by value. labels: what the source's codes mean. number: whether it is one.
    lower: whether its sentence has it in lower case.
    """

    name: str
    column: str
    sentence: str
    sets: tuple[str, ...] = ()
    instead: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    number: bool = False
    lower: bool = False


def known(value: object, missing: Container[str] = UNKNOWN) -> str | None:
    """The text of a value, blanks collapsed; None where it is missing.

    missing: what says so, in lower case. The whole value has to be one of them, so "Finance" is not missing though it
    contains "nan".
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    text = " ".join(str(value).split())
    return None if text.casefold() in missing else text


def number_of(value: object) -> float | None:
    """A value as a finite number, None where it is none."""
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def render(values: Mapping[str, object], variables: Sequence[Variable], missing: Container[str] = MISSING) -> Rendered:
    """The persona of a person, a struct of `pluralbench_schemas.VARIABLE` for each of `variables`.

    values: by column. missing: see `known`. A missing value has neither value nor sentence. A code without a label is
    missing as well.
    """
    return [_rendered(variable, known(values.get(variable.column), missing)) for variable in variables]


def _rendered(variable: Variable, value: str | None) -> dict[str, Any]:
    number = None
    if value is not None and (variable.number or variable.labels):
        found = number_of(value)
        value = value if found is None else f"{found:.12g}"
        number = found if variable.number else None
    if value is not None and variable.labels:
        value = variable.labels.get(value)
    sentence = None
    if value is not None:
        shown = (value.lower() if variable.lower else value).rstrip(".")
        sentence = variable.instead.get(value.casefold(), variable.sentence.replace("{}", shown))
    return {
        "variable": variable.name,
        "value": value,
        "number": number,
        "sentence": sentence,
        "sets": list(variable.sets),
    }


def nothing_known(persona: Rendered) -> bool:
    """Whether every variable is missing."""
    return all(entry["value"] is None for entry in persona)


def text_of(persona: Rendered) -> str:
    """All sentences, a blank between them."""
    return " ".join(entry["sentence"] for entry in persona if entry["sentence"] is not None)


BORN, LIVES = "The person was born in {}.", "The person lives in {}."
AGE, GENDER, ETHNICITY = "The person's age is {}.", "The person's gender is {}.", "The person's ethnicity is {}."
EDUCATION, RELIGION = "The person's highest level of education is {}.", "The person's religion is {}."
MARRIED, WORKS = "The person's marital status is {}.", "The person's employment status is {}."
TRAIT = "On a scale from 1 to 7, the person scores {} for NAME in a personality test."

PRISM = (
    Variable("age", "age", "The person is {}.", LEAST_CODE),
    Variable("gender", "gender", GENDER, lower=True),
    Variable("employment", "employment_status", WORKS, lower=True),
    Variable("education", "education", EDUCATION, BOTH_KEYS, lower=True),
    Variable("marital_status", "marital_status", MARRIED, lower=True),
    Variable("ethnicity", "ethnicity.simplified", ETHNICITY, BOTH_KEYS),
    Variable(
        "religion",
        "religion.simplified",
        RELIGION,
        LEAST,
        instead={"no affiliation": "The person belongs to no religion."},
    ),
    Variable("birth_country", "location.birth_country", BORN, BOTH_KEYS),
    Variable("residence_country", "location.reside_country", LIVES, BOTH_KEYS),
)
OPINION_QA = (
    Variable("ethnicity", "RACE", ETHNICITY, KEY),
    Variable("region", "CREGION", "The person lives in this region of the United States: {}.", KEY),
    Variable("age", "AGE", "The person is in the age group {}.", KEY_CODE),
    Variable("sex", "SEX", "The person's sex is {}.", lower=True),
    Variable("education", "EDUCATION", EDUCATION, BOTH_KEYS, lower=True),
    Variable(
        "citizenship",
        "CITIZEN",
        "Is the person a citizen of the United States? {}.",
        instead={
            "yes": "The person is a citizen of the United States.",
            "no": "The person is not a citizen of the United States.",
        },
    ),
    Variable("marital_status", "MARITAL", MARRIED, LEAST_CODE, lower=True),
    Variable("religion", "RELIG", RELIGION, LEAST),
    Variable("religious_attendance", "RELIGATTEND", "The person attends religious services: {}.", LEAST, lower=True),
    Variable("party", "POLPARTY", "The person's political party is {}.", KEY_CODE),
    Variable("ideology", "POLIDEOLOGY", "The person's political views are {}.", KEY_CODE, lower=True),
    Variable("income", "INCOME", "The person's yearly income is {}."),
)
EMPATHIC_CONVERSATIONS = (
    Variable("gender", "gender", GENDER, labels={"1": "male", "2": "female", "5": "other"}),
    Variable(
        "ethnicity",
        "race",
        ETHNICITY,
        KEY,
        labels={
            "1": "White",
            "2": "Hispanic or Latino",
            "3": "Black",
            "4": "Native American",
            "5": "Asian or Pacific Islander",
            "6": "other",
        },
    ),
    Variable("age", "age", AGE, number=True),
    Variable(
        "education",
        "education",
        EDUCATION,
        KEY,
        labels={
            "1": "less than a high school diploma",
            "2": "a high school diploma",
            "3": "technical or vocational school",
            "4": "some college",
            "5": "a two-year associate degree",
            "6": "a bachelor's degree",
            "7": "a postgraduate or professional degree",
        },
    ),
    Variable("income", "income", "The person earns {} US dollars a year.", number=True),
    *(
        Variable(name, f"personality_{column}", TRAIT.replace("NAME", shown), number=True)
        for name, column, shown in (
            ("openness", "openess", "openness to experience"),  # spelled so in the source
            ("conscientiousness", "conscientiousness", "conscientiousness"),
            ("extraversion", "extraversion", "extraversion"),
            ("agreeableness", "agreeableness", "agreeableness"),
            ("stability", "stability", "emotional stability"),
        )
    ),
)
PERSONAL_REDDIT = (
    Variable("age", "age", AGE, number=True),
    Variable("sex", "sex", "The person's sex is {}."),
    Variable("residence", "city_country", LIVES, KEY),
    Variable("birth_place", "birth_city_country", BORN, KEY),
    Variable("education", "education", EDUCATION, KEY),
    Variable("occupation", "occupation", "The person works as: {}."),
    Variable("income", "income", "The person's yearly income is {}."),
    Variable("relationship_status", "relationship_status", "The person's relationship status is {}."),
)


def variables_of(
    columns: Sequence[str], sentences: Mapping[str, str], sets: Mapping[str, Sequence[str]]
) -> list[Variable]:
    """Variables of a table that nobody here knows, one for each column.

    sentences: by column, with {} for the value; a column without one is told by its name. sets: columns by set.
    """
    return [
        Variable(
            name,
            name,
            sentences.get(name, f"The person's {name.replace('_', ' ')}: {{}}."),
            tuple(chosen for chosen in SETS if name in sets.get(chosen, ())),
        )
        for name in columns
    ]
