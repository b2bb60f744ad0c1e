"""The steps before a release: make tasks for annotators, read their annotations, resolve conflicts."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_calls import recording
from pluralbench_release import LEDGER, RECIPE, reusable_ledgers
from pluralbench_release.errors import BuildError, SourceError
from pluralbench_release.manifest import STATISTICS, json_text
from pluralbench_runs import (
    OutputError,
    check_output,
    one_line,
    output_directory,
    read_recipe,
    write_recipe,
    write_text,
)
from pluralbench_schemas import RESPONSE
from pluralbench_studies import CONSENSUS, StudyError, check_unfilled, consensus_counts, write_sheet
from pluralbench_tables import read_jsonl, write_jsonl
from polars.exceptions import PolarsError

from build_chinese import source
from build_chinese.annotation import rounds
from build_chinese.annotation.annotations import (
    Annotations,
    check_tasks,
    judgments_of,
    mark_agreement,
    read_annotations,
    read_checks,
)
from build_chinese.annotation.forms import SHEET, write_forms
from build_chinese.annotation.tasks import build_tasks, read_tasks
from build_chinese.figures import annotator_figures, file_figures
from build_chinese.rankings import Row, read_rankings, resolve_rows, with_annotations, with_votes
from build_chinese.recipe import SAMPLE, ChineseRecipe, Tasks
from build_chinese.responses import add_model_responses
from build_chinese.screening import dropped_by, screen

PROMPTS_FILE, TASKS_FILE, KEY_FILE, DROPPED_FILE = "prompts.jsonl", "tasks.jsonl", "key.jsonl", "dropped.jsonl"
CHECKS_FILE = "checks.jsonl"
SAMPLE_ANNOTATIONS = source.FOLDER / "annotations.jsonl"
PROMPTS = pl.Schema(
    dict.fromkeys(("id", "input"), pl.String)
    | {"category": pl.List(pl.String), "config": pl.String, "responses": pl.List(RESPONSE)}
)
OTHER_PROMPTS = "{path} is not a file of `build-chinese tasks` ({problem}); make the tasks again."


@dataclass(frozen=True)
class PreparedTasks:
    """Annotation tasks.

    Attributes:
        prompts: Prompts and responses that passed the screening.
        tasks: Columns of `tasks.TASKS`.
        dropped: Dropped responses, columns of `screening.DROPS`.
        by_rule: Number of dropped responses by rule and category (`screening.dropped_by`).
        responses: Number of responses before screening.
    """

    prompts: pl.DataFrame
    tasks: pl.DataFrame
    dropped: pl.DataFrame
    by_rule: pl.DataFrame
    responses: int


@dataclass(frozen=True)
class AnnotationResult:
    """Annotated prompts and statistics of their annotations.

    Attributes:
        rows: Annotated prompts in the published fields.
        annotations: All annotations, with their problems.
        agreement: See `annotation.agreement.mark_agreement`.
        consensus: `pluralbench_studies.consensus_counts` of pairs with several annotators, before any review, and the
            `rule`.
        rounds: The state of the rounds.
    """

    rows: list[Row]
    annotations: Annotations
    agreement: dict[str, Any]
    consensus: dict[str, Any]
    rounds: rounds.Rounds


def make_tasks(
    recipe: ChineseRecipe,
    out: Path,
    *,
    replay: Path | None = None,
    reuse: Path | None = None,
    retry_errors: bool = False,
    fresh: bool = False,
) -> PreparedTasks:
    """Write annotation tasks on the recipe's prompts to the folder `out`.

    The folder has `label_studio/` and `sheets/` (annotators use one of them), `prompts.jsonl` and `tasks.jsonl` (to
    read the annotations), `dropped.jsonl`, `key.jsonl` (answers of check items), and `provenance/` with
    `statistics.json` of the dropped responses. The annotators' files do not show which model wrote a response or which
    task is a check.

    Args:
        recipe: Prompts, writers, annotators and rules.
        out: The folder.
        replay: See `build.build`, also for the others.

    Raises:
        SourceError: A file of the recipe is missing or malformed.
        StudyError: The tasks cannot be made.
        BuildError: No prompt passed the screening.
        OutputError: `out` cannot be written.
        UserError: An error of `pluralbench_calls`.
    """
    with output_directory(out, recipe, recipe_file=RECIPE, fresh=fresh) as output:
        ledgers = reusable_ledgers(out, replay, reuse, fresh=fresh)
        with recording(output.work, ledgers, retry_errors=retry_errors) as calls:
            rows = _prompts(recipe)
            rows, unwritten = add_model_responses(rows, recipe, calls.ledger, replaying=replay is not None)
            prepared = prepare_tasks(recipe, rows, unwritten)
        if (out / RECIPE).exists() and not fresh:
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
    """Screen the responses and make the tasks.

    Args:
        recipe: Rules, annotators and options.
        rows: Prompts with responses.
        unwritten: Responses that were dropped before, columns of `screening.DROPS`.

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
    """Read a folder that `make_tasks` wrote.

    Returns:
        The prompts, the tasks, the file of known answers (None if there is none), and the options of the tasks.

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
    """Read the prompts of a folder of tasks (columns of `PROMPTS`)."""
    rows = read_jsonl(path, StudyError)
    try:
        frame = pl.DataFrame(rows, schema=PROMPTS)
        parts = [frame, frame.select(pl.col("category").explode()), frame["responses"].explode().struct.unnest()]
        missing = next((name for part in parts for name in part.columns if part[name].null_count()), None)
    except (PolarsError, TypeError) as error:
        raise StudyError(OTHER_PROMPTS.format(path=path, problem=one_line(error))) from None
    if missing is not None:
        raise StudyError(OTHER_PROMPTS.format(path=path, problem=f"a prompt or response lacks `{missing}`"))
    return frame


def annotate(
    paths: Sequence[Path],
    prompts: pl.DataFrame,
    tasks: pl.DataFrame,
    key: Path | None,
    options: Tasks,
    *,
    again: Sequence[Path] = (),
    review: Sequence[Path] = (),
    accounts: Mapping[str, str] | None = None,
    assigned: bool = False,
) -> AnnotationResult:
    """Read annotations of tasks and form the consensus (`Tasks.consensus`).

    Marks on check items count like all others.

    Args:
        paths: Files of annotations, see `annotations.read_annotations`.
        prompts: Prompts of the tasks.
        tasks: Columns of `tasks.TASKS`.
        key: File of known answers of check items.
        options: Rules of consensus and rounds.
        again: Files of later rounds. They replace earlier marks of the same annotator.
        review: One file for each stage of review. The marks of reviewers take precedence over all others.
        accounts: See `annotations.read_annotations`.
        assigned: See `annotations.read_annotations`.

    Raises:
        StudyError: There are more `review` files than stages, a file of a review has no marks, one of a later
            round is among `paths`, or a file is invalid (see `annotations.read_annotations`).
    """
    if len(review) > len(options.review_share):
        raise StudyError(
            f"`review=...` has {len(review)} files for {len(options.review_share)} stages of review "
            "(`tasks.review_share`); pass one file per stage."
        )
    read_files = partial(read_annotations, tasks=tasks, accounts=accounts, assigned=assigned)
    annotations, later = read_files(paths), read_files(again)
    if again:
        rounds.check_first_round(annotations.problems)
        annotations = rounds.replace_marks(annotations, later)
    checks = None if key is None else read_checks(key, tasks)
    counted, agreed = judgments_of(annotations.marks, checks, options.consensus)
    settled, verdicts = consensus_counts(agreed), []
    for path in review:
        reviewed = read_files([path]).marks.with_columns(annotator=pl.lit(CONSENSUS))
        if reviewed.is_empty():
            raise StudyError(f"The reviewer's sheet {path} has no marks; fill it in, or leave out `review=...`.")
        verdicts.append(rounds.review_agreement(reviewed, counted))
        keys = [*rounds.ON, "annotator"]
        others = annotations.marks.join(reviewed, on=keys, how="anti")
        annotations = replace(annotations, marks=pl.concat([others, reviewed]))
        counted, agreed = judgments_of(annotations.marks, checks, options.consensus)
    return AnnotationResult(
        with_votes(
            with_annotations(prompts.iter_rows(named=True), counted),
            annotations.marks.filter(pl.col("annotator") != CONSENSUS),
        ),
        annotations,
        mark_agreement(annotations.marks, checks, thirds=rounds.third_annotators(later.marks, tasks)),
        {"rule": options.consensus, **settled},
        rounds.next_round(annotations.marks, later.marks, agreed, tasks, prompts, options, verdicts),
    )


def write_annotated(annotated: AnnotationResult, out: Path, inputs: Sequence[Path] = ()) -> Path:
    """Write annotated prompts, a report, and the sheets of the next round.

    OUT.discuss.csv is a sheet for the results of a discussion. OUT.again and OUT.third have the sheets of tasks to mark
    again, and OUT.review1.csv and so on are for reviewers (see `annotation.rounds`).

    Args:
        annotated: Result of `annotate`.
        out: JSONL file for the prompts; the other files go next to it.
        inputs: Files that were read. They are not overwritten.

    Returns:
        Path of the report of agreement, consensus, problems and remarks.

    Raises:
        OutputError: A file cannot be written.
        StudyError: A sheet is filled in and not one of `inputs`.
    """
    check_writable([out])
    report = out.with_name(f"{out.stem}.report.json")
    check_writable([report])
    for sheets in next_sheets(annotated, out).values():
        for sheet, rows in sheets.items():
            if all(path.resolve() != sheet.resolve() for path in inputs):
                fix = "read it with the other files, or move it away"
                check_unfilled([sheet] if sheet.exists() else [], SHEET.names, fix)
                sheet.parent.mkdir(exist_ok=True)
                write_sheet(sheet, rows, SHEET.names)
    problems, remarks = annotated.annotations.problems, annotated.annotations.remarks
    values = {
        "agreement": annotated.agreement,
        "markers": annotated.rounds.pair_agreement,
        "consensus": annotated.consensus,
        "review": annotated.rounds.reviewed,
        "problems": problems.to_dicts(),
        "remarks": remarks.to_dicts(),
    }
    write_text(report, json_text(values))
    write_jsonl(annotated.rows, out)
    return report


def next_sheets(annotated: AnnotationResult, out: Path) -> dict[str, dict[Path, pl.DataFrame]]:
    """Return the sheets of the next round next to `out`, by the name in `Rounds.sheets`."""
    rounds_so_far = annotated.rounds
    sheets: dict[str, dict[Path, pl.DataFrame]] = {}
    for name, frame in rounds_so_far.sheets.items():
        if name in {"again", "third"}:
            folder = out.with_name(f"{out.stem}.{name}")
            by_annotator = frame.partition_by("annotator", as_dict=True)
            sheets[name] = {folder / f"{annotator}.csv": rows for (annotator,), rows in by_annotator.items()}
        else:
            number = len(rounds_so_far.reviewed) + 1 if name == "review" else ""
            sheets[name] = {out.with_name(f"{out.stem}.{name}{number}.csv"): frame} if frame.height else {}
    return sheets


@dataclass(frozen=True)
class RankedPrompts:
    """Ranked prompts.

    Attributes:
        rows: Rows with ranks.
        dropped: Dropped rows, columns of `rankings.DROPPED`.
        figures: `figures.annotator_figures` of all annotations, including those of dropped rows.
    """

    rows: list[Row]
    dropped: pl.DataFrame
    figures: dict[str, Any]


def resolve_file(path: Path, out: Path) -> RankedPrompts:
    """Resolve the annotated prompts of `path` into ranks, and write them to `out`.

    Dropped prompts go to OUT.dropped.jsonl. Raises `SourceError`, `BuildError` and `OutputError`.
    """
    annotated = read_rankings(path)
    check_writable([out])
    dropped_file = out.with_name(f"{out.stem}.dropped.jsonl")
    check_writable([dropped_file])
    rows, dropped = resolve_rows(annotated)
    if not rows:
        raise BuildError(f"No prompt of {path} is left: {_format_reasons(dropped)}.")
    write_jsonl(rows, out)
    if dropped.height:
        write_jsonl(dropped.iter_rows(named=True), dropped_file)
    else:
        dropped_file.unlink(missing_ok=True)
    return RankedPrompts(rows, dropped, annotator_figures(annotated))


def describe_files(files: Sequence[Path]) -> dict[str, Any]:
    """Compute the figures of published files (`figures.file_figures`). Raises `SourceError`.

    Files are called by their names without suffix, or by their paths if two share a name.
    """
    short = len({path.stem for path in files}) == len(files)
    return file_figures({path.stem if short else str(path): read_rankings(path, annotated=False) for path in files})


def check_writable(files: Sequence[Path]) -> None:
    """Raise `OutputError` if a file cannot be written or may not be replaced (`pluralbench_runs.check_output`)."""
    for file in files:
        if file.is_dir():
            raise OutputError(f"{file} is a folder; name a file, such as {file / 'out.jsonl'}.")
        check_output(file)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"Cannot write {file}: {error.strerror or error}.") from None


def annotate_sample(recipe: ChineseRecipe) -> AnnotationResult:
    """Annotate the sample's prompts with its own annotations."""
    prepared = prepare_tasks(recipe, _prompts(recipe))
    return annotate([SAMPLE_ANNOTATIONS], prepared.prompts, prepared.tasks, source.FOLDER / CHECKS_FILE, recipe.tasks)


def _prompts(recipe: ChineseRecipe) -> list[Row]:
    if recipe.prompts is None:
        raise SourceError("The recipe names no prompts; set `prompts.location=...`.")
    if recipe.prompts.responses is None and recipe.prompts.location != SAMPLE and not recipe.writers:
        raise SourceError("The prompts have no responses; set `prompts.responses=...` or `writers=...`.")
    return source.prompts_of(recipe.prompts, source.taxonomy_of(recipe.prompts.taxonomy))


def _format_reasons(dropped: pl.DataFrame) -> str:
    counts = dropped.group_by("reason").len().sort("len", "reason", descending=[True, False])
    return ", ".join(f"{count:,} dropped ({reason})" for reason, count in counts.iter_rows())
