"""How well one ranking of models predicts another: rank statistics and their permutation tests.

`NAMES` has first the four of Personalized RewardBench (section 5.1 and appendix C), by the formulas that give the rows
"Ours" of its Table 3 from its Tables 2 and 5, and then the standard forms beside them:

ndcg              relevance n for the downstream's best model down to 1 for its last, gain 2^relevance - 1, discount
                  log2(2 + position) in the benchmark's order, over the full length
rbo               rank-biased overlap with p = 0.8, cut off after n models: with neither extrapolation nor a division by
                  what is lost, so that equal rankings have 1 - 0.8^n and not 1
weighted_tau      pairs in the same order less pairs in the other, each weighing 1 / (the sum of its two ranks in the
                  benchmark, from 1), over the sum of weights
spearman          Pearson's correlation of ranks
rbo_extrapolated  Webber, Moffat and Zobel (2010), equation 32: 1 for equal rankings
scipy_weightedtau Vigna (2015), as `scipy.stats.weightedtau` has it by default: pairs weigh the sum of 1 / rank of both
                  models, and the ranks are once the benchmark's and once the downstream's
kendall_tau_b     Kendall's tau-b (1945), as `scipy.stats.kendalltau` has it

Ties: Spearman has average ranks and tau-b its correction. NDCG, both forms of RBO and the weighted tau are the mean
over all orders of the tied models, on each side on its own; it is exact, since each is a sum of products of a term of
one side and a term of the other. SciPy's weighted tau orders tied models by the other side.
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
MOST_EXACT = 9  # models whose orders are all gone through
COMPARED_AT_ONCE = 4_000_000  # pairs of models in memory at a time


@dataclass(frozen=True)
class PermutationTest:
    """One-sided p-values of no association, each None where its statistic is undefined.

    p_values: by the names of `NAMES`: the share of orders of the downstream's scores that agree with the benchmark at
    least as much. exact: whether these are all orders; else so many were drawn, and the one at hand counts as another.
    """

    p_values: dict[str, float | None]
    exact: bool
    orders: int


def rank_statistics(benchmark: Array, downstream: Array) -> dict[str, Array]:
    """All statistics of `NAMES` for many pairs of rankings at once; higher scores are better.

    benchmark, downstream: scores, [rows, models]; one of the two may have a single row. Each result is [rows], NaN
    where a statistic is undefined, as Spearman is when all scores of a side are tied.
    Raises `MeasuresError` for fewer than two models, sides of different lengths, and scores that are no finite numbers.
    """
    first, second = (np.atleast_2d(np.asarray(scores, dtype=np.float64)) for scores in (benchmark, downstream))
    if first.shape[1] != second.shape[1]:
        raise MeasuresError(f"There are {first.shape[1]} models on one side and {second.shape[1]} on the other.")
    if first.shape[1] < 2:
        raise MeasuresError("A correlation needs at least two models.")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise MeasuresError("A score is no finite number.")
    rows, models = max(len(first), len(second)), first.shape[1]
    size = max(1, COMPARED_AT_ONCE // models**2)
    parts = [
        _statistics(_Ranked.of(_part(first, start, size)), _Ranked.of(_part(second, start, size)))
        for start in range(0, rows, size)
    ]
    return {name: np.concatenate([part[name] for part in parts]) for name in NAMES}


def permutation_test(benchmark: Array, downstream: Array, seed: int) -> PermutationTest:
    """Test whether two rankings agree more than by chance, by the statistics of `NAMES`; scores are [models].

    All n! orders up to nine models; above, as many as `PERMUTATIONS` drawn by the seed, so that p is never 0 (Phipson
    and Smyth, 2010). One-sided, since that a benchmark predicts is a claim in one direction, and since NDCG and RBO,
    which look at the top, have no other side.
    """
    models = len(benchmark)
    exact = models <= MOST_EXACT
    observed = {name: values[0] for name, values in rank_statistics(benchmark, downstream).items()}
    as_large = dict.fromkeys(NAMES, 0 if exact else 1)
    orders = factorial(models) if exact else PERMUTATIONS
    for drawn in _orders(models, seed):
        found = rank_statistics(benchmark, np.asarray(downstream, dtype=np.float64)[drawn])
        for name, values in found.items():
            as_large[name] += int((values >= observed[name] - ROUNDING).sum())
    p_values = {
        name: None if np.isnan(observed[name]) else count / (orders if exact else orders + 1)
        for name, count in as_large.items()
    }
    return PermutationTest(p_values, exact, orders)


def _orders(models: int, seed: int) -> Iterator[NDArray[np.intp]]:
    """All orders of so many models, or those that are drawn, in parts: [orders, models]."""
    if models <= MOST_EXACT:
        yield np.array(list(permutations(range(models))), dtype=np.intp)
        return
    generator = np.random.default_rng(seed)
    yield generator.permuted(np.tile(np.arange(models), (PERMUTATIONS, 1)), axis=1)


def _part(scores: Array, start: int, size: int) -> Array:
    return scores if len(scores) == 1 else scores[start : start + size]


@dataclass(frozen=True)
class _Ranked:
    """Rankings. signs: 1 where the model of a row is better than that of a column, [rows, models, models].

    above: how many models are better than each. tied: how many have its score, itself included. Both [rows, models].
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
        """The mean of a term by position, from the best one on, over the positions that each model may have."""
        sums = np.concatenate([[0.0], np.cumsum(terms)])
        return np.asarray((sums[self.above + self.tied] - sums[self.above]) / self.tied)

    def among(self, depth: int) -> Array:
        """How likely each model is among the best `depth`."""
        return np.clip((depth - self.above) / self.tied, 0.0, 1.0)

    @property
    def ranks(self) -> Array:
        """Average ranks from 0, the best first."""
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
    # Divided by the largest gain: only ratios matter, and 2^n is beyond a float from 1,024 models on.
    gains = 2.0 ** -np.arange(models) - 2.0**-models
    discounts = 1 / np.log2(np.arange(models) + 2)
    return np.asarray((second.mean(gains) * first.mean(discounts)).sum(-1) / (gains * discounts).sum())


def _total(models: int) -> float:
    """The sum of the weights 1 / (rank + rank) over ordered pairs of ranks."""
    ranks = np.arange(1, models + 1)
    weights = 1 / (ranks[:, None] + ranks)
    return float(weights.sum() - np.trace(weights))


def _mean_weights(ranked: _Ranked) -> Array:
    """1 / (rank + rank) of each pair, its mean over the ranks that both may have: [rows, models, models]."""
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
    """Vigna's weighted tau by the ranks of `first`, whose ties `second` orders; ties in both: by place."""
    keys = first.above * (agreeing.shape[-1] + 1) + second.above
    each = 1 / (keys.argsort(-1, kind="stable").argsort(-1) + 1.0)
    # A pair weighs the sum of a term of either model, so the sum over pairs is one over models, twice.
    return ratio((each * agreeing.sum(-1)).sum(-1), _norm(first, second, each))


def _norm(first: _Ranked, second: _Ranked, each: Array | float = 1.0) -> Array:
    """The root of the product of both sides' weights of the pairs that are not tied there."""
    models = first.above.shape[1]
    ours, theirs = ((each * (models - side.tied)).sum(-1) for side in (first, second))
    return np.asarray(np.sqrt(ours * theirs))


def _pearson(first: Array, second: Array) -> Array:
    ours, theirs = (ranks - ranks.mean(-1, keepdims=True) for ranks in (first, second))
    return ratio((ours * theirs).sum(-1), np.sqrt((ours**2).sum(-1) * (theirs**2).sum(-1)))
