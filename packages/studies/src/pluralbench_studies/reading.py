"""Read the answers of annotators from files of all formats, and check them against the assignment."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_runs import UserError
from pluralbench_runs.errors import HEAD
from pluralbench_tables import read_jsonl

from pluralbench_studies.errors import StudyError
from pluralbench_studies.forms import Form
from pluralbench_studies.label_studio import ASSIGNED_TO, export_rows
from pluralbench_studies.sheets import read_rows

CONSENSUS = "consensus"
"""Annotator name of outcomes of discussions."""
ANSWERS = pl.Schema(dict.fromkeys(("item", "annotator", "question", "answer"), pl.String))
PROBLEMS = pl.Schema(dict.fromkeys(("kind", "item", "annotator", "detail"), pl.String))
MISSING, INCOMPLETE, TWICE, NOT_ASSIGNED = "missing", "incomplete", "double submission", "wrong annotator"
KINDS = (MISSING, INCOMPLETE, TWICE, NOT_ASSIGNED)

Row = tuple[str, Mapping[str, Any]]
"""The place of a row, for errors, and its values."""
Key = tuple[str, str]
"""An item and an annotator."""
Submission = tuple[str, Key, dict[str, str]]
"""The place of a row, its key, and the texts that answer questions."""
Problem = tuple[str, str, str, str]
"""(kind, item, annotator, detail)"""


@dataclass(frozen=True)
class Answers:
    """Answers of a study (`ANSWERS`), and problems with them (`PROBLEMS`, of `KINDS`).

    Both frames are in the order of the assignment and of annotators; problems are sorted by kind first.
    """

    answers: pl.DataFrame
    problems: pl.DataFrame

    @property
    def problem_lines(self) -> list[str]:
        """The problems in words."""
        return ["{kind}: {annotator}, {item}: {detail}".format_map(row) for row in self.problems.iter_rows(named=True)]


def read_answers(
    paths: Sequence[Path],
    form: Form,
    assigned: pl.DataFrame,
    *,
    accounts: Mapping[str, str] | None = None,
    by_assignment: bool = False,
) -> Answers:
    """Read and check the answers of annotators.

    Of two submissions the last counts. A submission without an assignment counts too. The annotator `CONSENSUS` may
    submit any item.

    Args:
        paths: Sheets and Label Studio's CSV exports (`.csv`), its JSON exports (`.json`), or JSONL with the columns of
            a sheet.
        form: The form.
        assigned: The assignment, with columns `item` and `annotator`.
        accounts: Annotator of a Label Studio account, by its e-mail address or number. An account with the name of an
            annotator belongs to that annotator; an answer without an account belongs to that of the account "", or
            else to the annotator of its task.
        by_assignment: Whether all answers belong to the annotator that the item was assigned to.

    Raises:
        StudyError: If a file cannot be read, an item or annotator is not part of the assignment, or an answer is not
            one of its question's.
    """
    submissions = _read_submissions(paths, form, assigned, accounts or {}, by_assignment=by_assignment)
    questions = {question.name: question for question in form.questions}
    last: dict[Key, tuple[str, dict[str, str]]] = {}
    problems: list[Problem] = []
    unreadable = []
    for where, key, texts in submissions:
        if key in last:
            problems.append((TWICE, *key, f"{where} counts, and {last[key][0]} does not"))
        answers: dict[str, str] = {}
        for name, text in texts.items():
            try:
                answers[name] = questions[name].answer(text)
            except ValueError as error:
                unreadable.append(f"{where} ({form.item} {key[0]}): {error}.")
        last[key] = where, answers
    check_cells(unreadable)
    assignments = set(assigned.select("item", "annotator").iter_rows())
    problems += [(MISSING, *key, "nothing was submitted") for key in assignments - last.keys()]
    for key, (where, answers) in last.items():
        missing = [name for name in form.required if name not in answers and not form.alternatives]
        if missing and key[1] != CONSENSUS:
            problems.append((INCOMPLETE, *key, f"no answer to {', '.join(missing)}"))
        if key not in assignments and key[1] != CONSENSUS:
            problems.append((NOT_ASSIGNED, *key, where))
    rows = [(*key, *answer) for key, (_, answers) in last.items() for answer in answers.items()]
    frame = pl.DataFrame(rows, schema=ANSWERS, orient="row")
    return Answers(sort_by_item(frame, assigned), problem_frame(problems, KINDS, assigned))


def sort_by_item(frame: pl.DataFrame, assigned: pl.DataFrame) -> pl.DataFrame:
    """Sort rows with an `item` and an `annotator` by item, in the order of the assignment, and by annotator."""
    order = assigned.select("item").unique(maintain_order=True).with_row_index("\0place")
    joined = frame.join(order, on="item", how="left", maintain_order="left")
    return joined.sort("\0place", "annotator", maintain_order=True).drop("\0place")


def problem_frame(problems: Iterable[Problem], kinds: Sequence[str], assigned: pl.DataFrame) -> pl.DataFrame:
    """Return problems as a frame with the columns of `PROBLEMS`, sorted by kind, then as `sort_by_item` sorts."""
    frame = sort_by_item(pl.DataFrame(sorted(problems), schema=PROBLEMS, orient="row"), assigned)
    return frame.sort(pl.col("kind").cast(pl.Enum(kinds)), maintain_order=True)


def check_cells(problems: Sequence[str], error: type[UserError] = StudyError) -> None:
    """Raise an error with a line for each unreadable cell, as many as an error shows, and the number of all."""
    if problems:
        lengths = accumulate(len(problem) + 1 for problem in problems)
        shown = max(1, sum(length < HEAD for length in lengths))
        first = [f"{len(problems):,} cells cannot be read:"] if len(problems) > 1 else []
        last = [f"and {len(problems) - shown:,} more."] if len(problems) > shown else []
        raise error("\n".join([*first, *problems[:shown], *last]))


def _read_submissions(
    paths: Sequence[Path], form: Form, assigned: pl.DataFrame, accounts: Mapping[str, str], *, by_assignment: bool
) -> list[Submission]:
    """Read the rows with an answer to a question that is not optional."""
    items, annotators = set(assigned["item"]), {*assigned["annotator"], CONSENSUS}
    submissions = []
    for path in paths:
        for where, row in _read_file(path, form):
            texts = {name: text for name in form.names if (text := _as_text(row.get(name)).strip())}
            if any(name in texts for name in form.required):
                annotator = _find_annotator(row, accounts, annotators, by_assignment=by_assignment)
                submissions.append((where, (_as_text(row.get(form.item)), annotator), texts))
    unknown = [(where, item) for where, (item, _), _ in submissions if item not in items]
    _refuse(form.item, unknown, f"give the sheets of this study, whose {form.item}s are others")
    unknown = [(where, name) for where, (_, name), _ in submissions if name not in annotators]
    _refuse("annotator", unknown, "map the account to an annotator, or fix the name")
    return submissions


def _read_file(path: Path, form: Form) -> Iterable[Row]:
    if path.suffix == ".json":
        return export_rows(path, form.item)
    if path.suffix == ".jsonl":
        return ((f"{path}, row {number:,}", row) for number, row in enumerate(read_jsonl(path, StudyError), start=1))
    if path.suffix == ".csv":
        return _read_sheet(path, form)
    raise StudyError(f"{path} is not a file of answers; give .csv, .jsonl or Label Studio's .json.")


def _read_sheet(path: Path, form: Form) -> Iterator[Row]:
    frame = read_rows(path)
    for name in (form.item, "annotator"):
        if name not in frame.columns:
            columns = ", ".join(filter(None, frame.columns)) or "none with a name"
            raise StudyError(f"{path} has no column `{name}`; it has {columns}.")
    if not set(form.names) & set(frame.columns):
        raise StudyError(f"{path} has no column of answers, such as {', '.join(form.names)}.")
    for number, row in enumerate(frame.iter_rows(named=True), start=2):  # as a spreadsheet counts, with the header
        yield f"{path}, row {number:,}", row


def _as_text(value: object) -> str:
    """A value as a cell of a sheet. In JSON-MIN several lines of free text are an object."""
    if isinstance(value, dict):
        value = value.get("text")
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return "" if value is None else str(value)


def _find_annotator(
    row: Mapping[str, Any], accounts: Mapping[str, str], known: Collection[str], *, by_assignment: bool
) -> str:
    """The annotator of a row, whose account is a name, a number, an e-mail address, or an object with both."""
    account, assigned_to = row.get("annotator"), _as_text(row.get(ASSIGNED_TO)).strip()
    if by_assignment and assigned_to:
        return assigned_to
    parts = [account.get(key) for key in ("email", "username", "id")] if isinstance(account, dict) else [account]
    names = [str(part).strip() for part in parts if part is not None] or [""]
    names = [*(accounts[name] for name in names if name in accounts), *names]
    return next((name for name in names if name in known), names[0]) or assigned_to


def _refuse(what: str, unknown: Sequence[tuple[str, str]], fix: str) -> None:
    if unknown:
        where, name = unknown[0]
        others = len({name for _, name in unknown}) - 1
        also = f" (and {others:,} more)" if others else ""
        raise StudyError(f"{where}: there is no {what} {name!r}{also}; {fix}.")
