"""Recipes: the settings of a command, read from TOML and overridden by options."""

import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, get_args

import tomli_w
from pydantic import BaseModel, ConfigDict, ValidationError

from pluralbench_runs.errors import ConfigError, RecipeError, did_you_mean, one_line
from pluralbench_runs.regular_files import read_small, write_text
from pluralbench_runs.secrets import first_secret
from pluralbench_runs.toml_files import format_key, leaves, read_toml, value_error


class FrozenModel(BaseModel):
    """A table of a recipe: frozen, and an unknown key is an error.

    A call such as `PromptConfig(profile="x")` raises a `ConfigError`, a `ValueError` of one sentence. The methods of
    pydantic, such as `model_validate`, raise a `ValidationError`.

    Attributes:
        runtime_only: Fields that affect speed or cost but not the content, or that follow from other fields. An entry
            may be a dotted key. A run may continue under a recipe that differs only in these fields.
        extendable: Fields that may grow without making a recorded call useless: a higher or no maximum, a longer list,
            another text. A build may continue, or be built again in its directory, under a recipe that differs only by
            such growth.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    runtime_only: ClassVar[frozenset[str]] = frozenset()
    extendable: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, /, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigError(f"{type(self).__name__}: {first_validation_error(type(self), error)}") from None

    # Tells pydantic that its own methods need not call this, as in its `RootModel`.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


class Recipe(FrozenModel):
    """All settings of a command."""


SHOWN_VALUES, SHOWN_CHARACTERS = 3, 32  # values that an error names, and characters of each
CONFIG = "config"  # key of the recipe in a JSON file
DIGEST = "digest"
VAGUE = {DIGEST, "name", "model", "location", "kind", "revision", "text"}  # keys that are unclear without their table
DIGITS = re.compile(r"(?:[0-9a-f]{24})?[0-9a-f]{40}")  # SHA-256, or a commit
FORMS = {"dict_type": "a table", "model_type": "a table", "list_type": "a list", "tuple_type": "a list"}

R = TypeVar("R", bound=Recipe)
Model = TypeVar("Model", bound=FrozenModel)


def read_recipe(model: type[R], path: Path, overrides: Mapping[str, object] | None = None) -> R:
    """Read a recipe from a TOML file, or from the key "config" of a JSON file, such as a run's.

    `overrides` are values by dotted key that replace those of the file, such as `{"llm.model": "m"}`; None keeps one.

    Raises:
        RecipeError: The file is missing or cannot be parsed, or it has an unknown key or a bad value.
    """
    values = _read_config(path) if path.suffix == ".json" else read_toml(path)
    try:
        return check_recipe(model, _overridden(values, overrides or {}), str(path))
    except RecipeError as error:
        if str(error) == _problem_of(model, values, path):
            raise
        # The file by itself does not have this problem, so an option does.
        raise RecipeError(str(error).replace(f"Recipe {path}", "The options", 1)) from None


def _problem_of(model: type[FrozenModel], values: Mapping[str, object], path: Path) -> str:
    try:
        check_recipe(model, values, str(path))
    except RecipeError as error:
        return str(error)
    return ""


def _overridden(values: Mapping[str, Any], overrides: Mapping[str, object]) -> dict[str, Any]:
    changed = deepcopy(dict(values))
    for dotted, value in overrides.items():
        if value is not None:
            *tables, key = dotted.split(".")
            table = changed
            for name in tables:
                table = table.setdefault(name, {})
                if not isinstance(table, dict):
                    break  # the validation reports that it must be a table
            else:
                table[key] = value
    return changed


def _read_config(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(read_small(path))[CONFIG]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise RecipeError(f"Recipe {path}: it cannot be read ({one_line(error, 200)}).") from None
    if not isinstance(values, dict):
        raise RecipeError(f"Recipe {path}: `{CONFIG}` is not a table.")
    return values


def check_recipe(model: type[Model], values: Mapping[str, object], origin: str) -> Model:
    """Validate `values` as a recipe or as a table of one; errors call them `origin`.

    Raises:
        RecipeError: A value is not valid, has a `value_error`, or contains a secret of the environment.
    """
    if problem := value_error(values) or _secret_problem(values):
        raise RecipeError(f"Recipe {origin}: {problem}.")
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise RecipeError(f"Recipe {origin}: {first_validation_error(model, error)}") from None


def check_no_secrets(recipe: Recipe, origin: str) -> None:
    """Raise `RecipeError` if a recipe, which was not read from a file, contains a secret of the environment."""
    if problem := _secret_problem(recipe_values(recipe)):
        raise RecipeError(f"Recipe {origin}: {problem}.")


def _secret_problem(values: Mapping[str, object]) -> str:
    """Name the value that contains a secret, in a clause without full stop; "" if none does."""
    entries = list(leaves(values))
    variables = [value for place, value in entries if place[-1:] == ("api_key_env",) and isinstance(value, str)]
    texts = [(place, text) for place, value in entries for text in (*place, value) if isinstance(text, str)]
    secret = first_secret((text for _, text in texts), *variables)
    if secret is None:
        return ""
    (place, text), owner = texts[secret[0]], secret[1]
    key = format_key(["[key]" if part == text else part for part in place])
    return f"`{key}` contains the value of {owner}; remove it, because recipes are published"


def first_validation_error(model: type[BaseModel], error: ValidationError) -> str:
    """Describe one validation error with its key, in a sentence.

    An unknown key comes first, because it may be the reason why another key is missing.
    """
    errors = error.errors()
    first = next((one for one in errors if one["type"] == "extra_forbidden"), errors[0])
    place = [str(part) for part in first["loc"]]
    key = format_key(place)
    if first["type"] == "extra_forbidden":
        return _unknown_key(model, place)
    if first["type"] == "missing":
        return f"the key `{key}` is missing."
    if first["type"] == "literal_error":
        allowed = first["ctx"]["expected"].replace("'", "").replace(" or ", ", ")
        value = one_line(first["input"], 80)
        hint = did_you_mean(value, allowed.split(", ")).strip()
        return f"`{key}` must be one of {allowed}; it is `{value}`{f' ({hint})' if hint else ''}."
    if form := FORMS.get(first["type"]):
        return f"`{key}` must be {form}; it is `{one_line(first['input'], 80)}`."
    if first["type"] == "too_short":
        return f"`{key}` is empty; it needs at least one value."
    message = one_line(first["msg"].removeprefix("Value error, "), 500)
    return f"`{key}`: {message}." if place else f"{message}."


def recipe_path(name: str, folder: Path) -> Path:
    """Find the file of a recipe: NAME.toml in `folder`, or else the path `name`.

    Raises:
        RecipeError: The file does not exist or is a folder.
    """
    built_in = {path.stem: path for path in sorted(folder.glob("*.toml"))}
    path = built_in.get(name, Path(name))
    hint = f"give {', '.join(built_in)} or the path of a TOML file"
    try:
        is_folder, exists = path.is_dir(), path.exists()
    except OSError as error:
        raise RecipeError(f"The recipe {name!r} cannot be read ({error.strerror}); {hint}.") from None
    if is_folder:
        raise RecipeError(f"The recipe {name!r} is a folder; {hint}.")
    if not exists:
        raise RecipeError(f"There is no recipe {name!r}; {hint}.")
    return path


def recipe_values(recipe: Recipe) -> dict[str, Any]:
    """Convert a recipe to plain JSON values, without those that are None."""
    return recipe.model_dump(mode="json", exclude_none=True)


def write_recipe(recipe: Recipe, path: Path) -> None:
    """Write a recipe with all defaults, as TOML or as JSON (by the suffix of `path`) for `read_recipe`.

    If writing fails, an old file stays as it was.
    """
    is_json, values = path.suffix == ".json", recipe_values(recipe)
    write_text(path, json.dumps({CONFIG: values}, ensure_ascii=False) if is_json else tomli_w.dumps(values))


def content_values(recipe: Recipe) -> dict[str, Any]:
    """Map dotted keys to the values that determine the content, without runtime-only values and those that are None."""
    left_out = tuple(f"{name}." for name in _marked(recipe, "runtime_only"))
    return {key: value for key, value in _flat(recipe_values(recipe)) if not f"{key}.".startswith(left_out)}


def differing_keys(ours: Recipe, theirs: Recipe) -> list[str]:
    """List the dotted keys in which the content of two recipes differs, sorted."""
    a, b = content_values(ours), content_values(theirs)
    return sorted(key for key in a.keys() | b.keys() if a.get(key) != b.get(key))


def extends(ours: Recipe, theirs: Recipe) -> bool:
    """Whether the recipe of this run (`ours`) differs from the existing one only by growth of extendable fields."""
    now, then, marked = content_values(ours), content_values(theirs), {*_marked(ours, "extendable")}
    return all(key in marked and _grows(then.get(key), now.get(key)) for key in differing_keys(ours, theirs))


def _grows(then: object, now: object) -> bool:
    match then, now:
        case (list(), _) | (_, list()):
            kept = now if isinstance(now, list) else []
            return all(value in kept for value in (then if isinstance(then, list) else []))
        case (int() | float(), None):
            return True  # no maximum any more
        case (int() | float(), int() | float()):
            return now >= then
        case (_, str()):
            return True
    return False


def describe_difference(ours: Recipe, theirs: Recipe) -> str:
    """Describe how the content of two recipes differs, such as "limit 20, now none; seed 1, now 2; and 3 more".

    At most `SHOWN_VALUES` values are named; the result is "" if there is no difference. A digest is left out if another
    value in its table differs, since every choice of the data changes the digest of the data.
    """
    keys = differing_keys(ours, theirs)
    tables = {key.rpartition(".")[0] for key in keys if not key.endswith(DIGEST)}
    keys = [key for key in keys if not (key.endswith(DIGEST) and key.rpartition(".")[0] in tables)]
    now, then = content_values(ours), content_values(theirs)
    # One setting may be in several tables, such as the temperature in that of the model and that of the judge.
    unique = {(_last(key), repr(then.get(key)), repr(now.get(key))): key for key in reversed(keys)}
    keys = [key for key in keys if key in unique.values()]
    names = [_last(key) for key in keys]
    parts = [
        f"{name if names.count(name) == 1 else key} {_short_value(then.get(key))}, now {_short_value(now.get(key))}"
        for key, name in zip(keys[:SHOWN_VALUES], names, strict=False)
    ]
    more = len(keys) - len(parts)
    return "; ".join([*parts, f"and {more} more"] if more else parts)


def _last(key: str) -> str:
    last = key.rpartition(".")[2]
    return key if last in VAGUE else last


def _short_value(value: object) -> str:
    if value is None or value == []:
        return "none"
    if isinstance(value, str) and DIGITS.fullmatch(value):
        return f"{value[:8]}…"
    text = " ".join(value.split()) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"


def _marked(values: object, mark: Literal["runtime_only", "extendable"], prefix: str = "") -> Iterator[str]:
    if isinstance(values, FrozenModel):
        yield from (f"{prefix}{name}" for name in getattr(values, mark))
    if isinstance(values, FrozenModel | Mapping):
        for name, value in values.items() if isinstance(values, Mapping) else values:
            yield from _marked(value, mark, f"{prefix}{name}.")


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the models in an annotation such as `Table | None` or `list[Table]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from models_in(part)


def _unknown_key(model: type[BaseModel], place: list[str]) -> str:
    for part in place[:-1]:
        field = model.model_fields.get(part)
        model = next(models_in(field.annotation), model) if field is not None else model
    hint = did_you_mean(place[-1][:80], model.model_fields) or f"the keys here are {', '.join(model.model_fields)}."
    return f"unknown key `{format_key(place)}`; {hint.rstrip()}"
