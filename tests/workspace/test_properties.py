"""Properties are tried without a deadline, which would fail a test for the machine it runs on."""

import ast

import pytest
from hypothesis import settings
from members import ROOT


def test_the_profile_has_no_deadline() -> None:
    assert settings().deadline is None


@pytest.mark.heavy
def test_no_test_sets_a_deadline() -> None:
    setting = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path != ROOT / "tests" / "conftest.py"
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and any(word.arg == "deadline" for word in call.keywords)
    ]
    assert not setting
