"""What every command does alike: --version, completion in the shell, errors to exit statuses."""

import sys
from collections.abc import Mapping
from importlib.metadata import version
from typing import Annotated, Any, NoReturn

import typer
from typer.main import get_command

from pluralbench_runs.guard import guarded

COMPLETION = {"install_completion", "show_completion"}


def run(
    app: typer.Typer,
    distribution: str,
    *,
    mistakes: tuple[type[Exception], ...] = (),
    defaults: Mapping[str, str] | None = None,
    verbs: Mapping[str, Mapping[str, str]] | None = None,
) -> NoReturn:
    """Run `app` and exit: with 0 on success, and otherwise with a sentence and the status that `guarded` describes.

    distribution: whose version --version tells. mistakes: further exceptions whose message is meant for the user; they
    exit with 2. defaults, verbs: see `command_of`.
    """
    sys.exit(guarded(command_of(app, distribution, defaults, verbs), distribution, mistakes))


def command_of(
    app: typer.Typer,
    distribution: str,
    defaults: Mapping[str, str] | None = None,
    verbs: Mapping[str, Mapping[str, str]] | None = None,
) -> Any:
    """The command that typer makes of an app, with --version; what installs completion works, but is not listed.

    defaults: what --help shows as the default of an option that has none of its own, by its parameter. verbs: the same
    for each verb whose defaults are others.
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
    for verb, one in {"": command, **getattr(command, "commands", {})}.items():
        shown = (verbs or {}).get(verb, defaults or {})
        for option in one.params:
            if option.default is None and option.name in shown:
                option.show_default = shown[option.name]
            if getattr(option, "is_flag", False):
                option.metavar = " "  # typer would call it <bool>
    return command
