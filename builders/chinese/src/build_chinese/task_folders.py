"""Annotation tasks of a recipe: write a folder of them, and read it."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from pluralbench_calls import recording
from pluralbench_release import LEDGER, RECIPE, reusable_ledgers
from pluralbench_release.errors import BuildError, SourceError
from pluralbench_release.manifest import STATISTICS, json_text
from pluralbench_runs import BuildOptions, one_line, output_directory, read_recipe, write_recipe
from pluralbench_schemas import RESPONSE
from pluralbench_studies import StudyError
from pluralbench_tables import read_jsonl, write_jsonl
from polars.exceptions import PolarsError

from build_chinese import source
from build_chinese.annotation.annotations import check_tasks
from build_chinese.annotation.forms import write_forms
from build_chinese.annotation.tasks import build_tasks, read_tasks
from build_chinese.rankings import Row
from build_chinese.recipe import SAMPLE, ChineseRecipe, Tasks
from build_chinese.responses import add_model_responses
from build_chinese.screening import dropped_by, screen

PROMPTS_FILE, TASKS_FILE, KEY_FILE, DROPPED_FILE = "prompts.jsonl", "tasks.jsonl", "key.jsonl", "dropped.jsonl"
CHECKS_FILE = "checks.jsonl"
PROMPTS = pl.Schema(
    dict.fromkeys(("id", "input"), pl.String)
    | {"category": pl.List(pl.String), "config": pl.String, "responses": pl.List(RESPONSE)}
)


@dataclass(frozen=True)
class PreparedTasks:
    """Annotation tasks on the prompts that passed the screening, and what was dropped.

    `by_rule`: see `screening.dropped_by`. `responses`: their number before screening.
    """

    prompts: pl.DataFrame
    tasks: pl.DataFrame
    dropped: pl.DataFrame
    by_rule: pl.DataFrame
    responses: int


def make_tasks(recipe: ChineseRecipe, out: Path, options: BuildOptions) -> PreparedTasks:
    """Write annotation tasks on the recipe's prompts to the folder `out`.

    The folder has `label_studio/` and `sheets/` (annotators use one of them), `prompts.jsonl` and `tasks.jsonl` (to
    read the annotations), `dropped.jsonl`, `key.jsonl` (answers of check items), and `provenance/` with
    `statistics.json` of the dropped responses. The annotators' files do not show which model wrote a response or which
    task is a check.

    Raises:
        UserError: A file of the recipe is missing or malformed, no prompt passed the screening, or the folder cannot be
            written.
    """
    with output_directory(out, recipe, recipe_file=RECIPE, fresh=options.fresh) as output:
        with recording(output.work, reusable_ledgers(out, options), retry_errors=options.retry_errors) as calls:
            rows = prompts_of_recipe(recipe)
            rows, unwritten = add_model_responses(rows, recipe, calls.ledger, replaying=options.replay is not None)
            prepared = prepare_tasks(recipe, rows, unwritten)
        if (out / RECIPE).exists() and not options.fresh:
            calls.extract.unlink()
            return prepared  # do not overwrite existing tasks: annotators may have filled them in
        staged = output.staging()
        write_jsonl(prepared.prompts.iter_rows(named=True), staged / PROMPTS_FILE)
        write_jsonl(prepared.tasks.iter_rows(named=True), staged / TASKS_FILE)
        write_jsonl(prepared.dropped.iter_rows(named=True), staged / DROPPED_FILE)
        write_forms(staged, prepared.tasks, prepared.prompts)
        if recipe.prompts is not None and recipe.prompts.checks is not None:
            shutil.copyfile(source.sample_or_path(recipe.prompts.checks, CHECKS_FILE), staged / KEY_FILE)
        (staged / RECIPE).parent.mkdir()
        figures = {"responses": prepared.responses, "dropped": prepared.by_rule.to_dicts()}
        (staged / STATISTICS).write_text(json_text(figures), encoding="utf-8")
        write_recipe(recipe, staged / RECIPE)
        shutil.copyfile(calls.extract, staged / LEDGER)
        output.publish(staged)
    return prepared


def prepare_tasks(recipe: ChineseRecipe, rows: Sequence[Row], unwritten: pl.DataFrame | None = None) -> PreparedTasks:
    """Screen the responses and make the tasks. `unwritten`: responses dropped before (`screening.DROPS`).

    Raises:
        BuildError: No prompt passed the screening.
        StudyError: The tasks cannot be made.
    """
    frame = pl.DataFrame([{name: row[name] for name in PROMPTS.names()} for row in rows], schema=PROMPTS)
    passed, dropped = screen(frame, recipe.screening)
    if passed.is_empty():
        first = dropped["rule"][0] if dropped.height else "there were no responses"
        raise BuildError(f"No prompt is left to annotate: all {frame.height:,} were dropped ({first}).")
    table = recipe.prompts
    if table is not None and table.assigned is not None and not recipe.annotators:
        tasks = read_tasks(source.sample_or_path(table.assigned, "annotations.jsonl"), passed)
    else:
        given = None if table is None else table.checks
        checks = [] if given is None else check_tasks(source.sample_or_path(given, CHECKS_FILE))
        tasks = build_tasks(passed, recipe.annotators, recipe.tasks, seed=recipe.seed, checks=checks)
    if unwritten is not None:
        dropped = pl.concat([unwritten, dropped], how="vertical_relaxed")
    by_rule = dropped_by(dropped, {row["id"]: row["category"][0] for row in rows})
    return PreparedTasks(passed, tasks, dropped, by_rule, sum(len(row["responses"]) for row in rows))


def read_tasks_folder(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame, Path | None, Tasks]:
    """Read a folder that `make_tasks` wrote: prompts, tasks, file of known answers, and options of the tasks.

    Raises:
        StudyError: The folder has no tasks, or a file is malformed.
    """
    for name in (PROMPTS_FILE, TASKS_FILE, RECIPE):
        if not (folder / name).is_file():
            raise StudyError(f"{folder} has no {name}; give the folder that `build-chinese tasks` wrote.")
    prompts = _prompts_of(folder / PROMPTS_FILE)
    tasks = read_tasks(folder / TASKS_FILE, prompts)
    options = read_recipe(ChineseRecipe, folder / RECIPE).tasks
    key = folder / KEY_FILE
    return prompts, tasks, key if key.is_file() else None, options


def _prompts_of(path: Path) -> pl.DataFrame:
    rows = read_jsonl(path, StudyError)
    try:
        frame = pl.DataFrame(rows, schema=PROMPTS)
        parts = [frame, frame.select(pl.col("category").explode()), frame["responses"].explode().struct.unnest()]
        missing = [name for part in parts for name in part.columns if part[name].null_count()]
        problem = f"a prompt or response lacks `{missing[0]}`" if missing else ""
    except (PolarsError, TypeError) as error:
        problem = one_line(error)
    if problem:
        raise StudyError(f"{path} is not a file of `build-chinese tasks` ({problem}); make the tasks again.")
    return frame


def prompts_of_recipe(recipe: ChineseRecipe) -> list[Row]:
    """Return the prompts of a recipe with their responses. Raises `SourceError`."""
    if recipe.prompts is None:
        raise SourceError("The recipe names no prompts; set `prompts.location=...`.")
    if recipe.prompts.responses is None and recipe.prompts.location != SAMPLE and not recipe.writers:
        raise SourceError("The prompts have no responses; set `prompts.responses=...` or `writers=...`.")
    return source.prompts_of(recipe.prompts, source.taxonomy_of(recipe.prompts.taxonomy))
