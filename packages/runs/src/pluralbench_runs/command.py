"""Commands made from functions: their signature, their Google docstring and the models they take.

The options of a verb are the parameters of its function; the entries of `Args`
are their help, and the paragraphs before it, with the section `Examples`, are the help of the verb.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pkgutil import resolve_name
from typing import Annotated, Any

import typer
from typer.main import get_command

from pluralbench_runs.command_line import CommandLine, name_options
from pluralbench_runs.console import plain_streams
from pluralbench_runs.errors import RecipeError, UserError
from pluralbench_runs.help_pages import HelpCommand, HelpGroup, Page, first_sentence
from pluralbench_runs.meters import log_status
from pluralbench_runs.program import Program, Verb
from pluralbench_runs.recipe import Model
from pluralbench_runs.regular_files import noted_inputs

SECTION = re.compile(r"^(Args|Returns|Raises|Examples):\n", re.MULTILINE)
ENTRY = re.compile(r"^ {4}(\w+): ", re.MULTILINE)
EXAMPLE = re.compile(r"\n {4}(?=\S)")  # one of several lines is continued with more indentation


class Command:
    """A verb with its functions and options."""

    def __init__(self, verb: Verb) -> None:
        self.status = verb.status
        self.function = resolve_name(verb.function)
        self.show = resolve_name(verb.show) if verb.show else None
        self.makers = {name: resolve_name(place) for name, place in verb.made.items()}
        functions = [self.function, *self.makers.values(), *filter(None, [self.show])]
        docstrings = [read_docstring(inspect.getdoc(function) or "") for function in functions]
        texts = {name: text for _, args, _ in docstrings for name, text in args.items()}
        self.body, _, self.examples = docstrings[0]
        self.about = first_sentence(self.body)
        self.options = CommandLine({parameter.name: parameter for parameter in self._parameters()}, texts)

    def _parameters(self) -> Iterator[inspect.Parameter]:
        """Yield the parameters of all functions, those of a maker in the place of what it makes."""
        further = {} if self.show is None else dict([*inspect.signature(self.show).parameters.items()][1:])
        own = inspect.signature(self.function).parameters
        for name, parameter in {**own, **further, **own}.items():
            if name not in self.makers:
                yield parameter
                continue
            for inner in inspect.signature(self.makers[name]).parameters.values():
                if inner.name in self.makers or inner.name not in own:
                    yield inner

    def page(self, common: Sequence[str]) -> Page:
        """Return the help of the command."""
        return Page(self.options.help(self.body), self.options.options(), self.examples, common)

    def run(self, **values: Any) -> None:
        """Run the command with the values of its options."""
        try:
            with plain_streams(), noted_inputs():
                arguments = self.options.arguments(values)
                if self.status:
                    words = {
                        name: ", ".join(map(str, of)) if isinstance(of, list) else of for name, of in arguments.items()
                    }
                    log_status(self.status.format(**words))
                made = {name: _call(maker, arguments) for name, maker in self.makers.items()}
                result = _call(self.function, arguments | made)
                if self.show is not None:
                    _call(self.show, arguments | made, result)
        except UserError as error:
            error.args = (name_options(str(error), self.options.flags), *error.args[1:])
            raise


def command_of(program: Program) -> Any:
    """Build the command of a program for typer, with --version."""
    default = None if program.default is None else Command(program.default)
    body, _, examples = read_docstring(program.help)
    parameters = default.options.typer_parameters() if default else []
    parameters.append(_version_parameter(program))
    app = typer.Typer(no_args_is_help=default is None)
    commands = {name: Command(verb) for verbs in program.verbs.values() for name, verb in verbs.items()}
    if default is not None and not commands:
        app.command(cls=HelpCommand)(_with_signature(default.run, parameters))
    else:
        context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        callback = _with_signature(partial(_run_default, program.name, default), [context, *parameters])
        app.callback(cls=HelpGroup, invoke_without_command=default is not None)(callback)
    for name, command in commands.items():
        callback = _with_signature(command.run, command.options.typer_parameters())
        app.command(name, cls=HelpCommand, short_help=command.about)(callback)
    made: Any = get_command(app)
    page = default.page(program.common) if default else Page(body, examples=examples)
    verbs = {panel: {name: commands[name].about for name in own} for panel, own in program.verbs.items()}
    made.page = page._replace(verbs=verbs)
    for name, command in commands.items():
        made.commands[name].page = command.page(program.common)
    for option in made.params:
        option.hidden = option.name in {"install_completion", "show_completion"}
    return made


def model_from_words(kind: type[Model], words: Sequence[str], command: str) -> Model:
    """Return a model from words as of a command line: a required field, and options of the others.

    Raises:
        RecipeError: A value is not valid. The message names the option.
        UsageError: A word is no option.
    """
    parameter = inspect.Parameter("model", inspect.Parameter.KEYWORD_ONLY, annotation=kind)
    options = CommandLine({"model": parameter}, {})
    app = typer.Typer(add_completion=False)
    app.command()(_with_signature(lambda **values: None, options.typer_parameters()))
    context = get_command(app).make_context(command, [*words])
    model: Model = options.arguments(context.params)["model"]
    return model


def read_docstring(text: str) -> tuple[str, Mapping[str, str], list[str]]:
    """Split a Google docstring into the paragraphs before its sections, help by parameter, and examples."""
    body, *sections = SECTION.split(text)
    parts = dict(zip(sections[::2], sections[1::2], strict=True))
    _, *entries = ENTRY.split(parts.get("Args", ""))
    args = {name: " ".join(entry.split()) for name, entry in zip(entries[::2], entries[1::2], strict=True)}
    lines = EXAMPLE.split("\n" + parts.get("Examples", "").rstrip())[1:]
    examples = [" ".join(line.strip() for line in example.splitlines()) for example in lines]
    paragraphs = [" ".join(paragraph.split()) for paragraph in body.strip().split("\n\n")]
    return "\n\n".join(paragraphs), args, examples


def _call(function: Callable[..., Any], arguments: Mapping[str, Any], *first: Any) -> Any:
    """Call a function with those of the arguments that it has."""
    names = [*inspect.signature(function).parameters][len(first) :]
    return function(*first, **{name: arguments[name] for name in names if name in arguments})


def _with_signature(function: Callable[..., Any], parameters: Sequence[inspect.Parameter]) -> Callable[..., None]:
    def callback(**values: Any) -> None:
        function(**values)

    callback.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    callback.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return callback


def _run_default(name: str, command: Command | None, *, context: typer.Context, **values: Any) -> None:
    if command is not None and context.invoked_subcommand is None:
        command.run(**values)
        return
    for option in context.command.params:
        source = context.get_parameter_source(str(option.name))
        if source is not None and source.name == "COMMANDLINE":
            words = f"{name} {context.invoked_subcommand} {option.opts[0]} ..."
            raise RecipeError(f"Options go after the verb: {words}")


def _version_parameter(program: Program) -> inspect.Parameter:
    def show_version(value: bool) -> None:
        if value:
            typer.echo(program.version_line())
            raise typer.Exit

    option = typer.Option(
        "--version", help="Show the version.", callback=show_version, is_eager=True, expose_value=False
    )
    return inspect.Parameter(
        "version", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, option]
    )
