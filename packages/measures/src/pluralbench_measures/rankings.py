"""How well rewards keep rankings: accuracy over pairs and exact match over prompts.

CHEEMS, section 3.3. A pair is right when the better response has strictly the higher reward; a prompt is an exact match
when all its pairs are right. Within a category both are shares of all pairs and of all prompts; a subset (a config) has
the unweighted mean of its categories, and the overall number is the mean over subsets of the mean of the two.
"""

from collections.abc import Sequence
from itertools import combinations
from math import isfinite
from typing import Any

import numpy as np
import polars as pl

from pluralbench_measures.bootstrap import Array, ratio
from pluralbench_measures.calibration import BINS, bins_of, calibration_error
from pluralbench_measures.errors import MeasuresError


def ranking_metrics(items: pl.DataFrame, *, legacy: bool = False) -> dict[str, Any]:
    """Accuracy, exact match and calibration error of rewards, as plain numbers from 0 to 1.

    items: a row a prompt with `config` (the subset), `category`, `rank` (a list of integers, lower is better, ties
    share one) and `reward` (a list of floats, one for each rank; what is no finite number makes a pair wrong).
    legacy: as the authors' code has it: see `by_prompt` and `pluralbench_measures.calibration.bins_of`.

    Returns `overall`, `accuracy` and `exact_match` (means over subsets), `calibration_error` (over all pairs), and
    `configs`, each with `accuracy`, `exact_match`, `pairs`, `prompts` (that count for exact match), `without_pair`
    (prompts whose responses share one rank) and `categories` of the same. What cannot be said is None.
    Raises `MeasuresError` for a prompt that has not as many rewards as ranks.
    """
    pairs = _compared(items)
    prompts = by_prompt(pairs, ["prompt", "config", "category"], legacy=legacy)
    configs: dict[str, dict[str, Any]] = {}
    for (config,), own in prompts.partition_by("config", as_dict=True).items():
        parts = own.partition_by("category", as_dict=True)
        sums = [_sums(part) for part in parts.values()]
        cell = _cell(sums)
        configs[str(config)] = cell | {
            "categories": {name or "": _cell([one]) for (name,), one in zip(parts, sums, strict=True)}
        }
    accuracy, exact = (
        [np.array(np.nan if cell[name] is None else cell[name]) for cell in configs.values()]
        for name in ("accuracy", "exact_match")
    )
    counted = pairs.filter(pl.col("margin").is_not_null())
    difference = counted["margin"].abs().to_numpy()
    bins = bins_of(difference, legacy=legacy)
    right = (counted["outcome"] == "win").to_numpy().astype(np.float64)
    binned = [
        np.bincount(bins[bins >= 0], values[bins >= 0], BINS).astype(np.float64)
        for values in (right, np.ones(len(bins)), difference)
    ]
    return {
        "overall": _number(overall(accuracy, exact)),
        "accuracy": _number(np.mean(accuracy) if accuracy else np.nan),
        "exact_match": _number(np.mean(exact) if exact else np.nan),
        "calibration_error": _number(calibration_error(*binned)),
        "configs": configs,
    }


def pairs_of(rank: Sequence[int]) -> list[tuple[int, int]]:
    """All pairs of places with different ranks, the better one first."""
    both = combinations(range(len(rank)), 2)
    return [(a, b) if rank[a] < rank[b] else (b, a) for a, b in both if rank[a] != rank[b]]


def by_prompt(pairs: pl.DataFrame, keys: Sequence[str], *, legacy: bool = False) -> pl.DataFrame:
    """A row a prompt: `keys`, `pairs`, `right` (pairs), `exact` (0 or 1) and `counted` (0 or 1: whether exact counts).

    pairs: `keys`, which tell prompts apart, and the `outcome` of each pair: "win", "loss", "tie" or "invalid"; a prompt
    without a pair has one row that says "equal". An exact match is a prompt that has only wins, and one without a pair
    does not count. legacy: a tie does not break an exact match, and a prompt without a pair is one.
    """
    outcome = pl.col("outcome")
    kept = ["win", "tie", "equal"] if legacy else ["win"]
    return pairs.group_by(keys, maintain_order=True).agg(
        pairs=(outcome != "equal").sum().cast(pl.Int64),
        right=(outcome == "win").sum().cast(pl.Int64),
        exact=outcome.is_in(kept).all().cast(pl.Int64),
        counted=pl.lit(1, pl.Int64) if legacy else (outcome != "equal").any().cast(pl.Int64),
    )


def category_mean(right: Array, counted: Array) -> Array:
    """The unweighted mean over categories of right / counted: [..., categories] to [...].

    A category in which nothing counts is left out; NaN where all are.
    """
    return ratio(ratio(right, counted, 0.0).sum(-1), (counted > 0).sum(-1))


def overall(accuracy: Sequence[Array], exact_match: Sequence[Array]) -> Array:
    """The mean over subsets of the mean of accuracy and exact match, arrays of one shape; NaN where one is missing."""
    if not accuracy:
        return np.full(1, np.nan)
    return np.asarray((np.mean(accuracy, axis=0) + np.mean(exact_match, axis=0)) / 2)


def _compared(items: pl.DataFrame) -> pl.DataFrame:
    """A row a pair, with its outcome and margin; a prompt without a pair has one row."""
    rows = []
    columns = items.select("config", "category", "rank", "reward").iter_rows()
    for place, (config, category, rank, rewards) in enumerate(columns):
        if len(rank) != len(rewards):
            raise MeasuresError(f"The prompt in row {place + 1} has {len(rank)} ranks and {len(rewards)} rewards.")
        values = [float("nan") if reward is None else reward for reward in rewards]
        found = [_outcome(values[better] - values[worse]) for better, worse in pairs_of(rank)]
        rows += [(place, config, category, *one) for one in found or [("equal", None)]]
    types = {"prompt": pl.Int64, "config": pl.String, "category": pl.String, "outcome": pl.String, "margin": pl.Float64}
    return pl.DataFrame(rows, schema=types, orient="row")


def _outcome(margin: float) -> tuple[str, float | None]:
    if not isfinite(margin):
        return "invalid", None
    return "win" if margin > 0 else "loss" if margin < 0 else "tie", margin


def _sums(prompts: pl.DataFrame) -> dict[str, int]:
    sums: dict[str, int] = prompts.select(
        pl.col("right", "pairs").sum(),
        exact=(pl.col("exact") * pl.col("counted")).sum(),
        counted=pl.col("counted").sum(),
        without_pair=(pl.col("pairs") == 0).sum(),
    ).row(0, named=True)
    return sums


def _cell(categories: Sequence[dict[str, int]]) -> dict[str, Any]:
    of = {name: np.array([one[name] for one in categories], dtype=np.float64) for name in categories[0]}
    return {
        "accuracy": _number(category_mean(of["right"], of["pairs"])),
        "exact_match": _number(category_mean(of["exact"], of["counted"])),
        "pairs": int(of["pairs"].sum()),
        "prompts": int(of["counted"].sum()),
        "without_pair": int(of["without_pair"].sum()),
    }


def _number(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)
