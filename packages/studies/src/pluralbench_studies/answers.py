"""Submissions of annotators, and checks against their assignment."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import polars as pl
from pluralbench_runs import UserError
from pluralbench_runs.errors import HEAD

from pluralbench_studies.errors import AnswersError
from pluralbench_studies.forms import Form

ASSIGNED_TO = "assigned_to"
CONSENSUS = "consensus"
"""Annotator name of outcomes of discussions."""
MISSING, INCOMPLETE, TWICE, NOT_ASSIGNED = "missing", "incomplete", "double submission", "wrong annotator"
PROBLEMS = pl.Schema(dict.fromkeys(("kind", "item", "annotator", "detail"), pl.String))

Problem = tuple[str, str, str, str]
"""(kind, item, annotator, detail)"""


@dataclass(frozen=True)
class Submission:
    """One annotator's answers on one item, as they were written.

    Attributes:
        where: File and row, for errors.
        item: Id of the item.
        annotator: Name of the annotator.
        answers: Answer to each question; questions without an answer are left out.
    """

    where: str
    item: str
    annotator: str
    answers: Mapping[str, str]


def rows_as_submissions(
    rows: Iterable[tuple[str, Mapping[str, str]]], form: Form, *, by_assignment: bool
) -> list[Submission]:
    """Turn rows with the columns of a sheet into submissions.

    Args:
        rows: Location of each row (for errors), and its cells by column.
        form: The form.
        by_assignment: Whether `assigned_to` overrides `annotator`.
    """
    submissions = []
    for where, row in rows:
        values = {name: text.strip() for name, text in row.items()}
        annotator = (by_assignment and values.get(ASSIGNED_TO)) or values.get("annotator", "")
        answers = {name: values[name] for name in form.names if values.get(name)}
        submissions.append(Submission(where, row.get(form.item, ""), annotator, answers))
    return submissions


def check_received(submissions: Sequence[Submission], assigned: pl.DataFrame, item_name: str = "item") -> list[Problem]:
    """List what is missing, submitted twice, or submitted by an annotator without the assignment.

    Of two submissions the last counts. A submission without an assignment counts too. The annotator `CONSENSUS` may
    submit any item.

    Args:
        submissions: The submissions, in order.
        assigned: The assignment, with columns `item` and `annotator`.
        item_name: What an item is called in errors.

    Raises:
        AnswersError: If an item or an annotator is not part of the assignment.
    """
    assignments = set(assigned.select("item", "annotator").iter_rows())
    items = {item for item, _ in assignments}
    item_ids = [submission.item for submission in submissions]
    _check_names(
        item_name, submissions, item_ids, items, f"give the sheets of this study, whose {item_name}s are others"
    )
    annotators = {annotator for _, annotator in assignments} | {CONSENSUS}
    names = [submission.annotator for submission in submissions]
    _check_names("annotator", submissions, names, annotators, "map the account to an annotator, or fix the name")
    last: dict[tuple[str, str], Submission] = {}
    problems: list[Problem] = []
    for submission in submissions:
        key = submission.item, submission.annotator
        if key in last:
            problems.append((TWICE, *key, f"{submission.where} counts, and {last[key].where} does not"))
        last[key] = submission
    problems += [(MISSING, *key, "nothing was submitted") for key in assignments - last.keys()]
    unassigned = [key for key in last.keys() - assignments if key[1] != CONSENSUS]
    return problems + [(NOT_ASSIGNED, *key, last[key].where) for key in unassigned]


def check_cells(problems: Sequence[str], error: type[UserError] = AnswersError) -> None:
    """Raise an error with a line for each cell that cannot be read, as many as an error shows, and the number of all.

    Args:
        problems: A sentence for each cell.
        error: Class of the error.
    """
    if not problems:
        return
    lengths = accumulate(len(problem) + 1 for problem in problems)
    shown = max(1, sum(length < HEAD for length in lengths))
    lines = [f"{len(problems):,} cells cannot be read:"] * (len(problems) > 1) + [*problems[:shown]]
    more = len(problems) - shown
    raise error("\n".join([*lines, *[f"and {more:,} more."] * (more > 0)]))


def _check_names(what: str, submissions: Sequence[Submission], names: Sequence[str], known: set[str], fix: str) -> None:
    unknown = [
        (submission.where, name) for submission, name in zip(submissions, names, strict=True) if name not in known
    ]
    if unknown:
        where, name = unknown[0]
        others = len({name for _, name in unknown}) - 1
        also = f" (and {others:,} more)" if others else ""
        raise AnswersError(f"{where}: there is no {what} {name!r}{also}; {fix}.")
