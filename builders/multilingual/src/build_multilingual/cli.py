"""The command `build-multilingual`."""

from pathlib import Path
from typing import Annotated, NoReturn

from pluralbench_runs import (
    BuildOptions,
    ClusterConfig,
    Program,
    RecipeError,
    did_you_mean,
    read_recipe,
    recipe_path,
    shell_command,
)
from pluralbench_runs.console import make_console
from pluralbench_runs.options import Flag, Options
from pluralbench_runs.program import Verb
from pluralbench_runs.recipe_options import BUILD_COMMON, Overrides, RecipeOptions
from pluralbench_schemas import TableError
from pydantic import Field

from build_multilingual.recipe import COLUMNS, RECIPES, ROLES, MultilingualRecipe

REVIEW = "Review"
MAX_PROCESSES = 8  # the rest of a build runs in one process and cannot keep more busy

program = Program(
    "build-multilingual",
    default=Verb("build_multilingual.cli:command", status="Building the dataset..."),
    common=BUILD_COMMON,
    mistakes=(TableError,),
)
console = make_console()


def main() -> NoReturn:
    """Entry point of the command."""
    program.run()


def command(
    *,
    recipe: str = "sample",
    overrides: Annotated[Overrides, RecipeOptions(MultilingualRecipe, RECIPES)],
    export_review: Annotated[Path | None, Flag(panel=REVIEW)] = None,
    review_rows: Annotated[int | None, Field(ge=1), Flag(panel=REVIEW)] = None,
    cluster: ClusterConfig,
    processes: Annotated[int | None, Field(ge=1, le=1_000), Flag(panel="Cluster")] = None,
    building: Annotated[BuildOptions, Options("Result")],
) -> None:
    """Build M-RewardBench: an English benchmark in other languages, and pairs of better and worse translations.

    Default: the sample in this package, with recorded translations and no network. Rerun the same command to resume an
    interrupted build.

    Args:
        recipe: `sample`, `paper`, `translation`, or a TOML file.
        export_review: Write review sheets to this folder: one CSV per language, keys separately.
        review_rows: Number of random rows per review sheet (default: all).
        processes: Processes that check translations (default: one per core, at most 8).

    Examples:
        build-multilingual
        build-multilingual --source pairs.jsonl --language deu_Latn --translator google --project mine --out dist/german
        build-multilingual --recipe translation --rated wmt21.jsonl --per-level 50 --out dist/translation
    """
    from pluralbench_release import print_summary
    from pluralbench_runs.workers import usable_cores

    from build_multilingual.build import build
    from build_multilingual.figures import CARD_ONLY, figures_tables

    config = read_recipe(MultilingualRecipe, recipe_path(recipe, RECIPES), _split_table_options(overrides, recipe))
    built = build(
        config,
        building,
        export_review=export_review,
        review_rows=review_rows,
        processes=processes or min(usable_cores(), MAX_PROCESSES),
        cluster=cluster,
    )
    figures = figures_tables(built.figures)
    sheets = [] if export_review is None else sorted(export_review.glob("*.csv"))
    print_summary(
        console,
        built,
        {title: table for title, table in figures.items() if title not in CARD_ONLY},
        notes=[f"Review sheet: {sheet} (its key is in {sheet.parent / 'keys'})" for sheet in sheets],
        next_commands=[
            shell_command("pluralbench", "score", "MODEL", "--benchmark", "multilingual", "--data", built.directory)
        ],
    )


def _split_table_options(overrides: Overrides, recipe: str) -> Overrides:
    """Assign the options that --source and --rated share to the table that they describe."""
    overrides = dict(overrides)
    source, rated = overrides.get("source.location"), overrides.get("translation.rated")
    columns = overrides.pop("source.columns", {})
    unknown = next((name for name in columns if name not in (*COLUMNS, *ROLES)), None)
    if unknown is not None:
        hint = did_you_mean(unknown, (*COLUMNS, *ROLES))
        raise RecipeError(
            f"--column {unknown}={columns[unknown]} names no field; {hint}those of --source are {', '.join(COLUMNS)}, "
            f"and those of --rated {', '.join(ROLES)}."
        )
    source_columns = {name: column for name, column in columns.items() if name not in ROLES}
    if source_columns != columns and not rated:
        raise RecipeError("--column requires --rated.")
    if source_columns:
        overrides["source.columns"] = source_columns
    if rated:
        rated_columns = {name: column for name, column in columns.items() if name in ROLES}
        overrides["translation.rated"] = [table | {"columns": rated_columns} for table in rated]
    if source is None:
        dialect = [overrides.pop(key, None) for key in ("source.separator", "source.quoting")]
        if any(dialect) and not rated:
            raise RecipeError("--separator and --quoting describe a table; name it with --source or --rated.")
    elif source != "sample" and recipe == "sample" and not rated:
        overrides["translation.rated"] = []  # with your own source, the sample recipe gives only its defaults
    return overrides
