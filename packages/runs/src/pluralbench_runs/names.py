"""Names that become part of a path, and paths that stay below their folder.

A name may come from a stranger's release, and it becomes a folder here and a config or split of `datasets` elsewhere.
"""

import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from pluralbench_runs.errors import UserError

MAX_NAME_BYTES = (
    100  # bytes in UTF-8: `datasets` puts a config's name into a file name beside some 150 bytes of its own
)
MAX_FILE_NAME_BYTES = 255  # bytes of a file's name, on the file systems that are common
MAX_PATH_LENGTH = 1000  # characters of a path below a folder; common systems take 4096 bytes with the folder
SHOWN = 40  # characters of a bad name in the sentence about it

SPLIT = re.compile(r"\w+(\.\w+)*")  # as `datasets.naming` has it
RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)  # devices on Windows


def check_path_name(name: str, what: str) -> str:
    """Return `name` if it can be one part of a path and the name of a config that `datasets` loads.

    A valid name has letters and digits of any script, `_`, `-` and `.`, in Unicode's normal form NFC, at most
    `MAX_NAME_BYTES` bytes in UTF-8. It does not begin with `.` or `-`, does not end with `.`, and is not a device of
    Windows (`con`, `nul`).

    Args:
        name: The name.
        what: Subject of the error's sentence, such as "The benchmark".

    Raises:
        UserError: The name is not valid; the message says why.
    """
    return _named(name, what, _fault(name))


def check_split_name(name: str, what: str) -> str:
    """Return `name` if it passes `check_path_name` and is a split name to `datasets`: no `-`, no empty part, not `all`.

    Args:
        name: The name.
        what: Subject of the error's sentence, such as "The split".

    Raises:
        UserError: The name is not valid; the message says why.
    """
    return _named(name, what, _split_fault(name))


def safe_join(folder: Path, relative: str) -> Path:
    """Join a relative path to `folder`, and check that the result is below `folder`. Neither has to exist.

    Args:
        folder: The folder.
        relative: Path below `folder` with `/` as separator. Each part must pass `check_path_name`, with up to
            `MAX_FILE_NAME_BYTES` bytes.

    Raises:
        UserError: `relative` is not such a path, or a link leads out of `folder`.
    """
    if fault := _path_fault(relative):
        raise UserError(f"The path {_shown(relative)} is none below {folder}: its part {fault}.")
    path = folder / relative
    try:
        held = path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # a loop of links, which Python up to 3.12 takes for a RuntimeError
        held = False
    if not held:
        raise UserError(f"The path {path} leads out of {folder} by a link; remove the link.")
    return path


def _named(name: str, what: str, fault: str) -> str:
    if fault:
        raise UserError(f"{what} is named {_shown(name)}, which {fault}; give it another name.")
    return name


def _fault(name: str, most: int = MAX_NAME_BYTES) -> str:
    """What is wrong with a name, as the end of a sentence that begins with it; "" for nothing."""
    strange = next((character for character in name if not _is_plain(character)), None)
    if strange is not None:
        return f"holds {_shown(strange)} beside letters, digits, `_`, `-` and `.`"
    faults = {
        "is empty": not name,
        "climbs with `..`": name == "..",
        f"begins with `{name[:1]}`": name[:1] in {".", "-"},
        "ends with `.`": name[-1:] == ".",
        "is not in Unicode's normal form NFC": unicodedata.normalize("NFC", name) != name,
        f"is longer than {most} bytes": len(name.encode()) > most,
        "is a device on Windows": RESERVED.fullmatch(name) is not None,
    }
    return next((fault for fault, found in faults.items() if found), "")


def _path_fault(relative: str) -> str:
    """Which part of a path is no name, and why; "" for none."""
    faults = ((part, _fault(part, MAX_FILE_NAME_BYTES)) for part in relative.split("/"))
    return next((f"{_shown(part)} {fault}" for part, fault in faults if fault), "")


def _split_fault(name: str) -> str:
    if fault := _fault(name):
        return fault
    if name.lower() == "all":
        return "means every split to `datasets`"
    return "" if SPLIT.fullmatch(name) else "is no split to `datasets`: it has letters, digits, `_` and single `.`"


def _is_plain(character: str) -> bool:
    return character in "_-." or unicodedata.category(character)[0] in "LMN"


def _shown(name: str) -> str:
    """A name in quotes, on one line and not long, whatever it holds."""
    return repr(name if len(name) <= SHOWN else f"{name[: SHOWN - 1]}…")


def _checked(fault: Callable[[str], str]) -> AfterValidator:
    """For a field of a model: a name of which `fault` says nothing."""

    def checked(name: str) -> str:
        if said := fault(name):
            raise ValueError(f"the name {_shown(name)} {said}; give another")
        return name

    return AfterValidator(checked)


def _checked_relative_path(relative: str) -> str:
    if fault := _path_fault(relative):
        raise ValueError(f"the path {_shown(relative)} is none below a folder: its part {fault}")
    return relative


PathName = Annotated[str, _checked(_fault)]
"""A name in a recipe or manifest that becomes part of a path; see `check_path_name`."""

SplitName = Annotated[str, _checked(_split_fault)]
"""A name in a recipe or manifest that becomes a split; see `check_split_name`."""

RelativePath = Annotated[str, Field(max_length=MAX_PATH_LENGTH), AfterValidator(_checked_relative_path)]
"""The way to a file in a manifest; see `safe_join`."""
