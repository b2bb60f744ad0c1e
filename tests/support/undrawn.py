"""Runs whose figures are empty files: to draw them takes as long as such a run, and other tests look at them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


def _touched(_: Any, *paths: Path, **__: Any) -> list[Path]:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return list(paths)


@contextmanager
def undrawn() -> Iterator[None]:
    """Write figures of `pluralbench`, and the curves of a policy, without drawing them."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("pluralbench.reports.figures.files._save", _touched)
        patched.setattr("matplotlib.figure.Figure.savefig", _touched)
        yield
