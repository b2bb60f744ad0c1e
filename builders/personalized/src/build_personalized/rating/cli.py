"""The verb `rate` of the command `build-personalized`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pluralbench_runs import RecipeError, shell_command, write_text
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

if TYPE_CHECKING:
    from build_personalized.rating.results import RatingResults

RESULTS, REPORT = "results.json", "results.md"
SHEETS = "Sheets (fixed before rating starts)"
PLANNING = "Planning"

console = make_console()


def rate(
    files: ReturnedFiles = None,
    export: StudyExport = None,
    import_: StudyImport = None,
    release: StudyRelease = None,
    annotator: Annotator = None,
    annotators_per_item: AnnotatorsPerItem = 2,
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of pairs per config.")] = None,
    check_items: Annotated[
        int,
        typer.Option(
            min=0,
            help="Attention checks: answers to another question, hidden in every rater's sheet.",
            rich_help_panel=SHEETS,
        ),
    ] = 4,
    equivalence_margin: Annotated[
        float,
        typer.Option(metavar="POINTS", help="Mean ratings that differ by less are equivalent.", rich_help_panel=SHEETS),
    ] = 0.5,
    alpha: Annotated[float, typer.Option(help="Level of every test.", rich_help_panel=SHEETS)] = 0.05,
    seed: Seed = 0,
    account: Account = None,
    power: Annotated[
        float, typer.Option(help="Minimum probability that all tests succeed.", rich_help_panel=PLANNING)
    ] = 0.8,
    quality_difference: Annotated[
        float,
        typer.Option(metavar="POINTS", help="Chosen minus rejected in general quality.", rich_help_panel=PLANNING),
    ] = 0.0,
    rubric_difference: Annotated[
        float, typer.Option(metavar="POINTS", help="Chosen minus rejected in the rubric.", rich_help_panel=PLANNING)
    ] = 1.0,
    sd_pairs: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS",
            help="Standard deviation of differences between pairs (default: 0.5, or the pilot's).",
            rich_help_panel=PLANNING,
        ),
    ] = None,
    sd_raters: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS",
            help="Standard deviation of differences between raters of a pair (default: 1, or the pilot's).",
            rich_help_panel=PLANNING,
        ),
    ] = None,
    pilot: Annotated[
        Path | None, typer.Option(help="Imported study to take standard deviations from.", rich_help_panel=PLANNING)
    ] = None,
    *,
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Compute how many raters and pairs the claim needs.", rich_help_panel=PLANNING),
    ] = False,
    assigned: AsAssigned = False,
    fresh: Fresh = False,
) -> None:
    """Run a study in which people rate both answers of pairs, as in the paper's table 1.

    The claim to test: both answers are equally good in general (factuality, relevance, helpfulness) and differ in the
    person's rubric. --plan computes how many raters and pairs the claim needs. --export writes blinded sheets and
    Label Studio tasks, and fixes the margin. --import reads them, finished or not, and writes results.json and
    results.md to the folder.

    Examples:

    build-personalized rate --plan --equivalence-margin 0.5

    build-personalized rate --release dist/mine --export ratings --annotator an --annotator bo --annotator cy

    build-personalized rate --import ratings
    """
    check_exactly_one({"--plan": plan, "--export FOLDER": export, "--import FOLDER": import_})
    if files and import_ is None:
        raise RecipeError(f"{files[0]} needs the study that it belongs to: add --import FOLDER.")
    if import_ is not None:
        _import(import_, files or [], account, assigned=assigned)
    elif export is not None:
        settings = {"limit": limit, "checks": check_items, "margin": equivalence_margin, "alpha": alpha}
        _export(
            export,
            release,
            annotator or [],
            settings | {"annotators_per_item": annotators_per_item, "seed": seed},
            fresh=fresh,
        )
    else:
        _plan(
            {
                "margin": equivalence_margin,
                "difference": quality_difference,
                "rubric": rubric_difference,
                "sd_pairs": sd_pairs,
                "sd_raters": sd_raters,
                "power": power,
                "alpha": alpha,
            },
            pilot,
        )


def _plan(options: dict[str, float | None], pilot: Path | None) -> None:
    from pluralbench_release import print_table  # noqa: PLC0415 - --help needs none of it
    from pluralbench_runs import check_recipe  # noqa: PLC0415 - the same

    from build_personalized.rating import planning, tables  # noqa: PLC0415 - the same

    values = {name: value for name, value in options.items() if value is not None}
    if pilot is not None:
        between, within = planning.pilot_spread(read_results(pilot))
        values = {"sd_pairs": between, "sd_raters": within} | values
    assumptions = check_recipe(planning.PlanAssumptions, values, "of the plan")
    print_table(console, tables.PLAN, tables.plan_table(planning.plan(assumptions)))
    for note in tables.plan_notes(assumptions):
        console.print(note)
    console.print("A pilot estimates the standard deviations: --import shows them, --plan --pilot FOLDER uses them.")


def _export(
    folder: Path, release: str | None, annotators: list[str], settings: dict[str, float | None], *, fresh: bool
) -> None:
    from pluralbench_runs import check_recipe  # noqa: PLC0415 - --help needs none of it
    from pluralbench_studies import study_summary  # noqa: PLC0415 - the same

    from build_personalized.rating.study import RatingRecipe, export  # noqa: PLC0415 - the same

    if release is None:
        raise RecipeError("--export needs the release to rate: --release PLACE, such as --release dist/personalized.")
    if not annotators:
        raise RecipeError("--export needs the raters: --annotator NAME, once for each person.")
    values = {name: value for name, value in settings.items() if value is not None}
    recipe = check_recipe(RatingRecipe, values | {"data": release, "annotators": annotators}, "of the ratings")
    study, new = export(folder, recipe, fresh=fresh)
    for line in study_summary(folder, study, "which answer is which", new=new):
        console.print(line)
    console.print(f"Fixed from now on: equivalence margin {study.margin:g} points, alpha {study.alpha:g}.")
    console.print(f"\nNext:\n  {shell_command('build-personalized', 'rate', '--import', folder)}")


def _import(folder: Path, files: list[Path], account: list[str] | None, *, assigned: bool) -> None:
    from pluralbench_release import print_table  # noqa: PLC0415 - --help needs none of it
    from pluralbench_studies import read_returned, read_study  # noqa: PLC0415 - the same

    from build_personalized.rating import tables  # noqa: PLC0415 - the same
    from build_personalized.rating.form import FORM  # noqa: PLC0415 - the same
    from build_personalized.rating.results import compute_results  # noqa: PLC0415 - the same
    from build_personalized.rating.study import RatingRecipe  # noqa: PLC0415 - the same

    study = read_study(folder, RatingRecipe)
    answers = read_returned(study, files, FORM, accounts=parse_accounts(account), by_assignment=assigned)
    results = compute_results(study, answers)
    write_text(folder / RESULTS, results.model_dump_json(indent=2) + "\n")
    write_text(folder / REPORT, tables.report(results))
    for title, table in tables.terminal_tables(results).items():
        print_table(console, title, table)
    for claim in results.claims:
        console.print(tables.claim_text(results, claim))
    console.print(f"\nAll results: {folder / RESULTS} and {folder / REPORT}.")


def read_results(folder: Path) -> "RatingResults":
    """Read the results that --import wrote to a study's folder.

    Raises:
        RatingError: The results are missing or damaged.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - --help needs none of it

    from build_personalized.rating.results import RatingResults  # noqa: PLC0415 - the same
    from build_personalized.rating.study import RatingError  # noqa: PLC0415 - the same

    path = folder / RESULTS
    if not path.is_file():
        raise RatingError(
            f"{folder} has no {RESULTS}; import the study first: build-personalized rate --import {folder}."
        )
    try:
        return RatingResults.model_validate_json(path.read_bytes())
    except ValidationError:
        raise RatingError(f"{path} is not a result file of `rate --import`; import the study again.") from None
