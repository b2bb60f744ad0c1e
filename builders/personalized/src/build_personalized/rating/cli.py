"""The verb `rate` of the command `build-personalized`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pluralbench_runs import RecipeError, check_recipe, shell_command, write_text
from pluralbench_runs.console import make_console
from pluralbench_runs.options import Flag
from pluralbench_runs.recipe_options import Overrides, RecipeOptions
from pluralbench_runs.study_options import ReturnedFiles, StudyOptions, study_settings

from build_personalized.rating.recipe import PLANNING, PlanAssumptions, RatingRecipe

RESULTS, REPORT = "results.json", "results.md"
FORMAT = "ratings-1"

console = make_console()


def rate(
    files: ReturnedFiles = (),
    *,
    pilot: Annotated[Path | None, Flag(panel=PLANNING)] = None,
    plan: Annotated[bool, Flag(panel=PLANNING)] = False,
    settings: Annotated[Overrides, RecipeOptions(RatingRecipe)],
    assumptions: Annotated[Overrides, RecipeOptions(PlanAssumptions)],
    options: StudyOptions,
) -> None:
    """Run a study in which people rate both answers of pairs, as in the paper's table 1.

    The claim to test: both answers are equally good in general (factuality, relevance, helpfulness) and differ in the
    person's rubric. --plan computes how many raters and pairs the claim needs. --export writes blinded sheets and
    Label Studio tasks, and fixes the margin. --import reads them, finished or not, and writes results.json and
    results.md to the folder.

    Args:
        pilot: Imported study to take standard deviations from.
        plan: Compute how many raters and pairs the claim needs.

    Examples:
        build-personalized rate --plan --equivalence-margin 0.5
        build-personalized rate --release dist/mine --export ratings --annotator an --annotator bo --annotator cy
        build-personalized rate --import ratings
    """
    options.check(files, plan=plan)
    if options.import_ is not None:
        _import(options.import_, files, options)
    elif options.export is not None:
        _export(options.export, study_settings(RatingRecipe, settings, "of the ratings"), fresh=options.fresh)
    else:
        _plan(assumptions | {name: settings[name] for name in ("margin", "alpha") if name in settings}, pilot)


def _plan(values: dict[str, Any], pilot: Path | None) -> None:
    from pluralbench_release import print_table

    from build_personalized.rating import planning, tables

    if pilot is not None:
        values = planning.pilot_spread(read_results(pilot)) | values
    assumptions = check_recipe(PlanAssumptions, values, "of the plan")
    print_table(console, tables.PLAN, tables.plan_table(planning.plan(assumptions)))
    for note in tables.plan_notes(assumptions):
        console.print(note)
    console.print("A pilot estimates the standard deviations: --import shows them, --plan --pilot FOLDER uses them.")


def _export(folder: Path, settings: RatingRecipe, *, fresh: bool) -> None:
    from build_personalized.rating.study import export

    console.print(export(folder, settings, fresh=fresh))
    console.print(f"Fixed from now on: equivalence margin {settings.margin:g} points, alpha {settings.alpha:g}.")
    console.print(f"\nNext:\n  {shell_command('build-personalized', 'rate', '--import', folder)}")


def _import(folder: Path, files: Sequence[Path], options: StudyOptions) -> None:
    from pluralbench_release import print_table
    from pluralbench_studies import read_study

    from build_personalized.rating import tables
    from build_personalized.rating.results import compute_results
    from build_personalized.rating.study import FORM

    study, returned = read_study(folder, RatingRecipe, FORM, files, options)
    results = {"format": FORMAT, **compute_results(study, returned)}
    write_text(folder / RESULTS, json.dumps(results, ensure_ascii=False, indent=2) + "\n")
    write_text(folder / REPORT, tables.report(results, returned.problem_lines))
    for title, table in tables.result_tables(results, tests_of=results["claims"][-1]["config"]).items():
        print_table(console, title, table)
    for line in (*returned.problem_lines, *tables.claim_texts(results)):
        console.print(line)
    console.print(f"\nAll results: {folder / RESULTS} and {folder / REPORT}.")


def read_results(folder: Path) -> dict[str, Any]:
    """Read the results that --import wrote to a study's folder.

    Raises:
        RecipeError: The results are missing or damaged.
    """
    from pluralbench_tables import read_json

    path = folder / RESULTS
    if not path.is_file():
        raise RecipeError(
            f"{folder} has no {RESULTS}; import the study first: build-personalized rate --import {folder}."
        )
    results = read_json(path, RecipeError)
    if not isinstance(results, dict) or results.get("format") != FORMAT:
        raise RecipeError(f"{path} is not a result file of `rate --import`; import the study again.")
    return results
