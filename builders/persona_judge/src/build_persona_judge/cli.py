"""The command `build-persona-judge`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

from pluralbench_runs import BuildOptions, Program, RecipeError, read_recipe, recipe_path, shell_command, write_text
from pluralbench_runs.console import make_console
from pluralbench_runs.options import Options
from pluralbench_runs.program import Verb
from pluralbench_runs.recipe_options import BUILD_COMMON, Overrides, RecipeOptions, check_one_source
from pluralbench_runs.study_options import ReturnedFiles, StudyOptions, study_settings
from pluralbench_schemas import TableError

from build_persona_judge.recipe import RECIPES, SAMPLE, SHARED, TASKS, LabelRecipe, PersonaJudgeRecipe

program = Program(
    "build-persona-judge",
    default=Verb("build_persona_judge.cli:command", status="Building the dataset..."),
    verbs={"Verbs": {"label": Verb("build_persona_judge.cli:label")}},
    common=BUILD_COMMON,
    mistakes=(TableError,),
)
console = make_console()


def main() -> NoReturn:
    """Entry point of the command."""
    program.run()


def command(
    *,
    recipe: str | None = None,
    overrides: Annotated[Overrides, RecipeOptions(PersonaJudgeRecipe, RECIPES)],
    building: Annotated[BuildOptions, Options("Result", ("retry_errors",))],
) -> None:
    """Build the persona judge dataset: which of two options belongs to a person described only by a persona.

    By default, this builds the embedded sample with recorded rankings and without network. The verb `label` collects
    third-person labels for its items.

    Args:
        recipe: `sample`, `paper`, or a TOML file. Default: `sample`, or `paper` for your own files.

    Examples:
        build-persona-judge
        build-persona-judge --prism HannahRoseKirk/prism-alignment --opinion-qa human_resp --out dist/judge
        build-persona-judge --people-csv my-survey --out dist/survey
        build-persona-judge label --release dist/survey --task my-survey --export labels --annotator an --annotator bo
            --annotator cy
    """
    from pluralbench_release import print_summary

    from build_persona_judge.build import build
    from build_persona_judge.figures import figures_tables

    config = _load_recipe(recipe, overrides)
    built = build(config, building)
    print_summary(console, built, figures_tables(built.figures))


def _load_recipe(recipe: str | None, overrides: Overrides) -> PersonaJudgeRecipe:
    """Read the recipe; if sources are named, with their tasks only."""
    named = [task for task in TASKS if f"{task}.location" in overrides]
    only_named = bool(named) or "people_csv" in overrides
    own = only_named and ("people_csv" in overrides or any(overrides[f"{task}.location"] != SAMPLE for task in named))
    file = recipe_path(recipe or ("paper" if own else SAMPLE), RECIPES)
    base = read_recipe(PersonaJudgeRecipe, file)
    tasks = named if only_named else [task for task in TASKS if getattr(base, task) is not None]
    shared = {key: overrides[f"prism.{key}"] for key in SHARED if f"prism.{key}" in overrides}
    people = [] if only_named else [table.model_dump(exclude_none=True) | shared for table in base.people_csv]
    values: Overrides = {"people_csv": people}
    for key, value in overrides.items():
        task, _, field = key.partition(".")
        if task not in TASKS or task in tasks:
            values[key] = value
        elif field not in SHARED:
            raise RecipeError(
                f"`{field}` belongs to the task {task}, which this build does not include; name its source, or remove "
                f"`{field}`."
            )
    config = read_recipe(PersonaJudgeRecipe, file, values)
    config = config.model_copy(update={task: None for task in TASKS if task not in tasks})
    check_one_source([task for task, _ in config.sources], shared)
    return config


RESULTS = "results.json"


def label(
    files: ReturnedFiles = (), *, settings: Annotated[Overrides, RecipeOptions(LabelRecipe)], options: StudyOptions
) -> None:
    """Collect third-person labels: people choose the option of a person described only by a persona.

    --export writes sheets and Label Studio tasks for random items, each for three annotators as in the paper. --import
    reads them, finished or not, and writes results.json and labels.csv. `pluralbench judge-metrics --labels` compares
    judges with these labels, and `build-persona-judge --labels` adds them to a release.

    Examples:
        build-persona-judge label --release dist/judge --task opinion_qa --export labels --annotator an --annotator bo
            --annotator cy
        build-persona-judge label --import labels
    """
    options.check(files)
    if options.import_ is not None:
        _import(options.import_, files, options)
    elif options.export is not None:
        from build_persona_judge.labels import export

        recipe = study_settings(LabelRecipe, settings, "of the labels")
        console.print(export(options.export, recipe, fresh=options.fresh))
        console.print(f"\nNext:\n  {shell_command('build-persona-judge', 'label', '--import', options.export)}")


def _import(folder: Path, files: Sequence[Path], options: StudyOptions) -> None:
    from pluralbench_release import print_table, text_table
    from pluralbench_release.manifest import json_text
    from pluralbench_studies import progress_rows, read_study
    from pluralbench_tables import csv_text

    from build_persona_judge.labels import FORM, LABELS_FILE, figures_of, figures_table, labels_of

    study, returned = read_study(folder, LabelRecipe, FORM, files, options)
    labels = labels_of(study, returned)
    figures = figures_of(labels)
    write_text(folder / LABELS_FILE, csv_text(labels))
    values = {"format": "labels-1", "figures": figures, "problems": returned.problems.to_dicts()}
    write_text(folder / RESULTS, json_text(values))
    print_table(console, "Third-person labels (95 % intervals over people)", figures_table(figures))
    print_table(console, "Annotators", text_table(["annotator", "answered"], progress_rows(study, returned)))
    for line in returned.problem_lines:
        console.print(line)
    console.print(f"\nNumbers: {folder / RESULTS}, labels: {folder / LABELS_FILE}. Next:")
    option = ("--labels", folder / LABELS_FILE)
    console.print(f"  {shell_command('pluralbench', 'judge-metrics', 'VERDICTS', *option)}")
    console.print(f"  {shell_command('build-persona-judge', *option)}  # with the options of the release")
