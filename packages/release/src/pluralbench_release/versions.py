"""Versions of published releases: which number the changes of one call for."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from pluralbench_release.diff import TableDiff
from pluralbench_release.errors import ReleaseError

NUMBER = re.compile(r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})")

Change = Literal["major", "minor", "patch"]


class Version(NamedTuple):
    """The version of a release, such as 1.2.0; by size."""

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
        """The next version with a change of this size."""
        if change == "major":
            return Version(self.major + 1, 0, 0)
        if change == "minor":
            return Version(self.major, self.minor + 1, 0)
        return Version(self.major, self.minor, self.patch + 1)


def version_of(text: str) -> Version | None:
    """The version that a text of three numbers is, such as 1.2.0; None for another text."""
    found = NUMBER.fullmatch(text)
    return None if found is None else Version(*map(int, found.groups()))


def tagged(tag: str) -> Version:
    """The version of a tag such as v1.2.0. Raises `ReleaseError` for another."""
    found = version_of(tag.removeprefix("v")) if tag.startswith("v") else None
    if found is None:
        raise ReleaseError(f"`tag` (--tag) is {tag!r}, which is no version; it is v and three numbers, such as v1.2.0.")
    return found


def latest(tags: Iterable[str]) -> Version | None:
    """The highest version among tags, of which others are left alone; None without any."""
    found = (version_of(tag.removeprefix("v")) for tag in tags if tag.startswith("v"))
    return max((version for version in found if version is not None), default=None)


def change_of(differences: Sequence[TableDiff]) -> Change:
    """How large a change is: major where rows went or changed, minor where rows came, patch where all are the same.

    What somebody measured on the older version holds for a minor one's older rows, and for a patch altogether.
    """
    if any(table.removed or table.changed for table in differences):
        return "major"
    return "minor" if any(table.added for table in differences) else "patch"
