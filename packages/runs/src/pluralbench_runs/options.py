"""Options of commands, made of parameters and of the fields of models.

The description of a field is the help of its option, and its `json_schema_extra` has the other values of a `Flag`.
Fields with one flag share an option, which sets all of them.
"""

import inspect
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Annotated, Any, ForwardRef, Literal, NamedTuple, Union, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pluralbench_runs.recipe import FrozenModel, models_in

MAPPINGS = {dict, Mapping}


class Flag(NamedTuple):
    """What an option says besides its type and its help.

    Attributes:
        flag: Its name (`--on/--off` for a switch with both). Default: that of the parameter or field. A positional
            parameter without one is an argument of the command.
        metavar: Placeholder of the value in --help.
        panel: Heading in --help. Default: none, or that of the model.
        example: A value, for the error about one of another form.
        model: A model whose options may be part of the value; see `pluralbench_runs.command.model_from_words`.
        as_text: A validator of the field parses a string; the fields of a table in it have no options.
        text_key: The key of a table, or of each table of a list, that the option sets.
    """

    flag: str = ""
    metavar: str = ""
    panel: str | None = None
    example: str = ""
    model: type[FrozenModel] | None = None
    as_text: bool = False
    text_key: str = ""


class Options(NamedTuple):
    """Marks a parameter that takes a model, whose fields become options; its defaults are those of the options.

    A required field is an argument, with the name and the help of the parameter.

    Attributes:
        panel: Heading of the options in --help. Default: the name of the parameter.
        left_out: Fields without an option.
        prefix: Prefix of the options' names, for a function with two models of one type; a field with a `flag` keeps
            it.
    """

    panel: str = ""
    left_out: tuple[str, ...] = ()
    prefix: str = ""


class Option(NamedTuple):
    """An option or an argument of a command.

    Attributes:
        key: Dotted key of its field, in the tables of a list that in the table. "": it is a parameter itself.
        info: The field, or the parameter itself.
        mark: What it says; `flag` is the placeholder of an argument.
        default: Value without the option; of a recipe's, as --help shows it.
        owner: Dotted key of the list, for a field of its tables.
    """

    key: str
    info: FieldInfo
    mark: Flag
    default: Any = None
    is_required: bool = False
    owner: str = ""

    @property
    def flag(self) -> str:
        """The option as it is written."""
        return self.mark.flag

    @property
    def is_argument(self) -> bool:
        """Whether it is given by its place."""
        return not self.flag.startswith("-")

    @property
    def sets_tables(self) -> bool:
        """Whether it gives tables of a list as strings."""
        return bool(self.mark.text_key) and is_list(self.info)

    @property
    def dotted(self) -> str:
        """The key of the value in the recipe."""
        return f"{self.key}.{self.mark.text_key}" if self.mark.text_key and not self.sets_tables else self.key

    @property
    def name(self) -> str:
        """The parameter of the option, for typer."""
        return "option_" + re.sub(r"\W+", "_", self.flag.partition("/")[0].strip("-"))

    @property
    def bounds(self) -> dict[str, Any]:
        """The smallest and the largest value, `ge` and `le`."""
        return {
            name: getattr(mark, name) for mark in self.info.metadata for name in ("ge", "le") if hasattr(mark, name)
        }

    @property
    def value_kind(self) -> tuple[Any, tuple[Any, ...]]:
        """The type of its values, and the values that it can have; none if they are not listed."""
        kind = next(kind for kind in kinds_of(self._type) if kind is not types.NoneType)
        while get_origin(kind) is list:
            kind = get_args(kind)[0]
        return (str, get_args(kind)) if get_origin(kind) is Literal else (kind, ())

    @property
    def _type(self) -> Any:
        return str | None if self.mark.as_text and not self.sets_tables else _option_type(self.info.annotation)

    @property
    def typer_parameter(self) -> inspect.Parameter:
        """The parameter of a function that typer makes a command of."""
        bounds = self.bounds
        shared: dict[str, Any] = {
            "help": self.info.description,
            "min": bounds.get("ge"),
            "max": bounds.get("le") if "ge" in bounds else None,  # otherwise the model checks both bounds
        }
        if self.is_argument:
            mark = typer.Argument(**shared, metavar=self.flag)
        else:
            mark = typer.Option(self.flag, **shared, metavar=self.mark.metavar or None)
        default = inspect.Parameter.empty if self.is_required else None
        kind: Any = self._type
        annotation = Annotated[kind, mark]
        return inspect.Parameter(self.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def dashed(name: str) -> str:
    """Return the name of an option, without the dashes before it."""
    return name.strip("_").replace("_", "-")


def heading(name: str) -> str:
    """Return the heading of the options of a table or a parameter."""
    return name.replace("_", " ").capitalize()


def is_list(info: FieldInfo) -> bool:
    """Return whether a field has several values."""
    return get_origin(info.annotation) in {list, tuple}


def mark_of(parameter: inspect.Parameter, kind: type[Any]) -> Any:
    """Return the mark of this type in the annotation of a parameter; None if it has none."""
    return next((mark for mark in getattr(parameter.annotation, "__metadata__", ()) if isinstance(mark, kind)), None)


def model_of(parameter: inspect.Parameter) -> type[FrozenModel] | None:
    """Return the first model that a parameter takes."""
    return next((model for model in models_in(parameter.annotation) if issubclass(model, FrozenModel)), None)


def field_options(
    model: type[BaseModel], *, prefix: str = "", panel: str = "", flag_prefix: str = ""
) -> Iterator[Option]:
    """Yield an option for each field of a model, and of the models in it, that has a description or a flag."""
    for name in model.model_fields:
        info, key = _described(model, name), prefix + name
        extra = info.json_schema_extra
        mark = Flag(**extra) if isinstance(extra, dict) else Flag()  # type: ignore[arg-type]
        if info.description is not None or mark.flag:
            flag = mark.flag or f"--{flag_prefix}{dashed(name)}"
            own = mark._replace(flag=flag, panel=panel if mark.panel is None else mark.panel)
            yield Option(key, info, own, _simple(info.default))
        for table in [] if mark.as_text else models_in(info.annotation):
            inner = heading(name) if mark.panel is None else mark.panel
            if not is_list(info):
                yield from field_options(table, prefix=f"{key}.", panel=inner)
            elif info.description is not None:
                yield from (option._replace(owner=key) for option in field_options(table, panel=inner))


def model_options(name: str, model: type[BaseModel], options: Options, text: str | None) -> Iterator[Option]:
    """Yield the options of a parameter that takes a model, with the help of the parameter."""
    panel = options.panel or heading(name)
    for option in field_options(model, panel=panel, flag_prefix=options.prefix):
        if option.key in options.left_out:
            continue
        if option.info.is_required():  # such as the name of a model, which is an argument
            info = copy(option.info)
            info.description = info.description if text is None else text
            yield Option(option.key, info, Flag(name.upper()), is_required=True)
        else:
            yield option


def parameter_option(parameter: inspect.Parameter, text: str) -> Option:
    """Return the option of a parameter that is not a model."""
    mark = mark_of(parameter, Flag) or Flag()
    info = FieldInfo.from_annotation(parameter.annotation)
    info.description = info.description or text
    if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and not mark.flag:
        flag = mark.metavar or parameter.name.upper()
    else:
        flag = mark.flag or f"--{dashed(parameter.name)}"
    mark = mark._replace(flag=flag, panel=mark.panel or "")
    is_required = parameter.default is inspect.Parameter.empty
    return Option("", info, mark, _simple(parameter.default), is_required)


def kinds_of(annotation: Any) -> list[Any]:
    """Return the types of a union; one that only a type checker imports is given as text."""
    if get_origin(annotation) is Annotated:
        return kinds_of(get_args(annotation)[0])
    if get_origin(annotation) in {Union, types.UnionType}:
        return [kind for part in get_args(annotation) for kind in kinds_of(part)]
    return [str if isinstance(annotation, str | ForwardRef) else annotation]


def _described(model: type[BaseModel], name: str) -> FieldInfo:
    """Return a field, with the description of a parent class if a subclass changed only the default."""
    own = model.model_fields[name]
    classes = [kind for kind in inspect.getmro(model) if issubclass(kind, BaseModel)]
    fields = [kind.model_fields[name] for kind in classes if name in kind.model_fields]
    described = next((info for info in fields if info.description is not None), own)
    field = copy(own)
    field.description = described.description
    field.json_schema_extra = own.json_schema_extra or described.json_schema_extra
    return field


def _option_type(annotation: Any) -> Any:
    """Return the type of an option: a list for several values, and a string for a value that the model parses."""
    kinds = kinds_of(annotation)
    kind = str if str in kinds else next(kind for kind in kinds if kind is not types.NoneType)
    if get_origin(kind) in {list, tuple, Sequence}:
        inner = get_args(kind)[0]
        return list[str if [*models_in(inner)] else _option_type(inner)] | None  # type: ignore[misc]
    if get_origin(kind) in MAPPINGS:
        return list[str] | None
    if [*models_in(kind)]:
        return str | None
    return kind | None if types.NoneType in kinds else kind


def _simple(default: Any) -> Any:
    """Return a default that can be shown; None for any other."""
    return default if isinstance(default, bool | int | float | str) and default != "" else None
