"""Files of annotated prompts: read annotations of tasks, resolve conflicts into ranks, describe."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_release.errors import BuildError
from pluralbench_release.manifest import json_text
from pluralbench_runs import OutputError, check_output, write_text
from pluralbench_studies import CONSENSUS, StudyError, check_unfilled, consensus_counts, write_sheet
from pluralbench_tables import write_jsonl

from build_chinese import source
from build_chinese.annotation import rounds
from build_chinese.annotation.annotations import (
    Annotations,
    judgments_of,
    mark_agreement,
    read_annotations,
    read_checks,
)
from build_chinese.annotation.forms import SHEET
from build_chinese.figures import annotator_figures, file_figures, vote_conflicts
from build_chinese.rankings import Row, read_rankings, resolve_rows, with_annotations, with_votes
from build_chinese.recipe import ChineseRecipe, Tasks
from build_chinese.task_folders import CHECKS_FILE, prepare_tasks, prompts_of_recipe

SAMPLE_ANNOTATIONS = source.FOLDER / "annotations.jsonl"


@dataclass(frozen=True)
class AnnotationResult:
    """Annotated prompts in the published fields, their annotations, and statistics of these.

    `agreement`: see `annotations.mark_agreement`. `consensus`: `pluralbench_studies.consensus_counts`, before any
    review."""

    rows: list[Row]
    annotations: Annotations
    agreement: dict[str, Any]
    consensus: dict[str, Any]
    rounds: rounds.Rounds


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
    """Read annotations of tasks and form the consensus (`annotations.judgments_of`).

    Args:
        paths: Files of annotations, see `annotations.read_annotations`, also for `accounts` and `assigned`.
        prompts: Prompts of the tasks.
        tasks: Columns of `tasks.TASKS`.
        key: File of known answers of check items, whose marks count like all others.
        options: Rules of the rounds.
        again: Files of later rounds. They replace earlier marks of the same annotator.
        review: One file for each stage of review. The marks of reviewers take precedence over all others.
        accounts: Annotator by account.
        assigned: Attribute annotations to the annotator of a task.

    Raises:
        StudyError: There are more `review` files than stages, a file of a review has no marks, one of a later round is
            among `paths`, or a file is invalid.
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
    counted, agreed = judgments_of(annotations.marks, checks)
    settled, verdicts = consensus_counts(agreed), []
    for path in review:
        reviewed = read_files([path]).marks.with_columns(annotator=pl.lit(CONSENSUS))
        if reviewed.is_empty():
            raise StudyError(f"The reviewer's sheet {path} has no marks; fill it in, or leave out `review=...`.")
        verdicts.append(rounds.review_agreement(reviewed, counted))
        keys = [*rounds.ON, "annotator"]
        others = annotations.marks.join(reviewed, on=keys, how="anti")
        annotations = replace(annotations, marks=pl.concat([others, reviewed]))
        counted, agreed = judgments_of(annotations.marks, checks)
    return AnnotationResult(
        with_votes(
            with_annotations(prompts.iter_rows(named=True), counted),
            annotations.marks.filter(pl.col("annotator") != CONSENSUS),
        ),
        annotations,
        mark_agreement(annotations.marks, checks, thirds=rounds.third_annotators(later.marks, tasks)),
        settled,
        rounds.next_round(annotations.marks, later.marks, agreed, tasks, prompts, options, verdicts),
    )


def write_annotated(annotated: AnnotationResult, out: Path, inputs: Sequence[Path] = ()) -> Path:
    """Write annotated prompts to `out`, and next to it a report, whose path is returned, and the next round's sheets.

    OUT.discuss.csv is a sheet for the results of a discussion. OUT.again and OUT.third have the sheets of tasks to mark
    again, and OUT.review1.csv and so on are for reviewers (see `annotation.rounds`). `inputs` are not overwritten.

    Raises:
        OutputError: A file cannot be written.
        StudyError: A sheet is filled in and not one of `inputs`.
    """
    check_writable(out)
    report = out.with_name(f"{out.stem}.report.json")
    check_writable(report)
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
    """Ranked and dropped prompts, and the figures of all annotations and of the annotators' votes."""

    rows: list[Row]
    dropped: pl.DataFrame
    figures: dict[str, Any]
    votes: dict[str, Any]


def resolve_file(path: Path, out: Path) -> RankedPrompts:
    """Resolve the annotated prompts of `path` into ranks in `out`; dropped ones go to OUT.dropped.jsonl.

    Raises:
        UserError: The file cannot be read, no prompt is left, or a file cannot be written.
    """
    annotated = read_rankings(path)
    check_writable(out)
    dropped_file = out.with_name(f"{out.stem}.dropped.jsonl")
    check_writable(dropped_file)
    rows, dropped = resolve_rows(annotated)
    if not rows:
        counts = dropped.group_by("reason").len().sort("len", "reason", descending=[True, False])
        reasons = ", ".join(f"{count:,} dropped ({reason})" for reason, count in counts.iter_rows())
        raise BuildError(f"No prompt of {path} is left: {reasons}.")
    write_jsonl(rows, out)
    if dropped.height:
        write_jsonl(dropped.iter_rows(named=True), dropped_file)
    else:
        dropped_file.unlink(missing_ok=True)
    return RankedPrompts(rows, dropped, annotator_figures(annotated), vote_conflicts(annotated))


def describe_files(files: Sequence[Path]) -> dict[str, Any]:
    """Compute the figures of published files (`figures.file_figures`). Raises `SourceError`.

    Files are called by their names without suffix, or by their paths if two share a name.
    """
    short = len({path.stem for path in files}) == len(files)
    return file_figures({path.stem if short else str(path): read_rankings(path, annotated=False) for path in files})


def check_writable(file: Path) -> None:
    """Raise `OutputError` if a file cannot be written or may not be replaced (`pluralbench_runs.check_output`)."""
    if file.is_dir():
        raise OutputError(f"{file} is a folder; name a file, such as {file / 'out.jsonl'}.")
    check_output(file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"Cannot write {file}: {error.strerror or error}.") from None


def annotate_sample(recipe: ChineseRecipe) -> AnnotationResult:
    """Annotate the sample's prompts with its own annotations."""
    prepared = prepare_tasks(recipe, prompts_of_recipe(recipe))
    return annotate([SAMPLE_ANNOTATIONS], prepared.prompts, prepared.tasks, source.FOLDER / CHECKS_FILE, recipe.tasks)
