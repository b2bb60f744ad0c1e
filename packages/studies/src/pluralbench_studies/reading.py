"""Read answers from files of all formats."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_tables import read_jsonl

from pluralbench_studies.answers import (
    CONSENSUS,
    INCOMPLETE,
    MISSING,
    NOT_ASSIGNED,
    PROBLEMS,
    TWICE,
    Problem,
    Submission,
    check_cells,
    check_received,
    rows_as_submissions,
)
from pluralbench_studies.errors import AnswersError
from pluralbench_studies.forms import Form
from pluralbench_studies.label_studio import read_export
from pluralbench_studies.sheets import read_sheet

ANSWERS = pl.Schema(dict.fromkeys(("item", "annotator", "question", "answer"), pl.String))
PROBLEM_KINDS = (MISSING, INCOMPLETE, TWICE, NOT_ASSIGNED)


@dataclass(frozen=True)
class Answers:
    """Answers of a study, and problems with them.

    Both frames are in the order of the assignment and of annotators; problems are sorted by kind first.

    Attributes:
        answers: Columns of `ANSWERS`, a row for each answer.
        problems: Columns of `PROBLEMS`, with the kinds of `PROBLEM_KINDS`.
    """

    answers: pl.DataFrame
    problems: pl.DataFrame


def read_answers(
    paths: Sequence[Path],
    form: Form,
    assigned: pl.DataFrame,
    *,
    accounts: Mapping[str, str] | None = None,
    by_assignment: bool = False,
) -> Answers:
    """Read and check the answers of annotators. A submission without an answer to a question with options is ignored.

    Args:
        paths: Files that `read_submissions` reads.
        form: The form.
        assigned: The assignment, with columns `item` and `annotator`.
        accounts: Annotator of a Label Studio account, by its e-mail address or number.
        by_assignment: Whether all answers belong to the annotator that the item was assigned to.

    Raises:
        AnswersError: If a file cannot be read, an item or annotator is not part of the assignment, or an answer is not
            one of its question's options.
    """
    annotators = assigned["annotator"].unique().to_list()
    submissions = read_submissions(paths, form, annotators, accounts=accounts, by_assignment=by_assignment)
    questions = {question.name: question for question in form.questions}
    required = [name for name, question in questions.items() if question.options] or list(questions)
    submissions = [one for one in submissions if any(name in one.answers for name in required)]
    problems = check_received(submissions, assigned, form.item)
    last: dict[tuple[str, str], dict[str, str]] = {}
    unreadable = []
    for one in submissions:
        answers = last[one.item, one.annotator] = {}
        for name, text in one.answers.items():
            try:
                answers[name] = questions[name].answer(text)
            except ValueError as error:
                unreadable.append(f"{one.where} ({form.item} {one.item}): {error}.")
    check_cells(unreadable)
    for key, answers in last.items():
        missing = [name for name in required if name not in answers]
        if missing and key[1] != CONSENSUS:
            problems.append((INCOMPLETE, *key, f"no answer to {', '.join(missing)}"))
    rows = [(*key, name, answers[name]) for key, answers in last.items() for name in form.names if name in answers]
    frame = pl.DataFrame(rows, schema=ANSWERS, orient="row")
    return Answers(sort_by_item(frame, assigned), problem_frame(problems, PROBLEM_KINDS, assigned))


def read_submissions(
    paths: Sequence[Path],
    form: Form,
    known: Sequence[str] = (),
    *,
    accounts: Mapping[str, str] | None = None,
    by_assignment: bool = False,
) -> list[Submission]:
    """Read submissions from files.

    Args:
        paths: Sheets (`.csv`), Label Studio exports (`.json`), or JSON Lines (`.jsonl`) with the columns of a sheet as
            keys.
        form: The form.
        known: Names of the annotators; see `read_export`.
        accounts: Annotator of a Label Studio account, by its e-mail address or number.
        by_assignment: Whether all answers belong to the annotator that the item was assigned to.

    Raises:
        AnswersError: If a file cannot be read.
    """
    submissions = []
    for path in paths:
        if path.suffix == ".json":
            names = [*known, CONSENSUS]
            submissions += read_export(path, form, accounts=accounts, known=names, by_assignment=by_assignment)
            continue
        if path.suffix == ".csv":
            rows = read_sheet(path, form, by_assignment=by_assignment)
        elif path.suffix == ".jsonl":
            rows = _read_lines(path, form, by_assignment=by_assignment)
        else:
            raise AnswersError(f"{path} is not a file of answers; give .csv, .jsonl or Label Studio's .json.")
        submissions += [replace(one, annotator=(accounts or {}).get(one.annotator, one.annotator)) for one in rows]
    return submissions


def sort_by_item(frame: pl.DataFrame, assigned: pl.DataFrame) -> pl.DataFrame:
    """Sort rows with an `item` and an `annotator` by item, in the order of the assignment, and by annotator."""
    order = assigned.select("item").unique(maintain_order=True).with_row_index("\0place")
    joined = frame.join(order, on="item", how="left", maintain_order="left")
    return joined.sort("\0place", "annotator", maintain_order=True).drop("\0place")


def problem_frame(problems: Sequence[Problem], kinds: Sequence[str], assigned: pl.DataFrame) -> pl.DataFrame:
    """Return problems as a frame with the columns of `PROBLEMS`, sorted by kind, then as `sort_by_item` sorts.

    Args:
        problems: The problems.
        kinds: All kinds, in order.
        assigned: The assignment.
    """
    frame = sort_by_item(pl.DataFrame(sorted(problems), schema=PROBLEMS, orient="row"), assigned)
    return frame.sort(pl.col("kind").cast(pl.Enum(kinds)), maintain_order=True)


def _read_lines(path: Path, form: Form, *, by_assignment: bool) -> list[Submission]:
    numbered = enumerate(read_jsonl(path, AnswersError), start=1)
    rows = [
        (f"{path}, row {number:,}", {name: _as_text(value) for name, value in row.items()}) for number, row in numbered
    ]
    return rows_as_submissions(rows, form, by_assignment=by_assignment)


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
