"""Options of commands that read a recipe: they override the values of its file."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import AfterValidator, BaseModel, Field

from pluralbench_runs.errors import RecipeError
from pluralbench_runs.options import Option, field_options
from pluralbench_runs.recipe import FrozenModel, Recipe

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


def recipe_options(mark: RecipeOptions) -> Iterator[Option]:
    """Yield the options of a recipe."""
    files = [] if mark.folder is None else sorted(mark.folder.glob("*.toml"))
    recipes = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in files}
    for option in field_options(mark.model):
        path = f"{option.owner or option.key}."
        if not mark.keys or any(path.startswith(f"{key}.") for key in mark.keys):
            yield option._replace(default=_default(option, recipes))


def recipe_overrides(options: Sequence[Option], parsed: Mapping[str, Any]) -> Overrides:
    """Return the values of a recipe's options by dotted key.

    Raises:
        RecipeError: An option of a list's tables is used without the list.
    """
    used = [option for option in options if option.flag in parsed]
    overrides = {option.dotted: _plain(parsed[option.flag]) for option in used if not option.owner}
    for option in used:
        if option.sets_tables:
            shared = {inner.key: parsed[inner.flag] for inner in used if inner.owner == option.key}
            overrides[option.dotted] = [{option.mark.text_key: text} | shared for text in parsed[option.flag]]
    for flag in dict.fromkeys(option.flag for option in used):
        owners = {option.owner for option in used if option.flag == flag}
        if not owners & {"", *overrides}:
            required = next(option.flag for option in options if option.key in owners)
            raise RecipeError(f"{flag} requires {required}.")
    return overrides


def _plain(value: Any) -> Any:
    """Convert paths to strings, as a recipe's file has them."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _default(option: Option, recipes: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Format the default: the values of the recipes, such as "paper: 100, sample: 10", or that of the field."""
    if option.owner or option.sets_tables:
        return None
    default = option.info.get_default(call_default_factory=True)
    default = None if option.info.is_required() or isinstance(default, BaseModel) else default
    values = {name: _lookup(table, option.dotted, default) for name, table in recipes.items()}
    empty: list[object] = [None, [], (), {}, ""] if "/" in option.flag else [None, [], (), {}, "", False]
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
