"""Options that every builder's command has, named and explained the same way."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from pluralbench_runs.cluster import Cluster
from pluralbench_runs.errors import RecipeError
from pluralbench_runs.recipe import check_recipe

Out = Annotated[Path | None, typer.Option(help="Release directory; without it dist/NAME.")]
Name = Annotated[
    str | None,
    typer.Option(help="What the dataset is called, as dist/NAME and on its card."),
]
Title = Annotated[str | None, typer.Option(help="Title on the card; without it the builder's own, or the name.")]
SourceName = Annotated[str | None, typer.Option(help="What the card calls the source.")]
Licence = Annotated[str | None, typer.Option(help="Licence of the source, where it states none, such as cc-by-4.0.")]
Seed = Annotated[int | None, typer.Option(help="Seed of every draw.")]
MaxCost = Annotated[
    float | None,
    typer.Option(min=0, help="Spending ceiling in US dollars, by the price; no request is sent that may cross it."),
]
ReplayFrom = Annotated[Path | None, typer.Option(help="Take every answer from this ledger or release; send nothing.")]
ReuseFrom = Annotated[Path | None, typer.Option(help="Take the answers that are recorded here; ask for the rest.")]
RetryErrors = Annotated[bool, typer.Option("--retry-errors", help="Ask again what the server rejected.")]
ColumnIs = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="WHAT=COLUMN", help="Which column is what, such as prompt=text; repeatable."),
]
StudyExport = Annotated[Path | None, typer.Option("--export", help="Write the sheets of a study to this folder.")]
StudyImport = Annotated[
    Path | None, typer.Option("--import", help="Read the study in this folder; without FILES its own sheets.")
]
StudyRelease = Annotated[
    str | None, typer.Option("--release", help="What is shown: a release, a table or `ORG/NAME@REVISION`.")
]
Returned = Annotated[
    list[Path] | None,
    typer.Argument(help="What came back, for --import: sheets (.csv), Label Studio's export (.json) or JSONL."),
]
Annotator = Annotated[list[str] | None, typer.Option(help="Who annotates; repeatable.")]
Each = Annotated[int | None, typer.Option(min=1, help="How many annotators an item has.")]
Account = Annotated[
    list[str] | None,
    typer.Option(metavar="ACCOUNT=ANNOTATOR", help="Whose a Label Studio account is (number or e-mail); repeatable."),
]
AsAssigned = Annotated[
    bool, typer.Option("--assigned", help="Take an answer for that of the task's annotator, whatever the account.")
]
_CLUSTER = Cluster.model_fields
_PANEL = "Cluster"
On = Annotated[
    str | None,
    typer.Option(help=_CLUSTER["on"].description, metavar="ray|[ray://]HOST:PORT", rich_help_panel=_PANEL),
]
WorkerCount = Annotated[
    int, typer.Option("--workers", min=1, help=_CLUSTER["workers"].description, rich_help_panel=_PANEL)
]
PerWorkerGpus = Annotated[
    float, typer.Option(min=0, help=_CLUSTER["per_worker_gpus"].description, rich_help_panel=_PANEL)
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Start over, and replace what is there.")]

MANY = 3


def cluster_of(on: str | None, workers: int, per_worker_gpus: float) -> Cluster:
    """The cluster that these options describe. Raises `RecipeError`."""
    return check_recipe(Cluster, {"on": on, "workers": workers, "per_worker_gpus": per_worker_gpus}, "of the cluster")


class Key(NamedTuple):
    """Where a recipe has what an option says, with dots; `otherwise` is what it is where a recipe is silent."""

    dotted: str
    otherwise: object = None


def recipe_defaults(folder: Path, keys: Mapping[str, Key]) -> dict[str, str]:
    """What a builder's recipes say for options that are not given, to be shown by --help.

    folder: of its recipes. keys: by the option's parameter. The text is the value, or, where the recipes differ, each
    one's, such as "paper: 100, sample: 10". Options of which no recipe says anything are left out. The files alone are
    read: a recipe's model would make --help wait.
    """
    recipes = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.toml"))}
    shown = {}
    for name, key in keys.items():
        values = {recipe: _value(table, key) for recipe, table in recipes.items()}
        said = {recipe: _said(value) for recipe, value in values.items() if value is not None}
        if said:
            alike = len(said) == len(recipes) and len({*said.values()}) == 1
            shown[name] = (
                next(iter(said.values())) if alike else ", ".join(f"{recipe}: {text}" for recipe, text in said.items())
            )
    return shown


def column_names(changes: Sequence[str] | None) -> dict[str, str] | None:
    """What `ColumnIs` says, the column by what it is. Raises `RecipeError` for what is not of its form."""
    if not changes:
        return None
    pairs = [change.partition("=") for change in changes]
    for what, equals, name in pairs:
        if not (what and equals and name):
            raise RecipeError(f"--column {what + equals + name!r} is not of the form WHAT=COLUMN, such as prompt=text.")
    return {what: name for what, _, name in pairs}


def one_of(given: Mapping[str, object]) -> None:
    """Raise `RecipeError` where not exactly one option is given. given: its value, by the option as it is shown."""
    there = [shown for shown, value in given.items() if value]
    if len(there) != 1:
        raise RecipeError(
            f"Give one of {', '.join(given)}; {'both' if len(there) == 2 else len(there) or 'none'} given."
        )


def account_names(given: Sequence[str] | None) -> dict[str, str]:
    """What `Account` says, the annotator by the account. Raises `RecipeError` for what is not of its form."""
    pairs = [entry.partition("=") for entry in given or []]
    for account, equals, annotator in pairs:
        if not (account and equals and annotator):
            raise RecipeError(f"--account {account + equals + annotator!r} is not of the form ACCOUNT=ANNOTATOR.")
    return {account: annotator for account, _, annotator in pairs}


def refuse_before_verb(context: typer.Context, command: str) -> None:
    """Raise `RecipeError` where a verb of `command` follows options that are those of the command without a verb."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    before = [name for name, found in sources.items() if found is not None and found.name == "COMMANDLINE"]
    if before:
        flag = before[0].replace("_", "-")
        raise RecipeError(f"Options go behind the verb: {command} {context.invoked_subcommand} --{flag} ...")


def of_one_source(sources: Sequence[str], name: str | None, licence: str | None) -> dict[str, str | None]:
    """What `SourceName` and `Licence` say, by the key of the source's table. sources: what is built from, by name.

    Raises `RecipeError` where one of the two is given and there are several sources.
    """
    if len(sources) > 1 and (name is not None or licence is not None):
        raise RecipeError(
            f"--source-name and --licence are for one source, and here are {', '.join(sources)}; build these one by "
            "one, or give each its `name` and `licence` in a recipe."
        )
    return {"name": name, "licence": licence}


def _value(table: Mapping[str, Any], key: Key) -> Any:
    *tables, last = key.dotted.split(".")
    for name in tables:
        table = table.get(name, {})
    return table.get(last, key.otherwise)


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "/".join(map(str, value.values()))
    if isinstance(value, list):
        return " ".join(map(str, value)) if len(value) <= MANY else f"{len(value)} of them"
    return str(value)
