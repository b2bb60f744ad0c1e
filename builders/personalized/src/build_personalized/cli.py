"""The command `build-personalized` and its verb `rank`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

from pluralbench_calls.chat import resolve_model_option
from pluralbench_runs import Program, plural, read_recipe, recipe_path
from pluralbench_runs.command import Verb
from pluralbench_runs.console import make_console
from pluralbench_runs.options import Flag, Options
from pluralbench_runs.recipe_options import BuildOptions, Overrides, RecipeOptions
from pluralbench_schemas import TableError

from build_personalized.recipe import RECIPES, PersonalizedRecipe

# A model this small rambles at high temperatures, and answers over the word limit are discarded.
LOCAL_SAMPLING = {"seeded": True, "temperature": 0.7, "max_tokens": 224, "aspects_max_tokens": 640}

program = Program(
    "build-personalized",
    default=Verb("build_personalized.cli:command", status="Building the dataset..."),
    verbs={
        "Verbs": {
            "rank": Verb("build_personalized.cli:rank"),
            "rate": Verb("build_personalized.rating.cli:rate"),
            "training": Verb("build_personalized.training.cli:training"),
        }
    },
    mistakes=(TableError,),
)
console = make_console()


def main() -> NoReturn:
    """Entry point of the command."""
    program.run()


def command(
    *,
    recipe: str = "sample",
    overrides: Annotated[Overrides, RecipeOptions(PersonalizedRecipe, RECIPES)],
    building: Annotated[BuildOptions, Options("Result")],
) -> None:
    """Build Personalized RewardBench: pairs of answers of which only one meets the person's rubric.

    Default: the sample in this package, which needs no model and no network. Rerun the same command to resume an
    interrupted build. The verb `rate` runs a study in which people rate both answers of the pairs, `training` builds
    training pairs for personalized reward models, and `rank` ranks the profiles of a table.

    Args:
        recipe: `sample`, `paper`, or a TOML file.

    Examples:
        build-personalized
        build-personalized --llm local --limit 2 --out dist/local
        build-personalized --source stack-exchange:beer.stackexchange.com/Posts.xml --llm gpt-5-mini --out dist/beer
        build-personalized rank --source alireza7/LaMP-QA --retriever contriever --out dist/lamp-qa
        build-personalized rate --release dist/beer --export ratings --annotator an --annotator bo --annotator cy
        build-personalized training --source arena --persona-llm gpt-5-mini --out dist/arena
    """
    from pluralbench_release import print_summary

    from build_personalized.build import build
    from build_personalized.card import figures_tables, generator_note

    overrides = resolve_model_option(overrides, "llm", "--llm", LOCAL_SAMPLING, own={"hand-written": "hand-written"})
    config = read_recipe(PersonalizedRecipe, recipe_path(recipe, RECIPES), overrides)
    target = building.target(config.name)
    result = build(config, target, **building.build_arguments)
    notes = ["", generator_note(config)]
    print_summary(console, target, result.manifest, result.new_calls, figures_tables(result.figures), notes=notes)


def rank(
    *,
    source: Annotated[str, Flag(metavar="PLACE")],
    out: Path,
    retriever: str = "bm25",
    split: str = "train",
    config: Sequence[str] = (),
    fresh: bool = False,
) -> None:
    """Rank the posts of each profile by relevance to the question, most relevant first.

    Use it for data whose profiles are in another order, such as LaMP-QA's train split; nothing else changes. Scores
    are recorded: rerun the same command to resume an interrupted ranking.

    Args:
        source: Tables with questions and profiles: DIR, FILE or ORG/NAME.
        out: Directory for the ranked tables.
        retriever: `bm25`, `contriever[:MODEL]` or `sentence-transformers:MODEL`.
        split: Split of the tables.
        config: Config to include; repeatable. Default: all.
        fresh: Start over, and replace existing output.

    Examples:
        build-personalized rank --source alireza7/LaMP-QA --retriever contriever --out dist/lamp-qa
    """
    from build_personalized.profile_ranking import rank_tables

    rows = rank_tables(source, out, retriever=retriever, split=split, configs=config, fresh=fresh)
    for name, count in rows.items():
        console.print(f"{out / name / f'{split}.parquet'}: {plural(count, 'profile')} ranked by {retriever}")
