"""The verb `training` of the command `build-personalized`."""

from typing import Annotated

import typer
from pluralbench_calls.chat import resolve_model_option
from pluralbench_runs import read_recipe, recipe_path
from pluralbench_runs.console import make_console
from pluralbench_runs.options import (
    Building,
    Options,
    Overrides,
    RecipeOptions,
    with_options,
)

from build_personalized.training.recipe import NOBODY, RECIPES, WRITTEN, TrainingRecipe

# Of a model this small the first of 120 words are the best.
LOCAL_SAMPLING = {"seeded": True, "temperature": 0.7, "max_tokens": 224, "questions": 10, "question_words": 60}

console = make_console()


@with_options
def training(
    recipe: Annotated[
        str | None,
        typer.Option(help="`sample`, `paper`, `own`, or a TOML file; without it `sample`, or `own` with --source."),
    ] = None,
    *,
    given: Annotated[Overrides, RecipeOptions(TrainingRecipe, RECIPES)],
    how: Annotated[Building, Options("Result")],
) -> None:
    """Build preferences with users, to train personalized reward models: who preferred which of two answers.

    Each pair comes with the user's other questions as a profile and, by --persona-llm, a persona that a model made of
    them. Users are in one split only, and no question of a benchmark is in the release. Without options it builds the
    sample in this package, with no model and no network. An interrupted build goes on with the same command.

    Examples:

    build-personalized training

    build-personalized training --source stack-exchange:beer.stackexchange.com/Posts.xml --persona-llm gpt-5-mini
    --price 0.25/2 --max-cost 5 --out dist/beer-training

    build-personalized training --source table:mine.jsonl --column user=who --against sample --out dist/mine
    """
    from pluralbench_release import print_summary  # noqa: PLC0415 - --help needs none of it

    from build_personalized.training.build import build  # noqa: PLC0415 - the same
    from build_personalized.training.card import figures_tables, persona_note  # noqa: PLC0415 - the same

    own = "sample" if given.get("source.locations") in (None, ["sample"]) else "own"
    overrides = resolve_model_option(
        given, "persona", "--persona-llm", LOCAL_SAMPLING, own={NOBODY: NOBODY, WRITTEN: WRITTEN}
    )
    asked = read_recipe(TrainingRecipe, recipe_path(recipe or own, RECIPES), overrides)
    target = how.target(asked.name)
    built = build(asked, target, **how.known)
    notes = ["", persona_note(asked)]
    print_summary(console, target, built.manifest, built.new_calls, figures_tables(built.figures), notes=notes)
