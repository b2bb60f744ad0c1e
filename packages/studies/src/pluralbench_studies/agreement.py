"""How far people agree, and the one answer to each question that they come to together.

Answers are a frame of `annotator`, `answer` and other columns, which together tell what was answered (such as `item`
and `question`). Somebody who answered the same twice counts by the first answer.
"""

from collections.abc import Sequence
from typing import Any

import polars as pl
from pluralbench_measures.agreement import clustered_share, krippendorff_alpha, share_of

from pluralbench_studies.answers import CONSENSUS

ONE, AGREED, DISCUSSED, KNOWN, OPEN = "one annotator", "agreement", "discussion", "known answer", "open"
MOST = "majority"


def agreement(
    answers: pl.DataFrame, scale: Sequence[object], *, cluster: str = "item", seed: int = 0
) -> dict[str, Any]:
    """How far annotators agree, as plain JSON values; what a discussion came to does not count here.

    scale: the answers there are, in order. cluster: the column whose values hang together.

    `pairs`: `units` that more than one annotator answered, `compared` pairs of answers on them, how many are
    `agreeing`, and their `share` with the 95 % interval over clusters (`low`, `high`). `alpha`:
    Krippendorff's, for a scale without order ("nominal"), with one ("ordinal") and with even steps ("interval"); None
    where it is not defined. `annotators`: by name, which share of the pairs of answers with others are the same, with
    Wilson's 95 % interval.
    """
    keys = _keys(answers)
    own = own_answers(answers)
    counts = own.group_by(keys).agg(
        *(pl.col("answer").eq(pl.lit(value)).sum().alias(str(place)) for place, value in enumerate(scale))
    )
    units = counts.filter(pl.sum_horizontal(pl.exclude(keys)) > 1).sort(keys)
    both = answer_pairs(answers)
    same = pl.col("answer") == pl.col("answer_other")
    by_cluster = both.group_by(cluster).agg(same.sum() // 2, of=pl.len() // 2).sort(cluster)
    agreeing, of = by_cluster["answer"].to_list(), by_cluster["of"].to_list()
    of_each = both.group_by("annotator").agg(same.sum(), of=pl.len())
    by_name = {name: (count, total) for name, count, total in of_each.iter_rows()}
    return {
        "pairs": {
            "units": units.height,
            "compared": sum(of),
            "agreeing": sum(agreeing),
            **clustered_share(agreeing, of),
        },
        "alpha": dict(krippendorff_alpha(units.drop(keys).rows())),
        "annotators": {name: share_of(*by_name.get(name, (0, 0))) for name in own["annotator"].unique().sort()},
    }


def answer_pairs(answers: pl.DataFrame) -> pl.DataFrame:
    """Each two answers of different annotators to the same: with `annotator_other` and `answer_other`, both ways
    round."""
    own = own_answers(answers)
    both = own.join(own, on=_keys(answers), suffix="_other")
    return both.filter(pl.col("annotator") != pl.col("annotator_other"))


def consensus(answers: pl.DataFrame, known: pl.DataFrame | None = None) -> pl.DataFrame:
    """One answer to each question: what was answered, and `annotators` (how many), `agreed`, `by` and `answer`.

    by: `one annotator`; `agreement`, where several gave the same answer; `discussion`, where the annotator `CONSENSUS`
    sent an answer, which counts before all others; `known answer`, where they differ and the answer is known (`known`:
    answers without an `annotator`); `majority`, where more than half of three or more gave the same answer; or `open`,
    where they differ and nothing settles it, so that `answer` is null.
    """
    keys = _keys(answers)
    theirs = pl.col("annotator") != CONSENSUS
    found = answers.group_by(keys, maintain_order=True).agg(
        annotators=pl.col("annotator").filter(theirs).n_unique(),
        given=pl.col("answer").filter(theirs).unique(maintain_order=True),
        votes=pl.col("answer").filter(theirs).value_counts(sort=True).first(),
        discussed=pl.col("answer").filter(~theirs).first(),
    )
    right = answers.clear().select(*keys, "answer") if known is None else known
    found = found.join(right.rename({"answer": "known"}), on=keys, how="left", maintain_order="left", nulls_equal=True)
    agreed = pl.col("given").list.len() < 2
    by = (
        pl.when(pl.col("discussed").is_not_null())
        .then(pl.lit(DISCUSSED))
        .when(pl.col("annotators") == 1)
        .then(pl.lit(ONE))
        .when(agreed)
        .then(pl.lit(AGREED))
        .when(pl.col("known").is_not_null())
        .then(pl.lit(KNOWN))
        .when(2 * pl.col("votes").struct.field("count") > pl.col("annotators"))
        .then(pl.lit(MOST))
        .otherwise(pl.lit(OPEN))
    )
    return found.with_columns(agreed=agreed, by=by).select(
        *keys,
        "annotators",
        "agreed",
        "by",
        answer=pl.when(by == DISCUSSED)
        .then("discussed")
        .when(by == KNOWN)
        .then("known")
        .when(by == MOST)
        .then(pl.col("votes").struct.field("answer"))
        .when(by != OPEN)
        .then(pl.col("given").list.first()),
    )


def consensus_counts(found: pl.DataFrame) -> dict[str, Any]:
    """How many answers of a `consensus` more than one annotator gave, and what came of them, as plain JSON values.

    `agreed` is a share with its interval; `differed` are the others, of which some were settled by `discussion`, by a
    `known answer` or by a `majority`, and the rest is `open`.
    """
    several = found.filter(pl.col("annotators") > 1)
    differed = several.filter(~pl.col("agreed"))
    counts = dict(differed.group_by("by").len().iter_rows())
    return {
        "double_marked": several.height,
        "agreed": share_of(several.height - differed.height, several.height),
        "differed": differed.height,
        **{by: counts.get(by, 0) for by in (DISCUSSED, KNOWN, MOST, OPEN)},
    }


def majority(answers: pl.DataFrame) -> pl.DataFrame:
    """The answer to each question that more annotators gave than any other: what was answered, and `annotators` (how
    many), `votes` (for the answer) and `answer`, which is null where two answers have as many votes."""
    keys = _keys(answers)
    votes = own_answers(answers).group_by([*keys, "answer"], maintain_order=True).len("votes")
    return (
        votes.sort("votes", descending=True, maintain_order=True)
        .group_by(keys, maintain_order=True)
        .agg(
            annotators=pl.col("votes").sum(),
            first=pl.col("answer").first(),
            tied=pl.col("votes").eq(pl.col("votes").first()).sum() > 1,
            votes=pl.col("votes").first(),
        )
        .select(*keys, "annotators", "votes", answer=pl.when(~pl.col("tied")).then("first"))
    )


def share_over(frame: pl.DataFrame, cluster: str, hit: pl.Expr) -> dict[str, Any]:
    """The share of rows that are a `hit`, as `count`, `of`, `share`, and `low` and `high`, its 95 % interval over the
    values of the column `cluster`."""
    by_cluster = frame.group_by(cluster).agg(hit.sum().alias("hit"), of=pl.len()).sort(cluster)
    counts, of = by_cluster["hit"].to_list(), by_cluster["of"].to_list()
    return {"count": sum(counts), "of": sum(of), **clustered_share(counts, of)}


def _keys(answers: pl.DataFrame) -> list[str]:
    return [name for name in answers.columns if name not in {"annotator", "answer"}]


def own_answers(answers: pl.DataFrame) -> pl.DataFrame:
    """Each annotator's first answer to each, without what a discussion came to."""
    people = answers.filter(pl.col("annotator") != CONSENSUS)
    return people.unique([*_keys(answers), "annotator"], keep="first", maintain_order=True)
