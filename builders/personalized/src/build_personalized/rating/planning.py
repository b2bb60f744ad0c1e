"""Plan a rating study: how many raters and pairs the paper's claim needs."""

from collections.abc import Sequence
from math import sqrt
from typing import Any

import polars as pl
from pluralbench_measures.equivalence import (
    difference_power,
    equivalence_power,
    paired_sd,
    pairs_for_difference,
    pairs_for_equivalence,
)
from pluralbench_studies import StudyError

from build_personalized.rating.recipe import PlanAssumptions
from build_personalized.rating.study import DIMENSIONS, GENERAL

RATERS = (1, 2, 3, 5)
TESTS = len(DIMENSIONS)
COUNTS = ("raters", "equivalence", "difference", "pairs", "ratings")
PLAN = pl.Schema(dict.fromkeys(COUNTS, pl.Int64) | {"power": pl.Float64})
# Chosen minus rejected in general quality: smallest and largest difference in the paper's table 1.
PAPER_MIN, PAPER_MAX = 0.27, 0.67


def plan(assumptions: PlanAssumptions, raters: Sequence[int] = RATERS) -> pl.DataFrame:
    """Compute the number of pairs that the claim needs, for each number of raters per pair.

    The power of each test is set to 1 - (1 - power) / 4, so the bound on the power of all four holds for any dependence
    between them.

    Returns:
        Columns `raters`; `equivalence` and `difference`, the pairs that one such test needs; `pairs`, the larger of
        them; `ratings`, two for each pair and rater; and `power`, a lower bound of the probability that all four tests
        succeed. Null if no number of pairs is enough.

    Raises:
        StudyError: Both standard deviations are 0.
    """
    if not (assumptions.sd_pairs or assumptions.sd_raters):
        raise StudyError(
            "Both standard deviations are 0, so one pair would be enough; set `sd_pairs=...` or `sd_raters=...`."
        )
    return pl.DataFrame([_plan_row(assumptions, count) for count in raters], schema=PLAN)


def _plan_row(assumptions: PlanAssumptions, raters: int) -> dict[str, float | int | None]:
    sd = paired_sd(assumptions.sd_pairs, assumptions.sd_raters, raters)
    margin, alpha = assumptions.margin, assumptions.alpha
    test_power = 1 - (1 - assumptions.power) / TESTS
    equivalence = pairs_for_equivalence(sd, margin, difference=assumptions.difference, power=test_power, alpha=alpha)
    difference = pairs_for_difference(sd, assumptions.rubric, power=test_power, alpha=alpha)
    row: dict[str, float | int | None] = {"raters": raters, "equivalence": equivalence, "difference": difference}
    if equivalence is None or difference is None:
        return row | {"pairs": None, "ratings": None, "power": None}
    pairs = max(equivalence, difference)
    error = sd / sqrt(pairs)
    same = equivalence_power(error, pairs - 1, margin, assumptions.difference, alpha)
    differ = difference_power(error, pairs - 1, assumptions.rubric, alpha)
    return row | {"pairs": pairs, "ratings": 2 * pairs * raters, "power": 1 - len(GENERAL) * (1 - same) - (1 - differ)}


def pilot_spread(pilot: dict[str, Any]) -> dict[str, float]:
    """Return a pilot's largest standard deviations in general quality, `sd_pairs` and `sd_raters`.

    Raises:
        StudyError: No pair of the pilot has two raters.
    """
    general = [spread for spread in pilot["spread"] if spread["dimension"] in GENERAL]
    known = [spread for spread in general if spread["within"] is not None]
    if not known:
        raise StudyError(
            "The pilot has no pair whose two answers were both rated by two people, so the spread between raters is "
            "unknown; set `sd_raters=...` and `sd_pairs=...`."
        )
    return {
        "sd_pairs": max(spread["between"] for spread in known),
        "sd_raters": max(spread["within"] for spread in known),
    }
