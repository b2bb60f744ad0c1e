"""Personas: the variables of a person, a sentence for each, and the sets of variables of the paper's ablation.

The variables of the four tasks are in personas.toml.
"""

import math
import tomllib
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SETS = ("key", "least", "key-code", "least-code")
UNKNOWN = ("", "nan", "unknown", "refused", "prefer not to say")  # also for ids and texts
MISSING = (*UNKNOWN, "na", "n/a", "n.a.", "#n/a", "null", "-", "--", "–", "—", ".", "?")
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
    sets: Sequence[str] = ()
    instead: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    number: bool = False
    lower: bool = False


def clean_value(value: object, missing: Container[str] = UNKNOWN) -> str | None:
    """Convert a value to text with collapsed spaces; None if it is missing.

    Only a whole value matches a (lower-case) word in `missing`, so "Finance" is not missing although it contains "nan".
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
    """Render a person's persona from the values by column, as structs of `pluralbench_schemas.VARIABLE`.

    A missing value or a code without a label has neither value nor sentence.
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


PERSONAS = {
    task: [Variable(**values) for values in variables]
    for task, variables in tomllib.loads(Path(__file__).with_name("personas.toml").read_text(encoding="utf-8")).items()
}
"""The variables of each task's personas."""


def variables_of(
    columns: Sequence[str], sentences: Mapping[str, str], sets: Mapping[Any, Sequence[str]]
) -> list[Variable]:
    """Make variables for the columns of a user's table, with a default sentence for a column without one."""
    return [
        Variable(
            name,
            name,
            sentences.get(name, f"The person's {name.replace('_', ' ')}: {{}}."),
            [chosen for chosen in SETS if name in sets.get(chosen, ())],
        )
        for name in columns
    ]
