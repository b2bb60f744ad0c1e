"""Marks, orders and scores as they come in, before anything in them is understood."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from pluralbench_studies import Submission
from pluralbench_tables import read_jsonl

from build_chinese.annotation.forms import LETTERS, MOST, pair_field, score_field
from build_chinese.errors import AnnotationsError

PAIR_FIELDS = {pair_field(a, b): (LETTERS[a], LETTERS[b]) for a, b in combinations(range(MOST), 2)}
SCORE_FIELDS = {score_field(place): LETTERS[place] for place in range(MOST)}


@dataclass(frozen=True)
class Judged:
    """One annotator's answers to one task, as written.

    marks: (first, second, mark), responses by letter or by id. scores: likewise. responses: the ids shown, where the
    file says so.
    """

    sent: Submission
    marks: tuple[tuple[str, str, str], ...] = ()
    order: str = ""
    scores: Mapping[str, str] = field(default_factory=dict)
    remark: str = ""
    responses: tuple[str, ...] | None = None

    @property
    def is_blank(self) -> bool:
        """Whether nothing was filled in."""
        return not (self.marks or self.order or self.scores)


def judged(sent: Submission) -> Judged:
    """The answers of a sheet or a label."""
    answers = sent.answers
    return Judged(
        sent,
        tuple((*pair, answers[name]) for name, pair in PAIR_FIELDS.items() if name in answers),
        answers.get("order", ""),
        {letter: answers[name] for name, letter in SCORE_FIELDS.items() if name in answers},
        answers.get("remark", ""),
    )


def read_lines(path: Path) -> list[Judged]:
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
            Judged(
                Submission(where, _text(row.get("task")), _text(row.get("annotator")), {}),
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
