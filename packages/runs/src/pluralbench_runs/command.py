"""From errors to exit statuses, the same in every command."""

import errno
import sqlite3
import sys
from typing import NoReturn

import typer
from rich.console import Console

from pluralbench_runs.errors import UserError

FULL_DISK = (
    "The disk is full ({where}); nothing that was recorded is lost: free some space and run the same command again."
)


def run(app: typer.Typer, *, mistakes: tuple[type[Exception], ...] = ()) -> NoReturn:
    """Run `app` and exit: 0 on success, a `UserError`'s own status (2 unless it says otherwise) with its sentence.

    mistakes: further exceptions whose message is meant for the user.
    """
    try:
        app()
    except UserError as error:
        _fail(str(error), error.exit_status)
    except mistakes as error:
        _fail(str(error), 2)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            _fail(FULL_DISK.format(where=error.filename or "while writing"), 2)
        if isinstance(error, PermissionError):
            _fail(f"No permission to write {error.filename}; choose another place or mend its permissions.", 2)
        raise
    except sqlite3.OperationalError as error:
        if "disk" in str(error):  # "database or disk is full", "disk I/O error"
            _fail(FULL_DISK.format(where=str(error)), 2)
        raise
    sys.exit(0)


def _fail(sentence: str, status: int) -> NoReturn:
    Console(stderr=True, highlight=False, markup=False, soft_wrap=True).print(f"Error: {sentence}")
    sys.exit(status)
