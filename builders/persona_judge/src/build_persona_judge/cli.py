"""The command `build-persona-judge`."""

from typing import Annotated, NoReturn

import typer
from pluralbench_runs import Program, RecipeError, read_recipe, recipe_path
from pluralbench_runs.console import make_console
from pluralbench_runs.options import (
    Building,
    Options,
    Overrides,
    RecipeOptions,
    check_one_source,
    with_options,
)
from pluralbench_schemas import TableError

from build_persona_judge.recipe import RECIPES, SAMPLE, SHARED, TASKS, PersonaJudgeRecipe

program = Program(
    "build-persona-judge",
    alone="build_persona_judge.cli:command",
    verbs={"Verbs": {"label": "build_persona_judge.labels.cli:label"}},
    mistakes=(TableError,),
)
console = make_console()


def main() -> NoReturn:
    """Entry point of the command."""
    program.run()


@with_options
def command(
    recipe: Annotated[
        str | None,
        typer.Option(help="`sample`, `paper`, or a TOML file; without it `sample`, or `paper` for own files."),
    ] = None,
    *,
    given: Annotated[Overrides, RecipeOptions(PersonaJudgeRecipe, RECIPES)],
    how: Annotated[Building, Options("Result", left_out=("retry_errors",))],
) -> None:
    """Build persona judge: of two options, which one belongs to a person who is known by a persona alone.

    Without options it builds the sample in this package, with recorded rankings and no network. The verb `label` has
    people answer its items for others.

    Examples:

    build-persona-judge

    build-persona-judge --prism HannahRoseKirk/prism-alignment --opinion-qa human_resp --out dist/judge

    build-persona-judge --people-csv my-survey --out dist/survey

    build-persona-judge label --release dist/survey --task my-survey --export labels --annotator an --annotator bo
    --annotator cy
    """
    from pluralbench_release import print_summary  # noqa: PLC0415 - --help needs none of it

    from build_persona_judge.build import build  # noqa: PLC0415 - the same
    from build_persona_judge.figures import figures_tables  # noqa: PLC0415 - the same

    asked = _asked(recipe, given)
    target = how.target(asked.name)
    built = build(asked, target, replay=how.replay, reuse=how.reuse, fresh=how.fresh)
    print_summary(console, target, built.manifest, built.new_calls, figures_tables(built.figures))


def _asked(recipe: str | None, given: Overrides) -> PersonaJudgeRecipe:
    """The recipe, with the tasks alone whose sources are named, where any is."""
    named = [task for task in TASKS if f"{task}.location" in given]
    alone = bool(named) or "people_csv" in given
    own = alone and ("people_csv" in given or any(given[f"{task}.location"] != SAMPLE for task in named))
    file = recipe_path(recipe or ("paper" if own else SAMPLE), RECIPES)
    read = read_recipe(PersonaJudgeRecipe, file)
    kept = named if alone else [task for task in TASKS if getattr(read, task) is not None]
    shared = {key: given[f"prism.{key}"] for key in SHARED if f"prism.{key}" in given}
    people = [] if alone else [table.model_dump(exclude_none=True) | shared for table in read.people_csv]
    overrides: Overrides = {"people_csv": people}
    for key, value in given.items():
        task, _, of_task = key.partition(".")
        if task not in TASKS or task in kept:
            overrides[key] = value
        elif of_task not in SHARED:
            raise RecipeError(
                f"`{of_task}` is of the task {task}, which is not built here; name its source, or leave it out."
            )
    asked = read_recipe(PersonaJudgeRecipe, file, overrides)
    asked = asked.model_copy(update={task: None for task in TASKS if task not in kept})
    check_one_source([task for task, _ in asked.sources], shared)
    return asked
