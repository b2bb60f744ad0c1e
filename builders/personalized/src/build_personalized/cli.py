"""The command `build-personalized` and its verb `rank`."""

from pathlib import Path
from typing import Annotated, NoReturn

import typer
from pluralbench_calls.chat import resolve_model_option
from pluralbench_runs import Program, log_status, plural, read_recipe, recipe_path
from pluralbench_runs.console import make_console
from pluralbench_runs.options import (
    BuildOptions,
    Fresh,
    Options,
    Overrides,
    RecipeOptions,
    with_options,
)
from pluralbench_schemas import TableError

from build_personalized.recipe import RECIPES, PersonalizedRecipe

# A model this small rambles at high temperatures, and answers over the word limit are discarded.
LOCAL_SAMPLING = {"seeded": True, "temperature": 0.7, "max_tokens": 224, "aspects_max_tokens": 640}

program = Program(
    "build-personalized",
    default="build_personalized.cli:command",
    verbs={
        "Verbs": {
            "rank": "build_personalized.cli:rank",
            "rate": "build_personalized.rating.cli:rate",
            "training": "build_personalized.training.cli:training",
        }
    },
    mistakes=(TableError,),
)
console = make_console()


def main() -> NoReturn:
    """Entry point of the command."""
    program.run()


@with_options
def command(
    recipe: Annotated[str, typer.Option(help="`sample`, `paper`, or a TOML file.")] = "sample",
    *,
    overrides: Annotated[Overrides, RecipeOptions(PersonalizedRecipe, RECIPES)],
    building: Annotated[BuildOptions, Options("Result")],
) -> None:
    """Build Personalized RewardBench: pairs of answers of which only one meets the person's rubric.

    Default: the sample in this package, which needs no model and no network. Rerun the same command to resume an
    interrupted build. The verb `rate` runs a study in which people rate both answers of the pairs, `training` builds
    training pairs for personalized reward models, and `rank` ranks the profiles of a table.

    Examples:

    build-personalized

    build-personalized --llm local --limit 2 --out dist/local

    build-personalized --source stack-exchange:beer.stackexchange.com/Posts.xml --llm gpt-5-mini --out dist/beer

    build-personalized rank --source alireza7/LaMP-QA --retriever contriever --out dist/lamp-qa

    build-personalized rate --release dist/beer --export ratings --annotator an --annotator bo --annotator cy

    build-personalized training --source arena --persona-llm gpt-5-mini --out dist/arena
    """
    log_status("Building the dataset...")
    from pluralbench_release import print_summary  # noqa: PLC0415 - --help needs none of it

    from build_personalized.build import build  # noqa: PLC0415 - the same
    from build_personalized.card import figures_tables, generator_note  # noqa: PLC0415 - the same

    overrides = resolve_model_option(overrides, "llm", "--llm", LOCAL_SAMPLING, own={"hand-written": "hand-written"})
    config = read_recipe(PersonalizedRecipe, recipe_path(recipe, RECIPES), overrides)
    target = building.target(config.name)
    result = build(config, target, **building.build_arguments)
    notes = ["", generator_note(config)]
    print_summary(console, target, result.manifest, result.new_calls, figures_tables(result.figures), notes=notes)


@with_options
def rank(
    source: Annotated[
        str, typer.Option(metavar="PLACE", help="Tables with questions and profiles: DIR, FILE or ORG/NAME.")
    ],
    out: Annotated[Path, typer.Option(help="Directory for the ranked tables.")],
    retriever: Annotated[
        str, typer.Option(help="`bm25`, `contriever[:MODEL]` or `sentence-transformers:MODEL`.")
    ] = "bm25",
    split: Annotated[str, typer.Option(help="Split of the tables.")] = "train",
    config: Annotated[list[str] | None, typer.Option(help="Config to include; repeatable. Default: all.")] = None,
    *,
    fresh: Fresh = False,
) -> None:
    """Rank the posts of each profile by relevance to the question, most relevant first.

    Use it for data whose profiles are in another order, such as LaMP-QA's train split; nothing else changes. Scores
    are recorded: rerun the same command to resume an interrupted ranking.

    Example: build-personalized rank --source alireza7/LaMP-QA --retriever contriever --out dist/lamp-qa
    """
    from build_personalized.profile_ranking import rank_tables  # noqa: PLC0415 - --help needs none of it

    rows = rank_tables(source, out, retriever=retriever, split=split, configs=config or (), fresh=fresh)
    for name, count in rows.items():
        console.print(f"{out / name / f'{split}.parquet'}: {plural(count, 'profile')} ranked by {retriever}")
