"""What people answered, out of whatever they sent it in, and checked against what they were given."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from pluralbench_studies.errors import AnswersError
from pluralbench_studies.forms import Form

ASSIGNED_TO = "assigned_to"
CONSENSUS = "consensus"
"""The annotator under whose name the outcome of a discussion is sent."""
MISSING, INCOMPLETE, TWICE, NOT_THEIRS = "missing", "incomplete", "double submission", "wrong annotator"
PROBLEMS = pl.Schema(dict.fromkeys(("kind", "item", "annotator", "detail"), pl.String))

Problem = tuple[str, str, str, str]
"""(kind, item, annotator, detail)"""


@dataclass(frozen=True)
class Submission:
    """One annotator's answers to the questions on one item, as written; questions without an answer are left out.

    where: the file and the place in it.
    """

    where: str
    item: str
    annotator: str
    answers: Mapping[str, str]


def rows_as_submissions(
    rows: Iterable[tuple[str, Mapping[str, str]]], form: Form, *, by_assignment: bool
) -> list[Submission]:
    """Rows by the columns of a sheet, each with where it stands."""
    found = []
    for where, row in rows:
        values = {name: text.strip() for name, text in row.items()}
        annotator = (by_assignment and values.get(ASSIGNED_TO)) or values.get("annotator", "")
        answers = {name: values[name] for name in form.names if values.get(name)}
        found.append(Submission(where, row.get(form.item, ""), annotator, answers))
    return found


def check_received(sent: Sequence[Submission], assigned: pl.DataFrame, called: str = "item") -> list[Problem]:
    """What is wrong with what was sent, given who was to send what (`item` and `annotator`); called: what an item is
    called.

    An item that was not sent by somebody it was given to; one sent twice, of which the last counts; one sent by
    somebody it was not given to, which counts. Whoever is called `CONSENSUS` may send any item.

    Raises `AnswersError` for items and annotators that were not assigned at all.
    """
    given = set(assigned.select("item", "annotator").iter_rows())
    items = {item for item, _ in given}
    _check_names(called, sent, [one.item for one in sent], items, f"the {called}s are others, or were made anew")
    people = {annotator for _, annotator in given} | {CONSENSUS}
    names = [one.annotator for one in sent]
    _check_names("annotator", sent, names, people, "say whose account it is, or mend the name")
    last: dict[tuple[str, str], Submission] = {}
    problems: list[Problem] = []
    for one in sent:
        key = one.item, one.annotator
        if key in last:
            problems.append((TWICE, *key, f"{one.where} counts, and {last[key].where} does not"))
        last[key] = one
    problems += [(MISSING, *key, "nothing was sent") for key in given - last.keys()]
    strange = [key for key in last.keys() - given if key[1] != CONSENSUS]
    return problems + [(NOT_THEIRS, *key, last[key].where) for key in strange]


def _check_names(what: str, sent: Sequence[Submission], names: Sequence[str], known: set[str], mend: str) -> None:
    strange = [(one.where, name) for one, name in zip(sent, names, strict=True) if name not in known]
    if strange:
        where, name = strange[0]
        others = len({name for _, name in strange}) - 1
        also = f" (and {others:,} more such)" if others else ""
        raise AnswersError(f"{where}: there is no {what} {name!r}{also}; {mend}.")
