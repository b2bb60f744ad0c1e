"""Where something lies, as others may read it."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import PlainSerializer

KIND = re.compile(r"[a-z][a-z-]+:")


def public_location(location: str) -> str:
    """A location without the folders of this machine: of an absolute path, and of one that climbs, the last name.

    Any other is the same everywhere and stays as it is: a name on the Hub, "sample", a path below the current folder.
    A path may have its kind before it, such as "lamp-qa:/home/me/data".
    """
    found = KIND.match(location)
    kind = found[0] if found else ""
    path = Path(location.removeprefix(kind))
    return f"{kind}{path.name}" if path.is_absolute() or ".." in path.parts else location


Location = Annotated[str, PlainSerializer(public_location, when_used="json")]
"""A location in a recipe. Written down, it is a public one."""
