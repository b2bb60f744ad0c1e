"""Reading of TOML of unknown origin, within limits of size and depth."""

import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time
from pathlib import Path
from typing import Any

from pluralbench_runs.errors import RecipeError, UserError, one_line
from pluralbench_runs.regular_files import open_file

MAX_BYTES = 500_000  # of a file; the parser takes about a second for them
MAX_DEPTH = 32  # of nested tables and lists, and parts of a dotted key
INTEGERS = range(-(2**53) + 1, 2**53)  # exact in JSON

PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
LONG_KEY = re.compile(rf"(?<![\w-])(?:{PART}){{{MAX_DEPTH}}}")  # the parser's time is quadratic in the number of parts


def read_toml(path: Path, what: str = "recipe", error: type[UserError] = RecipeError) -> dict[str, Any]:
    """Read a TOML file, which errors call a `what`.

    Raises:
        UserError: Of the type `error`: the file is missing, a folder, not UTF-8, not TOML, larger than `MAX_BYTES`,
            nested deeper than `MAX_DEPTH`, or has a value with a `value_error`.
    """
    try:
        with open_file(path) as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise error(f"There is no {what} {path}.") from None
    except IsADirectoryError:
        raise error(f"The {what} {path} is a folder; give a file.") from None
    except (OSError, ValueError) as cause:  # ValueError: a null character in the path
        reason = one_line(getattr(cause, "strerror", None) or cause)
        raise error(f"The {what} {path} cannot be read: {reason}.") from None
    if len(data) > MAX_BYTES:
        raise error(f"The {what} {path} is larger than {MAX_BYTES:,} bytes; shorten it.")
    try:
        return parse_toml(data.decode("utf-8-sig"))
    except UnicodeDecodeError as cause:
        line = data.count(b"\n", 0, cause.start) + 1
        raise error(f"The {what} {path} is not UTF-8 (line {line}); save it as UTF-8.") from None
    except ValueError as cause:
        raise error(f"The {what} {path} is not valid TOML: {one_line(cause)}.") from None


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML within the limits of `read_toml`.

    Raises:
        ValueError: The text is not TOML or exceeds a limit. The message is the end of a sentence, without full stop.
    """
    if len(text) > MAX_BYTES:
        raise ValueError(f"it is longer than {MAX_BYTES:,} characters")
    if match := LONG_KEY.search(text):
        line = text.count("\n", 0, match.start()) + 1
        raise ValueError(f"a key has more than {MAX_DEPTH} parts (line {line})")
    try:
        values = tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"tables or lists are nested deeper than {MAX_DEPTH}") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # an integer that Python refuses to parse
        raise ValueError("an integer has too many digits") from None
    if problem := value_error(values):
        raise ValueError(problem)
    return values


def value_error(values: Mapping[str, object]) -> str:
    """Explain what is wrong with the values of a recipe, whatever its keys mean, in a clause; "" if nothing is.

    The values may be nested deeper than `MAX_DEPTH`, or have an integer beyond 2**53, a number that is not finite, a
    date, a null character, or a lone surrogate (from a command line that is not UTF-8).
    """
    for place, value in leaves(values):
        if len(place) > MAX_DEPTH:
            return f"tables or lists are nested deeper than {MAX_DEPTH}"
        problem = next(filter(None, map(_value_problem, (*place, value))), "")
        if problem:
            return f"`{format_key(place)}` {problem}"
    return ""


def leaves(values: object) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield every value that is not a table or a list, and every empty table or list, with the keys that lead to it.

    A table or list deeper than `MAX_DEPTH` is yielded itself.
    """
    stack: list[tuple[tuple[str, ...], object]] = [((), values)]
    while stack:
        place, value = stack.pop()
        children = _children(value) if len(place) <= MAX_DEPTH else ()
        if children:
            stack += [((*place, key), child) for key, child in reversed(children)]
        else:
            yield place, value


def format_key(place: Sequence[str]) -> str:
    """Join the keys that lead to a value with dots, on one line of at most 80 characters."""
    return one_line(".".join(part if part.isprintable() else repr(part) for part in place), 80)


def _children(value: object) -> Sequence[tuple[str, object]]:
    if isinstance(value, Mapping):
        return [(str(key), part) for key, part in value.items()]
    if isinstance(value, list | tuple):
        return [(str(number), part) for number, part in enumerate(value)]
    return ()


def _value_problem(value: object) -> str:
    if isinstance(value, str):
        if any("\udc80" <= character <= "\udcff" for character in value):  # bytes of a command line
            return "has a byte that is not text here; use UTF-8, or set PYTHONUTF8=1"
        surrogates = any("\ud800" <= character <= "\udfff" for character in value)
        return "has a null character" if "\0" in value else "has half a character" if surrogates else ""
    if isinstance(value, int) and value not in INTEGERS:
        return "is an integer beyond 2**53"
    if isinstance(value, float) and not math.isfinite(value):
        return "is not a finite number"
    return "is a date or a time; write it in quotes" if isinstance(value, date | time) else ""
