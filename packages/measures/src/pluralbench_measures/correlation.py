"""Agreement of two rankings of models: rank statistics and their permutation tests.

`NAMES` lists the four statistics of Personalized RewardBench (section 5.1 and appendix C) by the formulas that
reproduce the rows "Ours" of its Table 3 from its Tables 2 and 5, followed by the standard forms:

ndcg              relevance from n (best model downstream) to 1 (last), gain 2^relevance - 1, discount
                  log2(2 + position) in the benchmark's order, over all n models
rbo               rank-biased overlap with p = 0.8, truncated after n models without extrapolation or normalization, so
                  that equal rankings have 1 - 0.8^n instead of 1
weighted_tau      concordant minus discordant pairs, weighted by 1 / (the sum of the pair's ranks in the benchmark,
                  from 1), over the sum of weights
spearman          Pearson's correlation of ranks
rbo_extrapolated  Webber, Moffat and Zobel (2010), equation 32: 1 for equal rankings
scipy_weightedtau Vigna (2015), the default of `scipy.stats.weightedtau`: a pair weighs the sum of 1 / rank of both
                  models; the mean of the values by the benchmark's ranks and by the downstream ranks
kendall_tau_b     Kendall's tau-b (1945), as in `scipy.stats.kendalltau`

Ties: Spearman uses average ranks, and tau-b has its own correction. NDCG, both forms of RBO and the weighted tau are
averaged over all orders of the tied models, independently on each side. This mean is exact, because each statistic is a
sum of products of one term per side. SciPy's weighted tau orders tied models by the other side.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from math import factorial

import numpy as np
from numpy.typing import NDArray

from pluralbench_measures.bootstrap import Array, ratio
from pluralbench_measures.errors import MeasuresError
from pluralbench_measures.paired import PERMUTATIONS, ROUNDING

PAPER = ("ndcg", "rbo", "weighted_tau", "spearman")
STANDARD = ("rbo_extrapolated", "scipy_weightedtau", "kendall_tau_b")
NAMES = (*PAPER, *STANDARD)
PERSISTENCE = 0.8  # p of rank-biased overlap
MOST_EXACT = 9  # models up to which the test enumerates all orders
COMPARED_AT_ONCE = 4_000_000  # pairs of models in memory at a time


@dataclass(frozen=True)
class PermutationTest:
    """A permutation test of the statistics in `NAMES`, one-sided.

    Attributes:
        p_values: By statistic, the share of orders of the downstream scores that agree with the benchmark at least as
            well as the observed order; None where the statistic is undefined.
        exact: Whether all orders are enumerated. Otherwise they are drawn, and the observed order is added to them.
        orders: Number of orders that are enumerated or drawn.
    """

    p_values: dict[str, float | None]
    exact: bool
    orders: int


def rank_statistics(benchmark: Array, downstream: Array) -> dict[str, Array]:
    """Compute all statistics of `NAMES` for many pairs of rankings at once, from scores of shape (rows, models).

    One of the two sides may have a single row. Higher scores are better.

    Returns:
        Values by statistic. Shape (rows,); NaN where a statistic is undefined, such as Spearman's if all scores of a
        side are tied.

    Raises:
        MeasuresError: There are fewer than two models, the sides differ in length, or a score is not finite.
    """
    first, second = (np.atleast_2d(np.asarray(scores, dtype=np.float64)) for scores in (benchmark, downstream))
    if first.shape[1] != second.shape[1]:
        raise MeasuresError(
            f"The two rankings have different numbers of models: {first.shape[1]} and {second.shape[1]}."
        )
    if first.shape[1] < 2:
        raise MeasuresError("A correlation needs at least two models.")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise MeasuresError("The scores contain a value that is not a finite number.")
    order = np.lexsort([second[0], first[0]])  # the order of a sum changes its last digits
    first, second = first[:, order], second[:, order]
    rows, models = max(len(first), len(second)), first.shape[1]
    size = max(1, COMPARED_AT_ONCE // models**2)
    parts = [
        _statistics(_Ranked.of(_part(first, start, size)), _Ranked.of(_part(second, start, size)))
        for start in range(0, rows, size)
    ]
    return {name: np.concatenate([part[name] for part in parts]) for name in NAMES}


def permutation_test(benchmark: Array, downstream: Array, seed: int) -> PermutationTest:
    """Test whether two rankings agree more than by chance, by each statistic of `NAMES`. Shape (models,).

    Up to nine models the test enumerates all n! orders. Above, it draws `PERMUTATIONS` of them; p is then never 0
    (Phipson and Smyth, 2010). The test is one-sided: that a benchmark predicts results is a claim in one direction, and
    NDCG and RBO measure the top of the ranking only.
    """
    models = len(benchmark)
    order = np.lexsort([downstream, benchmark])  # so that the drawn orders do not depend on that of the models
    benchmark, downstream = np.asarray(benchmark, dtype=np.float64)[order], np.asarray(downstream, np.float64)[order]
    exact = models <= MOST_EXACT
    observed = {name: values[0] for name, values in rank_statistics(benchmark, downstream).items()}
    as_large = dict.fromkeys(NAMES, 0 if exact else 1)
    orders = factorial(models) if exact else PERMUTATIONS
    for part in _orders(models, seed):
        permuted = rank_statistics(benchmark, downstream[part])
        for name, values in permuted.items():
            as_large[name] += int((values >= observed[name] - ROUNDING).sum())
    p_values = {
        name: None if np.isnan(observed[name]) else count / (orders if exact else orders + 1)
        for name, count in as_large.items()
    }
    return PermutationTest(p_values, exact, orders)


def _orders(models: int, seed: int) -> Iterator[NDArray[np.intp]]:
    """Yield all orders of the models, or drawn ones, in parts of shape (orders, models)."""
    if models <= MOST_EXACT:
        yield np.array(list(permutations(range(models))), dtype=np.intp)
        return
    generator = np.random.default_rng(seed)
    yield generator.permuted(np.tile(np.arange(models), (PERMUTATIONS, 1)), axis=1)


def _part(scores: Array, start: int, size: int) -> Array:
    return scores if len(scores) == 1 else scores[start : start + size]


@dataclass(frozen=True)
class _Ranked:
    """Rankings of models, with ties.

    Attributes:
        signs: 1 where the first model of a pair is better than the second, -1 where it is worse, 0 for a tie. Shape
            (rows, models, models).
        above: Number of better models. Shape (rows, models).
        tied: Number of models with the same score, including the model itself. Shape (rows, models).
    """

    signs: NDArray[np.int8]
    above: NDArray[np.intp]
    tied: NDArray[np.intp]

    @classmethod
    def of(cls, scores: Array) -> "_Ranked":
        left, right = scores[:, :, None], scores[:, None, :]
        signs = (left > right).view(np.int8) - (left < right).view(np.int8)
        return cls(signs, np.count_nonzero(signs < 0, axis=-1), np.count_nonzero(signs == 0, axis=-1))

    def mean(self, terms: Array) -> Array:
        """Average a term, given by position from the best one on, over the positions that each model may have."""
        sums = np.concatenate([[0.0], np.cumsum(terms)])
        return np.asarray((sums[self.above + self.tied] - sums[self.above]) / self.tied)

    def among(self, depth: int) -> Array:
        """Compute the probability of each model to be among the best `depth`."""
        return np.clip((depth - self.above) / self.tied, 0.0, 1.0)

    @property
    def ranks(self) -> Array:
        """Average ranks from 0; the best model has the lowest."""
        return np.asarray(self.above + (self.tied - 1) / 2)


def _statistics(first: _Ranked, second: _Ranked) -> dict[str, Array]:
    models = first.above.shape[1]
    agreeing = first.signs * second.signs
    overlaps = [(first.among(depth) * second.among(depth)).sum(-1) for depth in range(1, models + 1)]
    shared = np.stack([overlap / depth for depth, overlap in enumerate(overlaps, start=1)])
    weights = PERSISTENCE ** np.arange(models)
    rbo = (1 - PERSISTENCE) * (weights[:, None] * shared).sum(0)
    pairs = _mean_weights(first)
    return {
        "ndcg": _ndcg(first, second),
        "rbo": rbo,
        "weighted_tau": (pairs * agreeing).sum((1, 2)) / _total(models),
        "spearman": _pearson(first.ranks, second.ranks),
        "rbo_extrapolated": rbo + PERSISTENCE**models * shared[-1],
        "scipy_weightedtau": (_vigna(first, second, agreeing) + _vigna(second, first, agreeing)) / 2,
        "kendall_tau_b": ratio(agreeing.sum((1, 2)), _norm(first, second)),
    }


def _ndcg(first: _Ranked, second: _Ranked) -> Array:
    models = first.above.shape[1]
    # Divided by the largest gain: only ratios matter, and 2^n overflows a float from 1,024 models on.
    gains = 2.0 ** -np.arange(models) - 2.0**-models
    discounts = 1 / np.log2(np.arange(models) + 2)
    return np.asarray((second.mean(gains) * first.mean(discounts)).sum(-1) / (gains * discounts).sum())


def _total(models: int) -> float:
    """The sum of the weights 1 / (rank + rank) over ordered pairs of ranks."""
    ranks = np.arange(1, models + 1)
    weights = 1 / (ranks[:, None] + ranks)
    return float(weights.sum() - np.trace(weights))


def _mean_weights(ranked: _Ranked) -> Array:
    """Average 1 / (rank + rank) of each pair over the ranks that both may have. Shape (rows, models, models)."""
    models = ranked.above.shape[1]
    ranks = np.arange(1, models + 1)
    weights = 1 / (ranks[:, None] + ranks)
    if (ranked.tied == 1).all():
        return np.asarray(weights[ranked.above[:, :, None], ranked.above[:, None, :]])
    sums = np.zeros((models + 1, models + 1))
    sums[1:, 1:] = weights.cumsum(0).cumsum(1)
    low, high = ranked.above, ranked.above + ranked.tied
    rows, columns = (slice(None), slice(None), None), (slice(None), None, slice(None))
    block = sums[high[rows], high[columns]] - sums[low[rows], high[columns]]
    block += sums[low[rows], low[columns]] - sums[high[rows], low[columns]]
    return np.asarray(block / (ranked.tied[rows] * ranked.tied[columns]))


def _vigna(first: _Ranked, second: _Ranked, agreeing: NDArray[np.int8]) -> Array:
    """Vigna's weighted tau by the ranks of `first`; `second` breaks ties, then the position."""
    keys = first.above * (agreeing.shape[-1] + 1) + second.above
    weights = 1 / (keys.argsort(-1, kind="stable").argsort(-1) + 1.0)
    # A pair weighs the sum of one term per model, so the sum over pairs is twice a sum over models.
    return ratio((weights * agreeing.sum(-1)).sum(-1), _norm(first, second, weights))


def _norm(first: _Ranked, second: _Ranked, weights: Array | float = 1.0) -> Array:
    """The geometric mean of both sides' weights of untied pairs."""
    models = first.above.shape[1]
    first_sum, second_sum = ((weights * (models - side.tied)).sum(-1) for side in (first, second))
    return np.asarray(np.sqrt(first_sum * second_sum))


def _pearson(first: Array, second: Array) -> Array:
    x, y = (ranks - ranks.mean(-1, keepdims=True) for ranks in (first, second))
    return ratio((x * y).sum(-1), np.sqrt((x**2).sum(-1) * (y**2).sum(-1)))
