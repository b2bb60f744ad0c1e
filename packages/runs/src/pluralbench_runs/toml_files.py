"""TOML that may come from anybody: read whole and within limits, or refused in one sentence."""

import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time
from pathlib import Path
from typing import Any

from pluralbench_runs.errors import RecipeError, UserError, one_line
from pluralbench_runs.regular_files import open_file

LARGEST = 500_000  # bytes of a file: the parser takes about a second for them
DEEPEST = 32  # tables and lists within each other, and parts of a dotted key
INTEGERS = range(-(2**53) + 1, 2**53)  # what JSON holds exactly

PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
LONG_KEY = re.compile(rf"(?<![\w-])(?:{PART}){{{DEEPEST}}}")  # the parser's time is quadratic in the parts


def read_toml(path: Path, what: str = "recipe", error: type[UserError] = RecipeError) -> dict[str, Any]:
    """What the TOML file `path` holds.

    what: what kind of file it is, for a sentence: "The recipe PATH is not valid TOML".

    Raises `error` for a file that is missing, a folder, not UTF-8, no TOML, larger than `LARGEST` bytes, deeper than
    `DEEPEST`, and for values that `value_error` tells of.
    """
    try:
        with open_file(path) as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise error(f"There is no {what} {path}.") from None
    except IsADirectoryError:
        raise error(f"The {what} {path} is a folder; give a file.") from None
    except (OSError, ValueError) as fault:  # ValueError: a null character in the path
        said = one_line(getattr(fault, "strerror", None) or fault)
        raise error(f"The {what} {path} cannot be read: {said}.") from None
    if len(data) > LARGEST:
        raise error(f"The {what} {path} is larger than {LARGEST:,} bytes; give a shorter one.")
    try:
        return parse_toml(data.decode("utf-8-sig"))
    except UnicodeDecodeError as fault:
        line = data.count(b"\n", 0, fault.start) + 1
        raise error(f"The {what} {path} is not UTF-8 (line {line}); save it as UTF-8.") from None
    except ValueError as fault:
        raise error(f"The {what} {path} is not valid TOML: {one_line(fault)}.") from None


def parse_toml(text: str) -> dict[str, Any]:
    """What a text in TOML holds, within the limits of `read_toml`.

    Raises `ValueError`, its message the end of a sentence without the full stop.
    """
    if len(text) > LARGEST:
        raise ValueError(f"it is longer than {LARGEST:,} characters")
    if found := LONG_KEY.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise ValueError(f"a key of more than {DEEPEST} parts (line {line})")
    try:
        values = tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"tables or lists are more than {DEEPEST} deep") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # what Python refuses to read as an integer
        raise ValueError("an integer has too many digits") from None
    if fault := value_error(values):
        raise ValueError(fault)
    return values


def value_error(values: Mapping[str, object]) -> str:
    """What is wrong with values of a recipe, whatever its keys mean, in words without a full stop; "" for nothing.

    They are more than `DEEPEST` deep, or hold an integer beyond 2**53, a number that is not finite, a date (JSON has
    neither), a null character, or half a character (as of a command line that is not UTF-8).
    """
    for place, value in leaves(values):
        if len(place) > DEEPEST:
            return f"tables or lists are more than {DEEPEST} deep"
        fault = next(filter(None, map(_fault, (*place, value))), "")
        if fault:
            return f"`{shown_key(place)}` {fault}"
    return ""


def leaves(values: object) -> Iterator[tuple[tuple[str, ...], object]]:
    """Every value that is no table and no list, with the keys that lead to it; a table or list that is empty too.

    What is deeper than `DEEPEST` is not followed; there the table or list itself stands.
    """
    waiting: list[tuple[tuple[str, ...], object]] = [((), values)]
    while waiting:
        place, value = waiting.pop()
        inner = _inner(value) if len(place) <= DEEPEST else ()
        if inner:
            waiting += [((*place, key), part) for key, part in reversed(inner)]
        else:
            yield place, value


def shown_key(place: Sequence[str]) -> str:
    """The keys that lead to a value, with dots, on one line and not long."""
    return one_line(".".join(part if part.isprintable() else repr(part) for part in place), 80)


def _inner(value: object) -> Sequence[tuple[str, object]]:
    if isinstance(value, Mapping):
        return [(str(key), part) for key, part in value.items()]
    if isinstance(value, list | tuple):
        return [(str(number), part) for number, part in enumerate(value)]
    return ()


def _fault(value: object) -> str:
    """What is wrong with a key or a value, as the end of a sentence that begins with its key."""
    if isinstance(value, str):
        halves = any("\ud800" <= character <= "\udfff" for character in value)
        return "holds a null character" if "\0" in value else "holds half a character" if halves else ""
    if isinstance(value, int) and value not in INTEGERS:
        return "is an integer beyond 2**53"
    if isinstance(value, float) and not math.isfinite(value):
        return "is not a finite number"
    return "is a date or a time; write it in quotes" if isinstance(value, date | time) else ""
