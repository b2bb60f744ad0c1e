"""Options of a command made from frozen descriptions: a field there is an option here, and nowhere else."""

import inspect
import types
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import typer
from pluralbench_runs import RecipeError, Table
from pydantic import ValidationError
from pydantic.fields import FieldInfo

RESULT = "Result"

Seed = Annotated[int, typer.Option(help="Seed of every draw.", rich_help_panel=RESULT)]
Out = Annotated[str | None, typer.Option(help="Run directory; without it under runs/.", rich_help_panel=RESULT)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DataNow = Annotated[
    str | None,
    typer.Option(metavar="DIR|FILE|ORG/NAME[@REVISION]", help="Where the run's data is now, if it has moved."),
]
Shard = Annotated[
    str | None,
    typer.Option(
        metavar="I/N",
        help="Only the I-th of N shares of the items, from 1 to N, which `pluralbench merge` joins.",
        rich_help_panel="Data",
    ),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Start over, and replace what is there.", rich_help_panel=RESULT)]


class Options(NamedTuple):
    """Marks a parameter of a command that is a description: its fields become options under this heading.

    given: fields that another parameter of the command gives, by the field's name. left_out: fields without an option.
    prefix: what the names of its options begin with, where a command has two descriptions of one kind; a field that
    names its flag keeps it.
    """

    panel: str
    given: dict[str, str] = {}  # noqa: RUF012 - never changed
    left_out: tuple[str, ...] = ()
    prefix: str = ""


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with an option for each field of its parameters that are descriptions (marked by `Options`).

    It is called with the descriptions; a value that one refuses is a `RecipeError` that names the option.
    """
    hints = get_type_hints(command, include_extras=True)
    described = {name: found for name, hint in hints.items() if (found := _described(hint)) is not None}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name not in described:
            parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        model, options = described[name]
        parameters += [
            _parameter(field, info, options)
            for field, info in model.model_fields.items()
            if field not in options.given and field not in options.left_out
        ]

    @wraps(command)
    def flat(**values: Any) -> Any:
        built = {name: _built(model, options, values) for name, (model, options) in described.items()}
        own = {name: value for name, value in values.items() if name in hints}
        return command(**own, **built)

    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return flat


def _described(hint: Any) -> tuple[type[Table], Options] | None:
    if get_origin(hint) is not Annotated:
        return None
    model, *marks = get_args(hint)
    options = next((mark for mark in marks if isinstance(mark, Options)), None)
    return None if options is None else (model, options)


def _parameter(field: str, info: FieldInfo, options: Options) -> inspect.Parameter:
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    kind = str | None if extra.get("as_text") else _option_type(info.annotation)
    # A switch has no --no-... beside it.
    flags = [_flag(field, info, options.prefix)] if "flag" in extra or options.prefix or kind is bool else []
    least = next((bound.ge for bound in info.metadata if hasattr(bound, "ge")), None)
    metavar = str(extra["metavar"]) if "metavar" in extra else None
    option = typer.Option(*flags, help=info.description, metavar=metavar, min=least, rich_help_panel=options.panel)
    default = None if isinstance(info.default, tuple | Table) else info.default
    name = options.prefix.replace("-", "_") + field
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])


def _option_type(annotation: Any) -> Any:
    """The type by which an option is read: a list for several values, and text for what is read by the description."""
    if get_origin(annotation) is tuple:
        return list[get_args(annotation)[0]] | None  # type: ignore[misc]
    parts = get_args(annotation) if get_origin(annotation) in {Union, types.UnionType} else (annotation,)
    if any(isinstance(part, type) and issubclass(part, Table) for part in parts):
        return str | None
    return annotation


def _flag(field: str, info: FieldInfo, prefix: str) -> str:
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    return str(extra.get("flag", f"--{prefix}{field.replace('_', '-')}"))


def _built(model: type[Table], options: Options, values: dict[str, Any]) -> Table:
    given = {field: values[parameter] for field, parameter in options.given.items()}
    prefix = options.prefix.replace("-", "_")
    # What is left out is no option here, though another description may have one of its name.
    fields = (name for name in model.model_fields if name not in given and name not in options.left_out)
    own = {name: values[prefix + name] for name in fields if prefix + name in values}
    # What was not given is left to the description, whose default may be another than the option's None.
    wanted = given | {name: value for name, value in own.items() if value is not None}
    try:
        return model.model_validate(wanted)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        message = first["msg"].removeprefix("Value error, ").rstrip(".")
        named = f"{_flag(name, model.model_fields[name], options.prefix)}: " if name in model.model_fields else ""
        raise RecipeError(f"{named}{message}.") from None
