"""Options of commands that read a recipe: they override the values of its file."""

import inspect
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple, get_origin

from pydantic import AfterValidator, BaseModel, Field
from pydantic.fields import FieldInfo

from pluralbench_runs.errors import RecipeError
from pluralbench_runs.recipe import FrozenModel, Recipe, models_in

MAX_SHOWN = 3  # values of a list in --help
COLUMNS: Any = Field(
    default_factory=dict,
    description="Name of a column in the data, such as prompt=text; repeatable.",
    json_schema_extra={"flag": "--column", "metavar": "FIELD=COLUMN", "example": "prompt=text"},
)
"""A field of a recipe that maps fields to columns."""


def column_names(names: Sequence[str]) -> AfterValidator:
    """Return the check of a field like `COLUMNS`, whose keys are among `names`."""

    def check(columns: dict[str, str]) -> dict[str, str]:
        for name in columns:
            if name not in names:
                raise ValueError(f"there is no column `{name}` to rename; the columns are {', '.join(names)}")
        return columns

    return AfterValidator(check)


Overrides = dict[str, Any]
"""Values of the command line that override a recipe's file, by dotted key; see `read_recipe`."""


BUILD_COMMON = (
    *("--recipe", "--source", "--llm", "--limit", "--base-url", "--price", "--max-cost", "--name", "--reuse", "--out"),
    "--fresh",
)
"""Options that the short help of builders shows, most used first."""


class Place(NamedTuple):
    """A field that an option sets.

    Attributes:
        parameter: Parameter of the function.
        info: The field, or the parameter itself.
        flag: The option, or the placeholder of an argument.
        key: Dotted key of the field in its model or recipe; in the tables of a list, the key in the table. "": the
            parameter itself.
        panel: Heading in --help.
        owner: Dotted key of the list, for a field of its tables.
        text_key: Key of the string in a table that is given as a string.
        default: Value without the option, for typer. Empty: the option is required.
        shown: What --help shows as the default.
    """

    parameter: str
    info: FieldInfo
    flag: str
    key: str = ""
    panel: str = ""
    owner: str = ""
    text_key: str = ""
    default: Any = None
    shown: str | None = None

    @property
    def is_option(self) -> bool:
        """Whether it is an option, and not an argument."""
        return self.flag.startswith("-")

    @property
    def dotted(self) -> str:
        """The key of the value in the recipe."""
        return f"{self.key}.{self.text_key}" if self.text_key and not is_list(self.info) else self.key

    @property
    def name(self) -> str:
        """The parameter of the option, for typer."""
        return "option_" + re.sub(r"\W+", "_", self.flag.partition("/")[0].strip("-"))


def dashed(name: str) -> str:
    """Return the name of an option, without the dashes before it."""
    return name.strip("_").replace("_", "-")


def heading(name: str) -> str:
    """Return the heading of the options of a table or a parameter."""
    return name.replace("_", " ").capitalize()


def extra_of(info: FieldInfo) -> Mapping[str, Any]:
    """Return what a field says of its option in `json_schema_extra`."""
    return info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}


def is_list(info: FieldInfo) -> bool:
    """Return whether a field has several values."""
    return get_origin(info.annotation) in {list, tuple}


class BuildOptions(FrozenModel):
    """How a builder builds a release: what does not affect its content."""

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


class RecipeOptions(NamedTuple):
    """Marks a parameter of type `Overrides` in a command that reads a recipe.

    A table with a description is given as a string, which becomes the value of its key `text_key` (in
    `json_schema_extra`) or is parsed by a validator. The same holds for each table of a list, to all of which the
    options of their fields apply. With `as_text` its fields have no options.

    Attributes:
        model: The type of the recipe.
        folder: Folder of recipes whose values --help shows as the defaults.
        keys: Tables and dotted keys of the recipe that have options. Default: all.
    """

    model: type[Recipe]
    folder: Path | None = None
    keys: tuple[str, ...] = ()


def check_one_source(sources: Sequence[str], options: Mapping[str, Any]) -> None:
    """Raise `RecipeError` if the options have a `name` or `license` for several sources."""
    if len(sources) > 1 and options.keys() & {"name", "license"}:
        raise RecipeError(
            f"--source-name and --license require a single source, not {', '.join(sources)}; build these one by one, "
            "or set the `name` and `license` of each in a recipe."
        )


def model_places(
    parameter: str, model: type[BaseModel], *, prefix: str = "", panel: str = "", flag_prefix: str = ""
) -> Iterator[Place]:
    """Yield the fields of a model, and of the models in it, that have options: those with a description or a flag.

    Args:
        parameter: Parameter of the command.
        model: The model.
        prefix: Prefix of the keys.
        panel: Heading of the fields in --help.
        flag_prefix: Prefix of the flags that a field does not name itself.
    """
    for name in model.model_fields:
        info = _described(model, name)
        extra, key = extra_of(info), prefix + name
        if info.description is not None or "flag" in extra:
            flag = str(extra.get("flag", f"--{flag_prefix}{dashed(name)}"))
            text_key = str(extra.get("text_key", ""))
            yield Place(parameter, info, flag, key, str(extra.get("panel", panel)), text_key=text_key)
        for table in [] if extra.get("as_text") else models_in(info.annotation):
            inner = str(extra.get("panel", heading(name)))
            if not is_list(info):
                yield from model_places(parameter, table, prefix=f"{key}.", panel=inner)
            elif info.description is not None:
                yield from (place._replace(owner=key) for place in model_places(parameter, table, panel=inner))


def recipe_places(parameter: str, options: RecipeOptions) -> Iterator[Place]:
    """Yield the fields of a recipe that have options.

    Args:
        parameter: Parameter of the command, for the overrides.
        options: The recipe.
    """
    files = [] if options.folder is None else sorted(options.folder.glob("*.toml"))
    recipes = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in files}
    for place in model_places(parameter, options.model):
        path = f"{place.owner or place.key}."
        if not options.keys or any(path.startswith(f"{key}.") for key in options.keys):
            yield place._replace(shown=_default(place, recipes))


def recipe_overrides(flags: Mapping[str, Sequence[Place]], parsed: Mapping[str, Any]) -> Overrides:
    """Return the values of a recipe's options by dotted key.

    Args:
        flags: The fields of each option.
        parsed: The value of each option that is used.

    Raises:
        RecipeError: An option of a list's tables is used without the list.
    """
    overrides = {place.dotted: parsed[flag] for flag in parsed for place in flags[flag] if not place.owner}
    for key, texts in overrides.items():
        place = next(place for places in flags.values() for place in places if place.dotted == key)
        if place.text_key and is_list(place.info):
            shared = {inner.key: parsed[flag] for flag in parsed for inner in flags[flag] if inner.owner == place.key}
            overrides[key] = [{place.text_key: text} | shared for text in texts]
    for flag in parsed:
        owners = {place.owner for place in flags[flag]}
        if not owners & {"", *overrides}:
            required = next(other for other, places in flags.items() for place in places if place.key in owners)
            raise RecipeError(f"{flag} requires {required}.")
    return {key: _plain(value) for key, value in overrides.items()}


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


def _plain(value: Any) -> Any:
    """Convert paths to strings, as a recipe's file has them."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _default(place: Place, recipes: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Format the default of an option: the values of the recipes, or that of the field.

    If the recipes differ, all are shown, such as "paper: 100, sample: 10".
    """
    if place.owner or (place.text_key and is_list(place.info)):
        return None
    default = place.info.get_default(call_default_factory=True)
    default = None if place.info.is_required() or isinstance(default, BaseModel) else default
    values = {name: _lookup(table, place.dotted, default) for name, table in recipes.items()}
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
