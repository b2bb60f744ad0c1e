"""Which software a result was made with."""

from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version


def versions(packages: Iterable[str]) -> dict[str, str]:
    """The versions of those of the packages that are installed, by name."""
    found = {}
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
