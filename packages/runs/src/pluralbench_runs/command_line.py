"""The command line of a command: its options, and the arguments of its functions from their values."""

import ast
import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, get_args, get_origin

from pydantic import ValidationError

from pluralbench_runs.errors import RecipeError
from pluralbench_runs.guard import value_sentence
from pluralbench_runs.options import (
    MAPPINGS,
    Flag,
    Option,
    Options,
    field_options,
    kinds_of,
    mark_of,
    model_of,
    model_options,
    parameter_option,
)
from pluralbench_runs.recipe_options import RecipeOptions, recipe_options, recipe_overrides
from pluralbench_runs.toml_files import value_error

# A keyword argument in an error message, such as `on_empty="drop"`.
ARGUMENT = re.compile(r"`(?P<name>[a-z_][\w.]*)=(?P<value>[^`]+)`")


class CommandLine:
    """The options of a command."""

    def __init__(self, parameters: Mapping[str, inspect.Parameter], texts: Mapping[str, str]) -> None:
        self.parameters = parameters
        self.by_parameter = {name: [*_options(one, texts.get(name))] for name, one in parameters.items()}
        self._by_flag = {option.flag: option for _, option in reversed([*self._named()])}
        models = (mark.model for one in parameters.values() if (mark := mark_of(one, Flag)) and mark.model)
        inner = [("", option) for model in models for option in field_options(model)]
        self.flags = _field_flags(inner) | _field_flags(self._named())

    def _named(self) -> Iterator[tuple[str, Option]]:
        return ((name, option) for name, options in self.by_parameter.items() for option in options)

    def options(self) -> list[Option]:
        """Return the options and arguments, each once, with their help as descriptions."""
        flags = dict.fromkeys(option.flag for _, option in self._named())
        return [self._described(self._by_flag[flag]) for flag in flags]

    def _described(self, option: Option) -> Option:
        info = copy(option.info)
        info.description = self.help(info.description or "")
        return option._replace(info=info)

    def typer_parameters(self) -> list[inspect.Parameter]:
        """Return the parameters of a function for typer."""
        return [option.typer_parameter for option in self.options()]

    def help(self, text: str) -> str:
        """Return a text for --help, in which a parameter in backticks is named by its flag."""
        flags = {name: self.flags[name] for name in self.parameters if name in self.flags}
        return re.sub(r"`(\w+)`", lambda match: f"`{flags.get(match[1], match[1])}`", text)

    def arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Convert the values of the options to those of the parameters; one that is not given has its default.

        Raises:
            RecipeError: A value is not valid. The message names the option.
        """
        given = {flag: values[option.name] for flag, option in self._by_flag.items()}
        if problem := value_error({flag.partition("/")[0]: value for flag, value in given.items()}):
            raise RecipeError(f"{problem}.")
        parsed = {flag: _parse(option, given[flag]) for flag, option in self._by_flag.items()}
        parsed = {flag: value for flag, value in parsed.items() if value is not None}
        arguments = {name: self._argument(parameter, parsed) for name, parameter in self.parameters.items()}
        return {name: value for name, value in arguments.items() if value is not inspect.Parameter.empty}

    def _argument(self, parameter: inspect.Parameter, parsed: Mapping[str, Any]) -> Any:
        options = self.by_parameter[parameter.name]
        if mark_of(parameter, RecipeOptions):
            return recipe_overrides(options, parsed)
        model = model_of(parameter)
        if model is None:
            return parsed.get(options[0].flag, parameter.default)
        values = {option.key: parsed.get(option.flag, option.default) for option in options}
        try:
            return model.model_validate({key: value for key, value in values.items() if value is not None})
        except ValidationError as error:
            place = error.errors()[0]["loc"][:1]
            flag = next((option.flag for option in options if (option.key,) == place), "")
            raise RecipeError(value_sentence(flag, error)) from None


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


def _field_flags(named: Iterable[tuple[str, Option]]) -> dict[str, str]:
    """Map parameters, `PARAMETER.FIELD` and fields to their flags; a field with several flags is not listed by itself.

    A parameter that shares its name with a flag of one of its fields, such as `data`, has that flag too.
    """
    by_field: dict[str, set[str]] = {}
    names: dict[str, str] = {}
    for parameter, option in named:
        for key in (option.key, option.dotted):  # differs only for a table that is given as a string
            names[f"{parameter}.{key}" if key else parameter] = option.flag
            by_field.setdefault(key, set()).add(option.flag)
        if option.flag in {f"--{parameter}", parameter.upper()}:
            names[parameter] = option.flag
    return {field: flags.pop() for field, flags in by_field.items() if field and len(flags) == 1} | names


def _options(parameter: inspect.Parameter, text: str | None) -> Iterable[Option]:
    recipe, model = mark_of(parameter, RecipeOptions), model_of(parameter)
    if recipe is not None:
        return recipe_options(recipe)
    if model is not None:
        return model_options(parameter.name, model, mark_of(parameter, Options) or Options(), text)
    return [parameter_option(parameter, text or "")]


def _parse(option: Option, value: Any) -> Any:
    """Convert the value of an option; None if the option is not used."""
    if value in (None, []) or (value is False and "/" not in option.flag):
        return None
    if not {get_origin(kind) for kind in kinds_of(option.info.annotation)} & MAPPINGS:
        return value
    pairs = [text.partition("=") for text in value]
    for text, (key, _, own) in zip(value, pairs, strict=True):
        if not (key and own):
            form, example = option.mark.metavar or "NAME=VALUE", option.mark.example
            hint = f", such as {example}" if example else ""
            raise RecipeError(f"{option.flag} {text!r} is not of the form {form}{hint}.")
        if [other for other, _, _ in pairs].count(key) > 1:
            raise RecipeError(f"{option.flag} has {key} twice; give each its own name.")
    is_json = any(get_args(kind)[1:] == (Any,) for kind in kinds_of(option.info.annotation))
    return {key: _parse_json(option.flag, key, own) if is_json else own for key, _, own in pairs}


def _parse_json(flag: str, key: str, text: str) -> Any:
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
