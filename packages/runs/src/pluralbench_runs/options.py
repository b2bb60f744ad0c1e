"""Command-line options from fields: those of frozen models, of recipes, and the parameters of functions.

The description of a field is the help of its option; that of a parameter is its entry in the docstring's `Args`.
`json_schema_extra` of a field can set `flag` (if it differs from the field's name; `--on/--off` for a switch with
both), `metavar`, `panel` (a heading in --help), and `as_text` (a validator of the field parses a string); a parameter
is marked by `Flag`. Fields with one flag share an option, which sets all of them.
"""

import ast
import inspect
import json
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Annotated, Any, ForwardRef, Literal, NamedTuple, Union, get_args, get_origin

import typer
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from pluralbench_runs.errors import RecipeError, one_line
from pluralbench_runs.guard import NUMBERS
from pluralbench_runs.recipe import FrozenModel, models_in
from pluralbench_runs.recipe_options import (
    Place,
    RecipeOptions,
    dashed,
    extra_of,
    heading,
    is_list,
    model_places,
    recipe_overrides,
    recipe_places,
)
from pluralbench_runs.toml_files import value_error

MAPPINGS = {dict, Mapping}
# A keyword argument in an error message, such as `on_empty="drop"`.
ARGUMENT = re.compile(r"`(?P<name>[a-z_][\w.]*)=(?P<value>[^`]+)`")


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


class Flag(NamedTuple):
    """Marks a parameter whose option has another name than the parameter, or a placeholder.

    Attributes:
        name: The flag. A positional parameter without one is an argument of the command.
        metavar: Placeholder of the value in --help.
        panel: Heading in --help.
        example: A value, for the error about one of another form.
        model: A model whose options may be part of the value; see `pluralbench_runs.command.model_from_words`.
    """

    name: str = ""
    metavar: str = ""
    panel: str = ""
    example: str = ""
    model: type[FrozenModel] | None = None


class CommandLine:
    """The options of a command, and the arguments of its functions from the values of the options.

    Args:
        parameters: The parameters of the functions, by name.
        texts: Help of each parameter that is not a model.
    """

    def __init__(self, parameters: Mapping[str, inspect.Parameter], texts: Mapping[str, str]) -> None:
        self.parameters = parameters
        self.options: dict[str, list[Place]] = {}
        for parameter in parameters.values():
            for place in _places(parameter, texts):
                self.options.setdefault(place.flag, []).append(place)
        marks = (_mark(parameter, Flag) for parameter in parameters.values())
        inner = [place for mark in marks if mark and mark.model for place in model_places("", mark.model)]
        self.flags = _field_flags(inner) | _field_flags([place for places in self.options.values() for place in places])

    def typer_parameters(self) -> list[inspect.Parameter]:
        """Return the parameters of a function that typer makes a command of."""
        return [_typer_parameter(place) for place in self.places()]

    def places(self) -> list[Place]:
        """Return the options and arguments, with their help as descriptions."""
        return [self._described(places[0]) for places in self.options.values()]

    def _described(self, place: Place) -> Place:
        info = copy(place.info)
        info.description = self.help(info.description or "")
        return place._replace(info=info)

    def help(self, text: str) -> str:
        """Return a text for --help, in which a parameter in backticks is named by its flag."""
        flags = {name: self.flags[name] for name in self.parameters if name in self.flags}
        return re.sub(r"`(\w+)`", lambda match: f"`{flags.get(match[1], match[1])}`", text)

    def arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Convert the values of the options to those of the parameters; one that is not given has its default.

        Raises:
            RecipeError: A value is not valid. The message names the option.
        """
        given = {flag: values[places[0].name] for flag, places in self.options.items()}
        if problem := value_error({flag.partition("/")[0]: value for flag, value in given.items()}):
            raise RecipeError(f"{problem}.")
        parsed = {flag: _parse_option(self.options[flag][0], value) for flag, value in given.items()}
        parsed = {flag: value for flag, value in parsed.items() if value is not None}
        return {
            name: value
            for name, parameter in self.parameters.items()
            if (value := self._value(parameter, parsed)) is not inspect.Parameter.empty
        }

    def _value(self, parameter: inspect.Parameter, parsed: Mapping[str, Any]) -> Any:
        flags = {
            flag: own
            for flag, places in self.options.items()
            if (own := [place for place in places if place.parameter == parameter.name])
        }
        if _mark(parameter, RecipeOptions):
            return recipe_overrides(flags, {flag: value for flag, value in parsed.items() if flag in flags})
        values = {place.key: parsed[flag] for flag, places in flags.items() if flag in parsed for place in places}
        model = _model(parameter)
        if model is None:
            return values.get("", parameter.default)
        try:
            return model.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            field = str(first["loc"][0]) if first["loc"] else ""
            flag = next((f"{flag}: " for flag, places in flags.items() for place in places if place.key == field), "")
            if first["type"] in NUMBERS:
                number = one_line(first["input"], 80)
                bound = NUMBERS[first["type"]].format(**first.get("ctx", {}))
                raise RecipeError(f"{flag.removesuffix(': ')} {number} {bound}.") from None
            raise RecipeError(f"{flag}{first['msg'].removeprefix('Value error, ').rstrip('.')}.") from None


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


def _field_flags(places: Sequence[Place]) -> dict[str, str]:
    """Map parameters, `PARAMETER.FIELD` and fields to their flags; a field with several flags is not listed by itself.

    A parameter that shares its name with a flag of one of its fields, such as `data`, has that flag too.
    """
    by_field: dict[str, set[str]] = {}
    names: dict[str, str] = {}
    for place in places:
        for key in (place.key, place.dotted):  # differs only for a table that is given as a string
            names[f"{place.parameter}.{key}" if key else place.parameter] = place.flag
            by_field.setdefault(key, set()).add(place.flag)
        if place.flag in {f"--{place.parameter}", place.parameter.upper()}:
            names[place.parameter] = place.flag
    return {field: flags.pop() for field, flags in by_field.items() if field and len(flags) == 1} | names


def _places(parameter: inspect.Parameter, texts: Mapping[str, str]) -> Iterator[Place]:
    name, model, recipe = parameter.name, _model(parameter), _mark(parameter, RecipeOptions)
    if recipe is not None:
        yield from recipe_places(name, recipe)
    elif model is not None:
        options = _mark(parameter, Options) or Options()
        for place in model_places(name, model, panel=options.panel or heading(name), flag_prefix=options.prefix):
            if place.key in options.left_out:
                continue
            if place.info.is_required():  # such as the name of a model, which is an argument
                named = copy(place.info)
                named.description = texts.get(name, named.description)
                yield Place(name, named, name.upper(), place.key, default=inspect.Parameter.empty)
            else:
                yield place._replace(default=_simple(place.info.default))
    else:
        yield _own_place(parameter, texts.get(name, ""))


def _own_place(parameter: inspect.Parameter, text: str) -> Place:
    """Return the place of a parameter that is not a model."""
    mark = _mark(parameter, Flag) or Flag()
    info = FieldInfo.from_annotation(parameter.annotation)
    info.description = info.description or text
    info.json_schema_extra = {"metavar": mark.metavar or None, "example": mark.example}
    is_argument = parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and not mark.name
    flag = mark.metavar or parameter.name.upper() if is_argument else mark.name or f"--{dashed(parameter.name)}"
    default = parameter.default if parameter.default is inspect.Parameter.empty else _simple(parameter.default)
    return Place(parameter.name, info, flag, panel=mark.panel, default=default)


def value_kind(place: Place) -> tuple[Any, tuple[Any, ...]]:
    """Return the type of an option's value, and the values that it can have; none if they are not listed."""
    kind = next(one for one in _kinds(_typer_type(place)) if one is not types.NoneType)
    while get_origin(kind) is list:
        kind = get_args(kind)[0]
    return (str, get_args(kind)) if get_origin(kind) is Literal else (kind, ())


def _typer_type(place: Place) -> Any:
    is_table_list = is_list(place.info) and bool(place.text_key)  # each table is given as a string
    is_text = extra_of(place.info).get("as_text") and not is_table_list
    return str | None if is_text else _option_type(place.info.annotation)


def _typer_parameter(place: Place) -> inspect.Parameter:
    info, kind = place.info, _typer_type(place)
    bounds = {bound: getattr(mark, bound) for mark in info.metadata for bound in ("ge", "le") if hasattr(mark, bound)}
    shared: dict[str, Any] = {
        "help": info.description,
        "min": bounds.get("ge"),
        "max": bounds.get("le") if "ge" in bounds else None,  # otherwise the model checks both bounds
    }
    if place.is_option:
        mark = typer.Option(place.flag, **shared, metavar=extra_of(info).get("metavar"))
    else:
        mark = typer.Argument(**shared, metavar=place.flag)
    return inspect.Parameter(
        place.name, inspect.Parameter.KEYWORD_ONLY, default=place.default, annotation=Annotated[kind, mark]
    )


def _mark(parameter: inspect.Parameter, kind: type[Any]) -> Any:
    return next((mark for mark in getattr(parameter.annotation, "__metadata__", ()) if isinstance(mark, kind)), None)


def _model(parameter: inspect.Parameter) -> type[FrozenModel] | None:
    """Return the first model that a parameter takes."""
    return next((model for model in models_in(parameter.annotation) if issubclass(model, FrozenModel)), None)


def _option_type(annotation: Any) -> Any:
    """Return the type of an option: a list for several values, and a string for a value that the model parses."""
    kinds = _kinds(annotation)
    kind = str if str in kinds else next(kind for kind in kinds if kind is not types.NoneType)
    if get_origin(kind) in {list, tuple, Sequence}:
        inner = get_args(kind)[0]
        return list[str if [*models_in(inner)] else _option_type(inner)] | None  # type: ignore[misc]
    if get_origin(kind) in MAPPINGS:
        return list[str] | None
    if [*models_in(kind)]:
        return str | None
    return kind | None if types.NoneType in kinds else kind


def _kinds(annotation: Any) -> list[Any]:
    """Return the types of a union; one that only a type checker imports is given as text."""
    if get_origin(annotation) is Annotated:
        return _kinds(get_args(annotation)[0])
    if get_origin(annotation) in {Union, types.UnionType}:
        return [kind for part in get_args(annotation) for kind in _kinds(part)]
    return [str if isinstance(annotation, str | ForwardRef) else annotation]


def _simple(default: Any) -> Any:
    """Return a default that typer shows; None for any other."""
    return default if isinstance(default, bool | int | float | str) and default != "" else None


def _parse_option(place: Place, value: Any) -> Any:
    """Convert the value of an option; None if the option is not used."""
    if value in (None, []) or (value is False and "/" not in place.flag):
        return None
    if not {get_origin(kind) for kind in _kinds(place.info.annotation)} & MAPPINGS:
        return value
    pairs = [text.partition("=") for text in value]
    for text, (key, _, own) in zip(value, pairs, strict=True):
        if not (key and own):
            form, example = (extra_of(place.info).get(key) for key in ("metavar", "example"))
            hint = f", such as {example}" if example else ""
            raise RecipeError(f"{place.flag} {text!r} is not of the form {form or 'NAME=VALUE'}{hint}.")
        if [other for other, _, _ in pairs].count(key) > 1:
            raise RecipeError(f"{place.flag} has {key} twice; give each its own name.")
    is_json = any(get_args(kind)[1:] == (Any,) for kind in _kinds(place.info.annotation))
    return {key: _parse_json(place.flag, key, own) if is_json else own for key, _, own in pairs}


def _parse_json(flag: str, key: str, text: str) -> Any:
    """Parse a value of a mapping from names to any JSON."""

    def unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise RecipeError(f"{flag} {key}: the JSON has a key twice.")
        return dict(pairs)

    try:
        value = json.loads(text, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError):
        hint = f"; text needs quotes: {flag} '{key}={json.dumps(text)}'" if text.isprintable() else ""
        raise RecipeError(f"{flag} {key}={text!r} is not JSON{hint}.") from None
    if problem := value_error({key: value}):
        raise RecipeError(f"{flag}: {problem}.")
    return value
