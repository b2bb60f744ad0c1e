"""Sentences for wrong uses of a command."""

import typer
from pydantic import ValidationError

from pluralbench_runs.errors import did_you_mean, one_line

NUMBERS = {
    "int_parsing": "is not a whole number",
    "int_from_float": "is not a whole number",
    "float_parsing": "is not a number",
    "greater_than_equal": "is less than {ge}",
    "less_than_equal": "is more than {le}",
}
"""The end of the sentence, by the type of pydantic's error."""


def usage_sentence(error: typer.TyperException) -> str:
    """Return the sentence for an unknown option, or for a value of a wrong type or out of bounds; "" after --help."""
    context, option, invalid = (getattr(error, name, None) for name in ("ctx", "param", "__cause__"))
    if not isinstance(invalid, ValidationError) or option is None:
        message = error.format_message().rstrip(".?")
        hint = f" See `{context.command_path} --help`." if context is not None else ""
        return f"{message}.{hint}" if message else ""
    first = invalid.errors()[0]
    value = one_line(first["input"], 80)
    shown = f"{option.opts[0] if option.param_type_name == 'option' else option.metavar} {value}"
    if first["type"] in NUMBERS:
        return f"{shown} {NUMBERS[first['type']].format(**first.get('ctx', {}))}."
    message = first["msg"].removeprefix("Value error, ").rstrip(".")
    _, is_choice, choices = message.replace("'", "").partition(" is not one of ")
    if not is_choice:
        return f"{shown}: {message}."
    hint = did_you_mean(value, choices.split(", ")).strip()
    return f"{shown} is not one of {choices}{f'; {hint}' if hint else '.'}"
