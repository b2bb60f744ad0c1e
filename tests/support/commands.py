"""Run the project's commands as a user does, in a process of their own that reaches loopback only."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

import pytest

LOOPBACK_ONLY = Path(__file__).parent / "loopback_only"
# What stands for Apertium: its answers have a letter more in each line.
APERTIUM = """#!/bin/sh
if [ "$1" = -l ]; then echo eng-spa; echo eng-por; exit; fi
while IFS= read -r line; do printf '%s\\n' "u$line"; done
"""


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a command: ours, wide output, no color, loopback only."""
    paths = [str(LOOPBACK_ONLY), os.environ.get("PYTHONPATH", "")]
    base = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "COLUMNS": "200", "NO_COLOR": "1"}
    return base | dict(extra or {})


def script(name: str) -> str:
    """The path of an installed command."""
    return str(Path(sys.executable).parent / name)


def command(
    *words: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None, timeout: float = 240
) -> subprocess.CompletedProcess[str]:
    """Run a command of this environment to its end. timeout: seconds after which it hangs."""
    first, *rest = words
    return subprocess.run(
        [script(str(first)), *map(str, rest)],
        cwd=cwd,
        env=environment(env),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
    )


def without_status(errors: str) -> str:
    """Standard error without the lines about what begins and how far it is, which precede a refusal too.

    They are such as "Reading runs...", "Loading my-model: 6 s so far" and "scoring: 3 of 9, 2.0/s, 3 s left".
    """
    return re.sub(
        r"^(?!Error)[^\n]*(\.\.\.| is already complete\.|: \d+ s so far|: \d+ of \d+[^\n]*)\n",
        "",
        errors,
        flags=re.MULTILINE,
    )


def in_process(
    name: str, main: Callable[[], NoReturn], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Run a command's `main` with words in this process, which starts in no time: its exit status and what it wrote."""
    monkeypatch.setenv("COLUMNS", "200")
    for variable in ("OPENAI_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"):
        monkeypatch.delenv(variable, raising=False)

    def words_to_result(*words: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
        with pytest.raises(SystemExit) as exit_:
            main()
        written = capsys.readouterr()
        return int(exit_.value.code or 0), written.out + without_status(written.err)

    return words_to_result


def refused_with(result: tuple[int, str], sentence: str) -> None:
    """Assert that a command in this process said exactly this sentence, and ended with status 2."""
    assert result == (2, f"Error: {sentence}\n")


def by_apertium(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put what stands for Apertium into a folder `bin`, and nothing of a user's before it on the PATH; its file."""
    program = folder / "bin/apertium"
    program.parent.mkdir()
    program.write_text(APERTIUM, encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return program


def fails(result: subprocess.CompletedProcess[str], *parts: str, status: int = 2) -> None:
    """Assert that a command failed as a command should: one sentence that names things, no traceback."""
    assert result.returncode == status, result.stderr or result.stdout
    assert "Traceback" not in result.stderr
    for part in parts:
        assert part in result.stderr, result.stderr


def refused(result: tuple[int, str], *parts: str, status: int = 2) -> None:
    """Assert that a command in this process (`in_process`) failed with one sentence that holds `parts`."""
    assert result[0] == status, result[1]
    assert result[1].startswith("Error: ")
    assert result[1].count("\n") == 1
    assert result[1].endswith((".\n", "?\n"))
    for part in parts:
        assert part in result[1]
