"""`pluralbench rate`."""

from pathlib import Path
from typing import Annotated, Any

import typer
from pluralbench_runs import RecipeError, plural, shell_command
from pluralbench_runs.options import Fresh, Seed
from pluralbench_runs.study_options import (
    Account,
    Annotator,
    AnnotatorsPerItem,
    AsAssigned,
    ReturnedFiles,
    StudyExport,
    StudyImport,
    check_exactly_one,
    parse_accounts,
)

from pluralbench.commands.options import DataNow
from pluralbench.commands.terminal import console

WIN_RATE_FOLDER = "win-rate"


def rate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Directory of a best-of-n run.")],
    files: ReturnedFiles = None,
    export: StudyExport = None,
    import_: StudyImport = None,
    annotator: Annotator = None,
    annotators_per_item: AnnotatorsPerItem = 2,
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of prompts per config.")] = None,
    seed: Seed = 0,
    data: DataNow = None,
    account: Account = None,
    *,
    assigned: AsAssigned = False,
    fresh: Fresh = False,
) -> None:
    """Let people compare the answers that reward models select with a random sample of the policy (win rate of CHEEMS).

    --export writes blind rating sheets and Label Studio tasks. --import reads them, complete or not, and writes the
    directory `win-rate`, which `report` and `correlate` read like a best-of-n run.

    Examples:

    pluralbench rate runs/best --export sheets --annotator an --annotator bo --annotator cy

    pluralbench rate runs/best --import sheets

    pluralbench report sheets/win-rate
    """
    check_exactly_one({"--export FOLDER": export, "--import FOLDER": import_})
    if import_ is not None:
        _import(run, import_, files or [], account, assigned=assigned)
        return
    if files:
        raise RecipeError(f"{files[0]} is a rating file; name its study with --import FOLDER.")
    if not annotator:
        raise RecipeError("The study has no annotators; name each with --annotator.")
    options = {
        "run": str(run),
        "annotators": annotator,
        "annotators_per_item": annotators_per_item,
        "limit": limit,
        "seed": seed,
    }
    _export(run, Path(str(export)), options, data, fresh=fresh)


def _export(run: Path, folder: Path, options: dict[str, Any], data: str | None, *, fresh: bool) -> None:
    from pluralbench_runs import check_recipe  # noqa: PLC0415 - `--help` need not wait for it
    from pluralbench_studies import study_summary  # noqa: PLC0415 - the same

    from pluralbench.downstream.people import WinRecipe, export_sheets  # noqa: PLC0415 - the same
    from pluralbench.results.downstream import DownstreamRunConfig  # noqa: PLC0415 - the same
    from pluralbench.results.runs import load_run  # noqa: PLC0415 - the same

    recipe = check_recipe(WinRecipe, options, "of the comparison")
    sheets, pairs, new = export_sheets(load_run(run, DownstreamRunConfig), folder, recipe, data=data, fresh=fresh)
    for line in study_summary(folder, sheets, "which answer was selected", new=new):
        console.print(line)
    people = f"{sheets.annotators_per_item} of {plural(len(sheets.annotators), 'annotator')}"
    console.print(f"{plural(pairs, 'pair')} of answers, each for {people}.")
    console.print(f"\nNext:\n  {shell_command('pluralbench', 'rate', run, '--import', folder)}")


def _import(run: Path, folder: Path, files: list[Path], account: list[str] | None, *, assigned: bool) -> None:
    from pluralbench_studies import annotator_progress, read_returned, read_study  # noqa: PLC0415 - `--help` need not wait for it

    from pluralbench.commands.console_output import print_downstream  # noqa: PLC0415 - the same
    from pluralbench.downstream.people import FORM, WinRecipe, write_ratings  # noqa: PLC0415 - the same
    from pluralbench.results.downstream import DownstreamRunConfig  # noqa: PLC0415 - the same
    from pluralbench.results.runs import load_run  # noqa: PLC0415 - the same

    study = read_study(folder, WinRecipe)
    answers = read_returned(study, files, FORM, accounts=parse_accounts(account), by_assignment=assigned)
    print_downstream(write_ratings(load_run(run, DownstreamRunConfig), study, answers, folder / WIN_RATE_FOLDER))
    for name, assigned_pairs, answered in annotator_progress(study.assigned, answers.answers).iter_rows():
        console.print(f"{name}: {answered:,} of {plural(assigned_pairs, 'pair')} compared")
    for row in answers.problems.iter_rows(named=True):
        if row["kind"] != "missing":
            console.print(f"{row['kind']}: {row['annotator']}, {row['item']}: {row['detail']}")
