"""Ranking metrics of rewards: accuracy over pairs and exact match over prompts (CHEEMS, section 3.3).

A pair is right if the better response has strictly the higher reward. A prompt is an exact match if all its pairs are
right. Within a category both metrics are shares, of all pairs and of all prompts. A subset (a config) has the
unweighted mean of its categories. The overall number is the mean over subsets of the mean of both metrics.
"""

from collections.abc import Sequence
from itertools import combinations
from math import isfinite
from typing import Any

import numpy as np
import polars as pl

from pluralbench_measures.bootstrap import Array, Estimate, ratio, sums_of
from pluralbench_measures.calibration import BINS, bins_of, calibration_error
from pluralbench_measures.errors import MeasuresError
from pluralbench_measures.intervals import linearize


def ranking_metrics(items: pl.DataFrame, *, legacy: bool = False) -> dict[str, Any]:
    """Compute accuracy, exact match and calibration error of rewards, as numbers from 0 to 1.

    Args:
        items: One row per prompt with the columns `config` (the subset), `category`, `rank` (a list of integers, lower
            is better, tied responses share a rank) and `reward` (a list of floats, one per rank). A reward that is not
            finite makes its pairs wrong.
        legacy: Compute as the authors' code does (see `by_prompt` and `pluralbench_measures.calibration.bins_of`).

    Returns:
        `overall`, `accuracy` and `exact_match` (means over subsets), `calibration_error` (over all pairs), and
        `configs`. Each config has `accuracy`, `exact_match`, `pairs`, `prompts` (that count for exact match),
        `without_pair` (prompts whose responses all share a rank) and `categories` with the same keys. Undefined
        numbers are None.

    Raises:
        MeasuresError: A prompt does not have as many rewards as ranks.
    """
    pairs = _pair_rows(items)
    prompts = by_prompt(pairs, ["prompt", "config", "category"], legacy=legacy)
    configs: dict[str, dict[str, Any]] = {}
    for (config,), subset in prompts.partition_by("config", as_dict=True).items():
        parts = subset.partition_by("category", as_dict=True)
        sums = [_sums(part) for part in parts.values()]
        cell = _metrics_of(sums)
        configs[str(config)] = cell | {
            "categories": {name or "": _metrics_of([part]) for (name,), part in zip(parts, sums, strict=True)}
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


def overall_estimate(items: pl.DataFrame) -> Estimate:
    """Estimate the overall number of `ranking_metrics` with its 95 % interval over prompts."""
    cell = (pl.struct("config", "category").rank("dense") - 1).cast(pl.Int64).alias("cell")
    prompts = by_prompt(_pair_rows(items), ["prompt", "config", "category"]).with_columns(cell)
    cells = prompts.group_by("config", maintain_order=True).agg(pl.col("cell").unique().sort())["cell"].to_list()
    shape = prompts.height, sum(map(len, cells))
    counted = prompts.filter(counted=1)
    cell_of, prompt = counted["cell"].to_numpy(), np.arange(counted.height)
    right, of, exact = (counted[name].cast(pl.Float64).to_numpy() for name in ("right", "pairs", "exact"))
    linearized = linearize(sums_of(cell_of, prompt, right, of, shape), sums_of(cell_of, prompt, exact, shape=shape))
    accuracy, matched = (
        [category_mean(source.won[:, own], source.counts[:, own]) for own in cells] for source in linearized.sources
    )
    strata = [[place] for own in cells for place in own]
    return linearized.share(overall(accuracy, matched), strata, None, counted.height)


def pairs_of(rank: Sequence[int]) -> list[tuple[int, int]]:
    """List all pairs of indices with different ranks, the better one first."""
    both = combinations(range(len(rank)), 2)
    return [(a, b) if rank[a] < rank[b] else (b, a) for a, b in both if rank[a] != rank[b]]


def by_prompt(pairs: pl.DataFrame, keys: Sequence[str], *, legacy: bool = False) -> pl.DataFrame:
    """Aggregate pairs to one row per prompt.

    A prompt is an exact match if all its outcomes are wins; prompts without a pair do not count.

    Args:
        pairs: One row per pair with `keys` and `outcome`: "win", "loss", "tie" or "invalid". A prompt without a pair
            has one row with "equal".
        keys: Columns that identify a prompt.
        legacy: Ties do not break an exact match, and a prompt without a pair is one.

    Returns:
        The columns `keys`, `pairs`, `right` (number of right pairs), `exact` (0 or 1) and `counted` (1 if the prompt
        counts for exact match, else 0).
    """
    outcome = pl.col("outcome")
    matching = ["win", "tie", "equal"] if legacy else ["win"]
    return pairs.group_by(keys, maintain_order=True).agg(
        pairs=(outcome != "equal").sum().cast(pl.Int64),
        right=(outcome == "win").sum().cast(pl.Int64),
        exact=outcome.is_in(matching).all().cast(pl.Int64),
        counted=pl.lit(1, pl.Int64) if legacy else (outcome != "equal").any().cast(pl.Int64),
    )


def category_mean(right: Array, counted: Array) -> Array:
    """Compute the unweighted mean over categories of right / counted, of shape (..., categories).

    Returns:
        The mean without categories of count 0; NaN if all are. Shape (...).
    """
    return ratio(ratio(right, counted, 0.0).sum(-1), (counted > 0).sum(-1))


def overall(accuracy: Sequence[Array], exact_match: Sequence[Array]) -> Array:
    """Average accuracy and exact match over subsets, given as arrays of one shape; NaN where one is missing."""
    if not accuracy:
        return np.full(1, np.nan)
    return np.asarray((np.mean(accuracy, axis=0) + np.mean(exact_match, axis=0)) / 2)


def _pair_rows(items: pl.DataFrame) -> pl.DataFrame:
    """One row per pair with its outcome and margin; a prompt without a pair has one row."""
    rows = []
    columns = items.select("config", "category", "rank", "reward").iter_rows()
    for index, (config, category, rank, rewards) in enumerate(columns):
        if len(rank) != len(rewards):
            raise MeasuresError(f"The prompt in row {index + 1} has {len(rank)} ranks and {len(rewards)} rewards.")
        values = [float("nan") if reward is None else reward for reward in rewards]
        outcomes = [_outcome(values[better] - values[worse]) for better, worse in pairs_of(rank)]
        rows += [(index, config, category, *outcome) for outcome in outcomes or [("equal", None)]]
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


def _metrics_of(categories: Sequence[dict[str, int]]) -> dict[str, Any]:
    sums = {name: np.array([part[name] for part in categories], dtype=np.float64) for name in categories[0]}
    return {
        "accuracy": _number(category_mean(sums["right"], sums["pairs"])),
        "exact_match": _number(category_mean(sums["exact"], sums["counted"])),
        "pairs": int(sums["pairs"].sum()),
        "prompts": int(sums["counted"].sum()),
        "without_pair": int(sums["without_pair"].sum()),
    }


def _number(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)
