"""Annotations as they come in, before anything in them is understood."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from unicodedata import normalize

import polars as pl
from polars.exceptions import PolarsError

from build_chinese.errors import AnnotationsError
from build_chinese.sheets import LETTERS, MOST, PAIRS, pair_field, score_field, unguarded
from build_chinese.text_files import read_jsonl, read_text

PAIR_FIELDS = {pair_field(a, b): (LETTERS[a], LETTERS[b]) for a, b in PAIRS}
SCORE_FIELDS = {score_field(place): LETTERS[place] for place in range(MOST)}
ASSIGNED_TO = "assigned_to"
ANSWERS = (*PAIR_FIELDS, *SCORE_FIELDS, "order")


@dataclass(frozen=True)
class Submission:
    """One annotator's answers to one task, as written.

    where: the file and the place in it. marks: (first, second, mark), responses by letter or by id. scores: likewise.
    responses: the ids shown, where the file says so.
    """

    where: str
    task: str
    annotator: str
    marks: tuple[tuple[str, str, str], ...] = ()
    order: str = ""
    scores: Mapping[str, str] = field(default_factory=dict)
    remark: str = ""
    responses: tuple[str, ...] | None = None

    @property
    def is_blank(self) -> bool:
        """Whether nothing was filled in."""
        return not (self.marks or self.order or self.scores)


def flat(
    rows: Iterable[Mapping[str, str]], where: str, *, first: int | None = None, assigned: bool = False
) -> list[Submission]:
    """Rows by the columns of a sheet. first: the number of the first row, where `where` is only the file.

    assigned: take rows with an `assigned_to` for that annotator's work, whatever their `annotator`.
    """
    found = []
    for number, row in enumerate(rows, start=first or 0):
        values = {name: text.strip() for name, text in row.items()}
        found.append(
            Submission(
                where if first is None else f"{where}, row {number:,}",
                row.get("task", ""),
                (assigned and values.get(ASSIGNED_TO)) or values.get("annotator", ""),
                tuple((*pair, values[name]) for name, pair in PAIR_FIELDS.items() if values.get(name)),
                values.get("order", ""),
                {letter: values[name] for name, letter in SCORE_FIELDS.items() if values.get(name)},
                values.get("remark", ""),
            )
        )
    return found


def read_sheet(path: Path, *, assigned: bool = False) -> list[Submission]:
    """The rows of a CSV sheet, ours or Label Studio's; assigned: see `flat`. Raises `AnnotationsError`."""
    text = read_text(path, AnnotationsError)
    try:
        frame = pl.read_csv(BytesIO(text.encode()), infer_schema=False)
    except PolarsError as fault:
        raise AnnotationsError(f"{path} cannot be read as CSV: {' '.join(str(fault).split())[:200]}.") from None
    frame = frame.rename({name: normalize("NFKC", name).strip() for name in frame.columns})
    for name in ("task", "annotator"):
        if name not in frame.columns:
            raise AnnotationsError(f"{path} has no column `{name}`; it has {', '.join(frame.columns)}.")
    if not set(ANSWERS) & set(frame.columns):
        raise AnnotationsError(f"{path} has no column of answers, such as {', '.join(ANSWERS)}.")
    return flat((unguarded(row) for row in frame.iter_rows(named=True)), str(path), first=1, assigned=assigned)


def read_lines(path: Path) -> list[Submission]:
    """The lines of a JSONL file: `task`, `annotator`, and `marks` [[id, id, mark]], `order`, `scores` {id: score}.

    There may be `remark`, and `triple` or `responses` with the ids shown. Raises `AnnotationsError`.
    """
    found = []
    for number, row in enumerate(read_jsonl(path, AnnotationsError), start=1):
        where = f"{path}, row {number:,}"
        marks, scores = row.get("marks") or [], row.get("scores") or {}
        if not isinstance(marks, list) or not all(isinstance(mark, list) and len(mark) == 3 for mark in marks):
            raise AnnotationsError(f"{where}: its `marks` are no list of [first, second, mark].")
        if not isinstance(scores, dict):
            raise AnnotationsError(f"{where}: its `scores` are no object of a score for each response.")
        responses = row.get("responses", row.get("triple"))
        found.append(
            Submission(
                where,
                _text(row.get("task")),
                _text(row.get("annotator")),
                tuple((_text(first), _text(second), _text(mark)) for first, second, mark in marks),
                _text(row.get("order")),
                {name: _text(score) for name, score in scores.items() if score is not None},
                _text(row.get("remark")),
                tuple(map(_text, responses)) if isinstance(responses, list) else None,
            )
        )
    return found


def _text(value: Any) -> str:
    return "" if value is None else str(value)
