"""Measure on few groups how far scores of another mode may differ."""

import math
from collections.abc import Sequence
from itertools import pairwise

from pluralbench_runs import step

from pluralbench_rewards.contract import Group, MeasuresTolerance, Scored
from pluralbench_rewards.errors import RewardsError

TOLERANCE_SAMPLE_SIZE = 16  # conversations that are computed alone to measure a tolerance, at most
MIN_TOLERANCE_SAMPLE = 4  # and at least; fewer say little
TOLERANCE_SHARE = 1 / 20  # of the tokens of all prompts; alone, a short one takes three times as long as in a batch
CLOSE_DECISION = 1 / 32  # margin as a fraction of the scores' root mean square; half precision rounds by 1/128


def measured_tolerance(model: MeasuresTolerance, groups: Sequence[Group], scored: Scored) -> float | None:
    """Measure the tolerance of scores on the groups of `tolerance_sample`; None without any. See `check_spread`."""
    sample = tolerance_sample(scored, groups)
    if not sample:
        return None
    with step("Measuring how far scores of another mode differ"):
        part = Scored([scored.scores[index] for index in sample], work=scored.work)
        return check_spread(scored, model.tolerance([groups[index] for index in sample], part))


def check_spread(scored: Scored, tolerance: float) -> float:
    """Return the tolerance of scores.

    Raises:
        RewardsError: It is larger than the range of the scores, which then measure nothing.
    """
    finite = [value for values in scored.scores for value in values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    if 0 < high - low < tolerance:
        raise RewardsError(
            f"Not measured: scores differ by more than they spread (they lie between {low:.4g} and {high:.4g}, and a "
            f'score in another mode may differ by {tolerance:.2g}); set `dtype="float32"` or `mode="exact"`.'
        )
    return tolerance


def tolerance_sample(scored: Scored, groups: Sequence[Group] = ()) -> list[int]:
    """Select the indices of groups for measuring a tolerance, which costs at most about a tenth of the scoring.

    They are evenly spread over the groups with scores, as many as `TOLERANCE_SHARE` allows. In a small run, which
    allows too few, they are those of the closest decisions, if any is close; otherwise the list is empty. It is also
    empty for answers in steps, whose scores decide by a threshold and not by their differences.
    """
    places = [index for index, values in enumerate(scored.scores) if values]
    cost = {index: max(scored.tokens[index]) if scored.tokens else 1 for index in places}
    size, budget = min(TOLERANCE_SAMPLE_SIZE, len(places)), TOLERANCE_SHARE * sum(cost.values())
    while size >= MIN_TOLERANCE_SAMPLE:
        spread = [places[len(places) * part // size] for part in range(size)]
        if sum(cost[index] for index in spread) <= budget:
            return spread
        size -= 1
    if any(group.steps for group in groups):
        return []
    finite = [value for index in places for value in scored.scores[index] if math.isfinite(value)]
    near = CLOSE_DECISION * math.sqrt(sum(value * value for value in finite) / max(len(finite), 1))
    margins = {index: _smallest_gap(scored.scores[index]) for index in places}
    closest = sorted(places, key=lambda index: margins[index])[:MIN_TOLERANCE_SAMPLE]
    return closest if closest and margins[closest[0]] <= near else []


def _smallest_gap(scores: Sequence[float]) -> float:
    ordered = sorted(filter(math.isfinite, scores))
    return min((high - low for low, high in pairwise(ordered)), default=math.inf)
