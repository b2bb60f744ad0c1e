"""The command `build-multilingual`."""

from pathlib import Path
from typing import Annotated, NoReturn

import typer
from pluralbench_runs import ClusterConfig, Program, RecipeError, read_recipe, recipe_path, shell_command
from pluralbench_runs.console import make_console
from pluralbench_runs.options import (
    Building,
    Options,
    Overrides,
    RecipeOptions,
    with_options,
)
from pluralbench_schemas import TableError

from build_multilingual.recipe import RECIPES, ROLES, MultilingualRecipe

REVIEW = "Review"
MOST_PROCESSES = 8  # the rest of a build, in one process, keeps no more busy

program = Program("build-multilingual", alone="build_multilingual.cli:command", mistakes=(TableError,))
console = make_console()


def main() -> NoReturn:
    """Entry point of the command."""
    program.run()


@with_options
def command(
    recipe: Annotated[str, typer.Option(help="`sample`, `paper`, `translation`, or a TOML file.")] = "sample",
    *,
    given: Annotated[Overrides, RecipeOptions(MultilingualRecipe, RECIPES)],
    export_review: Annotated[
        Path | None,
        typer.Option(
            help="Write review sheets to this folder, one CSV a language, keys apart.", rich_help_panel=REVIEW
        ),
    ] = None,
    review_rows: Annotated[
        int | None,
        typer.Option(min=1, help="Rows of a review sheet, drawn; all without it.", rich_help_panel=REVIEW),
    ] = None,
    cluster: Annotated[ClusterConfig, Options("Cluster")],
    processes: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processes that check translations; without it one a core, at most 8.",
            rich_help_panel="ClusterConfig",
        ),
    ] = None,
    how: Annotated[Building, Options("Result")],
) -> None:
    """Build M-RewardBench: an English benchmark in other languages, and pairs of better and worse translations.

    Without options it builds the sample in this package, with recorded translations and no network. An interrupted
    build goes on with the same command.

    Examples:

    build-multilingual

    build-multilingual --source pairs.jsonl --language deu_Latn --translator google --project mine --out dist/german

    build-multilingual --recipe translation --rated wmt21.jsonl --per-level 50 --out dist/translation
    """
    from pluralbench_release import print_summary  # noqa: PLC0415 - --help needs none of it
    from pluralbench_runs.workers import usable_cores  # noqa: PLC0415 - the same

    from build_multilingual.build import build  # noqa: PLC0415 - the same
    from build_multilingual.figures import ONLY_ON_THE_CARD, figures_tables  # noqa: PLC0415 - the same

    asked = read_recipe(MultilingualRecipe, recipe_path(recipe, RECIPES), _of_each_table(given, recipe))
    target = how.target(asked.name)
    built = build(
        asked,
        target,
        **how.known,
        review=export_review,
        review_rows=review_rows,
        processes=processes or min(usable_cores(), MOST_PROCESSES),
        cluster=cluster,
    )
    figures = figures_tables(built.figures)
    sheets = [] if export_review is None else sorted(export_review.glob("*.csv"))
    print_summary(
        console,
        target,
        built.manifest,
        built.new_calls,
        {title: table for title, table in figures.items() if title not in ONLY_ON_THE_CARD},
        notes=[f"Review sheet: {sheet} (its key is in {sheet.parent / 'keys'})" for sheet in sheets],
        next_commands=[shell_command("pluralbench", "score", "MODEL", "--benchmark", "multilingual", "--data", target)],
    )


def _of_each_table(given: Overrides, recipe: str) -> Overrides:
    """What is said of the tables of --source and of --rated, each with the columns that it can have."""
    given = dict(given)
    source, rated = given.get("source.location"), given.get("translation.rated")
    columns = given.pop("source.columns", {})
    others = {name: column for name, column in columns.items() if name not in ROLES}
    if others != columns and not rated:
        raise RecipeError("--column says something about what --rated names; give --rated too.")
    if others:
        given["source.columns"] = others
    if rated:
        of_rated = {name: column for name, column in columns.items() if name in ROLES}
        given["translation.rated"] = [table | {"columns": of_rated} for table in rated]
    if source is None:
        dialect = [given.pop(key, None) for key in ("source.separator", "source.quoting")]
        if any(dialect) and not rated:
            raise RecipeError("--separator and --quoting are of a table; say where it is with --source or --rated.")
    elif source != "sample" and recipe == "sample" and not rated:
        given["translation.rated"] = []  # of the sample only its defaults are wanted then
    return given
