"""What happens to marks that two annotators do not agree on, and to a share of those that they do (appendix D.1).

Two annotators of the same tasks are to agree on 90 % of what both marked. Where they do not, the tasks on which they
differ go back to both, who mark them once more, each alone; where they still do not, a third annotator marks them, and
two of three decide. Whatever is left is discussed. Of what is settled, a reviewer marks 30 % without seeing the marks,
and then another one 30 % of all of it, drawn anew.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from pluralbench_measures.agreement import share_of
from pluralbench_runs import rng_for
from pluralbench_studies import CONSENSUS, draw
from pluralbench_studies.agreement import OPEN

from build_chinese.annotation.annotations import Annotations
from build_chinese.annotation.forms import shown
from build_chinese.recipe import Tasks

ON = ["prompt", "task", "first", "second"]
SEED = 0  # who is drawn says nothing of the marks, so that any seed does
GIVEN = pl.Schema({"task": pl.String, "annotator": pl.String})


@dataclass(frozen=True)
class Rounds:
    """What goes back to whom, as sheets show it (columns of `forms.shown`).

    markers: how far each two annotators agree, JSON. again, third: tasks for the same two once more, and for a third.
    review: tasks for the next reviewer, none before all else is settled. reviewed: how often each agreed so far, JSON.
    """

    markers: list[dict[str, Any]]
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
    """What is to be done next. again: the marks that came back. agreed: of `judgements_of`. verdicts: of `reviewed`."""
    unsettled = set(agreed.filter(by=OPEN)["task"]) if options.consensus == "discussion" else set()
    done = set(marks["task"]) - unsettled
    thirds = third_annotators(again, tasks)
    pairs = markers(marks.join(thirds, on=thirds.columns, how="anti"), options.least_agreement)
    third = to_third(pairs, again, marks, tasks["annotator"].unique().to_list(), done)
    drawn = [] if unsettled else to_review(marks, options.review_share, len(verdicts))
    review = pl.DataFrame({"task": drawn, "annotator": [CONSENSUS] * len(drawn)}, schema=GIVEN)
    each = tasks.unique("task", keep="first", maintain_order=True).drop("annotator")

    def seen(given: pl.DataFrame) -> pl.DataFrame:
        return shown(each.join(given, on="task", maintain_order="left"), prompts)

    return Rounds(pairs, seen(to_mark_again(pairs, again, marks, done)), seen(third), seen(review), verdicts)


def with_more(first: Annotations, again: Annotations) -> Annotations:
    """Annotations in which what was marked once more counts in place of what was marked before.

    again: of tasks that went back, or to a third annotator; that other tasks are not in it is no problem.
    """
    keys = ["task", "annotator"]
    anew = again.marks.select(keys).unique()
    parts = {
        name: pl.concat([getattr(first, name).join(anew, on=keys, how="anti"), getattr(again, name)])
        for name in ("marks", "scores", "remarks")
    }
    done = anew.with_columns(kind=pl.lit("missing"))
    ours = again.problems.filter(~pl.col("kind").is_in(["missing", "wrong annotator"]))
    return Annotations(**parts, problems=pl.concat([first.problems.join(done, on=["kind", *keys], how="anti"), ours]))


def third_annotators(again: pl.DataFrame, tasks: pl.DataFrame) -> pl.DataFrame:
    """Who marked which task as a third annotator (columns of `GIVEN`), on which two others differed before.

    So their marks say nothing of how far annotators agree. again: marks that came back.
    """
    return again.select(GIVEN.names()).unique().join(tasks, on=GIVEN.names(), how="anti")


def markers(marks: pl.DataFrame, least: float) -> list[dict[str, Any]]:
    """Each two annotators who marked the same tasks, JSON: how far they agree, and whether that is `enough`.

    `compared` pairs of responses, of which `agreeing` (a share with Wilson's 95 % interval) have the same mark of both;
    `tasks`: those on which they differ.
    """
    own = marks.filter(pl.col("annotator") != CONSENSUS)
    both = own.join(own, on=ON, suffix="_other").filter(pl.col("annotator") < pl.col("annotator_other"))
    same = pl.col("mark") == pl.col("mark_other")
    found = (
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
        for one, other, agreeing, of, tasks in found.iter_rows()
    ]


def to_mark_again(
    pairs: Sequence[dict[str, Any]], again: pl.DataFrame, marks: pl.DataFrame, settled: Collection[str]
) -> pl.DataFrame:
    """Which tasks go back to whom (columns of `GIVEN`): those on which two differ too often, and have not been back.

    pairs: of `markers`. again: marks that came back. settled: tasks on which nothing is open.
    """
    rows = dict.fromkeys((task, name) for task, names in _open(pairs, marks, settled) for name in names)
    both = pl.DataFrame(list(rows), schema=GIVEN, orient="row")
    return both.join(again, on=GIVEN.names(), how="anti", maintain_order="left")


def to_third(
    pairs: Sequence[dict[str, Any]],
    again: pl.DataFrame,
    marks: pl.DataFrame,
    annotators: Collection[str],
    settled: Collection[str],
) -> pl.DataFrame:
    """Which tasks go to a third annotator, drawn among those who did not mark them (columns of `GIVEN`).

    These are tasks that have been back to both and on which the two still differ, too often. A task that everybody has
    marked is for a discussion.
    """
    back = set(again.select("task", "annotator").iter_rows())
    tasks = dict.fromkeys(
        task for task, names in _open(pairs, marks, settled) if all((task, name) in back for name in names)
    )
    rows = []
    for task in tasks:
        others = sorted(set(annotators) - set(marks.filter(task=task)["annotator"]))
        if others:
            rows.append((task, rng_for(SEED, "third annotator", task).choice(others)))
    return pl.DataFrame(rows, schema=GIVEN, orient="row")


def to_review(marks: pl.DataFrame, shares: Sequence[float], done: int) -> list[str]:
    """The tasks that the next reviewer marks, drawn: a share of those that were marked. done: stages that are over."""
    tasks = marks["task"].unique(maintain_order=True).to_list()
    return draw(tasks, round(shares[done] * len(tasks)), SEED + done, "review") if done < len(shares) else []


def reviewed(review: pl.DataFrame, counted: pl.DataFrame) -> dict[str, Any]:
    """How often a reviewer's marks are those that count, as a share with Wilson's 95 % interval."""
    both = review.join(counted, on=ON, suffix="_counted")
    return {
        "tasks": review["task"].n_unique(),
        **share_of(both.filter(pl.col("mark") == pl.col("mark_counted")).height, both.height),
    }


def _open(
    pairs: Sequence[dict[str, Any]], marks: pl.DataFrame, settled: Collection[str]
) -> list[tuple[str, list[str]]]:
    """The tasks on which two annotators differ who agree too little, and the two, where no third has marked them."""
    counts = marks.filter(pl.col("annotator") != CONSENSUS).group_by("task").agg(pl.col("annotator").n_unique())
    two = set(counts.filter(pl.col("annotator") <= 2)["task"]) - set(settled)
    little = [pair for pair in pairs if not pair["enough"]]
    return [(task, pair["annotators"]) for pair in little for task in pair["tasks"] if task in two]
