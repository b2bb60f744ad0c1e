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
MAKING = "Sheets; said before anybody rates"
PLANNING = "Planning"

console = make_console()


def rate(
    files: ReturnedFiles = None,
    export: StudyExport = None,
    import_: StudyImport = None,
    release: StudyRelease = None,
    annotator: Annotator = None,
    each: AnnotatorsPerItem = 2,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many items of each config.")] = None,
    check_items: Annotated[
        int,
        typer.Option(
            min=0,
            help="Answers to another question that everybody rates, hidden among the rest.",
            rich_help_panel=MAKING,
        ),
    ] = 4,
    equivalence_margin: Annotated[
        float,
        typer.Option(
            metavar="POINTS", help="Mean ratings are equal where they differ by less.", rich_help_panel=MAKING
        ),
    ] = 0.5,
    alpha: Annotated[float, typer.Option(help="Level of every test.", rich_help_panel=MAKING)] = 0.05,
    seed: Seed = 0,
    account: Account = None,
    power: Annotated[
        float, typer.Option(help="Least probability that all tests succeed.", rich_help_panel=PLANNING)
    ] = 0.8,
    quality_difference: Annotated[
        float,
        typer.Option(metavar="POINTS", help="Chosen less rejected in general quality.", rich_help_panel=PLANNING),
    ] = 0.0,
    rubric_difference: Annotated[
        float, typer.Option(metavar="POINTS", help="Chosen less rejected in the rubric.", rich_help_panel=PLANNING)
    ] = 1.0,
    sd_pairs: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS",
            help="Standard deviation of differences between pairs; without it 0.5, or the pilot's.",
            rich_help_panel=PLANNING,
        ),
    ] = None,
    sd_raters: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS",
            help="Standard deviation of differences between raters of a pair; without it 1, or the pilot's.",
            rich_help_panel=PLANNING,
        ),
    ] = None,
    pilot: Annotated[
        Path | None, typer.Option(help="A study that was read, to take spreads from.", rich_help_panel=PLANNING)
    ] = None,
    *,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say how many raters and pairs the claim takes.", rich_help_panel=PLANNING)
    ] = False,
    assigned: AsAssigned = False,
    fresh: Fresh = False,
) -> None:
    """Have people rate both answers of pairs, as for the paper's table 1: plan, sheets out, sheets in.

    The claim is that the answers are equally good in general (factuality, relevance, helpfulness) and differ by the
    person's rubric. --plan says how many raters and pairs it takes; --export writes blind sheets, and Label Studio
    tasks, under a margin that is set then; --import reads them, finished or not, and writes results.json and
    results.md into the folder.

    Examples:

    build-personalized rate --plan --equivalence-margin 0.5

    build-personalized rate --release dist/mine --export ratings --annotator an --annotator bo --annotator cy

    build-personalized rate --import ratings
    """
    check_exactly_one({"--plan": plan, "--export FOLDER": export, "--import FOLDER": import_})
    if files and import_ is None:
        raise RecipeError(f"{files[0]} is a file to read; say which study it is of with --import FOLDER.")
    if import_ is not None:
        _import(import_, files or [], account, assigned=assigned)
    elif export is not None:
        settings = {"limit": limit, "checks": check_items, "margin": equivalence_margin, "alpha": alpha}
        _export(export, release, annotator or [], settings | {"each": each, "seed": seed}, fresh=fresh)
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


def _plan(asked: dict[str, float | None], pilot: Path | None) -> None:
    from pluralbench_release import print_table  # noqa: PLC0415 - --help needs none of it
    from pluralbench_runs import check_recipe  # noqa: PLC0415 - the same

    from build_personalized.rating import planning, tables  # noqa: PLC0415 - the same

    given = {name: value for name, value in asked.items() if value is not None}
    if pilot is not None:
        between, within = planning.spread_of(read_results(pilot))
        given = {"sd_pairs": between, "sd_raters": within} | given
    assumed = check_recipe(planning.Assumed, given, "of the plan")
    print_table(console, tables.PLAN, tables.plan_table(planning.plan(assumed)))
    for note in tables.plan_notes(assumed):
        console.print(note)


def _export(
    folder: Path, release: str | None, annotators: list[str], settings: dict[str, float | None], *, fresh: bool
) -> None:
    from pluralbench_runs import check_recipe  # noqa: PLC0415 - --help needs none of it
    from pluralbench_studies import written_lines  # noqa: PLC0415 - the same

    from build_personalized.rating.study import RatingRecipe, export  # noqa: PLC0415 - the same

    if release is None:
        raise RecipeError("Say whose pairs are rated with --release, such as --release dist/personalized.")
    if not annotators:
        raise RecipeError("Say who rates with --annotator, once for each person.")
    values = {name: value for name, value in settings.items() if value is not None}
    asked = check_recipe(RatingRecipe, values | {"data": release, "annotators": annotators}, "of the ratings")
    made, new = export(folder, asked, fresh=fresh)
    for line in written_lines(folder, made, "which answer is which", new=new):
        console.print(line)
    console.print(f"Equal will mean within {made.margin:g} of a point, at {made.alpha:g}; that is settled now.")
    console.print(f"\nNext:\n  {shell_command('build-personalized', 'rate', '--import', folder)}")


def _import(folder: Path, files: list[Path], account: list[str] | None, *, assigned: bool) -> None:
    from pluralbench_release import print_table  # noqa: PLC0415 - --help needs none of it
    from pluralbench_studies import read_returned, read_study  # noqa: PLC0415 - the same

    from build_personalized.rating import tables  # noqa: PLC0415 - the same
    from build_personalized.rating.form import FORM  # noqa: PLC0415 - the same
    from build_personalized.rating.results import results_of  # noqa: PLC0415 - the same
    from build_personalized.rating.study import RatingRecipe  # noqa: PLC0415 - the same

    study = read_study(folder, RatingRecipe)
    answers = read_returned(study, files, FORM, accounts=parse_accounts(account), by_assignment=assigned)
    found = results_of(study, answers)
    write_text(folder / RESULTS, found.model_dump_json(indent=2) + "\n")
    write_text(folder / REPORT, tables.report(found))
    for title, table in tables.shown_tables(found).items():
        print_table(console, title, table)
    for claim in found.claims:
        console.print(tables.verdict(found, claim))
    console.print(f"\n{folder / RESULTS} and {folder / REPORT} hold all of it.")


def read_results(folder: Path) -> "RatingResults":
    """The results that --import wrote to a study's folder. Raises `RatingError`."""
    from pydantic import ValidationError  # noqa: PLC0415 - --help needs none of it

    from build_personalized.rating.results import RatingResults  # noqa: PLC0415 - the same
    from build_personalized.rating.study import RatingError  # noqa: PLC0415 - the same

    path = folder / RESULTS
    if not path.is_file():
        raise RatingError(
            f"{folder} has no {RESULTS}; read the study first: build-personalized rate --import {folder}."
        )
    try:
        return RatingResults.model_validate_json(path.read_bytes())
    except ValidationError:
        raise RatingError(f"{path} is not what rate --import wrote; read the study again.") from None
