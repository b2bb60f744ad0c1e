"""Marks for some of a test's parameters."""

from typing import Any

import pytest


def heavy(*cases: Any) -> list[Any]:
    """These cases, a tuple for several arguments, for the complete run alone."""
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.heavy) for case in cases]
