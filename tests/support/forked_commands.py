"""Run the project's commands as `commands.command` does, but forked from a process that has imported what they import.

A command in a process of its own imports for seconds before it does anything. Here the installed script runs as it is,
with its words, its folder, the environment, its exit status and all that it writes; what commands share is the start of
Python and what is imported.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from commands import environment, script

FORKING = Path(__file__).with_name("forking.py")
Command = Callable[..., subprocess.CompletedProcess[str]]


@contextmanager
def forked_commands(env: Mapping[str, str]) -> Iterator[Command]:
    """What runs a command of this environment, or `python FILE`, to its end: its words, then `cwd` and `timeout`.

    env: added to the environment of all of them, since libraries read it when they are imported.
    """
    with (
        TemporaryDirectory() as folder,
        subprocess.Popen(
            [sys.executable, FORKING],
            env=environment(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        ) as program,
    ):
        assert program.stdin is not None
        assert program.stdout is not None
        asking, answering = program.stdin, program.stdout
        numbers = count()

        def command(*words: str | Path, cwd: Path, timeout: int = 240) -> subprocess.CompletedProcess[str]:
            first, *rest = map(str, words)
            argv = rest if first == "python" else [script(first), *rest]
            number = next(numbers)
            written = [Path(folder) / f"{number}-{name}" for name in ("stdout", "stderr")]
            for path in written:
                path.touch()
            asked = {"words": argv, "folder": str(cwd), "written": [*map(str, written)], "timeout": timeout}
            asking.write(json.dumps(asked) + "\n")
            ended, status = "", 0
            while ended != str(written[0]):  # a test that was stopped has left what it asked for
                ended, status = json.loads(answering.readline())
            return subprocess.CompletedProcess(argv, status, *(path.read_text(encoding="utf-8") for path in written))

        yield command
