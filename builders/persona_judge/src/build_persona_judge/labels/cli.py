"""The verb `label` of the command `build-persona-judge`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pluralbench_runs import shell_command, write_text
from pluralbench_runs.console import make_console
from pluralbench_runs.recipe_options import Overrides, RecipeOptions
from pluralbench_runs.study_options import ReturnedFiles, StudyOptions, study_settings

from build_persona_judge.recipe import LabelRecipe

RESULTS = "results.json"

console = make_console()


def label(
    files: ReturnedFiles = (),
    *,
    settings: Annotated[Overrides, RecipeOptions(LabelRecipe)],
    options: StudyOptions,
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
        from build_persona_judge.labels.study import export

        recipe = study_settings(LabelRecipe, settings, "of the labels")
        console.print(export(options.export, recipe, fresh=options.fresh))
        console.print(f"\nNext:\n  {shell_command('build-persona-judge', 'label', '--import', options.export)}")


def _import(folder: Path, files: Sequence[Path], options: StudyOptions) -> None:
    from pluralbench_release import print_table, text_table
    from pluralbench_studies import progress_rows, read_study
    from pluralbench_tables import csv_text

    from build_persona_judge.labels import results
    from build_persona_judge.labels.study import FORM

    study, returned = read_study(folder, LabelRecipe, FORM, files, options)
    labels = results.labels_of(study, returned)
    figures = results.figures_of(labels)
    write_text(folder / results.LABELS_FILE, csv_text(labels))
    values = {"format": "labels-1", "figures": figures, "problems": returned.problems.to_dicts()}
    write_text(folder / RESULTS, json.dumps(values, ensure_ascii=False, indent=2) + "\n")
    print_table(console, "Third-person labels (95 % intervals over people)", results.figures_table(figures))
    print_table(console, "Annotators", text_table(["annotator", "answered"], progress_rows(study, returned)))
    for line in returned.problem_lines:
        console.print(line)
    console.print(f"\nNumbers: {folder / RESULTS}, labels: {folder / results.LABELS_FILE}. Next:")
    option = ("--labels", folder / results.LABELS_FILE)
    console.print(f"  {shell_command('pluralbench', 'judge-metrics', 'VERDICTS', *option)}")
    console.print(f"  {shell_command('build-persona-judge', *option)}  # with the options of the release")
