"""Annotations of tasks, read and checked against the tasks (CHEEMS, appendix D).

On a task an annotator gives marks on pairs, or a full order, or scores from 0 to 5. Of several, marks count before an
order and an order before scores, and the rest is checked against what counts. Full-width characters are read as what
they stand for (NFKC).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from unicodedata import normalize

import polars as pl

from build_chinese.annotation_formats import Submission, read_lines, read_sheet
from build_chinese.errors import AnnotationsError
from build_chinese.label_studio import read_export
from build_chinese.preferences import Mark
from build_chinese.sheets import LETTERS
from build_chinese.text_files import read_jsonl

MARKS = pl.Schema(dict.fromkeys(("prompt", "task", "annotator", "first", "second", "mark"), pl.String))
SCORES = pl.Schema(dict.fromkeys(("prompt", "task", "annotator", "response"), pl.String) | {"score": pl.Float64})
REMARKS = pl.Schema(dict.fromkeys(("prompt", "task", "annotator", "remark"), pl.String))
PROBLEMS = pl.Schema(dict.fromkeys(("kind", "task", "annotator", "detail"), pl.String))
CHECKS = pl.Schema(dict.fromkeys(("task", "first", "second", "mark"), pl.String))

MISSING, INCOMPLETE, TWICE = "missing task", "incomplete task", "double submission"
NOT_THEIRS, CONTRADICTION = "wrong annotator", "contradiction"
PROBLEM_KINDS = (MISSING, INCOMPLETE, TWICE, NOT_THEIRS, CONTRADICTION)

AS_MARKS: dict[str, Mark] = {"g": "1", "1": "1", "b": "2", "2": "2", "s": "s"}
LEAST_SCORE, MOST_SCORE = 0, 5

Pair = tuple[int, int]


@dataclass(frozen=True)
class Annotations:
    """What annotators said.

    marks: columns of `MARKS`; `first` was shown before `second`, and `mark` is "1" (the first is better), "2" or "s".
    scores, remarks: as given. problems: columns of `PROBLEMS`, sorted by kind first, as in `PROBLEM_KINDS`: a task that
    was not sent by somebody it was given to; one without an answer on some pair; one sent twice, of which the last
    counts; one sent by somebody it was not given to, which counts; and scores or an order that contradict what counts
    before them.
    Rows are sorted by task, as the tasks are, and by annotator.
    """

    marks: pl.DataFrame
    scores: pl.DataFrame
    remarks: pl.DataFrame
    problems: pl.DataFrame


@dataclass(frozen=True)
class _Answers:
    """A submission understood: responses by their place in the order shown."""

    submission: Submission
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
    assigned: Label Studio's annotations are those of whoever a task was given to (see `label_studio.read_export`). Rows
    without any answer are as if they were not there.

    Raises `AnnotationsError` for a file that cannot be read, for annotators, tasks and responses that are not among the
    tasks', for a response that is compared with itself, and for a mark, an order or a score that is none.
    """
    accounts = accounts or {}
    shown = dict(tasks.select("task", "responses").iter_rows())
    prompt_of = dict(tasks.select("task", "prompt").iter_rows())
    of_prompt: dict[str, set[str]] = {}
    for task, responses in shown.items():
        of_prompt.setdefault(prompt_of[task], set()).update(responses)
    known = set(tasks["annotator"])
    sent = [item for path in paths for item in _submissions(path, accounts, known, assigned=assigned)]
    sent = [item for item in sent if not item.is_blank]
    _check_names(sent, "task", shown, "the tasks are others, or were made anew")
    _check_names(sent, "annotator", known, "say whose account it is with --account ACCOUNT=ANNOTATOR, or mend the name")
    last: dict[tuple[str, str], _Answers] = {}
    problems: list[tuple[str, str, str, str]] = []
    for item in sent:
        key = item.task, item.annotator
        if key in last:
            detail = f"{item.where} counts, and {last[key].submission.where} does not"
            problems.append((TWICE, *key, detail))
        last[key] = _understood(item, shown[item.task], of_prompt[prompt_of[item.task]], prompt_of[item.task])
    given = set(tasks.select("task", "annotator").iter_rows())
    problems += [(MISSING, *key, "nothing was sent") for key in given - last.keys()]
    problems += [(NOT_THEIRS, *key, last[key].submission.where) for key in last.keys() - given]
    marks, scores, remarks = [], [], []
    for key, answers in last.items():
        responses, place = shown[key[0]], (prompt_of[key[0]], *key)
        marks += [(*place, responses[a], responses[b], mark) for (a, b), mark in sorted(answers.marks.items())]
        scores += [(*place, responses[a], score) for a, score in sorted(answers.scores.items())]
        if answers.submission.remark:
            remarks.append((*place, answers.submission.remark))
        if answers.missing:
            pairs = ", ".join(f"{responses[a]} and {responses[b]}" for a, b in answers.missing)
            problems.append((INCOMPLETE, *key, f"nothing on {pairs}"))
        if answers.contradictions:
            problems.append((CONTRADICTION, *key, "; ".join(answers.contradictions)))
    order = pl.DataFrame({"task": list(shown), "number": range(len(shown))})

    def framed(rows: Sequence[tuple[object, ...]], schema: pl.Schema) -> pl.DataFrame:
        frame = pl.DataFrame(rows, schema=schema, orient="row").join(order, on="task", maintain_order="left")
        return frame.sort("number", "annotator", maintain_order=True).drop("number")

    kinds = pl.Enum(PROBLEM_KINDS)
    listed = framed(problems, PROBLEMS).sort(pl.col("kind").cast(kinds), maintain_order=True)
    return Annotations(framed(marks, MARKS), framed(scores, SCORES), framed(remarks, REMARKS), listed)


def read_checks(path: Path, tasks: pl.DataFrame) -> pl.DataFrame:
    """The known answers of some tasks (columns of `CHECKS`, in the order shown): lines of `task` and `marks`.

    Raises `AnnotationsError`.
    """
    shown = dict(tasks.select("task", "responses").iter_rows())
    items = read_lines(path)
    _check_names(items, "task", shown, "the tasks are others, or were made anew")
    rows = [
        (item.task, shown[item.task][a], shown[item.task][b], mark)
        for item in items
        for (a, b), mark in _understood(item, shown[item.task], (), item.task).marks.items()
    ]
    frame = pl.DataFrame(rows, schema=CHECKS, orient="row")
    if frame.select("task", "first", "second").is_duplicated().any():
        raise AnnotationsError(f"{path} has the answers to a task more than once.")
    return frame


def check_tasks(path: Path) -> list[str]:
    """The tasks that a file has known answers to. Raises `AnnotationsError`."""
    return [str(row.get("task", "")) for row in read_jsonl(path, AnnotationsError)]


def _submissions(path: Path, accounts: Mapping[str, str], known: set[str], *, assigned: bool) -> list[Submission]:
    if path.suffix == ".json":
        return read_export(path, accounts=accounts, known=known, assigned=assigned)
    if path.suffix not in {".csv", ".jsonl"}:
        raise AnnotationsError(f"{path}: annotations are read from .csv, .jsonl and Label Studio's .json.")
    found = read_sheet(path, assigned=assigned) if path.suffix == ".csv" else read_lines(path)
    return [replace(item, annotator=accounts.get(item.annotator, item.annotator)) for item in found]


def _check_names(items: Sequence[Submission], what: str, known: Iterable[str], mend: str) -> None:
    there = set(known)
    strange = [item for item in items if getattr(item, what) not in there]
    if strange:
        name, others = getattr(strange[0], what), len({getattr(item, what) for item in strange}) - 1
        also = f" (and {others:,} more such)" if others else ""
        raise AnnotationsError(f"{strange[0].where}: there is no {what} {name!r}{also}; {mend}.")


def _understood(item: Submission, responses: Sequence[str], of_prompt: Iterable[str], prompt: str) -> _Answers:
    where = f"{item.where} (task {item.task})"
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


def _marks(item: Submission, place_of: Callable[[str], int], where: str) -> dict[Pair, Mark]:
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
