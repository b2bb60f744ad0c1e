"""Answers in one shape, whatever file they came in."""

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
    NOT_THEIRS,
    PROBLEMS,
    TWICE,
    Problem,
    Submission,
    check_received,
    rows_as_submissions,
)
from pluralbench_studies.errors import AnswersError
from pluralbench_studies.forms import Form
from pluralbench_studies.label_studio import read_export
from pluralbench_studies.sheets import read_sheet

ANSWERS = pl.Schema(dict.fromkeys(("item", "annotator", "question", "answer"), pl.String))
PROBLEM_KINDS = (MISSING, INCOMPLETE, TWICE, NOT_THEIRS)


@dataclass(frozen=True)
class Answers:
    """answers: columns of `ANSWERS`, a row for each question answered. problems: columns of `PROBLEMS`.

    Both are sorted by item, as assigned, and by annotator; problems by kind first, as in `PROBLEM_KINDS`.
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
    """Read what annotators sent on the items that they were given (`assigned`: `item` and `annotator`).

    For the files see `read_submissions`. What was sent without an answer to any question with options is as if it were
    not there. Raises `AnswersError` for a file that cannot be read, for items and annotators that were not assigned,
    and for an answer that is none of its question's options.
    """
    people = assigned["annotator"].unique().to_list()
    sent = read_submissions(paths, form, people, accounts=accounts, by_assignment=by_assignment)
    asked = {question.name: question for question in form.questions}
    chosen = [name for name, question in asked.items() if question.options] or list(asked)
    sent = [one for one in sent if any(name in one.answers for name in chosen)]
    problems = check_received(sent, assigned, form.item)
    last: dict[tuple[str, str], dict[str, str]] = {}
    for one in sent:
        try:
            last[one.item, one.annotator] = {name: asked[name].answer(text) for name, text in one.answers.items()}
        except ValueError as fault:
            raise AnswersError(f"{one.where} ({form.item} {one.item}): {fault}.") from None
    for key, answers in last.items():
        left = [name for name in chosen if name not in answers]
        if left and key[1] != CONSENSUS:
            problems.append((INCOMPLETE, *key, f"nothing on {', '.join(left)}"))
    rows = [(*key, name, answers[name]) for key, answers in last.items() for name in form.names if name in answers]
    frame = pl.DataFrame(rows, schema=ANSWERS, orient="row")
    return Answers(by_item(frame, assigned), problem_frame(problems, PROBLEM_KINDS, assigned))


def read_submissions(
    paths: Sequence[Path],
    form: Form,
    known: Sequence[str] = (),
    *,
    accounts: Mapping[str, str] | None = None,
    by_assignment: bool = False,
) -> list[Submission]:
    """What was sent in sheets (`.csv`), exports of Label Studio (`.json`) and lines (`.jsonl`: an object each, keys as
    in a sheet). accounts, known, by_assignment: see `read_export`. Raises `AnswersError`.
    """
    found = []
    for path in paths:
        if path.suffix == ".json":
            found += read_export(path, form, accounts=accounts, known=[*known, CONSENSUS], by_assignment=by_assignment)
            continue
        if path.suffix == ".csv":
            own = read_sheet(path, form, by_assignment=by_assignment)
        elif path.suffix == ".jsonl":
            own = _lines(path, form, by_assignment=by_assignment)
        else:
            raise AnswersError(f"{path}: answers are read from .csv, .jsonl and Label Studio's .json.")
        found += [replace(one, annotator=(accounts or {}).get(one.annotator, one.annotator)) for one in own]
    return found


def by_item(frame: pl.DataFrame, assigned: pl.DataFrame) -> pl.DataFrame:
    """Rows with an `item` and an `annotator`, sorted by item, as assigned, and by annotator."""
    place = assigned.select("item").unique(maintain_order=True).with_row_index("\0place")
    joined = frame.join(place, on="item", how="left", maintain_order="left")
    return joined.sort("\0place", "annotator", maintain_order=True).drop("\0place")


def problem_frame(problems: Sequence[Problem], kinds: Sequence[str], assigned: pl.DataFrame) -> pl.DataFrame:
    """Problems as a frame (columns of `PROBLEMS`), sorted by kind, as in `kinds`, then as `by_item` does."""
    listed = by_item(pl.DataFrame(sorted(problems), schema=PROBLEMS, orient="row"), assigned)
    return listed.sort(pl.col("kind").cast(pl.Enum(kinds)), maintain_order=True)


def _lines(path: Path, form: Form, *, by_assignment: bool) -> list[Submission]:
    numbered = enumerate(read_jsonl(path, AnswersError), start=1)
    rows = [
        (f"{path}, row {number:,}", {name: _text(value) for name, value in row.items()}) for number, row in numbered
    ]
    return rows_as_submissions(rows, form, by_assignment=by_assignment)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
