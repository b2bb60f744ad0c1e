"""Run the command of this member in the tests' own process."""

from collections.abc import Callable

import pytest
from build_multilingual.cli import main
from commands import in_process


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Run `build-multilingual` with these words; gives its exit status and what it wrote."""
    return in_process("build-multilingual", main, monkeypatch, capsys)
