"""How many raters and pairs the paper's claim takes, before anybody rates anything."""

from collections.abc import Sequence
from math import sqrt

import polars as pl
from pluralbench_measures.equivalence import (
    difference_power,
    equivalence_power,
    paired_sd,
    pairs_for_difference,
    pairs_for_equivalence,
)
from pluralbench_runs import FrozenModel
from pydantic import Field

from build_personalized.rating.form import DIMENSIONS, GENERAL
from build_personalized.rating.results import RatingResults
from build_personalized.rating.study import RatingError

RATERS = (1, 2, 3, 5)
TESTS = len(DIMENSIONS)
COUNTS = ("raters", "equivalence", "difference", "pairs", "ratings")
PLAN = pl.Schema(dict.fromkeys(COUNTS, pl.Int64) | {"power": pl.Float64})
# Chosen less rejected in general quality, the least and the largest of the paper's table 1.
PAPER_LEAST, PAPER_MOST = 0.27, 0.67


class Assumed(FrozenModel):
    """What a plan takes for true. sd_pairs, sd_raters: see `results.Spread`; ratings from 1 to 5.

    difference: in general quality, chosen less rejected; rubric: by how much the rubric's ratings differ. power: that
    all four tests of the claim succeed, at least.
    """

    margin: float = Field(0.5, gt=0, lt=4)
    difference: float = Field(0.0, ge=0, lt=4)
    rubric: float = Field(1.0, gt=0, le=4)
    sd_pairs: float = Field(0.5, ge=0, le=4)
    sd_raters: float = Field(1.0, ge=0, le=4)
    power: float = Field(0.8, ge=0.05, lt=1)
    alpha: float = Field(0.05, gt=0, lt=0.5)


def plan(assumed: Assumed, raters: Sequence[int] = RATERS) -> pl.DataFrame:
    """For each number of raters a pair how many pairs the claim takes; null where no number is enough.

    Columns `raters`, `equivalence` and `difference` (pairs that one such test takes), `pairs` (the larger of them),
    `ratings` (answers to be rated, two a pair and rater) and `power` (that all four tests succeed, at least: each has
    1 - (1 - power) / 4, whatever their dependence). Raises `RatingError` where nothing is assumed to vary.
    """
    if not (assumed.sd_pairs or assumed.sd_raters):
        raise RatingError("Both spreads are 0, so that one pair would tell; give --sd-pairs or --sd-raters.")
    return pl.DataFrame([_planned(assumed, count) for count in raters], schema=PLAN)


def _planned(assumed: Assumed, raters: int) -> dict[str, float | int | None]:
    sd = paired_sd(assumed.sd_pairs, assumed.sd_raters, raters)
    margin, alpha = assumed.margin, assumed.alpha
    each = 1 - (1 - assumed.power) / TESTS
    equivalence = pairs_for_equivalence(sd, margin, difference=assumed.difference, power=each, alpha=alpha)
    difference = pairs_for_difference(sd, assumed.rubric, power=each, alpha=alpha)
    row: dict[str, float | int | None] = {"raters": raters, "equivalence": equivalence, "difference": difference}
    if equivalence is None or difference is None:
        return row | {"pairs": None, "ratings": None, "power": None}
    pairs = max(equivalence, difference)
    error = sd / sqrt(pairs)
    same = equivalence_power(error, pairs - 1, margin, assumed.difference, alpha)
    differ = difference_power(error, pairs - 1, assumed.rubric, alpha)
    return row | {"pairs": pairs, "ratings": 2 * pairs * raters, "power": 1 - len(GENERAL) * (1 - same) - (1 - differ)}


def spread_of(pilot: RatingResults) -> tuple[float, float]:
    """The largest spreads, between pairs and within them, that a pilot found in general quality.

    Raises `RatingError` where it had too few raters to tell.
    """
    ours = [one for one in pilot.spread if one.dimension in GENERAL]
    between = [one.between for one in ours if one.between is not None]
    within = [one.within for one in ours if one.within is not None]
    if not within:
        raise RatingError(
            "The pilot has no pair whose two answers were both rated by two people, so it does not tell how far raters "
            "differ; say it with --sd-raters and --sd-pairs."
        )
    return max(between), max(within)
