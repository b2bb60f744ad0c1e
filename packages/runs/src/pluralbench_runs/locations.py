"""Locations of data: without the private folders of a machine, and at the commit that was asked for."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, PlainSerializer

from pluralbench_runs.errors import UserError
from pluralbench_runs.path_names import MAX_FILE_NAME_BYTES

KIND = re.compile(r"[a-z][a-z-]+:")
# A commit or the beginning of one. Words and dates, which name branches and tags, do not mix letters and digits.
COMMIT = re.compile(r"[0-9a-f]{40}|(?=.*[a-f])(?=.*[0-9])[0-9a-f]{7,39}")


def public_location(location: str) -> str:
    """Remove the folders of this machine from a location.

    An absolute path, or one with `..`, becomes its last name. Any other location stays as it is: a name on the Hub,
    "sample", a path below the current folder. A path may have a kind in front, such as "lamp-qa:/home/me/data".
    """
    match = KIND.match(location)
    kind = match[0] if match else ""
    path = Path(location.removeprefix(kind))
    return f"{kind}{path.name}" if path.is_absolute() or ".." in path.parts else location


def _check_path_text(text: str) -> str:
    if "\0" in text:
        raise ValueError("it has a null character, which no path or name has")
    if any(len(part.encode(errors="replace")) > MAX_FILE_NAME_BYTES for part in text.split("/")):
        raise ValueError(f"it has a part of more than {MAX_FILE_NAME_BYTES} bytes, which no file name has")
    return text


PathText = Annotated[str, AfterValidator(_check_path_text)]
"""A path, or a name on the Hub, that the system can look up."""

Location = Annotated[PathText, PlainSerializer(public_location, when_used="json")]
"""A location in a recipe, which is written with `public_location`."""


def check_commit(repository: str, asked: str | None, came: str, error: type[UserError]) -> None:
    """Check the commit that the Hub, or a mirror, serves; any is right for a revision that is not one or its beginning.

    Raises:
        UserError: Of the type `error`: another commit came.
    """
    if asked and COMMIT.fullmatch(asked) and not came.startswith(asked):
        raise error(
            f"The Hub serves commit {came[:12] or '(none)'} of {repository}, not {asked[:12]} as asked for; check the "
            "revision, and the mirror if `HF_ENDPOINT` names one."
        )
