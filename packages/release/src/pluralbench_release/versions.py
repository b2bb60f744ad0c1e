"""Version numbers of published releases."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from pluralbench_release.diff import TableDiff
from pluralbench_release.errors import ReleaseError

NUMBER = re.compile(r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})")

Change = Literal["major", "minor", "patch"]


class Version(NamedTuple):
    """The version of a release, such as 1.2.0; versions compare by number."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def tag(self) -> str:
        """The git tag of a published version, such as v1.2.0."""
        return f"v{self}"

    def after(self, change: Change) -> "Version":
        """Return the next version after a change of this size."""
        if change == "major":
            return Version(self.major + 1, 0, 0)
        if change == "minor":
            return Version(self.major, self.minor + 1, 0)
        return Version(self.major, self.minor, self.patch + 1)


def parse_version(text: str) -> Version | None:
    """Parse a version of three numbers, such as 1.2.0; None for other texts."""
    match = NUMBER.fullmatch(text)
    return None if match is None else Version(*map(int, match.groups()))


def parse_tag(tag: str) -> Version:
    """Parse a tag such as v1.2.0. Raises `ReleaseError` for other texts."""
    version = parse_version(tag.removeprefix("v")) if tag.startswith("v") else None
    if version is None:
        raise ReleaseError(f"`tag=...` must be v and three numbers, such as v1.2.0; it is {tag!r}.")
    return version


def latest(tags: Iterable[str]) -> Version | None:
    """Return the highest version among tags, ignoring other tags; None without any."""
    versions = (parse_version(tag.removeprefix("v")) for tag in tags if tag.startswith("v"))
    return max((version for version in versions if version is not None), default=None)


def change_size(differences: Sequence[TableDiff]) -> Change:
    """Classify changes: major if rows were removed or changed, minor if rows were added, else patch.

    Results on the older version remain valid for the older rows of a minor version, and for a patch version.
    """
    if any(table.removed or table.changed for table in differences):
        return "major"
    return "minor" if any(table.added for table in differences) else "patch"
