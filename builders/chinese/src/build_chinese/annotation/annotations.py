"""Read annotations and check them against the tasks (CHEEMS, appendix D).

An annotator answers a task with marks on pairs, a full order, or scores from 0 to 5. Marks take precedence over an
order, and an order over scores; the others are checked for contradictions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_studies import (
    CONSENSUS,
    StudyError,
    agreement,
    annotator_shares,
    answer_pairs,
    check_cells,
    consensus,
    read_answers,
)
from pluralbench_studies.reading import INCOMPLETE, KINDS, Problem, problem_frame
from pluralbench_tables import read_jsonl

from build_chinese.annotation.forms import LETTERS, SHEET, pair_field, parse_order, score_field
from build_chinese.rankings import Mark

MARKS = pl.Schema(dict.fromkeys(("prompt", "task", "annotator", "first", "second", "mark"), pl.String))
REMARKS = pl.Schema(dict.fromkeys(("prompt", "task", "annotator", "remark"), pl.String))

CONTRADICTION = "contradiction"

AS_MARKS: dict[str, Mark] = {"g": "1", "b": "2", "s": "s"}
SIGNS = {"1": ">", "2": "<", "s": "="}

Pair = tuple[int, int]
"""Two responses of a task, numbered in the order shown."""


@dataclass(frozen=True)
class Annotations:
    """Parsed annotations. Rows are sorted by task, in the order of the tasks, and by annotator.

    Attributes:
        marks: Columns of `MARKS`. `first` was shown before `second`; `mark` is "1" (the first is better), "2" or "s".
        remarks: Columns of `REMARKS`.
        problems: Columns of `pluralbench_studies.PROBLEMS`, with `task` in place of `item`; also contradictions between
            marks, order and scores.
    """

    marks: pl.DataFrame
    remarks: pl.DataFrame
    problems: pl.DataFrame


def read_annotations(
    paths: Sequence[Path], tasks: pl.DataFrame, *, accounts: Mapping[str, str] | None = None, assigned: bool = False
) -> Annotations:
    """Read annotations of tasks (columns of `tasks.TASKS`) from files (`pluralbench_studies.read_answers`).

    The result of a discussion comes from the annotator `consensus`. `assigned`: attribute each annotation to the
    annotator of its task.

    Raises:
        StudyError: A file or an answer cannot be read, an annotator or a task is not one of `tasks`, an answer is on a
            response that the task does not show, or an order lacks a response.
    """
    assignments = tasks.select("annotator", item="task")
    returned = read_answers(paths, SHEET, assignments, accounts=accounts, by_assignment=assigned)
    task_of = {row["task"]: row for row in tasks.iter_rows(named=True)}
    marks, remarks, unreadable = [], [], []
    problems: list[Problem] = [*returned.problems.iter_rows()]
    for (task, annotator), rows in groupby(returned.answers.iter_rows(), key=lambda row: row[:2]):
        answers = {question: answer for *_, question, answer in rows}
        prompt, responses = task_of[task]["prompt"], task_of[task]["responses"]
        if problem := _unshown(answers, len(responses)):
            unreadable.append(f"{annotator} on the task {task}, which shows {len(responses)} responses: {problem}.")
            continue
        by_pair, contradictions = _marks(answers, responses)
        marks += [(prompt, task, annotator, responses[a], responses[b], mark) for (a, b), mark in by_pair.items()]
        if "remark" in answers:
            remarks.append((prompt, task, annotator, answers["remark"]))
        missing = [pair for pair in combinations(range(len(responses)), 2) if pair not in by_pair]
        if missing and annotator != CONSENSUS:
            pairs = ", ".join(f"{responses[a]} and {responses[b]}" for a, b in missing)
            problems.append((INCOMPLETE, task, annotator, f"nothing on {pairs}"))
        if contradictions:
            problems.append((CONTRADICTION, task, annotator, "; ".join(contradictions)))
    check_cells(unreadable)
    listed = problem_frame(problems, [*KINDS, CONTRADICTION], assignments).rename({"item": "task"})
    return Annotations(
        pl.DataFrame(marks, schema=MARKS, orient="row"), pl.DataFrame(remarks, schema=REMARKS, orient="row"), listed
    )


def judgments_of(marks: pl.DataFrame, checks: pl.DataFrame | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Select the marks that enter the preference graph: one on each pair of a task (the paper's appendix D).

    Where annotators differ, it is the result of their discussion or the known answer of a check item (`checks`), and
    the pair is left out until then. Conflicts between two tasks of a prompt are resolved in the graph (algorithm 1).

    Returns:
        Marks with `prompt`, `task`, `first`, `second` and `mark`, in the order of `marks`; and the consensus on each
        pair of each task, as `pluralbench_studies.consensus` returns it.
    """
    keys = ["prompt", "task", "first", "second"]
    known = None if checks is None else checks.select(*keys, answer="mark")
    agreed = consensus(marks.rename({"mark": "answer"}), known)
    return agreed.drop_nulls("answer").select(*keys, mark="answer"), agreed


def read_checks(path: Path, tasks: pl.DataFrame) -> pl.DataFrame:
    """Read the known answers of check items, as marks of the annotator `consensus` (columns of `MARKS`).

    Raises:
        StudyError: An answer cannot be read, or a task does not exist or is repeated.
    """
    checks = read_annotations([path], tasks, accounts={"": CONSENSUS}).marks
    if len({*checks["task"]}) < len(check_tasks(path)):
        raise StudyError(f"{path} has a task twice, or one without an answer; give one answer to each.")
    return checks


def check_tasks(path: Path) -> list[str]:
    """Return the ids of the tasks in a file of known answers. Raises `StudyError`."""
    return [str(row.get("task", "")) for row in read_jsonl(path, StudyError)]


def _unshown(answers: Mapping[str, str], count: int) -> str | None:
    shown = [pair_field(a, b) for a, b in combinations(range(count), 2)] + [
        score_field(place) for place in range(count)
    ]
    others = [name for name in answers if name not in {*shown, "order", "remark"}]
    if others:
        return f"there is no {others[0]}"
    order = answers.get("order", "")
    if order and sorted(name for level in parse_order(order) for name in level) != [*LETTERS[:count]]:
        return f"the order {order!r} does not have each response once"
    return None


def _marks(answers: Mapping[str, str], responses: Sequence[str]) -> tuple[dict[Pair, Mark], list[str]]:
    """The marks on pairs, and the contradictions with an order or scores in words."""
    places, pairs = range(len(responses)), list(combinations(range(len(responses)), 2))
    levels = {name: -level for level, names in enumerate(parse_order(answers.get("order", ""))) for name in names}
    scores = {place: float(answers[score_field(place)]) for place in places if score_field(place) in answers}
    by_mark = {pair: AS_MARKS[answers[pair_field(*pair)]] for pair in pairs if pair_field(*pair) in answers}
    by_order = _compare_values({LETTERS.index(name): level for name, level in levels.items()})
    by_score = _compare_values(scores)
    marks = {pair: source[pair] for pair in pairs for source in (by_score, by_order, by_mark) if pair in source}

    def contradictions(name: str, other: Mapping[Pair, Mark]) -> Iterator[str]:
        for pair in (pair for pair in pairs if pair in other and other[pair] != marks[pair]):
            first, second = (responses[place] for place in pair)
            yield (f"{first} {SIGNS[marks[pair]]} {second} but by {name} {first} {SIGNS[other[pair]]} {second}")

    # Equal scores leave open which one is better.
    strict_scores = {pair: mark for pair, mark in by_score.items() if mark != "s"}
    return marks, [*contradictions("order", by_order), *contradictions("scores", strict_scores)]


def _compare_values(values: Mapping[int, float]) -> dict[Pair, Mark]:
    """Marks on all pairs; the greater value is better."""
    return {
        (a, b): "s" if values[a] == values[b] else "1" if values[a] > values[b] else "2"
        for a, b in combinations(sorted(values), 2)
    }


VALUES = (-1, 0, 1)


def mark_agreement(
    marks: pl.DataFrame, checks: pl.DataFrame | None = None, *, thirds: pl.DataFrame | None = None
) -> dict[str, Any]:
    """Compute agreement statistics of marks.

    A unit is a pair of responses that several annotators marked, in any task; if an annotator marked a pair in two
    tasks, the first mark counts. The scale is worse, same, better. Prompts are the clusters. Marks that come from a
    discussion or from third annotators (`thirds`), who only mark what others differ on, do not count. Neither of two
    responses is the first by itself, so alpha takes each pair both ways.

    Returns:
        JSON values. `pairs` and `alpha` are those of `pluralbench_studies.agreement`, and `opposite` in `pairs` is the
        share of pairs of marks that prefer opposite responses. `annotators` has for each name the tasks, the marks, and
        as shares with Wilson's 95 % intervals: `agreeing`, the pairs of marks with other annotators that are the same;
        `first_preferred`, how often the response shown first wins if one wins; `checks_right`, the marks on check items
        that are right.
    """
    marks = marks.filter(pl.col("annotator") != CONSENSUS)
    values = _values(marks if thirds is None else marks.join(thirds, on=thirds.columns, how="anti"))
    statistics = agreement(values, VALUES, cluster="prompt")
    reverse = values.with_columns(pl.col("pair").list.reverse(), -pl.col("answer"))
    statistics["alpha"] = agreement(pl.concat([values, reverse]), VALUES, cluster="prompt")["alpha"]
    both = answer_pairs(values)
    opposite = both.filter(pl.col("answer") * pl.col("answer_other") == -1).height
    statistics["pairs"]["opposite"] = opposite / both.height if both.height else None
    statistics["annotators"] = _by_annotator(marks, statistics["annotators"], checks)
    return statistics


def _values(marks: pl.DataFrame) -> pl.DataFrame:
    """Marks as -1, 0 or 1, from the view of the pair's response whose id sorts first."""
    swapped = pl.col("first") > pl.col("second")
    value = pl.col("mark").replace_strict({"1": 1, "s": 0, "2": -1}, return_dtype=pl.Int8)
    return marks.select(
        "prompt",
        "annotator",
        pair=pl.when(swapped).then(pl.concat_list("second", "first")).otherwise(pl.concat_list("first", "second")),
        answer=pl.when(swapped).then(-value).otherwise(value),
    )


def _by_annotator(marks: pl.DataFrame, agreeing: dict[str, Any], checks: pl.DataFrame | None) -> dict[str, Any]:
    work = marks.group_by("annotator").agg(tasks=pl.col("task").n_unique(), marks=pl.len()).sort("annotator")
    strict, names = marks.filter(pl.col("mark") != "s"), work["annotator"]
    none = annotator_shares(marks.clear(), pl.lit(value=True), names)
    shares = {"agreeing": none | agreeing, "first_preferred": annotator_shares(strict, pl.col("mark") == "1", names)}
    if checks is not None:
        checked = marks.join(checks, on=["task", "first", "second"], suffix="_known")
        shares["checks_right"] = annotator_shares(checked, pl.col("mark") == pl.col("mark_known"), names)
    return {
        row["annotator"]: {"tasks": row["tasks"], "marks": row["marks"]}
        | {name: by_name[row["annotator"]] for name, by_name in shares.items()}
        for row in work.iter_rows(named=True)
    }
