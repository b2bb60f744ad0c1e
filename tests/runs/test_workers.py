"""Work in other processes: the same results and errors in the same order, and nothing that stays behind."""

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pluralbench_runs.workers import WorkerLost, workers

# A parent that begins some work and then waits: what it is sent meanwhile is the test.
PARENT = """
import os, signal, time
from pluralbench_runs.workers import workers
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    with workers(2) as each:
        print(*each(abs, range(3)), flush=True)
        print("working", flush=True)
        for _ in each(time.sleep, [0.2] * 1000):
            pass
"""


def taken(count: int, seen: list[int]) -> Iterator[int]:
    for number in range(count):
        seen.append(number)
        yield number


def test_one_process_is_this_one() -> None:
    with workers(1) as each:
        assert list(each(lambda _: os.getpid(), range(3))) == [os.getpid()] * 3


def test_results_and_errors_come_in_the_order_of_the_items() -> None:
    with workers(2) as each:
        seen: list[int] = []
        found = each(math.factorial, taken(40, seen))
        assert [next(found) for _ in range(5)] == [math.factorial(number) for number in range(5)]
        assert len(seen) < 12  # not all were taken at once
        assert list(found) == [math.factorial(number) for number in range(5, 40)]
        found = each(int, ["1", "2", "three", "4"])
        assert [next(found), next(found)] == [1, 2]
        with pytest.raises(ValueError, match=r"invalid literal for int\(\) with base 10: 'three'"):
            next(found)
        assert list(each(abs, [-1])) == [1]  # and the workers go on


def test_a_worker_that_is_lost_is_a_sentence() -> None:
    def lose() -> None:
        with workers(2) as each:
            list(each(os._exit, [9]))

    with pytest.raises(WorkerLost, match=r"worker process was killed.*`processes=1`\.$"):
        lose()


@pytest.mark.heavy
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, id="Ctrl-C"), pytest.param(signal.SIGKILL, id="killed")]
)
def test_workers_end_with_their_parent(tmp_path: Path, number: int) -> None:
    script = tmp_path / "script.py"
    script.write_text(PARENT, encoding="utf-8")
    # A session of its own, as of a terminal: Ctrl-C reaches the workers too.
    parent = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert parent.stdout is not None
    assert parent.stderr is not None
    assert [parent.stdout.readline(), parent.stdout.readline()] == ["0 1 2\n", "working\n"]
    if number == signal.SIGINT:
        os.killpg(parent.pid, number)
    else:
        parent.kill()
    message = parent.communicate(timeout=60)[1]  # which ends when the last worker has closed its standard error
    assert message.count("Traceback") == message.count("KeyboardInterrupt") == (number == signal.SIGINT)  # the parent's
    until = time.monotonic() + 30
    while _left(parent.pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert _left(parent.pid) == 0


def _left(session: int) -> int:
    """How many processes of a session there are."""
    try:
        os.killpg(session, 0)
    except ProcessLookupError:
        return 0
    return 1
