"""Run the command of this member in the tests' own process, which starts in no time."""

import sys
from collections.abc import Callable

import pytest
from build_persona_judge.cli import main


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Run `build-persona-judge` with these words; gives its exit status and what it wrote."""
    monkeypatch.setenv("COLUMNS", "200")

    def words_to_result(*words: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["build-persona-judge", *map(str, words)])
        with pytest.raises(SystemExit) as exit_:
            main()
        written = capsys.readouterr()
        return int(exit_.value.code or 0), written.out + written.err

    return words_to_result
