"""Agreement of annotators, and one answer to each question.

Answers are a frame of `annotator`, `answer` and key columns such as `item` and `question`. If an annotator has several
answers with the same key, the first one counts.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl
from pluralbench_measures.agreement import clustered_share, krippendorff_alpha, share_of

from pluralbench_studies.reading import CONSENSUS

SINGLE, AGREED, DISCUSSED, KNOWN, OPEN = "one annotator", "agreement", "discussion", "known answer", "open"
MAJORITY = "majority"


def agreement(answers: pl.DataFrame, scale: Sequence[object], *, cluster: str = "item") -> dict[str, Any]:
    """Measure the agreement of annotators on a scale of all possible answers, in order, without those of discussions.

    Returns:
        Plain JSON values. `pairs`: `units` that more than one annotator answered, `compared` pairs of answers, those
        that are `agreeing`, and their `share` with the 95 % interval over clusters (`low`, `high`). `alpha`:
        Krippendorff's alpha for a scale without order ("nominal"), with order ("ordinal") and with equal steps
        ("interval"); None if it is undefined. `annotators`: by name, the share of pairs of answers with others that
        agree, with Wilson's 95 % interval.
    """
    keys = _keys(answers)
    individual = first_answers(answers)
    counts = individual.group_by(keys).agg(
        *(pl.col("answer").eq(pl.lit(value)).sum().alias(str(place)) for place, value in enumerate(scale))
    )
    units = counts.filter(pl.sum_horizontal(pl.exclude(keys)) > 1).sort(keys)
    pairs = answer_pairs(answers)
    same = pl.col("answer") == pl.col("answer_other")
    once = share_over(pairs.filter(pl.col("annotator") < pl.col("annotator_other")), cluster, same)
    return {
        "pairs": {"units": units.height, "compared": once.pop("of"), "agreeing": once.pop("count"), **once},
        "alpha": dict(krippendorff_alpha(units.drop(keys).rows())),
        "annotators": annotator_shares(pairs, same, individual["annotator"].unique().sort()),
    }


def answer_pairs(answers: pl.DataFrame) -> pl.DataFrame:
    """Return all pairs of answers of different annotators with the same key, in both orders.

    The second answer is in the columns `annotator_other` and `answer_other`.
    """
    individual = first_answers(answers)
    pairs = individual.join(individual, on=_keys(answers), suffix="_other")
    return pairs.filter(pl.col("annotator") != pl.col("annotator_other"))


def consensus(answers: pl.DataFrame, known: pl.DataFrame | None = None) -> pl.DataFrame:
    """Determine one answer to each question. `known` has known answers, without `annotator`.

    Returns:
        The key columns, `annotators` (their number), `agreed`, `by` and `answer`. `by` is `one annotator`; `agreement`,
        if several gave the same answer; `discussion`, if the annotator `CONSENSUS` sent an answer, which overrides all
        others; `known answer`, if they differ and the answer is known; `majority`, if more than half of three or more
        gave the same answer; or `open`, if they differ and nothing else decides, so that `answer` is null.
    """
    keys = _keys(answers)
    individual = pl.col("annotator") != CONSENSUS
    outcomes = answers.group_by(keys, maintain_order=True).agg(
        annotators=pl.col("annotator").filter(individual).n_unique(),
        distinct=pl.col("answer").filter(individual).unique(maintain_order=True),
        votes=pl.col("answer").filter(individual).value_counts(sort=True).first(),
        discussed=pl.col("answer").filter(~individual).first(),
    )
    correct = answers.clear().select(*keys, "answer") if known is None else known
    outcomes = outcomes.join(
        correct.rename({"answer": "known"}), on=keys, how="left", maintain_order="left", nulls_equal=True
    )
    agreed, annotators = pl.col("distinct").list.len() < 2, pl.col("annotators")
    first, votes = pl.col("distinct").list.first(), pl.col("votes").struct
    rules = (
        (DISCUSSED, pl.col("discussed").is_not_null(), pl.col("discussed")),
        (SINGLE, annotators == 1, first),
        (AGREED, agreed, first),
        (KNOWN, pl.col("known").is_not_null(), pl.col("known")),
        (MAJORITY, 2 * votes.field("count") > annotators, votes.field("answer")),
    )
    by = pl.coalesce(*(pl.when(applies).then(pl.lit(name)) for name, applies, _ in rules), pl.lit(OPEN))
    answer = pl.coalesce(*(pl.when(applies).then(result) for _, applies, result in rules))
    return outcomes.select(*keys, "annotators", agreed=agreed, by=by, answer=answer)


def consensus_counts(outcomes: pl.DataFrame) -> dict[str, Any]:
    """Count the outcomes of `consensus` for questions that more than one annotator answered, as plain JSON values.

    `double_marked` is the number of these questions, `agreed` a share with its interval, `differed` the number of the
    others. These were decided by `discussion`, a `known answer` or a `majority`, or are `open`.
    """
    multiple = outcomes.filter(pl.col("annotators") > 1)
    differed = multiple.filter(~pl.col("agreed"))
    counts = dict(differed.group_by("by").len().iter_rows())
    return {
        "double_marked": multiple.height,
        "agreed": share_of(multiple.height - differed.height, multiple.height),
        "differed": differed.height,
        **{by: counts.get(by, 0) for by in (DISCUSSED, KNOWN, MAJORITY, OPEN)},
    }


def majority(answers: pl.DataFrame) -> pl.DataFrame:
    """Determine the most frequent answer to each question, null if two have the same number of votes.

    Returns the key columns, `annotators` (their number), `votes` (for the answer) and `answer`.
    """
    keys = _keys(answers)
    votes = first_answers(answers).group_by([*keys, "answer"], maintain_order=True).len("votes")
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


def share_over(frame: pl.DataFrame, cluster: str | Sequence[str], hit: pl.Expr) -> dict[str, Any]:
    """Compute the share of rows for which `hit` is true.

    Returns:
        `count`, `of`, `share`, and `low` and `high`, its 95 % interval over clusters.
    """
    by_cluster = frame.group_by(cluster).agg(hit.sum().alias("hit"), of=pl.len()).sort(cluster)
    counts, of = by_cluster["hit"].to_list(), by_cluster["of"].to_list()
    return {"count": sum(counts), "of": sum(of), **clustered_share(counts, of)}


def annotator_shares(frame: pl.DataFrame, hit: pl.Expr, names: Iterable[str]) -> dict[str, Any]:
    """Compute each annotator's share of the rows for which `hit` is true, with Wilson's 95 % interval."""
    counts = frame.group_by("annotator").agg(hit.sum().alias("hits"), of=pl.len())
    by_name = {name: (hits, of) for name, hits, of in counts.iter_rows()}
    return {name: share_of(*by_name.get(name, (0, 0))) for name in names}


def _keys(answers: pl.DataFrame) -> list[str]:
    return [name for name in answers.columns if name not in {"annotator", "answer"}]


def first_answers(answers: pl.DataFrame) -> pl.DataFrame:
    """Return the first answer of each annotator to each question, without outcomes of discussions."""
    individual = answers.filter(pl.col("annotator") != CONSENSUS)
    return individual.unique([*_keys(answers), "annotator"], keep="first", maintain_order=True)
