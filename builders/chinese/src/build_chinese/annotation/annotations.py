"""Annotations of tasks, read and checked against the tasks (CHEEMS, appendix D).

On a task an annotator gives marks on pairs, or a full order, or scores from 0 to 5. Of several, marks count before an
order and an order before scores, and the rest is checked against what counts. Full-width characters are read as what
they stand for (NFKC).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Literal
from unicodedata import normalize

import polars as pl
from pluralbench_studies import CONSENSUS, by_item, check_received, consensus, problem_frame, read_submissions
from pluralbench_studies.answers import INCOMPLETE
from pluralbench_studies.reading import PROBLEM_KINDS
from pluralbench_tables import read_jsonl

from build_chinese.annotation.formats import Judged, judged, read_lines
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
    """What annotators said.

    marks: columns of `MARKS`; `first` was shown before `second`, and `mark` is "1" (the first is better), "2" or "s".
    scores, remarks: as given. problems: columns of `pluralbench_studies.answers.PROBLEMS`, with `task` for `item`:
    those that `pluralbench_studies.read_answers` finds, and scores or an order that contradict what counts before them.
    Rows are sorted by task, as the tasks are, and by annotator.
    """

    marks: pl.DataFrame
    scores: pl.DataFrame
    remarks: pl.DataFrame
    problems: pl.DataFrame


@dataclass(frozen=True)
class _Answers:
    """Answers understood: responses by their place in the order shown."""

    judged: Judged
    marks: Mapping[Pair, Mark]
    scores: Mapping[int, float]
    missing: Sequence[Pair]
    contradictions: Sequence[str]


def read(
    paths: Sequence[Path], tasks: pl.DataFrame, *, accounts: Mapping[str, str] | None = None, assigned: bool = False
) -> Annotations:
    """Read annotations of `tasks` (columns of `tasks.TASKS`) from one or more files.

    A file is a sheet (`.csv`), an export of Label Studio (`.json`), or JSONL with `task`, `annotator`, and `marks`
    [[id, id, mark]], `order` or `scores` {id: score}. accounts: whose an account is, where a file names accounts;
    assigned: Label Studio's annotations are those of whoever a task was given to (see
    `pluralbench_studies.read_export`). Rows without any answer are as if they were not there. What annotators came to
    when they discussed a task is sent by the annotator `consensus`.

    Raises `AnswersError` for a file that cannot be read and for annotators and tasks that are not among the tasks', and
    `AnnotationsError` for responses that are not among the tasks', for a response that is compared with itself, and for
    a mark, an order or a score that is none.
    """
    shown = dict(tasks.select("task", "responses").iter_rows())
    prompt_of = dict(tasks.select("task", "prompt").iter_rows())
    of_prompt: dict[str, set[str]] = {}
    for task, responses in shown.items():
        of_prompt.setdefault(prompt_of[task], set()).update(responses)
    given = tasks.select("annotator", item="task")
    found = [one for path in paths for one in _judged(path, given, accounts or {}, by_assignment=assigned)]
    found = [one for one in found if not one.is_blank]
    problems = check_received([one.sent for one in found], given, SHEET.item)
    last = {
        (one.sent.item, one.sent.annotator): _understood(
            one, shown[one.sent.item], of_prompt[prompt_of[one.sent.item]], prompt_of[one.sent.item]
        )
        for one in found
    }
    marks, scores, remarks = [], [], []
    for key, answers in last.items():
        responses, place = shown[key[0]], (prompt_of[key[0]], *key)
        marks += [(*place, responses[a], responses[b], mark) for (a, b), mark in sorted(answers.marks.items())]
        scores += [(*place, responses[a], score) for a, score in sorted(answers.scores.items())]
        if answers.judged.remark:
            remarks.append((*place, answers.judged.remark))
        if answers.missing and key[1] != CONSENSUS:
            pairs = ", ".join(f"{responses[a]} and {responses[b]}" for a, b in answers.missing)
            problems.append((INCOMPLETE, *key, f"nothing on {pairs}"))
        if answers.contradictions:
            problems.append((CONTRADICTION, *key, "; ".join(answers.contradictions)))

    def framed(rows: Sequence[tuple[object, ...]], schema: pl.Schema) -> pl.DataFrame:
        frame = pl.DataFrame(rows, schema=schema, orient="row").rename({"task": "item"})
        return by_item(frame, given).rename({"item": "task"})

    listed = problem_frame(problems, [*PROBLEM_KINDS, CONTRADICTION], given).rename({"item": "task"})
    return Annotations(framed(marks, MARKS), framed(scores, SCORES), framed(remarks, REMARKS), listed)


def judgements_of(
    marks: pl.DataFrame, checks: pl.DataFrame | None, rule: Literal["discussion", "none"]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The marks that enter the preference graph, and the consensus on each pair of each task.

    The first has `prompt`, `task`, `first`, `second` and `mark`, in the order of `marks`; rule: see `tasks.Tasks`.
    checks: the known answers (columns of `CHECKS`). The second is what `pluralbench_studies.consensus` returns.
    """
    keys = ["prompt", "task", "first", "second"]
    answers = marks.rename({"mark": "answer"})
    known = None
    if checks is not None:
        prompts = marks.select("prompt", "task").unique()
        known = checks.join(prompts, on="task").select(*keys, answer="mark")
    found = consensus(answers, known)
    if rule == "none":
        return marks.select(*keys, "mark"), found
    return found.drop_nulls("answer").select(*keys, mark="answer"), found


def read_checks(path: Path, tasks: pl.DataFrame) -> pl.DataFrame:
    """The known answers of some tasks (columns of `CHECKS`, in the order shown): lines of `task` and `marks`.

    Raises `AnnotationsError`.
    """
    shown = dict(tasks.select("task", "responses").iter_rows())
    rows = []
    for one in read_lines(path):
        task = one.sent.item
        if task not in shown:
            raise AnnotationsError(
                f"{one.sent.where}: there is no task {task!r}; the tasks are others, or were made anew."
            )
        responses = shown[task]
        rows += [
            (task, responses[a], responses[b], mark)
            for (a, b), mark in _understood(one, responses, (), task).marks.items()
        ]
    frame = pl.DataFrame(rows, schema=CHECKS, orient="row")
    if frame.select("task", "first", "second").is_duplicated().any():
        raise AnnotationsError(f"{path} has the answers to a task more than once.")
    return frame


def check_tasks(path: Path) -> list[str]:
    """The tasks that a file has known answers to. Raises `AnnotationsError`."""
    return [str(row.get("task", "")) for row in read_jsonl(path, AnnotationsError)]


def _judged(path: Path, given: pl.DataFrame, accounts: Mapping[str, str], *, by_assignment: bool) -> list[Judged]:
    if path.suffix != ".jsonl":
        known = given["annotator"].unique().to_list()
        return [*map(judged, read_submissions([path], SHEET, known, accounts=accounts, by_assignment=by_assignment))]
    found = read_lines(path)
    mapped = [replace(one.sent, annotator=accounts.get(one.sent.annotator, one.sent.annotator)) for one in found]
    return [replace(one, sent=sent) for one, sent in zip(found, mapped, strict=True)]


def _understood(item: Judged, responses: Sequence[str], of_prompt: Iterable[str], prompt: str) -> _Answers:
    where = f"{item.sent.where} (task {item.sent.item})"
    if item.responses is not None and list(item.responses) != list(responses):
        raise AnnotationsError(f"{where} is on {', '.join(item.responses)}, and the task shows {', '.join(responses)}.")
    places = {_folded(letter): place for place, letter in enumerate(LETTERS[: len(responses)])}
    places |= {_folded(response): place for place, response in enumerate(responses)}

    def place_of(name: str) -> int:
        place = places.get(_folded(name))
        if place is None:
            elsewhere = name in set(of_prompt)
            reason = "is not shown in it" if elsewhere else f"is no response of the prompt {prompt}"
            raise AnnotationsError(f"{where}: {name!r} {reason}; it shows {', '.join(responses)}.")
        return place

    said = _marks(item, place_of, where)
    order = _order(item.order, place_of, len(responses), where)
    scores = {place_of(name): _score(text, where) for name, text in item.scores.items()}
    by_order = _compared({place: -level for level, tie in enumerate(order) for place in tie})
    by_score = _compared(scores)
    pairs = list(combinations(range(len(responses)), 2))
    marks = {pair: source[pair] for pair in pairs for source in (by_score, by_order, said) if pair in source}
    contradictions = [
        f"{_said(responses, pair, marks[pair])} but by {name} {_said(responses, pair, other[pair])}"
        for name, other in (("order", by_order), ("scores", by_score))
        for pair in pairs
        # Equal scores leave open which one is better.
        if pair in other and other[pair] != marks[pair] and not (name == "scores" and other[pair] == "s")
    ]
    return _Answers(item, marks, scores, [pair for pair in pairs if pair not in marks], contradictions)


def _folded(text: str) -> str:
    return normalize("NFKC", text).strip().casefold()


def _marks(item: Judged, place_of: Callable[[str], int], where: str) -> dict[Pair, Mark]:
    found: dict[Pair, Mark] = {}
    for one, other, text in item.marks:
        first, second = place_of(one), place_of(other)
        if first == second:
            raise AnnotationsError(f"{where} compares the response {one} with itself.")
        mark = AS_MARKS.get(_folded(text))
        if mark is None:
            raise AnnotationsError(
                f"{where}: the mark {text!r} on {one} and {other} is none of g (the first is better), b and s."
            )
        if first > second:
            first, second, mark = second, first, _reversed(mark)
        if found.setdefault((first, second), mark) != mark:
            raise AnnotationsError(f"{where} marks {one} and {other} twice, and differently.")
    return found


def parse_order(text: str) -> list[list[str]]:
    """The names in an order such as A>C>B=D>E, best first, equals together; nothing for a blank text.

    Raises `ValueError` for what is no order, and for a name that stands there twice.
    """
    # Chinese input methods type 》 for >.
    plain = normalize("NFKC", text).replace("》", ">").strip()
    if not plain:
        return []
    levels = [[name.strip() for name in level.split("=")] for level in plain.split(">")]
    names = [name for level in levels for name in level]
    if not all(names):
        raise ValueError(f"{text!r} is no order such as A>C=B")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the order {text!r} has {name} twice")
    return levels


def _order(text: str, place_of: Callable[[str], int], count: int, where: str) -> list[list[int]]:
    try:
        levels = [[place_of(name) for name in level] for level in parse_order(text)]
    except ValueError as fault:
        raise AnnotationsError(f"{where}: {fault}.") from None
    named = [place for level in levels for place in level]
    if levels and sorted(named) != list(range(count)):
        raise AnnotationsError(f"{where}: the order {text!r} does not have each response once.")
    return levels


def _score(text: str, where: str) -> float:
    try:
        score = float(normalize("NFKC", text))
    except ValueError:
        score = -1.0
    if not LEAST_SCORE <= score <= MOST_SCORE:
        raise AnnotationsError(f"{where}: the score {text!r} is no number from {LEAST_SCORE} to {MOST_SCORE}.")
    return score


def _compared(values: Mapping[int, float]) -> dict[Pair, Mark]:
    """The marks that values give, the greater being the better."""
    return {
        (a, b): "s" if values[a] == values[b] else "1" if values[a] > values[b] else "2"
        for a, b in combinations(sorted(values), 2)
    }


def _reversed(mark: Mark) -> Mark:
    return {"1": "2", "2": "1", "s": "s"}[mark]  # type: ignore[return-value]


def _said(responses: Sequence[str], pair: Pair, mark: Mark) -> str:
    sign = {"1": ">", "2": "<", "s": "="}[mark]
    return f"{responses[pair[0]]} {sign} {responses[pair[1]]}"
