"""The program behind `forked_commands`: it imports what commands import, and forks for each that it is told of.

A line of JSON on its standard input has the words, the folder, two files for what is written, and the seconds after
which the command hangs; the line that answers is a list of the first file and the exit status, negative for a signal.
"""

import gc
import json
import multiprocessing
import os
import runpy
import signal
import sys
from pathlib import Path

gc.disable()
sys.path.append(str(Path(__file__).parents[1] / "faults"))
import preloaded  # noqa: E402, F401 - each command finds it imported

# What is imported stays in memory that all commands share: no collection writes to it.
gc.freeze()


def run(words: list[str], folder: str, written: list[str], timeout: int) -> None:
    """Be the command: its folder, its words, nothing to read, and files to write to."""
    gc.enable()
    os.chdir(folder)
    for number, path in enumerate((os.devnull, *written)):
        opened = os.open(path, os.O_RDWR)
        os.dup2(opened, number)
        os.close(opened)
    signal.alarm(timeout)
    sys.argv = words
    sys.path[0] = str(Path(words[0]).parent)
    runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        child = multiprocessing.get_context("fork").Process(target=run, kwargs=asked)
        child.start()
        child.join()
        sys.stdout.write(json.dumps([asked["written"][0], child.exitcode]) + "\n")
        sys.stdout.flush()
    os._exit(0)  # without taking apart all that was imported
