"""Rounds of annotation: marking again, third annotators, discussion and review (CHEEMS, appendix D.1).

Two annotators of the same tasks have to agree on 90 % of the pairs. If they do not, the tasks on which they differ go
back to both, who mark them again independently. If they still differ, a third annotator marks them and the majority
decides. The rest is discussed. Once every task is settled, a reviewer marks 30 % of them blindly, and then a second
reviewer marks another random 30 %.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from pluralbench_measures.agreement import share_of
from pluralbench_runs import rng_for
from pluralbench_studies import CONSENSUS, StudyError, draw
from pluralbench_studies.agreement_statistics import OPEN
from pluralbench_studies.reading import MISSING, NOT_ASSIGNED, TWICE

from build_chinese.annotation.annotations import Annotations
from build_chinese.annotation.forms import with_texts
from build_chinese.recipe import Tasks

ON = ["prompt", "task", "first", "second"]
SEED = 0  # the draw does not depend on the marks, so any seed will do
ASSIGNMENTS = pl.Schema({"task": pl.String, "annotator": pl.String})


@dataclass(frozen=True)
class Rounds:
    """Where the annotation stands.

    Attributes:
        pair_agreement: Agreement of each two annotators, JSON.
        reviewed: Agreement of each reviewer so far with the marks that counted, JSON.
        sheets: Tasks of the next round (`forms.with_texts`) by name: `again` for the same annotators, for a `third`
            one, to `discuss` if there are none of these, and for the next `review` if nothing is open.
    """

    pair_agreement: list[dict[str, Any]]
    reviewed: Sequence[dict[str, Any]]
    sheets: dict[str, pl.DataFrame]


def next_round(
    marks: pl.DataFrame,
    again: pl.DataFrame,
    agreed: pl.DataFrame,
    tasks: pl.DataFrame,
    prompts: pl.DataFrame,
    options: Tasks,
    verdicts: Sequence[dict[str, Any]],
) -> Rounds:
    """Select the tasks of the next round.

    Args:
        marks: All marks that count, columns of `annotations.MARKS`.
        again: The marks of earlier rounds (same annotators or third annotators).
        agreed: The consensus that `annotations.judgments_of` returns.
        tasks: Columns of `tasks.TASKS`.
        prompts: Prompts with `responses`.
        options: Rules of the rounds.
        verdicts: Results of `review_agreement`, one for each finished review.
    """
    unsettled = set(agreed.filter(by=OPEN)["task"])
    done = set(marks["task"]) - unsettled
    thirds = third_annotators(again, tasks)
    pairs = pair_agreement(marks.join(thirds, on=thirds.columns, how="anti"), options.least_agreement)
    back, third = next_annotators(pairs, again, marks, set(tasks["annotator"]), done)
    discuss = [] if back or third else [(task, CONSENSUS) for task in unsettled]
    review: list[tuple[str, str]] = []
    if not unsettled and len(verdicts) < len(options.review_share):
        marked = marks["task"].unique(maintain_order=True).to_list()
        share = options.review_share[len(verdicts)]
        drawn = draw(marked, round(share * len(marked)), SEED + len(verdicts), "review")
        review = [(task, CONSENSUS) for task in drawn]
    each = tasks.unique("task", keep="first", maintain_order=True).drop("annotator")

    def sheet_rows(rows: Sequence[tuple[str, str]]) -> pl.DataFrame:
        assignments = pl.DataFrame(rows, schema=ASSIGNMENTS, orient="row")
        return with_texts(each.join(assignments, on="task", maintain_order="left"), prompts)

    rows = {"again": back, "third": third, "discuss": discuss, "review": review}
    return Rounds(pairs, verdicts, {name: sheet_rows(assignments) for name, assignments in rows.items()})


def check_first_round(problems: pl.DataFrame) -> None:
    """Raise `StudyError` if the files of the first round have a sheet of a later one.

    Its tasks are submitted once more although everybody submitted theirs, and would enter the first round's agreement.
    """
    missing = problems.filter(kind=MISSING)["task"]
    more = problems.filter(pl.col("kind").is_in([TWICE, NOT_ASSIGNED]) & ~pl.col("task").is_in(missing.implode()))
    if more.height:
        raise StudyError(
            f"{more['annotator'][0]} submitted the task {more['task'][0]} besides everybody it was assigned to "
            f"({more['detail'][0]}); put `again=...` before each file of a later round."
        )


def replace_marks(first: Annotations, again: Annotations) -> Annotations:
    """Replace the annotations of tasks that an annotator marked again; other tasks are no problem of `again`."""
    keys = ["task", "annotator"]
    marked_again = again.marks.select(keys).unique()
    parts = {
        name: pl.concat([getattr(first, name).join(marked_again, on=keys, how="anti"), getattr(again, name)])
        for name in ("marks", "remarks")
    }
    done = marked_again.with_columns(kind=pl.lit(MISSING))
    problems = again.problems.filter(~pl.col("kind").is_in([MISSING, NOT_ASSIGNED]))
    remaining = first.problems.join(done, on=["kind", *keys], how="anti")
    return Annotations(**parts, problems=pl.concat([remaining, problems]))


def third_annotators(again: pl.DataFrame, tasks: pl.DataFrame) -> pl.DataFrame:
    """Return the tasks that third annotators marked (`ASSIGNMENTS`): on these, two others differed."""
    return again.select(ASSIGNMENTS.names()).unique().join(tasks, on=ASSIGNMENTS.names(), how="anti")


def pair_agreement(marks: pl.DataFrame, least: float) -> list[dict[str, Any]]:
    """Compute the agreement of each two annotators who marked the same tasks.

    Returns:
        For each two `annotators`: `agreeing`, the share of pairs of responses that both marked alike, with Wilson's 95
        % interval; `enough`, whether it reaches `least`; `tasks`, those on which they differ.
    """
    individual = marks.filter(pl.col("annotator") != CONSENSUS)
    both = individual.join(individual, on=ON, suffix="_other").filter(pl.col("annotator") < pl.col("annotator_other"))
    same = pl.col("mark") == pl.col("mark_other")
    pairs = (
        both.sort("annotator", "annotator_other", "task")
        .group_by("annotator", "annotator_other", maintain_order=True)
        .agg(same.sum().alias("agreeing"), pl.len(), pl.col("task").filter(~same).unique(maintain_order=True))
    )
    return [
        {"annotators": names, "agreeing": share_of(agreeing, of), "enough": agreeing >= least * of, "tasks": tasks}
        for *names, agreeing, of, tasks in pairs.iter_rows()
    ]


def next_annotators(
    pairs: Sequence[dict[str, Any]],
    again: pl.DataFrame,
    marks: pl.DataFrame,
    annotators: Collection[str],
    settled: Collection[str],
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Select who marks the tasks next on which two annotators with too little agreement differ.

    A task goes back to both once. Then a third annotator is drawn for it, if there is one who has not marked it.

    Returns:
        Tasks and annotators: those who mark again, and third ones.
    """
    individual = marks.filter(pl.col("annotator") != CONSENSUS)
    marked = dict(individual.group_by("task").agg(pl.col("annotator").unique()).iter_rows())
    seen = set(again.select(ASSIGNMENTS.names()).iter_rows())
    differing = [(task, pair["annotators"]) for pair in pairs if not pair["enough"] for task in pair["tasks"]]
    back: dict[tuple[str, str], None] = {}
    third: dict[str, str] = {}
    for task, names in differing:
        if task in settled or len(marked[task]) > 2:
            continue
        waiting = [(task, name) for name in names if (task, name) not in seen]
        back |= dict.fromkeys(waiting)
        others = sorted(set(annotators) - set(marked[task]))
        if others and not waiting:
            third[task] = rng_for(SEED, "third annotator", task).choice(others)
    return [*back], [*third.items()]


def review_agreement(review: pl.DataFrame, counted: pl.DataFrame) -> dict[str, Any]:
    """Share of a reviewer's marks that equal the marks that counted, with Wilson's 95 % interval."""
    both = review.join(counted, on=ON, suffix="_counted")
    equal = both.filter(pl.col("mark") == pl.col("mark_counted"))
    return {"tasks": review["task"].n_unique(), **share_of(equal.height, both.height)}
