"""What comes before a release: tasks go out to annotators, annotations come in, conflicts are resolved."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_calls import recording
from pluralbench_release import LEDGER, RECIPE, known_ledgers
from pluralbench_release.errors import NothingLeft, SourceError
from pluralbench_release.manifest import STATISTICS
from pluralbench_runs import OutputError, check_recipe, one_line, output_directory, read_toml, write_recipe, write_text
from pluralbench_schemas import RESPONSE
from pluralbench_studies import CONSENSUS, consensus_counts, is_filled, write_sheet
from pluralbench_studies.agreement import OPEN
from pluralbench_tables import read_jsonl, write_jsonl
from polars.exceptions import PolarsError

from build_chinese import source
from build_chinese.annotation import rounds
from build_chinese.annotation.agreement import mark_agreement
from build_chinese.annotation.annotations import Annotations, check_tasks, judgements_of, read, read_checks
from build_chinese.annotation.forms import SHEET, shown, write_csv, write_labels
from build_chinese.annotation.tasks import make, read_tasks, write_tasks
from build_chinese.errors import AnnotationsError, TasksError
from build_chinese.figures import annotator_figures, file_figures
from build_chinese.rankings import Row, read_rankings, resolve_rows, with_annotations
from build_chinese.recipe import SAMPLE, ChineseRecipe, Tasks
from build_chinese.responses import add_model_responses
from build_chinese.screening import dropped_by, screen

PROMPTS_FILE, TASKS_FILE, KEY_FILE, DROPPED_FILE = "prompts.jsonl", "tasks.jsonl", "key.jsonl", "dropped.jsonl"
CHECKS_FILE = "checks.jsonl"
SHEETS, LABEL_STUDIO = "sheets", "label_studio"
SAMPLE_ANNOTATIONS = source.FOLDER / "annotations.jsonl"
COLUMNS: dict[str, Any] = {
    "id": pl.String,
    "input": pl.String,
    "category": pl.List(pl.String),
    "config": pl.String,
    "responses": pl.List(RESPONSE),
}
PROMPTS = pl.Schema(COLUMNS)
OTHER_PROMPTS = "{path} is not what `build-chinese tasks` wrote ({fault}); give the tasks out anew."


@dataclass(frozen=True)
class Prepared:
    """Prompts that passed the rules, the tasks on them, and what was dropped: `prompt`, `response`, `rule`, `value`.

    by_rule: how much each rule dropped in each category (`screening.dropped_by`). responses: how many there were.
    """

    prompts: pl.DataFrame
    tasks: pl.DataFrame
    dropped: pl.DataFrame
    by_rule: pl.DataFrame
    responses: int

    @property
    def figures(self) -> dict[str, Any]:
        """How many responses there were, and what was dropped, JSON."""
        return {"responses": self.responses, "dropped": self.by_rule.to_dicts()}


@dataclass(frozen=True)
class Annotated:
    """Annotated prompts in the published fields, what was wrong with the annotations, and how far they agree.

    consensus: what became of the pairs that several annotators of a task marked (see
    `pluralbench_studies.consensus_counts`), and by which `rule`. open: the tasks on which they differ, as
    the annotator `consensus` is to see them. rounds: what goes back, to whom.
    """

    rows: list[Row]
    annotations: Annotations
    agreement: dict[str, Any]
    consensus: dict[str, Any]
    open: pl.DataFrame
    rounds: rounds.Rounds


def make_tasks(
    recipe: ChineseRecipe,
    out: Path,
    *,
    replay: Path | None = None,
    reuse: Path | None = None,
    retry_errors: bool = False,
    fresh: bool = False,
) -> Prepared:
    """Write annotation tasks on the recipe's prompts to the folder `out`.

    In it: `label_studio/` and `sheets/`, of which the annotators use one or the other; `prompts.jsonl` and
    `tasks.jsonl`, by which their work is read again; `dropped.jsonl`; `key.jsonl`, the answers of check items; and
    `provenance/`, of which `statistics.json` has what each rule dropped. Of the annotators' files none says who wrote a
    response or which task is a check. replay, reuse, retry_errors, fresh: see `build.build`.

    Raises `SourceError`, `TasksError`, `NothingLeft`, `OutputError` and the errors of `pluralbench_calls`.
    """
    with output_directory(out, recipe, recipe_file=RECIPE, fresh=fresh) as output:
        known = known_ledgers(out, replay, reuse, fresh=fresh)
        with recording(output.work, known, retry_errors=retry_errors) as calls:
            rows = _prompts(recipe)
            rows, unwritten = add_model_responses(rows, recipe, calls.ledger, replaying=replay is not None)
            prepared = prepare(recipe, rows, unwritten)
        if (out / RECIPE).exists() and not fresh:
            calls.extract.unlink()
            return prepared  # the same tasks are there, perhaps with work in them
        staged = output.staging()
        write_jsonl(prepared.prompts.iter_rows(named=True), staged / PROMPTS_FILE)
        write_tasks(staged / TASKS_FILE, prepared.tasks)
        write_jsonl(prepared.dropped.iter_rows(named=True), staged / DROPPED_FILE)
        write_labels(staged / LABEL_STUDIO, prepared.tasks, prepared.prompts)
        write_csv(staged / SHEETS, prepared.tasks, prepared.prompts)
        if recipe.prompts is not None and recipe.prompts.checks is not None:
            shutil.copyfile(source.place(recipe.prompts.checks, CHECKS_FILE), staged / KEY_FILE)
        (staged / RECIPE).parent.mkdir()
        (staged / STATISTICS).write_text(
            json.dumps(prepared.figures, ensure_ascii=False, indent=2) + "\n", encoding="utf-8"
        )
        write_recipe(recipe, staged / RECIPE)
        shutil.copyfile(calls.extract, staged / LEDGER)
        output.publish(staged)
    return prepared


def prepare(recipe: ChineseRecipe, rows: Sequence[Row], unwritten: pl.DataFrame | None = None) -> Prepared:
    """Screen the responses and make the tasks. Raises `NothingLeft` and `TasksError`.

    unwritten: what was dropped before, as `screening.screen` lists it.
    """
    frame = pl.DataFrame([{name: row[name] for name in PROMPTS.names()} for row in rows], schema=PROMPTS)
    kept, dropped = screen(frame, recipe.screening)
    if kept.is_empty():
        first = dropped["rule"][0] if dropped.height else "there were no responses"
        raise NothingLeft(f"No prompt is left to annotate: {frame.height:,} are dropped ({first}).")
    table = recipe.prompts
    if table is not None and table.assigned is not None and not recipe.annotators:
        tasks = read_tasks(source.place(table.assigned, "annotations.jsonl"), kept)
    else:
        checks = [] if table is None or table.checks is None else check_tasks(source.place(table.checks, CHECKS_FILE))
        tasks = make(kept, recipe.annotators, recipe.tasks, seed=recipe.seed, checks=checks)
    if unwritten is not None:
        dropped = pl.concat([unwritten, dropped], how="vertical_relaxed")
    by_rule = dropped_by(dropped, {row["id"]: row["category"][0] for row in rows})
    return Prepared(kept, tasks, dropped, by_rule, sum(len(row["responses"]) for row in rows))


def read_tasks_folder(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame, Path | None, Tasks]:
    """The prompts, the tasks, the file of known answers and the options of a folder that `make_tasks` wrote.

    Raises `TasksError` for a folder without tasks.
    """
    for name in (PROMPTS_FILE, TASKS_FILE, RECIPE):
        if not (folder / name).is_file():
            raise TasksError(f"{folder} has no {name}; give the folder that `build-chinese tasks` wrote.")
    prompts = _prompts_of(folder / PROMPTS_FILE)
    tasks = read_tasks(folder / TASKS_FILE, prompts)
    made = read_toml(folder / RECIPE, error=TasksError)
    options = check_recipe(Tasks, made.get("tasks", {}), str(folder / RECIPE))
    key = folder / KEY_FILE
    return prompts, tasks, key if key.is_file() else None, options


def _prompts_of(path: Path) -> pl.DataFrame:
    """The prompts in a folder of tasks, with the columns of `PROMPTS`."""
    rows = read_jsonl(path, TasksError)
    try:
        frame = pl.DataFrame(rows, schema=PROMPTS)
        parts = [frame, frame.select(pl.col("category").explode()), frame["responses"].explode().struct.unnest()]
        missing = next((name for part in parts for name in part.columns if part[name].null_count()), None)
    except (PolarsError, TypeError) as fault:
        raise TasksError(OTHER_PROMPTS.format(path=path, fault=one_line(fault))) from None
    if missing is not None:
        raise TasksError(OTHER_PROMPTS.format(path=path, fault=f"a prompt or response lacks `{missing}`"))
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
) -> Annotated:
    """Annotators' work on tasks as annotated prompts, in which a task has one mark on each pair (`Tasks.consensus`).

    Marks on check items count like all others. again: files with what was marked once more, or by a third annotator,
    which counts in place of what the same annotator marked before. review: a file of each stage's reviewer, whose marks
    count before all others.

    Raises `AnnotationsError` for more of these than there are stages, and the errors of `annotations.read`. accounts,
    assigned: see there.
    """
    if len(review) > len(options.review_share):
        raise AnnotationsError(
            f"There are {len(review)} files of reviewers and {len(options.review_share)} stages of review "
            "(`review_share`); give one file a stage."
        )
    reading = partial(read, tasks=tasks, accounts=accounts, assigned=assigned)
    found, anew = reading(paths), reading(again)
    if again:
        found = rounds.with_more(found, anew)
    checks = None if key is None else read_checks(key, tasks)
    counted, agreed = judgements_of(found.marks, checks, options.consensus)
    verdicts = []
    for path in review:
        seen = reading([path]).marks.with_columns(annotator=pl.lit(CONSENSUS))
        verdicts.append(rounds.reviewed(seen, counted))
        keys = [*rounds.ON, "annotator"]
        found = replace(found, marks=pl.concat([found.marks.join(seen, on=keys, how="anti"), seen]))
        counted, agreed = judgements_of(found.marks, checks, options.consensus)
    ours = agreed.filter(by=OPEN)["task"].unique()
    to_discuss = tasks.unique("task", keep="first", maintain_order=True).filter(pl.col("task").is_in(ours.implode()))
    return Annotated(
        with_annotations(prompts.iter_rows(named=True), counted),
        found,
        mark_agreement(found.marks, checks, thirds=rounds.third_annotators(anew.marks, tasks)),
        {"rule": options.consensus, **consensus_counts(agreed)},
        shown(to_discuss.with_columns(annotator=pl.lit(CONSENSUS)), prompts),
        rounds.next_round(found.marks, anew.marks, agreed, tasks, prompts, options, verdicts),
    )


def write_annotated(annotated: Annotated, out: Path, inputs: Sequence[Path] = ()) -> Path:
    """Write annotated prompts to `out`, and beside it a report of agreement, consensus, problems and remarks; its path.

    Where annotators of a task differ and the rule has them discuss it, OUT.discuss.csv is a sheet for what they come
    to. OUT.again and OUT.third have sheets of what is to be marked once more, and OUT.review1.csv and so on are for
    reviewers (see `annotation.rounds`). A sheet is left as it is where it is one of `inputs`, which are not written
    over. Raises `OutputError`, also for such a sheet that has been filled in and is none of them.
    """
    check_writable([out])
    report, discuss = out.with_name(f"{out.stem}.report.json"), discussion_sheet(out)
    check_writable([out, report], inputs)
    if to_discuss(annotated):
        _write_unless_filled(discuss, annotated.open, inputs)
    for name, frame in {"again": annotated.rounds.again, "third": annotated.rounds.third}.items():
        for (annotator,), rows in frame.partition_by("annotator", as_dict=True).items():
            sheet = round_folder(out, name) / f"{annotator}.csv"
            sheet.parent.mkdir(exist_ok=True)
            _write_unless_filled(sheet, rows, inputs)
    if annotated.rounds.review.height:
        _write_unless_filled(review_sheet(out, annotated.rounds), annotated.rounds.review, inputs)
    problems, remarks = annotated.annotations.problems, annotated.annotations.remarks
    values = {
        "agreement": annotated.agreement,
        "markers": annotated.rounds.markers,
        "consensus": annotated.consensus,
        "review": annotated.rounds.reviewed,
        "problems": problems.to_dicts(),
        "remarks": remarks.to_dicts(),
    }
    write_text(report, json.dumps(values, ensure_ascii=False, indent=2) + "\n")
    write_jsonl(annotated.rows, out)
    return report


def _write_unless_filled(sheet: Path, rows: pl.DataFrame, inputs: Sequence[Path]) -> None:
    """Write a sheet, unless it is one of `inputs`. Raises `OutputError` for another one that has been filled in."""
    if any(path.resolve() == sheet.resolve() for path in inputs):
        return
    if sheet.exists() and is_filled(sheet, SHEET.names):
        raise OutputError(f"{sheet} has been filled in; read it with the other files, or move it away.")
    write_sheet(sheet, rows, SHEET.names)


def round_folder(out: Path, name: str) -> Path:
    """The folder of sheets that go back (`again`) or to a third annotator (`third`), beside the annotated prompts."""
    return out.with_name(f"{out.stem}.{name}")


def review_sheet(out: Path, now: rounds.Rounds) -> Path:
    """The sheet of the next reviewer, beside the annotated prompts."""
    return out.with_name(f"{out.stem}.review{len(now.reviewed) + 1}.csv")


def discussion_sheet(out: Path) -> Path:
    """The sheet for what a discussion comes to, beside the annotated prompts."""
    return out.with_name(f"{out.stem}.discuss.csv")


def to_discuss(annotated: Annotated) -> bool:
    """Whether there are tasks that their annotators are to discuss."""
    return annotated.consensus["rule"] == "discussion" and annotated.open.height > 0


@dataclass(frozen=True)
class Ranked:
    """Rows with ranks, the dropped ones, and what the annotations of both were like (`figures.annotator_figures`)."""

    rows: list[Row]
    dropped: pl.DataFrame
    figures: dict[str, Any]


def resolve_file(path: Path, out: Path) -> Ranked:
    """Resolve the annotated prompts of `path` into `out`.

    What was dropped goes beside it, to OUT.dropped.jsonl. Raises `SourceError`, `NothingLeft` and `OutputError`.
    """
    check_writable([out])
    beside = out.with_name(f"{out.stem}.dropped.jsonl")
    check_writable([out, beside], [path])
    annotated = read_rankings(path)
    rows, dropped = resolve_rows(annotated)
    if not rows:
        raise NothingLeft(f"No prompt of {path} is left: {_reasons(dropped)}.")
    write_jsonl(rows, out)
    if dropped.height:
        write_jsonl(dropped.iter_rows(named=True), beside)
    else:
        beside.unlink(missing_ok=True)
    return Ranked(rows, dropped, annotator_figures(annotated))


def described(files: Sequence[Path]) -> dict[str, Any]:
    """The figures of published files (`figures.file_figures`), by their names without suffix, or by their paths.

    Raises `SourceError`.
    """
    short = len({path.stem for path in files}) == len(files)
    return file_figures({path.stem if short else str(path): read_rankings(path, annotated=False) for path in files})


def check_writable(files: Sequence[Path], inputs: Sequence[Path] = ()) -> None:
    """Raise `OutputError` where a file cannot be written, or where it is one of `inputs`."""
    for file in files:
        if file.is_dir():
            raise OutputError(f"{file} is a folder; name a file, such as {file / 'out.jsonl'}.")
        for path in inputs:
            if file.exists() and path.exists() and file.samefile(path):
                raise OutputError(f"{path} is read and would be written over; choose another output file.")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"Cannot write {file}: {error.strerror or error}.") from None


def sample_annotated(recipe: ChineseRecipe) -> Annotated:
    """The sample's prompts with its annotations, by way of its tasks."""
    prepared = prepare(recipe, _prompts(recipe))
    return annotate([SAMPLE_ANNOTATIONS], prepared.prompts, prepared.tasks, source.FOLDER / CHECKS_FILE, recipe.tasks)


def _prompts(recipe: ChineseRecipe) -> list[Row]:
    if recipe.prompts is None:
        raise SourceError("The recipe names no prompts; give a `location` under [prompts] (or --prompts).")
    if recipe.prompts.responses is None and recipe.prompts.location != SAMPLE and not recipe.writers:
        raise SourceError("The prompts have no responses: give a file with --responses, or models with --writer.")
    return source.prompts_of(recipe.prompts, source.taxonomy_of(recipe.prompts.taxonomy))


def _reasons(dropped: pl.DataFrame) -> str:
    counts = dropped.group_by("reason").len().sort("len", "reason", descending=[True, False])
    return ", ".join(f"{count:,} dropped ({reason})" for reason, count in counts.iter_rows())
