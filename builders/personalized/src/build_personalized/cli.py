"""The command `build-personalized` and its verb `rank`."""

from pathlib import Path
from typing import Annotated, NoReturn

import typer
from pluralbench_calls.chat import resolve_model_option
from pluralbench_runs import Program, read_recipe, recipe_path
from pluralbench_runs.console import make_console
from pluralbench_runs.options import (
    Building,
    Fresh,
    Options,
    Overrides,
    RecipeOptions,
    with_options,
)
from pluralbench_schemas import TableError

from build_personalized.recipe import RECIPES, PersonalizedRecipe

# A model this small rambles when it is hot, and what passes the limit of words is thrown away.
LOCAL_SAMPLING = {"seeded": True, "temperature": 0.7, "max_tokens": 224, "aspects_max_tokens": 640}

program = Program(
    "build-personalized",
    alone="build_personalized.cli:command",
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
    given: Annotated[Overrides, RecipeOptions(PersonalizedRecipe, RECIPES)],
    how: Annotated[Building, Options("Result")],
) -> None:
    """Build Personalized RewardBench: pairs of answers that differ in whether they keep to one person's rubric.

    Without options it builds the sample in this package, with no model and no network. An interrupted build goes on
    with the same command. The verb `rate` has people rate both answers of its pairs; `training` builds what
    personalized reward models learn from instead, and `rank` ranks the profiles of a table.

    Examples:

    build-personalized

    build-personalized --llm local --limit 2 --out dist/local

    build-personalized --source stack-exchange:beer.stackexchange.com/Posts.xml --llm gpt-5-mini --out dist/beer

    build-personalized rank --source alireza7/LaMP-QA --retriever contriever --out dist/lamp-qa

    build-personalized rate --release dist/beer --export ratings --annotator an --annotator bo --annotator cy

    build-personalized training --source arena --persona-llm gpt-5-mini --out dist/arena
    """
    from pluralbench_release import print_summary  # noqa: PLC0415 - --help needs none of it

    from build_personalized.build import build  # noqa: PLC0415 - the same
    from build_personalized.card import figures_tables, generator_note  # noqa: PLC0415 - the same

    overrides = resolve_model_option(given, "llm", "--llm", LOCAL_SAMPLING, own={"hand-written": "hand-written"})
    asked = read_recipe(PersonalizedRecipe, recipe_path(recipe, RECIPES), overrides)
    target = how.target(asked.name)
    built = build(asked, target, **how.known)
    notes = ["", generator_note(asked)]
    print_summary(console, target, built.manifest, built.new_calls, figures_tables(built.figures), notes=notes)


@with_options
def rank(
    source: Annotated[
        str, typer.Option(metavar="PLACE", help="Tables of what is asked and of profiles: DIR, FILE or ORG/NAME.")
    ],
    out: Annotated[Path, typer.Option(help="Where to write them.")],
    retriever: Annotated[
        str, typer.Option(help="`bm25`, `contriever[:MODEL]` or `sentence-transformers:MODEL`.")
    ] = "bm25",
    split: Annotated[str, typer.Option(help="Which split of the tables.")] = "train",
    config: Annotated[list[str] | None, typer.Option(help="Only this config; repeatable.")] = None,
    *,
    fresh: Fresh = False,
) -> None:
    """Rank the posts of each profile by relevance to what is asked, most relevant first, and change nothing else.

    For data whose profiles lie in another order, such as LaMP-QA's train split. The scores are recorded; an interrupted
    ranking goes on with the same command.

    Example: build-personalized rank --source alireza7/LaMP-QA --retriever contriever --out dist/lamp-qa
    """
    from build_personalized.profile_ranking import rank_tables  # noqa: PLC0415 - --help needs none of it

    rows = rank_tables(source, out, retriever=retriever, split=split, configs=config or (), fresh=fresh)
    for name, count in rows.items():
        console.print(f"{out / name / f'{split}.parquet'}: {count:,} profiles ranked by {retriever}")
