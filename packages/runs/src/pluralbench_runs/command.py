"""What every command does alike: --version, completion in the shell, errors to exit statuses."""

import errno
import sqlite3
import sys
from collections.abc import Mapping
from importlib.metadata import version
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from typer.main import get_command

from pluralbench_runs.errors import UserError

FULL_DISK = (
    "The disk is full ({where}); nothing that was recorded is lost: free some space and run the same command again."
)


COMPLETION = {"install_completion", "show_completion"}


def run(
    app: typer.Typer,
    distribution: str,
    *,
    mistakes: tuple[type[Exception], ...] = (),
    defaults: Mapping[str, str] | None = None,
) -> NoReturn:
    """Run `app` and exit: with 0 on success, and with a `UserError`'s sentence and `exit_status` (2 for most).

    distribution: whose version --version tells. mistakes: further exceptions whose message is meant for the user; they
    exit with 2. defaults: see `command_of`.
    """
    try:
        command_of(app, distribution, defaults)()
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


def command_of(app: typer.Typer, distribution: str, defaults: Mapping[str, str] | None = None) -> Any:
    """The command that typer makes of an app, with --version; what installs completion works, but is not listed.

    defaults: what --help shows as the default of an option that has none of its own, by its parameter.
    Returns a `click.Command`, which typer carries under a name of its own.
    """

    def tell(wanted: bool) -> None:
        if wanted:
            typer.echo(f"{distribution} {version(distribution)}")
            raise typer.Exit

    def common(
        version: Annotated[
            bool,
            typer.Option("--version", help="Show the version.", callback=tell, is_eager=True, expose_value=False),
        ] = False,
    ) -> None: ...

    alone = typer.Typer(add_completion=False)
    alone.command()(common)
    command = get_command(app)
    command.params += [option for option in get_command(alone).params if option.name == "version"]
    for option in command.params:
        if option.name in COMPLETION:
            option.hidden = True  # type: ignore[attr-defined]
    for one in [command, *getattr(command, "commands", {}).values()]:
        for option in one.params:
            if option.default is None and option.name in (defaults or {}):
                option.show_default = (defaults or {})[option.name]
            if getattr(option, "is_flag", False):
                option.metavar = " "  # typer would call it <bool>
    return command


def _fail(sentence: str, status: int) -> NoReturn:
    Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True).print(f"Error: {sentence}")
    sys.exit(status)
