"""A recipe: what a command was asked to do, read from TOML and overridden by flags."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_args

import tomli_w
from pydantic import BaseModel, ConfigDict, ValidationError

from pluralbench_runs.atomic_files import write_text
from pluralbench_runs.errors import RecipeError, did_you_mean, one_line
from pluralbench_runs.secrets import first_secret
from pluralbench_runs.toml_files import leaves, read_toml, shown_key, value_error


class FrozenModel(BaseModel):
    """A table of a recipe: frozen, and an unknown key is an error.

    operational: its fields that say how fast or at what price, never what, or that follow from the others; an entry may
    be a dotted key of a table below. Two recipes that differ only there make the same content, so a run that began
    under one may continue under the other.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    operational: ClassVar[frozenset[str]] = frozenset()


class Recipe(FrozenModel):
    """A recipe: the table of all that was asked."""


NAMED, LONGEST = 3, 32  # values that are named in an error, and characters of one
CONFIG = "config"  # where a JSON file has a recipe
DIGEST = "digest"
VAGUE = {DIGEST, "name", "model", "location", "kind", "revision"}  # what says nothing without its table
DIGITS = re.compile(r"(?:[0-9a-f]{24})?[0-9a-f]{40}")  # SHA-256, or a commit

R = TypeVar("R", bound=Recipe)
Model = TypeVar("Model", bound=FrozenModel)


def read_recipe(model: type[R], path: Path, overrides: Mapping[str, object] | None = None) -> R:
    """Read the TOML file `path` as a `model`; of a JSON file, such as a run's, what it has under `CONFIG`.

    overrides: values by dotted key that replace the file's (`{"llm.model": "m"}`); None leaves the file's value.

    Raises `RecipeError` for a missing file, one that does not parse, and unknown keys or bad values.
    """
    values = _read_config(path) if path.suffix == ".json" else read_toml(path)
    for dotted, value in (overrides or {}).items():
        if value is not None:
            *tables, key = dotted.split(".")
            table = values
            for name in tables:
                table = table.setdefault(name, {})
                if not isinstance(table, dict):
                    break  # the validation below says that it should be a table
            else:
                table[key] = value
    return check_recipe(model, values, str(path))


def _read_config(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())[CONFIG]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise RecipeError(f"Recipe {path}: it cannot be read ({one_line(error, 200)}).") from None
    if not isinstance(found, dict):
        raise RecipeError(f"Recipe {path}: `{CONFIG}` is no table.")
    return found


def check_recipe(model: type[Model], values: Mapping[str, object], origin: str) -> Model:
    """Validate `values` as a recipe or a table of one; `origin` names them in the error.

    Raises `RecipeError`, also for values that `value_error` tells of, and where one holds a secret of the environment.
    """
    if fault := value_error(values) or _secret(values):
        raise RecipeError(f"Recipe {origin}: {fault}.")
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise RecipeError(f"Recipe {origin}: {first_validation_error(model, error)}") from None


def check_no_secrets(recipe: Recipe, origin: str) -> None:
    """Raise `RecipeError` where a recipe that was not read from a file holds a secret; `origin` names it."""
    if fault := _secret(recipe_values(recipe)):
        raise RecipeError(f"Recipe {origin}: {fault}.")


def _secret(values: Mapping[str, object]) -> str:
    """Which value holds a secret of the environment, in words without a full stop; "" where none does."""
    held = list(leaves(values))
    named = [value for place, value in held if place[-1:] == ("api_key_env",) and isinstance(value, str)]
    texts = [(place, text) for place, value in held for text in (*place, value) if isinstance(text, str)]
    found = first_secret((text for _, text in texts), *named)
    if found is None:
        return ""
    (place, text), owner = texts[found[0]], found[1]
    key = shown_key(["[key]" if part == text else part for part in place])
    return f"`{key}` holds the value of {owner}; take it out, since a recipe goes into what is published"


def first_validation_error(model: type[BaseModel], error: ValidationError) -> str:
    """One of the faults that values of `model` have, with its key, in words that end with a full stop.

    An unknown key comes first: it may be why another is missing.
    """
    faults = error.errors()
    first = next((fault for fault in faults if fault["type"] == "extra_forbidden"), faults[0])
    place = [str(part) for part in first["loc"]]
    key = shown_key(place)
    if first["type"] == "extra_forbidden":
        return _unknown_key(model, place)
    if first["type"] == "missing":
        return f"the key `{key}` is missing."
    if first["type"] == "literal_error":
        allowed = first["ctx"]["expected"].replace("'", "").replace(" or ", ", ")
        return f"`{key}` must be one of {allowed}; it is `{one_line(first['input'], 80)}`."
    if first["type"] in {"dict_type", "model_type"}:
        return f"`{key}` must be a table; it is `{one_line(first['input'], 80)}`."
    if first["type"] == "too_short":
        return f"`{key}` is empty; it needs one value or more."
    message = one_line(first["msg"].removeprefix("Value error, "), 500)
    return f"`{key}`: {message}." if place else f"{message}."


def recipe_path(name: str, folder: Path) -> Path:
    """The file of a recipe: NAME.toml in `folder`, which holds a builder's own recipes, or else the path `name`.

    Raises `RecipeError` when there is no such file, and for a folder.
    """
    built_in = {path.stem: path for path in sorted(folder.glob("*.toml"))}
    path = built_in.get(name, Path(name))
    known = f"give {', '.join(built_in)} or the path of a TOML file"
    try:
        folder_given, found = path.is_dir(), path.exists()
    except OSError as error:
        raise RecipeError(f"The recipe {name!r} cannot be read ({error.strerror}); {known}.") from None
    if folder_given:
        raise RecipeError(f"The recipe {name!r} is a folder; {known}.")
    if not found:
        raise RecipeError(f"There is no recipe {name!r}: {known}.")
    return path


def recipe_values(recipe: Recipe) -> dict[str, Any]:
    """The recipe as plain JSON values; a value that is None is left out."""
    return recipe.model_dump(mode="json", exclude_none=True)


def write_recipe(recipe: Recipe, path: Path) -> None:
    """Write the whole recipe, every default included, as TOML or JSON that `read_recipe` reads.

    If writing fails, as on a full disk, the file that was there stays as it was.
    """
    is_json, values = path.suffix == ".json", recipe_values(recipe)
    write_text(path, json.dumps({CONFIG: values}, ensure_ascii=False) if is_json else tomli_w.dumps(values))


def content_values(recipe: Recipe) -> dict[str, Any]:
    """What decides the content, by dotted key; operational values and those that are None are left out."""
    left_out = tuple(f"{name}." for name in _operational(recipe))
    return {key: value for key, value in _flat(recipe_values(recipe)) if not f"{key}.".startswith(left_out)}


def differing_keys(ours: Recipe, theirs: Recipe) -> list[str]:
    """Dotted keys in which two recipes ask for different content, sorted; operational ones are left out."""
    a, b = content_values(ours), content_values(theirs)
    return sorted(key for key in a.keys() | b.keys() if a.get(key) != b.get(key))


def describe_difference(ours: Recipe, theirs: Recipe) -> str:
    """In which content two recipes differ, in words: "limit 20, now none; seed 1, now 2; and 3 more". "" in none.

    At most `NAMED` values are named. A digest is left out where something else in its table differs, as the digest of
    the data does with every choice of the data.
    """
    keys = differing_keys(ours, theirs)
    told = {key.rpartition(".")[0] for key in keys if not key.endswith(DIGEST)}
    keys = [key for key in keys if not (key.endswith(DIGEST) and key.rpartition(".")[0] in told)]
    now, then = content_values(ours), content_values(theirs)
    # One choice may stand in several tables, as the temperature does in that of the model and that of the judge.
    alike = {(_last(key), repr(then.get(key)), repr(now.get(key))): key for key in reversed(keys)}
    keys = [key for key in keys if key in alike.values()]
    named = [f"{_plain(key, keys)} {_short(then.get(key))}, now {_short(now.get(key))}" for key in keys[:NAMED]]
    more = len(keys) - len(named)
    return "; ".join([*named, f"and {more} more"] if more else named)


def _last(key: str) -> str:
    """The last part of a dotted key; the whole key where that says nothing."""
    last = key.rpartition(".")[2]
    return key if last in VAGUE else last


def _plain(key: str, among: Sequence[str]) -> str:
    """The last part of a dotted key; the whole key where that alone could be another's, or says nothing."""
    return _last(key) if [_last(other) for other in among].count(_last(key)) == 1 else key


def _short(value: object) -> str:
    if value is None or value == []:
        return "none"
    if isinstance(value, str) and DIGITS.fullmatch(value):
        return f"{value[:8]}…"
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return said if len(said) <= LONGEST else f"{said[: LONGEST - 1]}…"


def _operational(values: object, prefix: str = "") -> Iterator[str]:
    """The dotted keys that tables of a recipe leave out of its content."""
    if isinstance(values, FrozenModel):
        yield from (f"{prefix}{name}" for name in values.operational)
    if isinstance(values, FrozenModel | Mapping):
        for name, value in values.items() if isinstance(values, Mapping) else values:
            yield from _operational(value, f"{prefix}{name}.")


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """The models in an annotation such as `Table | None` or `list[Table]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from models_in(part)


def _unknown_key(model: type[BaseModel], place: list[str]) -> str:
    for part in place[:-1]:
        field = model.model_fields.get(part)
        model = next(models_in(field.annotation), model) if field is not None else model
    hint = did_you_mean(place[-1][:80], model.model_fields) or f"the keys here are {', '.join(model.model_fields)}."
    return f"unknown key `{shown_key(place)}`; {hint.rstrip()}"
