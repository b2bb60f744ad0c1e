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
from pluralbench_studies import CONSENSUS, draw
from pluralbench_studies.agreement import OPEN
from pluralbench_studies.answers import MISSING, NOT_ASSIGNED, TWICE

from build_chinese.annotation.annotations import Annotations
from build_chinese.annotation.forms import with_texts
from build_chinese.errors import AnnotationsError
from build_chinese.recipe import Tasks

ON = ["prompt", "task", "first", "second"]
SEED = 0  # the draw does not depend on the marks, so any seed will do
ASSIGNMENTS = pl.Schema({"task": pl.String, "annotator": pl.String})


@dataclass(frozen=True)
class Rounds:
    """Tasks of the next round, with columns of `forms.with_texts`.

    Attributes:
        pair_agreement: Agreement of each two annotators, JSON.
        again: Tasks that the same annotators mark again.
        third: Tasks for a third annotator.
        review: Tasks for the next reviewer; empty until all other tasks are settled.
        reviewed: Agreement of each reviewer so far with the marks that counted, JSON.
    """

    pair_agreement: list[dict[str, Any]]
    again: pl.DataFrame
    third: pl.DataFrame
    review: pl.DataFrame
    reviewed: Sequence[dict[str, Any]]


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
    unsettled = set(agreed.filter(by=OPEN)["task"]) if options.consensus == "discussion" else set()
    done = set(marks["task"]) - unsettled
    thirds = third_annotators(again, tasks)
    pairs = pair_agreement(marks.join(thirds, on=thirds.columns, how="anti"), options.least_agreement)
    third = to_third(pairs, again, marks, tasks["annotator"].unique().to_list(), done)
    drawn = [] if unsettled else to_review(marks, options.review_share, len(verdicts))
    review = pl.DataFrame({"task": drawn, "annotator": [CONSENSUS] * len(drawn)}, schema=ASSIGNMENTS)
    each = tasks.unique("task", keep="first", maintain_order=True).drop("annotator")

    def sheet_rows(assignments: pl.DataFrame) -> pl.DataFrame:
        return with_texts(each.join(assignments, on="task", maintain_order="left"), prompts)

    again_rows = sheet_rows(to_mark_again(pairs, again, marks, done))
    return Rounds(pairs, again_rows, sheet_rows(third), sheet_rows(review), verdicts)


def check_first_round(problems: pl.DataFrame) -> None:
    """Raise `AnnotationsError` if the files of the first round have a sheet of a later one.

    Its tasks are submitted once more although everybody submitted theirs. Marks of later rounds would enter the
    agreement of the first.

    Args:
        problems: `Annotations.problems` of the first round.
    """
    missing = problems.filter(kind=MISSING)["task"]
    more = problems.filter(pl.col("kind").is_in([TWICE, NOT_ASSIGNED]) & ~pl.col("task").is_in(missing.implode()))
    if more.height:
        raise AnnotationsError(
            f"{more['annotator'][0]} submitted the task {more['task'][0]} besides everybody it was assigned to "
            f"({more['detail'][0]}); put `again=...` before each file of a later round."
        )


def replace_marks(first: Annotations, again: Annotations) -> Annotations:
    """Replace the annotations of tasks that an annotator marked again.

    Args:
        first: Annotations of the first round.
        again: Annotations of later rounds. Tasks that are missing from them are not reported as problems.
    """
    keys = ["task", "annotator"]
    marked_again = again.marks.select(keys).unique()
    parts = {
        name: pl.concat([getattr(first, name).join(marked_again, on=keys, how="anti"), getattr(again, name)])
        for name in ("marks", "scores", "remarks")
    }
    done = marked_again.with_columns(kind=pl.lit(MISSING))
    problems = again.problems.filter(~pl.col("kind").is_in([MISSING, NOT_ASSIGNED]))
    remaining = first.problems.join(done, on=["kind", *keys], how="anti")
    return Annotations(**parts, problems=pl.concat([remaining, problems]))


def third_annotators(again: pl.DataFrame, tasks: pl.DataFrame) -> pl.DataFrame:
    """Return the tasks that third annotators marked (columns of `ASSIGNMENTS`).

    Two others differed on these tasks, so the marks do not enter the agreement. `again`: the marks of later rounds.
    """
    return again.select(ASSIGNMENTS.names()).unique().join(tasks, on=ASSIGNMENTS.names(), how="anti")


def pair_agreement(marks: pl.DataFrame, least: float) -> list[dict[str, Any]]:
    """Compute the agreement of each two annotators who marked the same tasks.

    Args:
        marks: Columns of `annotations.MARKS`.
        least: Share of equal marks that is enough.

    Returns:
        For each two `annotators`: `agreeing`, the share of pairs of responses that both marked alike, with Wilson's
        95 % interval; `enough`, whether it reaches `least`; `tasks`, those on which they differ.
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
        {
            "annotators": [one, other],
            "agreeing": share_of(agreeing, of),
            "enough": agreeing >= least * of,
            "tasks": tasks,
        }
        for one, other, agreeing, of, tasks in pairs.iter_rows()
    ]


def to_mark_again(
    pairs: Sequence[dict[str, Any]], again: pl.DataFrame, marks: pl.DataFrame, settled: Collection[str]
) -> pl.DataFrame:
    """Select the tasks that two annotators mark again (columns of `ASSIGNMENTS`).

    Args:
        pairs: Result of `pair_agreement`.
        again: The marks of later rounds; a task goes back to an annotator once.
        marks: All marks.
        settled: Tasks on which nothing is open.
    """
    rows = dict.fromkeys((task, name) for task, names in _differing_tasks(pairs, marks, settled) for name in names)
    both = pl.DataFrame(list(rows), schema=ASSIGNMENTS, orient="row")
    return both.join(again, on=ASSIGNMENTS.names(), how="anti", maintain_order="left")


def to_third(
    pairs: Sequence[dict[str, Any]],
    again: pl.DataFrame,
    marks: pl.DataFrame,
    annotators: Collection[str],
    settled: Collection[str],
) -> pl.DataFrame:
    """Draw a third annotator for each task that both annotators marked again and still differ on.

    A task that all annotators have marked gets no third one and is discussed. The result has columns of `ASSIGNMENTS`.
    """
    back = set(again.select("task", "annotator").iter_rows())
    tasks = dict.fromkeys(
        task for task, names in _differing_tasks(pairs, marks, settled) if all((task, name) in back for name in names)
    )
    rows = []
    for task in tasks:
        others = sorted(set(annotators) - set(marks.filter(task=task)["annotator"]))
        if others:
            rows.append((task, rng_for(SEED, "third annotator", task).choice(others)))
    return pl.DataFrame(rows, schema=ASSIGNMENTS, orient="row")


def to_review(marks: pl.DataFrame, shares: Sequence[float], done: int) -> list[str]:
    """Draw the tasks of the next reviewer: a share of the marked ones. `done`: number of finished reviews."""
    tasks = marks["task"].unique(maintain_order=True).to_list()
    return draw(tasks, round(shares[done] * len(tasks)), SEED + done, "review") if done < len(shares) else []


def review_agreement(review: pl.DataFrame, counted: pl.DataFrame) -> dict[str, Any]:
    """Share of a reviewer's marks that equal the marks that counted, with Wilson's 95 % interval."""
    both = review.join(counted, on=ON, suffix="_counted")
    return {
        "tasks": review["task"].n_unique(),
        **share_of(both.filter(pl.col("mark") == pl.col("mark_counted")).height, both.height),
    }


def _differing_tasks(
    pairs: Sequence[dict[str, Any]], marks: pl.DataFrame, settled: Collection[str]
) -> list[tuple[str, list[str]]]:
    """The tasks on which two annotators with too little agreement differ, without those that a third has marked."""
    counts = marks.filter(pl.col("annotator") != CONSENSUS).group_by("task").agg(pl.col("annotator").n_unique())
    two = set(counts.filter(pl.col("annotator") <= 2)["task"]) - set(settled)
    too_low = [pair for pair in pairs if not pair["enough"]]
    return [(task, pair["annotators"]) for pair in too_low for task in pair["tasks"] if task in two]
