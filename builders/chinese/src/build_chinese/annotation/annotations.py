"""Read annotations and check them against the tasks (CHEEMS, appendix D).

An annotator answers a task with marks on pairs, a full order, or scores from 0 to 5. Marks take precedence over an
order, and an order over scores; the others are checked for contradictions. Full-width characters are normalized (NFKC).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Literal
from unicodedata import normalize

import polars as pl
from pluralbench_studies import (
    CONSENSUS,
    check_cells,
    check_received,
    consensus,
    problem_frame,
    read_submissions,
    sort_by_item,
)
from pluralbench_studies.answers import INCOMPLETE
from pluralbench_studies.reading import PROBLEM_KINDS
from pluralbench_tables import read_jsonl

from build_chinese.annotation.formats import RawAnnotation, from_submission, read_lines
from build_chinese.annotation.forms import LETTERS, SHEET
from build_chinese.errors import AnnotationsError
from build_chinese.preferences import Mark

MARKS = pl.Schema(dict.fromkeys(("prompt", "task", "annotator", "first", "second", "mark"), pl.String))
SCORES = pl.Schema(dict.fromkeys(("prompt", "task", "annotator", "response"), pl.String) | {"score": pl.Float64})
REMARKS = pl.Schema(dict.fromkeys(("prompt", "task", "annotator", "remark"), pl.String))
CHECKS = pl.Schema(dict.fromkeys(("task", "first", "second", "mark"), pl.String))

CONTRADICTION = "contradiction"

AS_MARKS: dict[str, Mark] = {"g": "1", "1": "1", "b": "2", "2": "2", "s": "s"}
LEAST_SCORE, MOST_SCORE = 0, 5

Pair = tuple[int, int]


@dataclass(frozen=True)
class Annotations:
    """Parsed annotations. Rows are sorted by task, in the order of the tasks, and by annotator.

    Attributes:
        marks: Columns of `MARKS`. `first` was shown before `second`; `mark` is "1" (the first is better), "2" or "s".
        scores: Columns of `SCORES`.
        remarks: Columns of `REMARKS`.
        problems: Columns of `pluralbench_studies.answers.PROBLEMS`, with `task` in place of `item`: the problems that
            `pluralbench_studies.read_answers` reports, and contradictions between marks, order and scores.
    """

    marks: pl.DataFrame
    scores: pl.DataFrame
    remarks: pl.DataFrame
    problems: pl.DataFrame


@dataclass(frozen=True)
class _Answers:
    """Parsed answers; responses are numbered in the order shown."""

    raw: RawAnnotation
    marks: Mapping[Pair, Mark]
    scores: Mapping[int, float]
    missing: Sequence[Pair]
    contradictions: Sequence[str]


def read_annotations(
    paths: Sequence[Path], tasks: pl.DataFrame, *, accounts: Mapping[str, str] | None = None, assigned: bool = False
) -> Annotations:
    """Read annotations of tasks from one or more files.

    Rows without an answer are skipped. The result of a discussion comes from the annotator `consensus`.

    Args:
        paths: Sheets (`.csv`), Label Studio exports (`.json`), or JSONL with `task`, `annotator`, and `marks`
            [[id, id, mark]], `order` or `scores` {id: score}.
        tasks: Columns of `tasks.TASKS`.
        accounts: Annotator by account, for files that name accounts.
        assigned: Attribute Label Studio's annotations to the annotator that a task was assigned to (see
            `pluralbench_studies.read_export`).

    Raises:
        AnswersError: A file cannot be read, or an annotator or a task is not one of `tasks`.
        AnnotationsError: A response is not one of the task's or is compared with itself, or a mark, an order or a
            score is invalid.
    """
    shown = dict(tasks.select("task", "responses").iter_rows())
    prompt_of = dict(tasks.select("task", "prompt").iter_rows())
    of_prompt: dict[str, set[str]] = {}
    for task, responses in shown.items():
        of_prompt.setdefault(prompt_of[task], set()).update(responses)
    assignments = tasks.select("annotator", item="task")
    raw = [entry for path in paths for entry in _read_file(path, assignments, accounts or {}, by_assignment=assigned)]
    raw = [entry for entry in raw if not entry.is_blank]
    problems = check_received([entry.sent for entry in raw], assignments, SHEET.item)
    unreadable: list[str] = []
    last = {
        (entry.sent.item, entry.sent.annotator): _parse(
            entry, shown[entry.sent.item], of_prompt[prompt_of[entry.sent.item]], prompt_of[entry.sent.item], unreadable
        )
        for entry in raw
    }
    check_cells(unreadable, AnnotationsError)
    marks, scores, remarks = [], [], []
    for key, answers in last.items():
        responses, place = shown[key[0]], (prompt_of[key[0]], *key)
        marks += [(*place, responses[a], responses[b], mark) for (a, b), mark in sorted(answers.marks.items())]
        scores += [(*place, responses[a], score) for a, score in sorted(answers.scores.items())]
        if answers.raw.remark:
            remarks.append((*place, answers.raw.remark))
        if answers.missing and key[1] != CONSENSUS:
            pairs = ", ".join(f"{responses[a]} and {responses[b]}" for a, b in answers.missing)
            problems.append((INCOMPLETE, *key, f"nothing on {pairs}"))
        if answers.contradictions:
            problems.append((CONTRADICTION, *key, "; ".join(answers.contradictions)))

    def to_frame(rows: Sequence[tuple[object, ...]], schema: pl.Schema) -> pl.DataFrame:
        frame = pl.DataFrame(rows, schema=schema, orient="row").rename({"task": "item"})
        return sort_by_item(frame, assignments).rename({"item": "task"})

    listed = problem_frame(problems, [*PROBLEM_KINDS, CONTRADICTION], assignments).rename({"item": "task"})
    return Annotations(to_frame(marks, MARKS), to_frame(scores, SCORES), to_frame(remarks, REMARKS), listed)


def judgments_of(
    marks: pl.DataFrame, checks: pl.DataFrame | None, rule: Literal["discussion", "none"]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Select the marks that enter the preference graph.

    Args:
        marks: Columns of `MARKS`.
        checks: Known answers of check items, columns of `CHECKS`.
        rule: See `recipe.Tasks.consensus`.

    Returns:
        Marks with `prompt`, `task`, `first`, `second` and `mark`, in the order of `marks`; and the consensus on each
        pair of each task, as `pluralbench_studies.consensus` returns it.
    """
    keys = ["prompt", "task", "first", "second"]
    answers = marks.rename({"mark": "answer"})
    known_answers = None
    if checks is not None:
        prompts = marks.select("prompt", "task").unique()
        known_answers = checks.join(prompts, on="task").select(*keys, answer="mark")
    agreed = consensus(answers, known_answers)
    if rule == "none":
        return marks.select(*keys, "mark"), agreed
    return agreed.drop_nulls("answer").select(*keys, mark="answer"), agreed


def read_checks(path: Path, tasks: pl.DataFrame) -> pl.DataFrame:
    """Read the known answers of check items.

    Args:
        path: JSONL with `task` and `marks`.
        tasks: Columns of `tasks.TASKS`.

    Returns:
        Columns of `CHECKS`, in the order shown.

    Raises:
        AnnotationsError: A task is unknown or repeated, or a mark is invalid.
    """
    shown = dict(tasks.select("task", "responses").iter_rows())
    rows, unreadable = [], list[str]()
    for entry in read_lines(path):
        task = entry.sent.item
        if task not in shown:
            raise AnnotationsError(
                f"{entry.sent.where}: the task {task!r} does not exist; use the file of the same tasks."
            )
        responses = shown[task]
        rows += [
            (task, responses[a], responses[b], mark)
            for (a, b), mark in _parse(entry, responses, (), task, unreadable).marks.items()
        ]
    check_cells(unreadable, AnnotationsError)
    frame = pl.DataFrame(rows, schema=CHECKS, orient="row")
    if frame.select("task", "first", "second").is_duplicated().any():
        raise AnnotationsError(f"{path} has the answers to a task more than once; keep one of them.")
    return frame


def check_tasks(path: Path) -> list[str]:
    """Return the ids of the tasks in a file of known answers. Raises `AnnotationsError`."""
    return [str(row.get("task", "")) for row in read_jsonl(path, AnnotationsError)]


def _read_file(
    path: Path, assignments: pl.DataFrame, accounts: Mapping[str, str], *, by_assignment: bool
) -> list[RawAnnotation]:
    if path.suffix != ".jsonl":
        names = assignments["annotator"].unique().to_list()
        submissions = read_submissions([path], SHEET, names, accounts=accounts, by_assignment=by_assignment)
        return [*map(from_submission, submissions)]
    entries = read_lines(path)
    return [
        replace(entry, sent=replace(entry.sent, annotator=accounts.get(entry.sent.annotator, entry.sent.annotator)))
        for entry in entries
    ]


def _parse(
    entry: RawAnnotation, responses: Sequence[str], of_prompt: Iterable[str], prompt: str, unreadable: list[str]
) -> _Answers:
    """Parse an annotation; add a sentence to `unreadable` for each answer that cannot be read, and leave that out."""
    where = f"{entry.sent.where} (task {entry.sent.item})"
    if entry.responses is not None and list(entry.responses) != list(responses):
        raise AnnotationsError(f"{where} is on {', '.join(entry.responses)}; the task shows {', '.join(responses)}.")
    places = {_normalize(letter): place for place, letter in enumerate(LETTERS[: len(responses)])}
    places |= {_normalize(response): place for place, response in enumerate(responses)}

    def place_of(name: str) -> int:
        place = places.get(_normalize(name))
        if place is None:
            elsewhere = name in set(of_prompt)
            reason = "is not shown in this task" if elsewhere else f"is not a response of the prompt {prompt}"
            raise AnnotationsError(f"{where}: {name!r} {reason}; the task shows {', '.join(responses)}.")
        return place

    by_mark, scores, order = dict[Pair, Mark](), dict[int, float](), list[list[int]]()
    for names in entry.marks:
        with _collect(unreadable):
            _add_mark(by_mark, *names, place_of, where)
    with _collect(unreadable):
        order = _order_places(entry.order, place_of, len(responses), where)
    for name, text in entry.scores.items():
        with _collect(unreadable):
            scores[place_of(name)] = _parse_score(text, where)
    by_order = _compare_values({place: -level for level, tie in enumerate(order) for place in tie})
    by_score = _compare_values(scores)
    pairs = list(combinations(range(len(responses)), 2))
    marks = {pair: source[pair] for pair in pairs for source in (by_score, by_order, by_mark) if pair in source}
    contradictions = [
        f"{_format_mark(responses, pair, marks[pair])} but by {name} {_format_mark(responses, pair, other[pair])}"
        for name, other in (("order", by_order), ("scores", by_score))
        for pair in pairs
        # Equal scores leave open which one is better.
        if pair in other and other[pair] != marks[pair] and not (name == "scores" and other[pair] == "s")
    ]
    return _Answers(entry, marks, scores, [pair for pair in pairs if pair not in marks], contradictions)


def _normalize(text: str) -> str:
    return normalize("NFKC", text).strip().casefold()


@contextmanager
def _collect(unreadable: list[str]) -> Iterator[None]:
    try:
        yield
    except AnnotationsError as error:
        unreadable.append(str(error))


def _add_mark(
    marks: dict[Pair, Mark], first_name: str, second_name: str, text: str, place_of: Callable[[str], int], where: str
) -> None:
    first, second = place_of(first_name), place_of(second_name)
    if first == second:
        raise AnnotationsError(f"{where} compares the response {first_name} with itself.")
    mark = AS_MARKS.get(_normalize(text))
    if mark is None:
        raise AnnotationsError(
            f"{where}: the mark {text!r} on {first_name} and {second_name} is not g (the first is better), b or s."
        )
    if first > second:
        first, second, mark = second, first, _reverse(mark)
    if marks.setdefault((first, second), mark) != mark:
        raise AnnotationsError(f"{where} has two different marks on {first_name} and {second_name}.")


def parse_order(text: str) -> list[list[str]]:
    """Parse an order such as A>C>B=D>E.

    Returns:
        Names by level, best first; equal names share a level. Empty for a blank text.

    Raises:
        ValueError: The text is not an order, or has a name twice.
    """
    # Chinese input methods type 》 for >.
    plain = normalize("NFKC", text).replace("》", ">").strip()
    if not plain:
        return []
    levels = [[name.strip() for name in level.split("=")] for level in plain.split(">")]
    names = [name for level in levels for name in level]
    if not all(names):
        raise ValueError(f"{text!r} is not an order such as A>C=B")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the order {text!r} has {name} twice")
    return levels


def _order_places(text: str, place_of: Callable[[str], int], count: int, where: str) -> list[list[int]]:
    try:
        levels = [[place_of(name) for name in level] for level in parse_order(text)]
    except ValueError as error:
        raise AnnotationsError(f"{where}: {error}.") from None
    places = [place for level in levels for place in level]
    if levels and sorted(places) != list(range(count)):
        raise AnnotationsError(f"{where}: the order {text!r} does not have each response once.")
    return levels


def _parse_score(text: str, where: str) -> float:
    try:
        score = float(normalize("NFKC", text))
    except ValueError:
        score = -1.0
    if not LEAST_SCORE <= score <= MOST_SCORE:
        raise AnnotationsError(f"{where}: the score {text!r} is not a number from {LEAST_SCORE} to {MOST_SCORE}.")
    return score


def _compare_values(values: Mapping[int, float]) -> dict[Pair, Mark]:
    """Marks on all pairs; the greater value is better."""
    return {
        (a, b): "s" if values[a] == values[b] else "1" if values[a] > values[b] else "2"
        for a, b in combinations(sorted(values), 2)
    }


def _reverse(mark: Mark) -> Mark:
    return {"1": "2", "2": "1", "s": "s"}[mark]  # type: ignore[return-value]


def _format_mark(responses: Sequence[str], pair: Pair, mark: Mark) -> str:
    sign = {"1": ">", "2": "<", "s": "="}[mark]
    return f"{responses[pair[0]]} {sign} {responses[pair[1]]}"
