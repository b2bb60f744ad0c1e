"""The verb `label` of the command `build-persona-judge`."""

from pathlib import Path
from typing import Annotated, Any

import typer
from pluralbench_runs import RecipeError, plural, shell_command, write_text
from pluralbench_runs.console import make_console
from pluralbench_runs.options import Fresh, Seed
from pluralbench_runs.study_options import (
    Account,
    Annotator,
    AnnotatorsPerItem,
    AsAssigned,
    ReturnedFiles,
    StudyExport,
    StudyImport,
    StudyRelease,
    check_exactly_one,
    parse_accounts,
)

RESULTS = "results.json"

console = make_console()


def label(
    files: ReturnedFiles = None,
    export: StudyExport = None,
    import_: StudyImport = None,
    release: StudyRelease = None,
    task: Annotated[str | None, typer.Option(help="Config whose items are labeled, such as opinion_qa.")] = None,
    annotator: Annotator = None,
    annotators_per_item: AnnotatorsPerItem = 3,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of items.")] = 300,
    seed: Seed = 0,
    account: Account = None,
    *,
    assigned: AsAssigned = False,
    fresh: Fresh = False,
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
    check_exactly_one({"--export FOLDER": export, "--import FOLDER": import_})
    if export is None and import_ is not None:
        _import(import_, files or [], account, assigned=assigned)
    elif export is not None:
        if files:
            raise RecipeError(f"{files[0]} is a file to import; name its study with --import FOLDER.")
        values = {
            "data": release,
            "task": task,
            "annotators": annotator,
            "annotators_per_item": annotators_per_item,
            "limit": limit,
            "seed": seed,
        }
        _export(export, {name: value for name, value in values.items() if value}, fresh=fresh)


def _export(folder: Path, values: dict[str, Any], *, fresh: bool) -> None:
    from pluralbench_runs import check_recipe  # noqa: PLC0415 - --help needs none of it
    from pluralbench_studies import study_summary  # noqa: PLC0415 - the same

    from build_persona_judge.labels.study import LabelRecipe, export  # noqa: PLC0415 - the same

    for key, flag in (("data", "--release DIR"), ("task", "--task NAME"), ("annotators", "--annotator NAME")):
        if key not in values:
            raise RecipeError(f"--export also needs {flag}.")
    settings, items, new = export(folder, check_recipe(LabelRecipe, values, "of the labels"), fresh=fresh)
    for line in study_summary(folder, settings, "which option is true", new=new):
        console.print(line)
    console.print(
        f"{plural(items, 'item')} of {settings.task}, each for {settings.annotators_per_item} of "
        f"{plural(len(settings.annotators), 'annotator')}."
    )
    console.print(f"\nNext:\n  {shell_command('build-persona-judge', 'label', '--import', folder)}")


def _import(folder: Path, files: list[Path], account: list[str] | None, *, assigned: bool) -> None:
    import json  # noqa: PLC0415 - --help needs none of it

    from pluralbench_release import print_table  # noqa: PLC0415 - the same
    from pluralbench_studies import read_returned, read_study  # noqa: PLC0415 - the same
    from pluralbench_tables import csv_text  # noqa: PLC0415 - the same

    from build_persona_judge.labels import results  # noqa: PLC0415 - the same
    from build_persona_judge.labels.study import FORM, LabelRecipe  # noqa: PLC0415 - the same

    study = read_study(folder, LabelRecipe)
    returned = read_returned(study, files, FORM, accounts=parse_accounts(account), by_assignment=assigned)
    labels = results.labels_of(study, returned)
    figures = results.figures_of(labels)
    write_text(folder / results.LABELS_FILE, csv_text(labels))
    problems = [row for row in returned.problems.iter_rows(named=True) if row["kind"] != "missing"]
    values = {"format": "labels-1", "figures": [entry.model_dump() for entry in figures], "problems": problems}
    write_text(folder / RESULTS, json.dumps(values, ensure_ascii=False, indent=2) + "\n")
    print_table(console, "Third-person labels (95 % intervals over people)", results.figures_table(figures))
    print_table(console, "Annotators", results.progress_table(study, returned))
    for problem in problems:
        console.print(f"{problem['kind']}: {problem['annotator']}, {problem['item']}: {problem['detail']}")
    console.print(f"\nNumbers: {folder / RESULTS}, labels: {folder / results.LABELS_FILE}. Next:")
    option = ("--labels", folder / results.LABELS_FILE)
    console.print(f"  {shell_command('pluralbench', 'judge-metrics', 'VERDICTS', *option)}")
    console.print(f"  {shell_command('build-persona-judge', *option)}  # with the options of the release")
