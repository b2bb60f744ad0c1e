"""Command-line options from the fields of frozen models. Every field with a description becomes an option.

The description of a field is the help of its option. `json_schema_extra` can set `flag` (if it differs from the field's
name; `--on/--off` for a switch with both), `metavar`, `panel` (a heading in --help), and `as_text` (a validator of the
field parses a string).

A parameter of a command is either a model, whose defaults are those of the options (`Options`), or the overrides of a
recipe's file (`RecipeOptions`).
"""

import ast
import inspect
import re
import tomllib
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import typer
from pydantic import BaseModel, Field, ValidationError
from pydantic.fields import FieldInfo

from pluralbench_runs.canonical import MAX_SEED
from pluralbench_runs.errors import RecipeError
from pluralbench_runs.recipe import FrozenModel, Recipe, models_in

RESULT = "Result"
MAX_SHOWN = 3  # values of a list in --help
# A keyword argument in an error message, such as `on_empty="drop"`.
ARGUMENT = re.compile(r"`(?P<name>[a-z_][\w.]*)=(?P<value>[^`]+)`")

Seed = Annotated[int, typer.Option(help="Random seed.", min=0, max=MAX_SEED, rich_help_panel=RESULT)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Start over, and replace existing output.", rich_help_panel=RESULT)
]
COLUMNS: Any = Field(
    default_factory=dict,
    description="Name of a column in the data, such as prompt=text; repeatable.",
    json_schema_extra={"flag": "--column", "metavar": "FIELD=COLUMN", "example": "prompt=text"},
)
"""A field of a recipe that maps fields to columns."""

Overrides = dict[str, Any]
"""Values of the command line that override a recipe's file, by dotted key; see `read_recipe`."""


class BuildOptions(FrozenModel):
    """Options of builders that do not affect the content of a release."""

    out: Path | None = Field(None, description="Release directory (default: dist/NAME).")
    replay: Path | None = Field(None, description="Read all answers from this ledger or release, and send nothing.")
    reuse: Path | None = Field(
        None, description="Ledger (or directory with one) whose recorded calls are not repeated."
    )
    retry_errors: bool = Field(False, description="Send requests again that the server rejected.")
    fresh: bool = Field(False, description="Start over, and replace existing output.")

    def target(self, name: str) -> Path:
        """Return the directory of a release with this name."""
        return self.out or Path("dist") / name

    @property
    def build_arguments(self) -> dict[str, Any]:
        """The arguments of a builder's function, without the directory."""
        return {name: value for name, value in self if name != "out"}


class Options(NamedTuple):
    """Marks a parameter of a command that is a model, whose fields become options.

    Attributes:
        panel: Heading of the options in --help.
        from_parameters: Fields whose value comes from another parameter of the command, with its name.
        left_out: Fields without an option.
        prefix: Prefix of the options' names, for a command with two models of one type. A field with a `flag` keeps it.
    """

    panel: str
    from_parameters: dict[str, str] = {}  # noqa: RUF012 - never modified
    left_out: tuple[str, ...] = ()
    prefix: str = ""


class RecipeOptions(NamedTuple):
    """Marks a parameter of type `Overrides` in a command that reads a recipe.

    A table with a description is given as a string, which becomes the value of its key `text_key` (in
    `json_schema_extra`) or is parsed by a validator. The same holds for each table of a list, to all of which the
    options of their fields apply. With `as_text` its fields have no options. A flag of several fields sets all of them.

    Attributes:
        model: The type of the recipe.
        folder: Folder of recipes whose values --help shows as the defaults.
        keys: Tables and dotted keys of the recipe that have options. Default: all.
    """

    model: type[Recipe]
    folder: Path | None = None
    keys: tuple[str, ...] = ()


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command an option for each field of its parameters with the mark `Options` or `RecipeOptions`.

    The command is called with the models and overrides. A value that is not valid raises a `RecipeError` that names the
    option.
    """
    hints = get_type_hints(command, include_extras=True)
    marked = {name: options for name, hint in hints.items() if (options := _marked(hint)) is not None}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in marked:
            parameters += marked[name].parameters()
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def flat(**values: Any) -> Any:
        own = {name: value for name, value in values.items() if name in hints}
        return command(**own, **{name: options.build(values) for name, options in marked.items()})

    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return flat


def field_flags(command: Callable[..., Any]) -> dict[str, str]:
    """Map fields, and `PARAMETER.FIELD` (for a recipe: dotted keys), to the flags that `with_options` gave a command.

    A field that several parameters have with different flags is listed by `PARAMETER.FIELD` alone. A parameter that
    shares its name with a flag of one of its fields, such as `data`, has that flag too.
    """
    hints = get_type_hints(getattr(command, "__wrapped__", command), include_extras=True)
    qualified: dict[str, str] = {}
    by_field: dict[str, set[str]] = {}
    for parameter, hint in hints.items():
        options = _marked(hint)
        for field, flag in [] if options is None else options.field_flags():
            qualified[f"{parameter}.{field}"] = flag
            by_field.setdefault(field, set()).add(flag)
            if flag == f"--{parameter}":
                qualified[parameter] = flag
    return qualified | {field: flags.pop() for field, flags in by_field.items() if len(flags) == 1}


def name_options(message: str, flags: Mapping[str, str]) -> str:
    """Replace keyword arguments in backticks by the options of a command, such as `data=...` by `--data`.

    Args:
        message: An error message that names parameters, as the functions below the commands write it.
        flags: The flag of each parameter (`--on/--off` for a switch with both). Other parameters stay as they are.
    """

    def replace(match: re.Match[str]) -> str:
        name, value = match["name"], match["value"]
        table, dot, _ = name.partition(".")
        if name not in flags and dot and any(key.startswith(f"{table}.") for key in flags):
            # A key of the recipe that has no option, in the form of its file.
            return f"`{name}` of the recipe" if value == "..." else f"`{name} = {value.lower()}` of the recipe"
        # `connection.price` may be that of `policy_connection` or of `judge_connection`.
        ours = [name] if name in flags else [key for key in flags if dot and key.endswith(f"_{name}")]
        return " or ".join(f"`{_as_option(flags[key], value)}`" for key in ours) or match[0]

    return ARGUMENT.sub(replace, message)


def _as_option(flag: str, value: str) -> str:
    on, _, off = flag.partition("/")
    if value in {"...", "True"}:
        return on
    if value == "False":
        return off or f"no {on}"
    try:
        parsed = ast.literal_eval(value)
    except (SyntaxError, ValueError):
        parsed = value
    values = parsed if isinstance(parsed, list | tuple) else [parsed]
    return " ".join(f"{on} {one}" for one in values)


def _marked(hint: Any) -> "_OfModel | _OfRecipe | None":
    if get_origin(hint) is not Annotated:
        return None
    kind, *marks = get_args(hint)
    for mark in marks:
        if isinstance(mark, Options):
            return _OfModel(kind, mark)
        if isinstance(mark, RecipeOptions):
            return _OfRecipe(mark)
    return None


class _OfModel(NamedTuple):
    model: type[FrozenModel]
    options: Options

    @property
    def names(self) -> dict[str, str]:
        """The parameters of the fields with an option."""
        excluded = {*self.options.from_parameters, *self.options.left_out}
        prefix = self.options.prefix.replace("-", "_")
        return {field: prefix + field for field in self.model.model_fields if field not in excluded}

    def parameters(self) -> list[inspect.Parameter]:
        fields = self.model.model_fields
        return [
            _parameter(name, fields[field], self.flag(field), self.options.panel, default=fields[field].default)
            for field, name in self.names.items()
        ]

    def flag(self, field: str) -> str:
        extra = _extra(self.model.model_fields[field])
        return str(extra.get("flag", f"--{self.options.prefix}{field.replace('_', '-')}"))

    def field_flags(self) -> Iterator[tuple[str, str]]:
        return ((field, self.flag(field)) for field in self.names)

    def build(self, values: Mapping[str, Any]) -> FrozenModel:
        passed = {field: values[parameter] for field, parameter in self.options.from_parameters.items()}
        own = {field: values[name] for field, name in self.names.items()}
        # None means that an option is not used; the model's default may be another value.
        arguments = passed | {field: value for field, value in own.items() if value is not None}
        try:
            return self.model.model_validate(arguments)
        except ValidationError as error:
            first = error.errors()[0]
            field = str(first["loc"][0]) if first["loc"] else ""
            message = first["msg"].removeprefix("Value error, ").rstrip(".")
            prefix = f"{self.flag(field)}: " if field in self.model.model_fields else ""
            raise RecipeError(f"{prefix}{message}.") from None


class _Place(NamedTuple):
    """The place of an option's value in a recipe.

    Attributes:
        key: Dotted key. In the tables of a list: the key in the table.
        info: The field.
        panel: Heading in --help.
        owner: Dotted key of the list, for a field of its tables.
        text_key: Key of the string in a table that is given as a string.
    """

    key: str
    info: FieldInfo
    panel: str
    owner: str = ""
    text_key: str = ""

    @property
    def flag(self) -> str:
        return str(_extra(self.info).get("flag", f"--{self.key.rpartition('.')[2].replace('_', '-')}"))

    @property
    def dotted(self) -> str:
        """The key of the value in the recipe."""
        return f"{self.key}.{self.text_key}" if self.text_key and not _is_list(self.info) else self.key


class _OfRecipe(NamedTuple):
    options: RecipeOptions

    @property
    def flags(self) -> dict[str, list[_Place]]:
        """The places of each option by flag."""
        flags: dict[str, list[_Place]] = {}
        for place in _places(self.options.model):
            path = f"{place.owner or place.key}."
            if not self.options.keys or any(path.startswith(f"{key}.") for key in self.options.keys):
                flags.setdefault(place.flag, []).append(place)
        return flags

    def parameters(self) -> list[inspect.Parameter]:
        defaults = _Defaults(self.options.folder)
        return [
            _parameter(_name(flag), places[0].info, flag, places[0].panel, shown=defaults.describe(places[0]))
            for flag, places in self.flags.items()
        ]

    def field_flags(self) -> Iterator[tuple[str, str]]:
        for flag, places in self.flags.items():
            for place in places:
                yield place.key, flag
                yield place.dotted, flag  # differs only for a table that is given as a string

    def build(self, values: Mapping[str, Any]) -> Overrides:
        flags = self.flags
        parsed = {flag: _parse_option(flag, flags[flag][0].info, values[_name(flag)]) for flag in flags}
        parsed = {flag: value for flag, value in parsed.items() if value is not None}
        overrides = {place.dotted: parsed[flag] for flag in parsed for place in flags[flag] if not place.owner}
        for key, texts in overrides.items():
            place = next(place for places in flags.values() for place in places if place.dotted == key)
            if place.text_key and _is_list(place.info):
                shared = {
                    inner.key: parsed[flag] for flag in parsed for inner in flags[flag] if inner.owner == place.key
                }
                overrides[key] = [{place.text_key: text} | shared for text in texts]
        for flag in parsed:
            owners = {place.owner for place in flags[flag]}
            if not owners & {"", *overrides}:
                required = next(other for other, places in flags.items() for place in places if place.key in owners)
                raise RecipeError(f"{flag} requires {required}.")
        return overrides


def _places(model: type[BaseModel], prefix: str = "", panel: str = "") -> Iterator[_Place]:
    """Yield the fields of a recipe that have options."""
    for name in model.model_fields:
        info = _described(model, name)
        extra, tables = _extra(info), list(models_in(info.annotation))
        key, heading = prefix + name, str(extra.get("panel", panel))
        if info.description is not None or "flag" in extra:
            yield _Place(key, info, heading, text_key=str(extra.get("text_key", "")))
        for table in [] if extra.get("as_text") else tables:
            heading = str(extra.get("panel", name.replace("_", " ").capitalize()))
            if not _is_list(info):
                yield from _places(table, f"{key}.", heading)
            elif info.description is not None:
                yield from (place._replace(owner=key) for place in _places(table, "", heading))


def _described(model: type[BaseModel], name: str) -> FieldInfo:
    """Return a field, with the description of a parent class if a subclass changed only the default."""
    own = model.model_fields[name]
    parents = [
        parent.model_fields[name]
        for parent in model.__mro__[1:]
        if issubclass(parent, BaseModel) and name in parent.model_fields
    ]
    described = next((info for info in [own, *parents] if info.description is not None), own)
    info = copy(own)
    info.description, info.json_schema_extra = (
        described.description,
        own.json_schema_extra or described.json_schema_extra,
    )
    return info


def _parameter(
    name: str, info: FieldInfo, flag: str, panel: str, *, default: Any = None, shown: str | None = None
) -> inspect.Parameter:
    extra = _extra(info)
    is_table_list = _is_list(info) and "text_key" in extra  # each table is given as a string
    kind = str | None if extra.get("as_text") and not is_table_list else _option_type(info.annotation)
    has_flag = flag != f"--{name.replace('_', '-')}" or kind is bool  # keeps typer from adding --no-... to a switch
    bounds = {bound: getattr(mark, bound) for mark in info.metadata for bound in ("ge", "le") if hasattr(mark, bound)}
    option = typer.Option(
        *([flag] if has_flag else []),
        help=info.description,
        metavar=str(extra["metavar"]) if "metavar" in extra else None,
        min=bounds.get("ge"),
        max=bounds.get("le") if "ge" in bounds else None,  # otherwise the model checks both bounds
        rich_help_panel=panel or None,
        show_default=shown or True,
    )
    if isinstance(default, tuple | FrozenModel) or info.is_required():
        default = None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])


def _name(flag: str) -> str:
    """Return the parameter of a recipe's option."""
    return f"_{flag.partition('/')[0].strip('-').replace('-', '_')}"


def _extra(info: FieldInfo) -> Mapping[str, Any]:
    return info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}


def _is_list(info: FieldInfo) -> bool:
    return get_origin(info.annotation) in {list, tuple}


def _option_type(annotation: Any) -> Any:
    """Return the type of an option: a list for several values, and a string for a value that the model parses."""
    kind, optional = _bare(annotation)
    if get_origin(kind) in {list, tuple}:
        inner = _bare(get_args(kind)[0])[0]
        return list[str if [*models_in(inner)] else inner] | None  # type: ignore[misc]
    if get_origin(kind) is dict:
        return list[str] | None
    if [*models_in(kind)]:
        return str | None
    return kind | None if optional else kind


def _bare(annotation: Any) -> tuple[Any, bool]:
    """Return a type without its annotations, and whether it may also be None."""
    parts = get_args(annotation) if get_origin(annotation) in {Union, types.UnionType} else (annotation,)
    kind = next(part for part in parts if part is not types.NoneType)
    return (get_args(kind)[0] if get_origin(kind) is Annotated else kind), types.NoneType in parts


def _parse_option(flag: str, info: FieldInfo, value: Any) -> Any:
    """Convert the value of an option for a recipe; None if the option is not used."""
    if value in (None, []) or (value is False and "/" not in flag):
        return None
    if get_origin(info.annotation) is dict:
        return _parse_pairs(flag, info, value)
    if isinstance(value, list):
        return [str(item) if isinstance(item, Path) else item for item in value]
    return str(value) if isinstance(value, Path) else value


def _parse_pairs(flag: str, info: FieldInfo, texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for text, (key, _, value) in zip(texts, pairs, strict=True):
        if not (key and value):
            form, example = (_extra(info).get(key) for key in ("metavar", "example"))
            raise RecipeError(f"{flag} {text!r} is not of the form {form}, such as {example}.")
    return {key: value for key, _, value in pairs}


class _Defaults:
    """The defaults of a recipe's options in --help: the values of the recipes in a folder, or those of the fields.

    If the recipes differ, all are shown, such as "paper: 100, sample: 10".
    """

    def __init__(self, folder: Path | None) -> None:
        files = [] if folder is None else sorted(folder.glob("*.toml"))
        self.recipes = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in files}

    def describe(self, place: _Place) -> str | None:
        if place.owner or (place.text_key and _is_list(place.info)):
            return None
        default = place.info.get_default(call_default_factory=True)
        default = None if place.info.is_required() or isinstance(default, BaseModel) else default
        values = {name: _lookup(table, place.dotted, default) for name, table in self.recipes.items()}
        empty: list[object] = [None, [], (), {}, ""] if "/" in place.flag else [None, [], (), {}, "", False]
        texts = {name: _format(value) for name, value in values.items() if value not in empty}
        if not texts:
            return None if default in empty else _format(default)
        if len(texts) == len(values) and len({*texts.values()}) == 1:
            return next(iter(texts.values()))
        return ", ".join(f"{name}: {text}" for name, text in texts.items())


def _lookup(table: Mapping[str, Any], key: str, default: Any) -> Any:
    *tables, last = key.split(".")
    for name in tables:
        table = table.get(name, {})
    return table.get(last, default)


def _format(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "/".join(map(str, value.values()))
    if isinstance(value, list | tuple):
        return " ".join(map(str, value)) if len(value) <= MAX_SHOWN else f"{len(value)} values"
    return str(value)


def check_one_source(sources: Sequence[str], options: Mapping[str, Any]) -> None:
    """Raise `RecipeError` if the options have a `name` or `license` for several sources."""
    if len(sources) > 1 and options.keys() & {"name", "license"}:
        raise RecipeError(
            f"--source-name and --license require a single source, not {', '.join(sources)}; build these one by one, "
            "or set the `name` and `license` of each in a recipe."
        )
