"""Checks of names that become part of a path, and of relative paths.

A name may come from a release of unknown origin. It becomes a folder here, and a config or split of `datasets`
elsewhere.
"""

import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from pluralbench_runs.errors import UserError

MAX_NAME_BYTES = 100  # in UTF-8; `datasets` adds about 150 bytes to a config's name to make a file name
MAX_FILE_NAME_BYTES = 255  # limit of common file systems
MAX_PATH_LENGTH = 1000  # characters below a folder; common systems allow 4096 bytes in all
SHOWN_CHARACTERS = 40  # of a bad name in an error

SPLIT = re.compile(r"\w+(\.\w+)*")  # as in `datasets.naming`
RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)  # devices on Windows


def check_path_name(name: str, what: str) -> str:
    """Return `name` if it can be one part of a path and the name of a config that `datasets` loads.

    A valid name has letters and digits of any script, `_`, `-` and `.`, in Unicode's normal form NFC, at most
    `MAX_NAME_BYTES` bytes in UTF-8. It does not begin with `.` or `-`, does not end with `.`, and is not a device of
    Windows (`con`, `nul`). `what` is the subject of the error's sentence, such as "The benchmark".

    Raises:
        UserError: The name is not valid; the message says why.
    """
    return _checked_name(name, what, _name_problem(name))


def check_split_name(name: str, what: str) -> str:
    """Return `name` if it passes `check_path_name` and can be a split: no `-`, no empty part, not `all`."""
    return _checked_name(name, what, _split_problem(name))


def safe_join(folder: Path, relative: str) -> Path:
    """Join a relative path to `folder`, and check that the result is below `folder`. Neither has to exist.

    Each part must pass `check_path_name`, with up to `MAX_FILE_NAME_BYTES` bytes.

    Raises:
        UserError: `relative` is not such a path, or a link leads out of `folder`.
    """
    if problem := _path_problem(relative):
        raise UserError(f"{_quote(relative)} is not a path below {folder}: its part {problem}.")
    path = folder / relative
    try:
        is_below = path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # a loop of links, a RuntimeError up to Python 3.12
        is_below = False
    if not is_below:
        raise UserError(f"The path {path} leads out of {folder} through a link; remove the link.")
    return path


def _checked_name(name: str, what: str, problem: str) -> str:
    if problem:
        raise UserError(f"{what} is named {_quote(name)}, which {problem}; rename it.")
    return name


def _name_problem(name: str, max_bytes: int = MAX_NAME_BYTES) -> str:
    """Explain what is wrong with a name, as the end of a sentence that begins with it; "" if it is valid."""
    forbidden = next((character for character in name if not _is_allowed(character)), None)
    if forbidden is not None:
        return f"has {_quote(forbidden)} (allowed: letters, digits, `_`, `-` and `.`)"
    problems = {
        "is empty": not name,
        "is the parent folder `..`": name == "..",
        f"begins with `{name[:1]}`": name[:1] in {".", "-"},
        "ends with `.`": name[-1:] == ".",
        "is not in Unicode's normal form NFC": unicodedata.normalize("NFC", name) != name,
        f"is longer than {max_bytes} bytes": len(name.encode()) > max_bytes,
        "is a device on Windows": RESERVED.fullmatch(name) is not None,
    }
    return next((problem for problem, applies in problems.items() if applies), "")


def _path_problem(relative: str) -> str:
    problems = ((part, _name_problem(part, MAX_FILE_NAME_BYTES)) for part in relative.split("/"))
    return next((f"{_quote(part)} {problem}" for part, problem in problems if problem), "")


def _split_problem(name: str) -> str:
    if problem := _name_problem(name):
        return problem
    if name.lower() == "all":
        return "means every split to `datasets`"
    return "" if SPLIT.fullmatch(name) else "is not a split name: `datasets` allows letters, digits, `_` and single `.`"


def _is_allowed(character: str) -> bool:
    return character in "_-." or unicodedata.category(character)[0] in "LMN"


def _quote(name: str) -> str:
    return repr(name if len(name) <= SHOWN_CHARACTERS else f"{name[: SHOWN_CHARACTERS - 1]}…")


def validate_folder_name(name: str) -> str:
    """Return `name` if it can be a folder's: as `check_path_name`, but with any visible character except `/` and `\\`.

    Raises:
        ValueError: It cannot; the message is for a validator of pydantic.
    """
    plain = "".join("_" if one.isprintable() and one not in "/\\" and not _is_allowed(one) else one for one in name)
    if problem := _name_problem(plain):
        raise ValueError(f"the name {_quote(name)} {problem}; choose another")
    return name


def _name_validator(find_problem: Callable[[str], str]) -> AfterValidator:
    def validate(name: str) -> str:
        if problem := find_problem(name):
            raise ValueError(f"the name {_quote(name)} {problem}; choose another")
        return name

    return AfterValidator(validate)


def _validate_relative_path(relative: str) -> str:
    if problem := _path_problem(relative):
        raise ValueError(f"{_quote(relative)} is not a path below a folder: its part {problem}")
    return relative


PathName = Annotated[str, _name_validator(_name_problem)]
"""A name in a recipe or manifest that becomes part of a path; see `check_path_name`."""

SplitName = Annotated[str, _name_validator(_split_problem)]
"""A name in a recipe or manifest that becomes a split; see `check_split_name`."""

FolderName = Annotated[str, AfterValidator(validate_folder_name)]
"""A name in a recipe or manifest that becomes a folder which `datasets` does not read; see `validate_folder_name`."""

RelativePath = Annotated[str, Field(max_length=MAX_PATH_LENGTH), AfterValidator(_validate_relative_path)]
"""A relative path of a file in a manifest; see `safe_join`."""
