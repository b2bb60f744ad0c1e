"""Options of a command made from the fields of frozen models: what is described there is an option, and nothing else.

A field's description is its help. What else there is to say of the option stands in its `json_schema_extra`: `flag`
where it is not called like the field (`--on/--off` for a switch with both), `metavar`, `panel`, and `as_text` for a
value that a validator of the field reads from text.

A command is asked either for the model itself, whose defaults are then the options' (`Options`), or for a recipe, of
which it gets what the command line says otherwise than the recipe's file (`RecipeOptions`).
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

from pluralbench_runs.errors import RecipeError
from pluralbench_runs.recipe import FrozenModel, Recipe, models_in

RESULT = "Result"
MANY = 3
# A keyword argument in an error message, such as `on_empty="drop"`.
ARGUMENT = re.compile(r"`(?P<name>[a-z_][\w.]*)=(?P<value>[^`]+)`")

Seed = Annotated[int, typer.Option(help="Seed of every draw.", rich_help_panel=RESULT)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Start over, and replace what is there.", rich_help_panel=RESULT)]
COLUMNS: Any = Field(
    default_factory=dict,
    description="Which column is what, such as prompt=text; repeatable.",
    json_schema_extra={"flag": "--column", "metavar": "WHAT=COLUMN", "example": "prompt=text"},
)
"""A field of a recipe that has the column by what it is."""

Overrides = dict[str, Any]
"""What the command line says otherwise than a recipe's file, by dotted key, as `read_recipe` takes it."""


class Building(FrozenModel):
    """How a release is built: where to, and which answers are known. Nothing of it changes what is built."""

    out: Path | None = Field(None, description="Release directory; without it dist/NAME.")
    replay: Path | None = Field(None, description="Take every answer from this ledger or release; send nothing.")
    reuse: Path | None = Field(None, description="Take the answers that are recorded here; ask for the rest.")
    retry_errors: bool = Field(False, description="Ask again what the server rejected.")
    fresh: bool = Field(False, description="Start over, and replace what is there.")

    def target(self, name: str) -> Path:
        """The directory of a release of this name."""
        return self.out or Path("dist") / name

    @property
    def known(self) -> dict[str, Any]:
        """What the function takes that builds, the directory apart."""
        return {name: value for name, value in self if name != "out"}


class Options(NamedTuple):
    """Marks a parameter of a command that is a model: its fields become options under this heading.

    given: fields that another parameter of the command gives, by the field's name. left_out: fields without an option.
    prefix: what the names of its options begin with, where a command has two models of one kind; a field that names
    its flag keeps it.
    """

    panel: str
    given: dict[str, str] = {}  # noqa: RUF012 - never changed
    left_out: tuple[str, ...] = ()
    prefix: str = ""


class RecipeOptions(NamedTuple):
    """Marks a parameter of type `Overrides`, of a command that reads a recipe.

    folder: of recipes whose values --help shows as the defaults. keys: tables and dotted keys of the recipe that this
    command is asked for, () for all.

    A table that is described itself is given by a text, which stands under its key `text_key` (in the field's
    `json_schema_extra`) or is read by a validator; so is each table of a list, of all of which the options of its
    fields are then said. `as_text` says that its fields have no options. A flag of several fields sets them all.
    """

    model: type[Recipe]
    folder: Path | None = None
    keys: tuple[str, ...] = ()


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with an option for each field of its parameters that are marked by `Options` or `RecipeOptions`.

    It is called with the models and overrides; a value that a model refuses is a `RecipeError` that names the option.
    """
    hints = get_type_hints(command, include_extras=True)
    marked = {name: made for name, hint in hints.items() if (made := _marked(hint)) is not None}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in marked:
            parameters += marked[name].parameters()
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def flat(**values: Any) -> Any:
        own = {name: value for name, value in values.items() if name in hints}
        return command(**own, **{name: made.built(values) for name, made in marked.items()})

    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return flat


def field_flags(command: Callable[..., Any]) -> dict[str, str]:
    """The flags that `with_options` gave a command, by the field and by `PARAMETER.FIELD` (of a recipe: its key).

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
        flag = flags.get(match["name"])
        return match[0] if flag is None else f"`{_as_option(flag, match['value'])}`"

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
        """The parameter of each field that has an option."""
        kept = set(self.model.model_fields) - {*self.options.given, *self.options.left_out}
        prefix = self.options.prefix.replace("-", "_")
        return {field: prefix + field for field in self.model.model_fields if field in kept}

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

    def built(self, values: Mapping[str, Any]) -> FrozenModel:
        given = {field: values[parameter] for field, parameter in self.options.given.items()}
        own = {field: values[name] for field, name in self.names.items()}
        # What was not given is left to the model, whose default may be another than the option's None.
        wanted = given | {field: value for field, value in own.items() if value is not None}
        try:
            return self.model.model_validate(wanted)
        except ValidationError as error:
            first = error.errors()[0]
            field = str(first["loc"][0]) if first["loc"] else ""
            message = first["msg"].removeprefix("Value error, ").rstrip(".")
            named = f"{self.flag(field)}: " if field in self.model.model_fields else ""
            raise RecipeError(f"{named}{message}.") from None


class _Place(NamedTuple):
    """Where a recipe has what an option says.

    key: with dots; of each table of a list, its own key there, and `owner` is the list's. panel: the heading.
    text_key: of a table that is given by a text, where it has the text.
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
        """The fields of each option, by its flag."""
        found: dict[str, list[_Place]] = {}
        for place in _places(self.options.model):
            whole = f"{place.owner or place.key}."
            if not self.options.keys or any(whole.startswith(f"{key}.") for key in self.options.keys):
                found.setdefault(place.flag, []).append(place)
        return found

    def parameters(self) -> list[inspect.Parameter]:
        shown = _Shown(self.options.folder)
        return [
            _parameter(_name(flag), places[0].info, flag, places[0].panel, shown=shown.of(places[0]))
            for flag, places in self.flags.items()
        ]

    def field_flags(self) -> Iterator[tuple[str, str]]:
        for flag, places in self.flags.items():
            for place in places:
                yield place.key, flag
                yield place.dotted, flag  # the same but for a table that a text stands for

    def built(self, values: Mapping[str, Any]) -> Overrides:
        flags = self.flags
        given = {flag: _parse_option(flag, flags[flag][0].info, values[_name(flag)]) for flag in flags}
        given = {flag: value for flag, value in given.items() if value is not None}
        found = {place.dotted: given[flag] for flag in given for place in flags[flag] if not place.owner}
        for key, texts in found.items():
            place = next(place for places in flags.values() for place in places if place.dotted == key)
            if place.text_key and _is_list(place.info):
                of_each = {one.key: given[flag] for flag in given for one in flags[flag] if one.owner == place.key}
                found[key] = [{place.text_key: text} | of_each for text in texts]
        for flag in given:
            owners = {place.owner for place in flags[flag]}
            if not owners & {"", *found}:
                of = next(other for other, places in flags.items() for place in places if place.key in owners)
                raise RecipeError(f"{flag} says something about what {of} names; give {of} too.")
        return found


def _places(model: type[BaseModel], prefix: str = "", panel: str = "") -> Iterator[_Place]:
    """The fields of a recipe that have options."""
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
    """A field, with the description of a parent where a subclass has changed its default alone."""
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
    several = _is_list(info) and "text_key" in extra  # tables, each given by a text
    kind = str | None if extra.get("as_text") and not several else _option_type(info.annotation)
    named = flag != f"--{name.replace('_', '-')}" or kind is bool  # a switch has no --no-... beside it
    bounds = {bound: getattr(mark, bound) for mark in info.metadata for bound in ("ge", "le") if hasattr(mark, bound)}
    option = typer.Option(
        *([flag] if named else []),
        help=info.description,
        metavar=str(extra["metavar"]) if "metavar" in extra else None,
        min=bounds.get("ge"),
        max=bounds.get("le") if "ge" in bounds else None,  # else the model says both bounds
        rich_help_panel=panel or None,
        show_default=shown or True,
    )
    if isinstance(default, tuple | FrozenModel) or info.is_required():
        default = None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])


def _name(flag: str) -> str:
    """The parameter of an option of a recipe."""
    return f"_{flag.partition('/')[0].strip('-').replace('-', '_')}"


def _extra(info: FieldInfo) -> Mapping[str, Any]:
    return info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}


def _is_list(info: FieldInfo) -> bool:
    return get_origin(info.annotation) in {list, tuple}


def _option_type(annotation: Any) -> Any:
    """The type by which an option is read: a list for several values, and text for what is read by the model."""
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
    """A type without what is said about it, and whether it may also be None."""
    parts = get_args(annotation) if get_origin(annotation) in {Union, types.UnionType} else (annotation,)
    kind = next(part for part in parts if part is not types.NoneType)
    return (get_args(kind)[0] if get_origin(kind) is Annotated else kind), types.NoneType in parts


def _parse_option(flag: str, info: FieldInfo, value: Any) -> Any:
    """What an option says, as a recipe has it; None where it is not given."""
    if value in (None, []) or (value is False and "/" not in flag):
        return None
    if get_origin(info.annotation) is dict:
        return _pairs(flag, info, value)
    if isinstance(value, list):
        return [str(one) if isinstance(one, Path) else one for one in value]
    return str(value) if isinstance(value, Path) else value


def _pairs(flag: str, info: FieldInfo, texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for text, (what, _, value) in zip(texts, pairs, strict=True):
        if not (what and value):
            form, example = (_extra(info).get(key) for key in ("metavar", "example"))
            raise RecipeError(f"{flag} {text!r} is not of the form {form}, such as {example}.")
    return {what: value for what, _, value in pairs}


class _Shown:
    """What --help shows as the defaults of a recipe's options: what the recipes of a folder say, or the fields.

    Where the recipes differ it is each one's, such as "paper: 100, sample: 10".
    """

    def __init__(self, folder: Path | None) -> None:
        files = [] if folder is None else sorted(folder.glob("*.toml"))
        self.recipes = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in files}

    def of(self, place: _Place) -> str | None:
        if place.owner or (place.text_key and _is_list(place.info)):
            return None
        otherwise = place.info.get_default(call_default_factory=True)
        otherwise = None if place.info.is_required() or isinstance(otherwise, BaseModel) else otherwise
        values = {name: _value(table, place.dotted, otherwise) for name, table in self.recipes.items()}
        nothing: list[object] = [None, [], (), {}, ""] if "/" in place.flag else [None, [], (), {}, "", False]
        texts = {name: _text(value) for name, value in values.items() if value not in nothing}
        if not texts:
            return None if otherwise in nothing else _text(otherwise)
        if len(texts) == len(values) and len({*texts.values()}) == 1:
            return next(iter(texts.values()))
        return ", ".join(f"{name}: {text}" for name, text in texts.items())


def _value(table: Mapping[str, Any], key: str, otherwise: Any) -> Any:
    *tables, last = key.split(".")
    for name in tables:
        table = table.get(name, {})
    return table.get(last, otherwise)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "/".join(map(str, value.values()))
    if isinstance(value, list | tuple):
        return " ".join(map(str, value)) if len(value) <= MANY else f"{len(value)} of them"
    return str(value)


def check_one_source(sources: Sequence[str], said: Mapping[str, Any]) -> None:
    """Raise `RecipeError` where one `name` or `license` is said of several sources."""
    if len(sources) > 1 and said.keys() & {"name", "license"}:
        raise RecipeError(
            f"--source-name and --license are for one source, and here are {', '.join(sources)}; build these one by "
            "one, or give each its `name` and `license` in a recipe."
        )
