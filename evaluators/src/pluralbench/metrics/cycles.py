"""Cycles in the preferences of models that only compare two responses."""

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pluralbench.metrics.best_of_n import Key, mean_numbers
from pluralbench.metrics.metric import Metric, Numbers

if TYPE_CHECKING:
    from pluralbench_measures.bootstrap import Array

TRIPLE = 3

METRICS = (
    Metric(
        "cyclic_triples",
        "share",
        "Share of triples of candidates whose preferences are a cycle, of those without a tie: mean over prompts.",
        ("model", "config model"),
    ),
)


def cyclic_numbers(
    candidates: pl.DataFrame, comparisons: pl.DataFrame, models: Sequence[str], *, by_config: bool
) -> Numbers:
    """Yield the share of cyclic triples of each model that only compares, over the candidates of the first turn."""
    items = candidates.filter(turn=0).select("config", "id", "cluster").unique(maintain_order=True)
    columns: dict[Key, Array] = {}
    for model in models:
        own = comparisons.filter(turn=0, model=model).partition_by("config", "id", as_dict=True)
        shares = [share_of_cycles(own[key]) if key in own else np.nan for key in items.select("config", "id").rows()]
        if not np.isnan(shares).all():
            columns[model, "cyclic_triples", None] = np.array(shares)
    if columns:
        yield from mean_numbers(items, columns, "model", by_config=by_config, within=(0.0, 1.0))


def share_of_cycles(compared: pl.DataFrame) -> float:
    """Return the share of cyclic triples of a prompt's candidates; NaN without a triple that has no tie.

    A candidate is preferred if its mean probability over both orders is above 1/2.
    """
    names = compared["sample"].unique().sort()
    if len(names) < TRIPLE:
        return np.nan
    first, second = (names.search_sorted(compared[name]).to_numpy() for name in ("sample", "other"))
    shown_first = np.full((len(names), len(names)), np.nan)
    shown_first[first, second] = compared["probability"].to_numpy()
    # The mean over both orders is above 1/2 where the candidate wins by more as the first than it loses as the second.
    preferred = np.sign(shown_first - shown_first.T)
    a, b, c = np.array([*combinations(range(len(names)), TRIPLE)]).T
    signs = np.stack([preferred[a, b], preferred[b, c], preferred[c, a]])
    decided = np.isin(signs, (-1, 1)).all(0)
    return float((abs(signs.sum(0)) == TRIPLE)[decided].mean()) if decided.any() else np.nan
