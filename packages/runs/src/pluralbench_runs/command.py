"""Commands and their verbs from one table, with --help, --version, completion and error handling.

The module of a verb is imported when the verb is called. `--help` of the whole command reads only the first paragraph
of each function's docstring from the source file.
"""

import ast
import inspect
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, wraps
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NoReturn

import typer
from pydantic import ValidationError
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from pluralbench_runs.console import PlainConsole
from pluralbench_runs.errors import RecipeError, UserError, did_you_mean, one_line
from pluralbench_runs.guard import run_cli
from pluralbench_runs.options import field_flags, name_options
from pluralbench_runs.regular_files import noted_inputs
from pluralbench_runs.toml_files import value_error

MARKUP: Literal["rich"] = "rich"
EXAMPLE = "Example"
QUOTE = "'"
UsageError: type[Exception] = typer.BadParameter.__mro__[1]  # typer exports only this one of its kinds


class Program(NamedTuple):
    """A command with verbs.

    The docstring of a function is the help of its verb. The part from a paragraph that begins with "Example" is shown
    below the options.

    Attributes:
        name: Name of the command.
        verbs: `MODULE:FUNCTION` by verb, by the heading in --help.
        default: `MODULE:FUNCTION` for a call without a verb. None: a verb is required.
        help: Help of a command that requires a verb.
        distribution: Distribution whose version --version shows. Default: `name`.
        mistakes: Further exceptions whose message is meant for the user.
    """

    name: str
    verbs: Mapping[str, Mapping[str, str]] = {}
    default: str | None = None
    help: str = ""
    distribution: str = ""
    mistakes: tuple[type[Exception], ...] = ()

    def run(self) -> NoReturn:
        """Run the command and exit; see `pluralbench_runs.run`."""
        run(command_of(self), self.distribution or self.name, mistakes=self.mistakes)


def run(command: Callable[[], object], distribution: str, *, mistakes: tuple[type[Exception], ...] = ()) -> NoReturn:
    """Run a command and exit with the status of `run_cli`.

    Args:
        command: The command.
        distribution: Name of the program in internal errors.
        mistakes: Further exceptions whose message is meant for the user.
    """
    # It warns of a home that it cannot write to, and then uses a temporary directory.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    sys.exit(run_cli(command, distribution, mistakes))


def command_of(program: Program) -> Any:
    """Build the `click.Command` of a program, with --version. The options for shell completion are hidden."""
    app = typer.Typer(rich_markup_mode=MARKUP, cls=Verbs, no_args_is_help=program.default is None)
    command: Any
    if program.default is not None and not program.verbs:
        command = _make_command(program.default, complete=True)
    else:
        default = None if program.default is None else _function(program.default)
        text = _paragraphs(program.help if default is None else inspect.getdoc(default) or "")
        body, examples = _parts(text)
        app.callback(invoke_without_command=default is not None, help=body, epilog=examples)(
            _group_callback(default, program)
        )
        command = get_command(app)
        if default is not None:
            command.callback = _naming_options(command.callback, _flags(command.params) | field_flags(default))
        command.commands = {
            verb: Listed(name=verb, place=place, help=_summary(place), rich_help_panel=panel or None)
            for panel, listed in program.verbs.items()
            for verb, place in listed.items()
        }
    command.params.append(_version_option(program.distribution or program.name))
    for option in command.params:
        if option.name in {"install_completion", "show_completion"}:
            option.hidden = True
    _hide_flag_types(command)
    return command


@contextmanager
def _plain_usage_errors() -> Iterator[None]:
    """Let typer show a wrong use, which quotes words of the command line, with a console that sanitizes them."""
    try:
        yield
    except UsageError:
        rich_utils: Any = import_module("typer.rich_utils")  # imports for half a second
        rich_utils.Console = PlainConsole
        raise


class _OwnSentences:
    """A command whose wrong values end in one sentence that names the value, instead of typer's box."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print --help, in colors that pass to the terminal."""
        rich_utils: Any = import_module("typer.rich_utils")
        rich_utils.Console = PlainConsole
        super().format_help(ctx, formatter)  # type: ignore[misc]

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Parse the command line of this command."""
        with _plain_usage_errors():
            return super().make_context(*args, **extra)  # type: ignore[misc]

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse the command line. Raises `RecipeError` for a value of a wrong type or out of bounds."""
        try:
            return super().parse_args(ctx, args)  # type: ignore[misc]
        except typer.BadParameter as error:
            if not isinstance(error.__cause__, ValidationError) or error.param is None:
                raise
            [flag] = _flags([error.param]).values()
            raise RecipeError(_value_error(flag, error.__cause__)) from None


def _value_error(flag: str, error: ValidationError) -> str:
    first = error.errors()[0]
    context, value = first.get("ctx", {}), f"{flag.partition('/')[0]} {one_line(first['input'], 80)}"
    kinds = {
        "int_parsing": "is not a whole number",
        "int_from_float": "is not a whole number",
        "float_parsing": "is not a number",
        "greater_than_equal": f"is less than {context.get('ge')}",
        "less_than_equal": f"is more than {context.get('le')}",
    }
    if first["type"] in kinds:
        return f"{value} {kinds[first['type']]}."
    message = first["msg"].removeprefix("Value error, ").removesuffix(".")
    _, is_choice, choices = message.partition(" is not one of ")
    if not is_choice:
        return f"{value}: {message}."
    choices = choices.replace(QUOTE, "")
    hint = did_you_mean(str(first["input"])[:80], choices.split(", ")).strip()
    return f"{value} is not one of {choices}{f'; {hint}' if hint else '.'}"


class _Command(_OwnSentences, TyperCommand):
    pass


class Listed(TyperCommand):
    """A verb in the --help of the whole command; `command` is the verb itself."""

    def __init__(self, *, name: str, place: str, help: str, rich_help_panel: str | None) -> None:  # noqa: A002 - typer's
        super().__init__(name, help=help, rich_markup_mode=MARKUP, rich_help_panel=rich_help_panel)
        self.place = place

    @cached_property
    def command(self) -> Any:
        """The verb with its options."""
        return _hide_flag_types(_make_command(self.place, self.name))


class Verbs(_OwnSentences, TyperGroup):
    """A group whose verbs are imported when they are called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the verb that the first argument names."""
        with _plain_usage_errors():
            name, verb, rest = super().resolve_command(ctx, args)
        return name, verb.command if isinstance(verb, Listed) else verb, rest


def _function(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def _make_command(place: str, name: str | None = None, *, complete: bool = False) -> Any:
    function = _function(place)
    body, examples = _parts(_paragraphs(inspect.getdoc(function) or ""))
    app = typer.Typer(rich_markup_mode=MARKUP, add_completion=complete)
    app.command(name, cls=_Command, help=body, epilog=examples)(function)
    command: Any = get_command(app)
    command.callback = _naming_options(command.callback, _flags(command.params) | field_flags(function))
    return command


def _flags(options: Iterable[Any]) -> dict[str, str]:
    """The flag of each option by its parameter, and the placeholder of each argument."""
    return {
        option.name: "/".join([option.opts[0], *option.secondary_opts[:1]])
        if option.param_type_name == "option"
        else option.name.upper()
        for option in options
    }


def _naming_options(callback: Callable[..., Any], flags: Mapping[str, str]) -> Callable[..., Any]:
    """Let the errors of a command name its options where the code below it names parameters.

    A value that no recipe or run could record is refused first.
    """

    @wraps(callback)
    def run_command(*args: Any, **values: Any) -> Any:
        problem = value_error({flags.get(name, name): value for name, value in values.items()})
        if problem:
            raise RecipeError(f"{problem}.")
        try:
            with noted_inputs():
                return callback(*args, **values)
        except UserError as error:
            error.args = (name_options(str(error), flags), *error.args[1:])
            raise

    return run_command


def _hide_flag_types(command: Any) -> Any:
    for option in command.params:
        if getattr(option, "is_flag", False):
            option.metavar = " "  # typer would show <bool>
    return command


def _group_callback(default: Callable[..., Any] | None, program: Program) -> Callable[..., None]:
    """Create the callback that runs before a verb, or without one."""
    if default is None:
        return lambda: None

    def callback(context: typer.Context, **values: Any) -> None:
        if context.invoked_subcommand is None:
            default(**values)
            return
        misplaced = [option for option in context.command.params if _is_used(context, option)]
        if misplaced:
            words = f"{program.name} {context.invoked_subcommand} {misplaced[0].opts[0]} ..."
            raise RecipeError(f"Options go after the verb: {words}")

    signature = inspect.signature(default)
    first = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    callback.__signature__ = signature.replace(parameters=[first, *signature.parameters.values()])  # type: ignore[attr-defined]
    callback.__annotations__ = {"context": typer.Context} | default.__annotations__
    return callback


def _is_used(context: Any, option: Any) -> bool:
    source = context.get_parameter_source(option.name)
    return source is not None and source.name == "COMMANDLINE"


def _version_option(distribution: str) -> Any:
    def show_version(value: bool) -> None:
        if value:
            typer.echo(f"{distribution} {version(distribution)}")
            raise typer.Exit

    def command(
        version: Annotated[
            bool,
            typer.Option(
                "--version", help="Show the version.", callback=show_version, is_eager=True, expose_value=False
            ),
        ] = False,
    ) -> None: ...

    app = typer.Typer(add_completion=False)
    app.command()(command)
    return next(option for option in get_command(app).params if option.name == "version")


def _summary(place: str) -> str:
    """Return the first paragraph of a function's docstring without importing its module."""
    module, _, name = place.partition(":")
    file = getattr(find_spec(module), "origin", "")
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
    return _paragraphs(ast.get_docstring(function) or "").partition("\n\n")[0]


def _paragraphs(text: str) -> str:
    """Put each paragraph of a text on one line, so that the terminal wraps it."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(" ".join(map(str.strip, paragraph.splitlines())) for paragraph in paragraphs)


def _parts(text: str) -> tuple[str, str]:
    """Split a text into the paragraphs before the examples, and the examples."""
    paragraphs = text.split("\n\n")
    start = next(
        (index for index, paragraph in enumerate(paragraphs) if paragraph.startswith(EXAMPLE)), len(paragraphs)
    )
    return "\n\n".join(paragraphs[:start]), "\n\n".join(paragraphs[start:])
