"""Locations in recipes, without the private folders of a machine."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, PlainSerializer

KIND = re.compile(r"[a-z][a-z-]+:")


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
    return text


PathText = Annotated[str, AfterValidator(_check_path_text)]
"""A path, or a name on the Hub, that the system can look up."""

Location = Annotated[PathText, PlainSerializer(public_location, when_used="json")]
"""A location in a recipe, which is written with `public_location`."""
