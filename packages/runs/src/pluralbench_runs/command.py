"""Turns errors into exit statuses, the same way in every command."""

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
    """Run `app` and exit: with 0 on success, and with a `UserError`'s sentence and `exit_status` (2 for most).

    mistakes: further exceptions whose message is meant for the user; they exit with 2.
    """
    try:
        app()
    except UserError as error:
        _fail(str(error), error.exit_status)
    except mistakes as error:
        _fail(str(error), 2)
    except OSError as error:
        place = error.filename or "while writing"
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            _fail(FULL_DISK.format(where=place), 2)
        if isinstance(error, PermissionError) or error.errno == errno.EROFS:
            reason = error.strerror or str(error)
            _fail(f"{reason} ({place}); choose another place or mend its permissions.", 2)
        raise
    except sqlite3.OperationalError as error:
        if "disk is full" in str(error):
            _fail(FULL_DISK.format(where=str(error)), 2)
        if "disk I/O error" in str(error) or "readonly database" in str(error):
            _fail(f"The ledger cannot be written ({error}); nothing that was recorded is lost: mend the disk.", 2)
        raise
    sys.exit(0)


def _fail(sentence: str, status: int) -> NoReturn:
    Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True).print(f"Error: {sentence}")
    sys.exit(status)
