"""From errors to exit statuses: one sentence on standard error, no traceback."""

import asyncio
import errno
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import typer
from case_marks import heavy
from commands import environment, in_process
from pluralbench_runs import UserError, run

FULL = ". Recorded work is not lost; free some space and rerun the same command.\n"
MENDS = "; choose another place, or change its permissions.\n"
Outcome = Callable[[Callable[[], object]], tuple[int, str]]


class Spent(UserError):
    """An error with a status of its own."""

    exit_status = 3


class Broken(ValueError):
    """A mistake of the user that is no `UserError`."""


@pytest.fixture
def outcome(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Outcome:
    """What a command that does some work exits with and writes."""
    monkeypatch.delenv("PLURALBENCH_DEBUG", raising=False)

    def status_and_text(work: Callable[[], object]) -> tuple[int, str]:
        app = typer.Typer()

        @app.command()
        def command(number: int = 1) -> None:
            work()

        return in_process("command", lambda: run(app, "pluralbench-runs", mistakes=(Broken,)), monkeypatch, capsys)()

    return status_and_text


def raising(error: BaseException) -> Callable[[], None]:
    """What raises an error."""

    def work() -> None:
        raise error

    return work


def test_success_is_zero(outcome: Outcome) -> None:
    assert outcome(lambda: typer.echo("done")) == (0, "done\n")


@pytest.mark.parametrize("status", [0, 1, 5])
def test_a_command_may_exit_with_a_status_of_its_own(outcome: Outcome, status: int) -> None:
    assert outcome(raising(typer.Exit(status))) == (status, "")


def of_sqlite(code: str, message: str) -> sqlite3.Error:
    """An error as SQLite raises it."""
    error = sqlite3.OperationalError(message)
    error.sqlite_errorname = code
    return error


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (UserError("The thing is not here."), 2, "The thing is not here.\n"),
        (Spent("The ceiling of $5 is reached."), 3, "The ceiling of $5 is reached.\n"),
        (Broken("x.parquet has no rows."), 2, "x.parquet has no rows.\n"),
        (UserError("word " * 100 + "end"), 2, "word " * 100 + "end\n"),  # not wrapped
        (
            UserError("[red]no[/] [/x] out:beer:x 中文 עברית हिन्दी 😀"),
            2,
            "[red]no[/] [/x] out:beer:x 中文 עברית हिन्दी 😀\n",
        ),
        (ExceptionGroup("two", [UserError("The first."), KeyError()]), 2, "The first.\n"),
        (OSError(errno.ENOSPC, "No space", "/data/x.db"), 2, "The disk is full (/data/x.db)" + FULL),
        (ValueError("No space left on device (os error 28)"), 2, "The disk is full (while writing)" + FULL),
        (PermissionError(errno.EACCES, "Permission denied", "/root/x"), 2, "Permission denied (/root/x)" + MENDS),
        (
            OSError(errno.EIO, "Input/output error", "/a", None, "/b"),
            2,
            "Input/output error (/a to /b); recorded work is not lost; fix the cause and rerun the same command.\n",
        ),
        (
            MemoryError(),
            2,
            "Out of memory; process less at a time, or use a machine with more memory.\n",
        ),
        (of_sqlite("SQLITE_FULL", "full"), 2, "The disk is full (while writing)" + FULL),
    ],
)
def test_what_a_user_can_mend_is_one_sentence(outcome: Outcome, error: Exception, status: int, sentence: str) -> None:
    assert outcome(raising(error)) == (status, f"Error: {sentence}")


FAULTS = [
    pytest.param(raising(KeyError("ours")), "KeyError: 'ours'", id="a bug"),
    pytest.param(lambda: pl.Series([1]).gather(-9), "OutOfBoundsError", id="in polars"),
    pytest.param(raising(pl.exceptions.PanicException("index 9")), "PanicException: index 9", id="a panic"),
]


@pytest.mark.parametrize(("work", "kind"), FAULTS)
def test_a_fault_of_ours_is_a_sentence_with_a_status_of_its_own(
    outcome: Outcome, monkeypatch: pytest.MonkeyPatch, work: Callable[[], None], kind: str
) -> None:
    status, output = outcome(work)
    assert status == 70
    assert output.startswith("Error: Internal error in pluralbench-runs (")
    assert kind in output
    assert output.count("\n") == 1
    assert "PLURALBENCH_DEBUG=1" in output
    assert "Traceback" not in output
    monkeypatch.setenv("PLURALBENCH_DEBUG", "1")
    status, more = outcome(work)
    assert status == 70
    assert more.startswith("Traceback (most recent call last):")
    assert more.endswith(output)


def test_neither_sentence_nor_traceback_shows_a_secret(outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-12345678")
    monkeypatch.setenv("PLURALBENCH_DEBUG", "1")
    for error in (KeyError("Bearer sk-12345678"), UserError("No: sk-12345678.")):
        _, output = outcome(raising(error))
        assert "sk-12345678" not in output
        assert output.count("[key]") == 2
    assert "me:pw" not in outcome(raising(KeyError("http://me:pw@host")))[1]


def test_a_wrong_option_is_a_users_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    app = typer.Typer()

    @app.command()
    def command(number: int = 1) -> None: ...

    for words, part in ((["--number", "many"], "Invalid value for '--number'"), (["--nmber"], "No such option")):
        monkeypatch.setattr(sys, "argv", ["command", *words])
        with pytest.raises(SystemExit) as exit_:
            run(app, "pluralbench-runs")
        assert exit_.value.code == 2, part


def test_an_interrupt_is_no_traceback(outcome: Outcome) -> None:
    assert outcome(raising(KeyboardInterrupt())) == (130, "")
    counted = UserError("Interrupted. 3 of 20 calls are recorded.")
    counted.__cause__ = KeyboardInterrupt()  # which was announced when it arrived
    assert outcome(raising(counted)) == (130, "")


def test_what_continues_later_is_no_error(outcome: Outcome) -> None:
    class Later(UserError):
        exit_status = 75

    assert outcome(raising(Later("The calls are written."))) == (75, "The calls are written.\n")
    assert outcome(raising(UserError("Wrong."))) == (2, "Error: Wrong.\n")


def test_what_an_interrupt_becomes_is_one(outcome: Outcome) -> None:
    """Such as a panic of polars while it calls Python."""

    def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
        except KeyboardInterrupt:
            raise pl.exceptions.PanicException("in Python") from None

    assert outcome(work) == (143, "Interrupted.\n")


@pytest.mark.parametrize("interruptible", [True, False])
def test_sigterm_ends_the_work_as_an_interrupt_does(outcome: Outcome, *, interruptible: bool) -> None:
    """A shell lets a command that runs in the background ignore Ctrl-C."""
    done = []

    def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
        finally:
            done.append("cleaned up")

    async def waiting() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(60)
        finally:
            done.append("ended")

    before = signal.signal(signal.SIGINT, signal.default_int_handler if interruptible else signal.SIG_IGN)
    try:
        assert outcome(work) == (143, "Interrupted.\n")
        assert done.pop() == "cleaned up"
        assert outcome(lambda: asyncio.run(waiting())) == (143, "Interrupted.\n")
        assert done == ["ended"]
    finally:
        signal.signal(signal.SIGINT, before)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


INTERRUPTED = """
import hashlib, pathlib, signal, sys, typer
from pluralbench_runs import Recipe, output_directory, progress, run
app = typer.Typer()
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
@app.command()
def command() -> None:
    with output_directory(pathlib.Path("mine"), Recipe(), recipe_file="recipe.toml"), progress("scoring", 224, done=66):
        KEPT
        print("begun", flush=True)
        WORK
run(app, "pluralbench-runs")
"""


# One operation like those of torch, in which no signal is handled, and work that Ctrl-C ends at once.
@pytest.mark.parametrize(
    ("work", "kept", "output"),
    [
        *heavy(
            (
                "hashlib.pbkdf2_hmac('sha256', b'', b'', 1_500_000)",
                "pathlib.Path('mine.work/scores').touch()",
                "Finished work is kept in mine.work; rerun the same command to resume.",
            ),
        ),
        (
            "while True: pass",
            "pathlib.Path('mine.work/trl').mkdir()",
            "Nothing of this step is kept; rerun the same command.",
        ),
    ],
)
def test_ctrl_c_says_at_once_what_is_kept_and_how_to_resume(work: str, kept: str, output: str, tmp_path: Path) -> None:
    words = [sys.executable, "-c", INTERRUPTED.replace("WORK", work).replace("KEPT", kept)]
    with subprocess.Popen(
        words, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        sentence = process.stderr.readline()
        assert process.poll() is None or "while" in work, "it says so before the operation ends"
        assert process.wait() == 130
    assert sentence == f"Interrupted at 66 of 224 (scoring). {output}\n"
    assert (tmp_path / "mine.work").exists() == ("Finished" in output)


PRINTS = """
import sys
import typer
from pluralbench_runs import run
app = typer.Typer()
@app.command()
def command(times: int) -> None:
    for _ in range(times):
        print("\\u4e2d\\u6587 \\U0001f600 \\udcff")
run(app, "pluralbench-runs")
"""


def prints(times: int, shell: str, **env: str) -> "subprocess.CompletedProcess[bytes]":
    """Run a command that prints Chinese text, with what a shell does with the output."""
    words = ["bash", "-c", f'set -o pipefail; "$0" -c "$1" {times} {shell}', sys.executable, PRINTS]
    return subprocess.run(words, env=environment(env), capture_output=True, timeout=60, check=False)


@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "gbk"},
    ],
    ids=str,
)
def test_text_that_the_output_cannot_hold_is_printed_all_the_same(env: dict[str, str]) -> None:
    result = prints(1, "", **env)
    assert (result.returncode, result.stderr) == (0, b"")
    assert any(output in result.stdout for output in ("中文".encode(), "中文".encode("gbk"), rb"\u4e2d\u6587"))


def test_whoever_reads_no_further_sees_no_error() -> None:
    result = prints(100_000, "| head -1")
    assert (result.returncode, result.stderr) == (1, b"")
    assert result.stdout.count(b"\n") == 1


def test_a_full_disk_is_told_of_where_the_output_goes_there() -> None:
    result = prints(1, "> /dev/full")
    assert (result.returncode, result.stderr.decode()) == (2, f"Error: The disk is full (while writing){FULL}")
    assert Path("/dev/full").is_char_device()
