"""From errors to exit statuses: one sentence on standard error, no traceback."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from commands import environment, fails

APP = """
import errno, sqlite3, sys
from pathlib import Path
import typer
from pluralbench_runs import RecipeError, UserError, run
class Spent(UserError):
    exit_status = 3
class Broken(ValueError):
    pass
app = typer.Typer(add_completion=False)
@app.command()
def command(number: int = 1) -> None:
{body}
run(app, "pluralbench-runs", mistakes=(Broken,))
"""
FULL = "; nothing that was recorded is lost: free some space and run the same command again.\n"
SQLITE_FULL = """
db = sqlite3.connect(":memory:")
db.execute("PRAGMA max_page_count = 1")
db.execute("CREATE TABLE t (x)")
db.execute("INSERT INTO t VALUES (zeroblob(100000))")
"""


def app(body: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command that does `body`."""
    code = APP.format(body=textwrap.indent(textwrap.dedent(body).strip(), "    "))
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        env=environment(),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def test_success_is_zero() -> None:
    result = app("print('done')")
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")


@pytest.mark.parametrize("status", [0, 1, 5])
def test_a_command_may_exit_with_a_status_of_its_own(status: int) -> None:
    result = app(f"raise typer.Exit({status})")
    assert (result.returncode, result.stderr) == (status, "")


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ("raise UserError('The thing is not here.')", 2, "The thing is not here.\n"),
        ("raise RecipeError('Recipe x: unknown key.')", 2, "Recipe x: unknown key.\n"),
        ("raise Spent('The ceiling of $5 is reached.')", 3, "The ceiling of $5 is reached.\n"),
        ("raise Broken('x.parquet has no rows.')", 2, "x.parquet has no rows.\n"),
        (f"raise UserError({'word ' * 100 + 'end'!r})", 2, "word " * 100 + "end\n"),  # not wrapped
        ("raise UserError('[red]no[/] [/x] 中文 עברית हिन्दी 😀')", 2, "[red]no[/] [/x] 中文 עברית हिन्दी 😀\n"),
        ("Path('/dev/full').write_text('x' * 100000)", 2, "The disk is full (while writing)" + FULL),
        ("raise OSError(errno.ENOSPC, 'No space', '/data/x.db')", 2, "The disk is full (/data/x.db)" + FULL),
        ("raise OSError(errno.EDQUOT, 'Quota', '/data/x.db')", 2, "The disk is full (/data/x.db)" + FULL),
        (SQLITE_FULL, 2, "The disk is full (database or disk is full)" + FULL),
    ],
)
def test_what_a_user_can_mend_is_one_sentence(body: str, status: int, sentence: str) -> None:
    result = app(body)
    fails(result, status=status)
    assert result.stderr == f"Error: {sentence}"
    assert not result.stdout


def test_a_place_without_permission_is_named_with_the_mend() -> None:
    result = app("raise PermissionError(errno.EACCES, 'Permission denied', '/root/out')")
    fails(result, "Error: Permission denied", "/root/out", "; choose another place or mend its permissions.\n")


def test_a_wrong_option_is_a_users_mistake() -> None:
    fails(app("pass", "--number", "many"), "Invalid value for '--number'")
    fails(app("pass", "--nmber", "1"), "No such option: --nmber")


@pytest.mark.parametrize("body", ["raise KeyError('ours')", "raise sqlite3.OperationalError('no such table: t')"])
def test_a_fault_of_ours_keeps_its_traceback(body: str) -> None:
    result = app(body)
    assert result.returncode == 1
    assert "Traceback" in result.stderr


def test_an_interrupt_is_no_traceback() -> None:
    result = app("raise KeyboardInterrupt")
    assert result.returncode == 130
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("body", "part"),
    [
        pytest.param("raise UserError('out:beer:x and :x:')", "out:beer:x and :x:", id="names in colons"),
        pytest.param("raise OSError(errno.EROFS, 'Read-only file system', '/data')", "/data", id="read-only"),
        pytest.param("raise PermissionError('denied')", "denied", id="no file name"),
        pytest.param("raise sqlite3.OperationalError('disk I/O error')", "disk I/O error", id="no full disk"),
    ],
)
def test_more_that_a_user_can_mend(body: str, part: str) -> None:
    result = app(body)
    fails(result, part)
    assert "None" not in result.stderr
    assert "disk is full" not in result.stderr


def test_a_file_that_may_not_be_read_is_not_called_unwritable(tmp_path: Path) -> None:
    result = app(f"raise PermissionError(errno.EACCES, 'Permission denied', {str(tmp_path / 'posts.xml')!r})")
    fails(result, "posts.xml")
    assert "write" not in result.stderr
