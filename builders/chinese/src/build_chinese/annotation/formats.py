"""Marks, orders and scores as annotators wrote them, before parsing."""

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
class RawAnnotation:
    """One annotator's answers to one task, as written.

    Attributes:
        sent: Task, annotator and place in the file.
        marks: (first, second, mark), responses by letter or by id.
        order: Text such as A>C=B.
        scores: Score as text, by letter or by id.
        responses: Ids in the order shown; None if the file has none.
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


def from_submission(sent: Submission) -> RawAnnotation:
    """Convert a row of a sheet or an annotation of Label Studio."""
    answers = sent.answers
    return RawAnnotation(
        sent,
        tuple((*pair, answers[name]) for name, pair in PAIR_FIELDS.items() if name in answers),
        answers.get("order", ""),
        {letter: answers[name] for name, letter in SCORE_FIELDS.items() if name in answers},
        answers.get("remark", ""),
    )


def read_lines(path: Path) -> list[RawAnnotation]:
    """Read a JSONL file of annotations. Raises `AnnotationsError`.

    Each line has `task`, `annotator`, and `marks` [[id, id, mark]], `order` or `scores` {id: score}. Optional keys are
    `remark`, and `triple` or `responses` with the ids shown.
    """
    annotations = []
    for number, row in enumerate(read_jsonl(path, AnnotationsError), start=1):
        where = f"{path}, row {number:,}"
        marks, scores = row.get("marks") or [], row.get("scores") or {}
        if not isinstance(marks, list) or not all(isinstance(mark, list) and len(mark) == 3 for mark in marks):
            raise AnnotationsError(f"{where}: `marks` is not a list of [first, second, mark].")
        if not isinstance(scores, dict):
            raise AnnotationsError(f"{where}: `scores` is not an object with a score for each response.")
        responses = row.get("responses", row.get("triple"))
        annotations.append(
            RawAnnotation(
                Submission(where, _text(row.get("task")), _text(row.get("annotator")), {}),
                tuple((_text(first), _text(second), _text(mark)) for first, second, mark in marks),
                _text(row.get("order")),
                {name: _text(score) for name, score in scores.items() if score is not None},
                _text(row.get("remark")),
                tuple(map(_text, responses)) if isinstance(responses, list) else None,
            )
        )
    return annotations


def _text(value: Any) -> str:
    return "" if value is None else str(value)
