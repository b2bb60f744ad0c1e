"""The verb `training` of the command `build-personalized`."""

from typing import Annotated

from pluralbench_calls.chat import resolve_model_option
from pluralbench_runs import read_recipe, recipe_path
from pluralbench_runs.console import make_console
from pluralbench_runs.options import Options
from pluralbench_runs.recipe_options import BuildOptions, Overrides, RecipeOptions

from build_personalized.training.recipe import HAND_WRITTEN, NO_MODEL, RECIPES, TrainingRecipe

# A model this small does best with the first 60 words of a question.
LOCAL_SAMPLING = {"seeded": True, "temperature": 0.7, "max_tokens": 224, "questions": 10, "question_words": 60}

console = make_console()


def training(
    *,
    recipe: str | None = None,
    overrides: Annotated[Overrides, RecipeOptions(TrainingRecipe, RECIPES)],
    building: Annotated[BuildOptions, Options("Result")],
) -> None:
    """Build preferences with users, to train personalized reward models.

    Each pair comes with the user's other questions as a profile and, with --persona-llm, a persona that a model writes
    from them. A user is in one split only, and the questions of benchmarks are removed. Default: the sample in this
    package, which needs no model and no network. Rerun the same command to resume an interrupted build.

    Args:
        recipe: `sample`, `paper`, `own`, or a TOML file (default: `sample`, or `own` with --source).

    Examples:
        build-personalized training
        build-personalized training --source stack-exchange:beer.stackexchange.com/Posts.xml --persona-llm gpt-5-mini
            --price 0.25/2 --max-cost 5 --out dist/beer-training
        build-personalized training --source table:mine.jsonl --column user=who --against sample --out dist/mine
    """
    from pluralbench_release import print_summary

    from build_personalized.training.build import build
    from build_personalized.training.card import figures_tables, persona_note

    default = "sample" if overrides.get("source.locations") in (None, ["sample"]) else "own"
    overrides = resolve_model_option(
        overrides,
        "persona",
        "--persona-llm",
        LOCAL_SAMPLING,
        own={NO_MODEL: NO_MODEL, HAND_WRITTEN: HAND_WRITTEN},
    )
    config = read_recipe(TrainingRecipe, recipe_path(recipe or default, RECIPES), overrides)
    target = building.target(config.name)
    result = build(config, target, **building.build_arguments)
    notes = ["", persona_note(config)]
    print_summary(console, target, result.manifest, result.new_calls, figures_tables(result.figures), notes=notes)
