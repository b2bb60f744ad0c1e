"""Personas: the variables of a person, a sentence for each, and the sets of variables of the paper's ablation.

The paper's ablation (section 5) shows education, location and ethnicity (`key`), or religion alone (`least`; in
OpinionQA with attendance of services). The authors' code shows other variables (`key-code` and `least-code`). Both used
PRISM and OpinionQA only. For the other two tasks, `key` has the available ones of the paper's three, and the other sets
are empty.
"""

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SETS = ("key", "least", "key-code", "least-code")
UNKNOWN = ("", "nan", "unknown", "refused", "prefer not to say")  # also for ids and texts
MISSING = (*UNKNOWN, "na", "n/a", "n.a.", "#n/a", "null", "-", "--", "–", "—", ".", "?")
KEY, LEAST, KEY_CODE, LEAST_CODE = ((name,) for name in SETS)
BOTH_KEYS = (*KEY, *KEY_CODE)
Persona = list[dict[str, Any]]


@dataclass(frozen=True)
class Variable:
    """A variable of a persona.

    Attributes:
        column: Column of the source; a dot separates the levels of an object.
        sentence: Sentence with {} for the value.
        sets: Sets of the ablation that contain it.
        instead: Replacement sentences by value (in lower case).
        labels: Meanings of the source's codes.
        number: Whether the value is a number.
        lower: Whether the sentence has the value in lower case.
    """

    name: str
    column: str
    sentence: str
    sets: tuple[str, ...] = ()
    instead: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    number: bool = False
    lower: bool = False


def clean_value(value: object, missing: Container[str] = UNKNOWN) -> str | None:
    """Convert a value to text with collapsed spaces; None if it is missing.

    Args:
        value: The value.
        missing: Lower-case words for a missing value. Only a whole value matches, so "Finance" is not missing although
            it contains "nan".
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    text = " ".join(str(value).split())
    return None if text.casefold() in missing else text


def to_number(value: object) -> float | None:
    """Convert a value to a finite number; None if it is not one."""
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def render(values: Mapping[str, object], variables: Sequence[Variable], missing: Container[str] = MISSING) -> Persona:
    """Render a person's persona.

    Args:
        values: Values by column.
        variables: Variables of the persona.
        missing: See `clean_value`.

    Returns:
        A struct of `pluralbench_schemas.VARIABLE` for each variable. A missing value or a code without a label has
        neither value nor sentence.
    """
    return [_render_variable(variable, clean_value(values.get(variable.column), missing)) for variable in variables]


def _render_variable(variable: Variable, value: str | None) -> dict[str, Any]:
    number = None
    if value is not None and (variable.number or variable.labels):
        parsed = to_number(value)
        value = value if parsed is None else f"{parsed:.12g}"
        number = parsed if variable.number else None
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


def is_empty(persona: Persona) -> bool:
    """Whether every variable is missing."""
    return all(entry["value"] is None for entry in persona)


def text_of(persona: Persona) -> str:
    """Join all sentences with spaces."""
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
# Fixed words begin here, which spelling rules leave alone.
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
# Fixed words end here.
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
    """Make variables for the columns of a user's table.

    Args:
        columns: Names of the columns.
        sentences: Sentences by column, with {} for the value. Default: a sentence with the column's name.
        sets: Columns by set of the ablation.
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
