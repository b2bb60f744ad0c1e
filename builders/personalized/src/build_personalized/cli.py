"""The command `build-personalized` and its verbs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

from pluralbench_calls.chat import resolve_model_option
from pluralbench_runs import (
    BuildOptions,
    Program,
    RecipeError,
    check_recipe,
    plural,
    read_recipe,
    recipe_path,
    shell_command,
    write_text,
)
from pluralbench_runs.console import make_console
from pluralbench_runs.options import Flag, Options
from pluralbench_runs.program import Verb
from pluralbench_runs.recipe_options import BUILD_COMMON, Overrides, RecipeOptions
from pluralbench_runs.study_options import ReturnedFiles, StudyOptions, study_settings
from pluralbench_schemas import TableError

from build_personalized.rating.recipe import PLANNING, PlanAssumptions, RatingRecipe
from build_personalized.recipe import RECIPES, PersonalizedRecipe
from build_personalized.training.recipe import HAND_WRITTEN, NO_MODEL, TrainingRecipe
from build_personalized.training.recipe import RECIPES as TRAINING_RECIPES

# A model this small rambles at high temperatures, and answers over the word limit are discarded. For personas, it does
# best with the first 60 words of a question.
SAMPLING = {"seeded": True, "temperature": 0.7, "max_tokens": 224}
LOCAL_WRITER = SAMPLING | {"aspects_max_tokens": 640}
LOCAL_PERSONAS = SAMPLING | {"questions": 10, "question_words": 60}
RESULTS, REPORT, FORMAT = "results.json", "results.md", "ratings-1"

program = Program(
    "build-personalized",
    default=Verb("build_personalized.cli:command", status="Building the dataset..."),
    verbs={
        "Verbs": {
            "rank": Verb("build_personalized.cli:rank"),
            "rate": Verb("build_personalized.cli:rate"),
            "training": Verb("build_personalized.cli:training"),
        }
    },
    common=BUILD_COMMON,
    mistakes=(TableError,),
)
console = make_console()


def main() -> NoReturn:
    """Entry point of the command."""
    program.run()


def command(
    *,
    recipe: str = "sample",
    overrides: Annotated[Overrides, RecipeOptions(PersonalizedRecipe, RECIPES)],
    building: Annotated[BuildOptions, Options("Result")],
) -> None:
    """Build Personalized RewardBench: pairs of answers of which only one meets the person's rubric.

    Default: the sample in this package, which needs no model and no network. Rerun the same command to resume an
    interrupted build. The verb `rate` runs a study in which people rate both answers of the pairs, `training` builds
    training pairs for personalized reward models, and `rank` ranks the profiles of a table.

    Args:
        recipe: `sample`, `paper`, or a TOML file.

    Examples:
        build-personalized
        build-personalized --llm local --limit 2 --out dist/local
        build-personalized --source stack-exchange:beer.stackexchange.com/Posts.xml --llm gpt-5-mini --out dist/beer
        build-personalized rank --source alireza7/LaMP-QA --retriever contriever --out dist/lamp-qa
        build-personalized rate --release dist/beer --export ratings --annotator an --annotator bo --annotator cy
        build-personalized training --source arena --persona-llm gpt-5-mini --out dist/arena
    """
    from pluralbench_release import print_summary

    from build_personalized.build import build
    from build_personalized.card import figures_tables, origin_note

    overrides = resolve_model_option(overrides, "llm", "--llm", LOCAL_WRITER, own={"hand-written": "hand-written"})
    locations = overrides.get("source.locations")
    if locations is not None and not any(str(place).startswith("lamp-qa") for place in locations):
        overrides = {"source.evidence": "verbatim"} | dict(overrides)  # a recipe's value is of its own location
    config = read_recipe(PersonalizedRecipe, recipe_path(recipe, RECIPES), overrides)
    built = build(config, building)
    notes = ["", origin_note("answers", config.llm)]
    print_summary(console, built, figures_tables(built.figures), notes=notes)


def rank(
    *,
    source: Annotated[str, Flag(metavar="PLACE")],
    out: Path,
    retriever: str = "bm25",
    split: str = "train",
    config: Sequence[str] = (),
    fresh: bool = False,
) -> None:
    """Rank the posts of each profile by relevance to the question, most relevant first.

    Use it for data whose profiles are in another order, such as LaMP-QA's train split; nothing else changes. Scores
    are recorded: rerun the same command to resume an interrupted ranking.

    Args:
        source: Tables with questions and profiles: DIR, FILE or ORG/NAME.
        out: Directory for the ranked tables.
        retriever: `bm25`, `contriever[:MODEL]` or `sentence-transformers:MODEL`.
        split: Split of the tables.
        config: Config to include; repeatable. Default: all.
        fresh: Start over, and replace existing output.

    Examples:
        build-personalized rank --source alireza7/LaMP-QA --retriever contriever --out dist/lamp-qa
    """
    from build_personalized.profile_ranking import rank_tables

    rows = rank_tables(source, out, retriever=retriever, split=split, configs=config, fresh=fresh)
    for name, count in rows.items():
        console.print(f"{out / name / f'{split}.parquet'}: {plural(count, 'profile')} ranked by {retriever}")


def training(
    *,
    recipe: str | None = None,
    overrides: Annotated[Overrides, RecipeOptions(TrainingRecipe, TRAINING_RECIPES)],
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

    from build_personalized.card import origin_note
    from build_personalized.training.build import build
    from build_personalized.training.card import figures_tables

    default = "sample" if overrides.get("source.locations") in (None, ["sample"]) else "own"
    overrides = resolve_model_option(
        overrides, "persona", "--persona-llm", LOCAL_PERSONAS, own={NO_MODEL: NO_MODEL, HAND_WRITTEN: HAND_WRITTEN}
    )
    config = read_recipe(TrainingRecipe, recipe_path(recipe or default, TRAINING_RECIPES), overrides)
    built = build(config, building)
    notes = ["", origin_note("personas", config.persona)]
    print_summary(console, built, figures_tables(built.figures), notes=notes)


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
    from pluralbench_release.manifest import json_text
    from pluralbench_studies import read_study

    from build_personalized.rating import tables
    from build_personalized.rating.results import compute_results
    from build_personalized.rating.study import FORM

    study, returned = read_study(folder, RatingRecipe, FORM, files, options)
    results = {"format": FORMAT, **compute_results(study, returned)}
    write_text(folder / RESULTS, json_text(results))
    write_text(folder / REPORT, tables.report(results, returned.problem_lines))
    for title, table in tables.result_tables(results, tests_of=results["claims"][-1]["config"]).items():
        print_table(console, title, table)
    for line in (*returned.problem_lines, *tables.claim_texts(results)):
        console.print(line)
    console.print(f"\nAll results: {folder / RESULTS} and {folder / REPORT}.")


def read_results(folder: Path) -> dict[str, Any]:
    """Read the results that --import wrote to a study's folder. Raises `RecipeError`."""
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
