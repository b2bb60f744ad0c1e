"""Versions of the software that made a result."""

from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Map the installed ones of these packages to their versions."""
    return {package: found for package in packages if (found := _version(package)) is not None}


@cache  # reading a package's metadata takes milliseconds, and each run of a process records some ten
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
