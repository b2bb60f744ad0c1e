"""Votes of simulated people on the items of a simulated run, as metrics get them."""

from typing import Any

import numpy as np
import polars as pl
from pluralbench.data.benchmark_entries import find_benchmark
from pluralbench.data.column_types import DECISIONS
from pluralbench.metrics.decided import Decided


def decided_pairs(scores: np.ndarray, votes: pl.DataFrame, **rows: Any) -> Decided:
    """Return a run that gave pairs these scores, of shape (items, 2).

    Args:
        scores: Score of the response that most people prefer, and of the other one.
        votes: `item`, `response` (0, 1 or null for a tie), `annotator`, and further columns.
        rows: Values of columns of all pairs, such as `cluster`.
    """
    margin = scores[:, 0] - scores[:, 1]
    names = [f"q{number}" for number in range(len(scores))]
    base = pl.DataFrame(
        {
            "config": "c",
            "id": names,
            "cluster": names,
            "outcome": np.select([margin > 0, margin < 0], ["win", "loss"], "tie"),
            "margin": margin,
            "truncated": False,
            "chosen": "chosen",
            "rejected": "rejected",
            "digest": "d",
            **rows,
        },
        schema_overrides={"margin": pl.Float64},
    ).with_columns(subset=pl.lit(None, pl.String))
    responses = base.with_columns(score_chosen=pl.Series(scores[:, 0]), score_rejected=pl.Series(scores[:, 1]))
    annotations = votes.with_columns(id=pl.format("q{}", "item")).join(base.select("id", "config"), on="id")
    decisions = base.select(list(DECISIONS))
    return Decided(find_benchmark("pairs"), decisions, responses=responses, annotations=annotations.drop("item"))


def crossed_votes(
    rng: np.random.Generator, shares: np.ndarray, each: int, people: int, groups: int = 2
) -> pl.DataFrame:
    """Draw votes of `each` people on each item by its share of votes for the first response, by country."""
    items = len(shares)
    item = np.repeat(np.arange(items), each)
    person = np.concatenate([rng.choice(people, each, replace=False) for _ in range(items)])
    response = (rng.random(len(item)) >= shares[item]).astype(np.int64)
    return pl.DataFrame(
        {
            "item": item,
            "annotator": [f"p{one}" for one in person],
            "response": response,
            "attribute_country": [f"country {one % groups}" for one in person],
        }
    )
