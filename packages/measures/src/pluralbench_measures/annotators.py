"""Votes of people for one of several responses: how far people agree, and how far predicted shares fit theirs.

Votes are counts by item and response, of shape (items, responses); items with fewer responses have zeros. Numbers of
an item or of a vote have NaN where they do not exist, such as agreement with others of the only vote.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pluralbench_measures.bootstrap import Array, Estimate, Sums, ratio
from pluralbench_measures.crossed import Ints
from pluralbench_measures.intervals import linearize

CLEAR = (2, 3)
"""Smallest share of the most frequent answer of votes that are clear but not unanimous, as a fraction."""
CONSENSUS = ("unanimous", "clear", "split")
FOLDS = 5
BINS = 10
STEEPEST = 1e3
"""Largest inverse temperature, per standard deviation of an item's scores."""
BISECTIONS = 60
GRID, RIDGE = 200, 1e-3  # of estimates of functions of shares


def count_votes(item: Ints, response: Ints, shape: tuple[int, int]) -> Array:
    """Count votes by item and response. `shape`: number of items, and of responses of an item at most."""
    counts = np.zeros(shape)
    np.add.at(counts, (item, response), 1.0)
    return counts


def agreement_of_two(counts: Array) -> Array:
    """Return the share of the other votes on an item that are the same as a vote for each response."""
    return ratio(counts - 1, counts.sum(1, keepdims=True) - 1)


def agreement_with_others(counts: Array) -> Array:
    """Return whether the most frequent of the other votes on an item is that of a vote for each response.

    If several responses are the most frequent, one of them counts by chance: the credit is one over their number.
    """
    credit = np.zeros(counts.shape)
    for response in range(counts.shape[1]):
        others = counts.copy()
        others[:, response] -= 1
        most = others.max(1, keepdims=True)
        credit[:, response] = (others[:, response] == most[:, 0]) / (others == most).sum(1)
    return np.where(counts.sum(1, keepdims=True) > 1, credit, np.nan)


def vote_influence(counts: Array, agreement: Callable[[Array], Array]) -> Array:
    """Compute what a vote adds to its item's sum of agreements: its own credit, and how it changes those of others.

    The jackknife: the sum with all votes less that without one. The values of an item's votes are shifted by the same
    number, so that their sum is that of the agreements; the sum without one of two votes does not exist, and they get
    the first-order term instead. `agreement` is `agreement_of_two` or `agreement_with_others`.
    """
    number = counts.sum(1, keepdims=True)
    credit = agreement(counts)
    total = (counts * np.nan_to_num(credit)).sum(1, keepdims=True)
    added = 2 * credit - ratio(total, number)
    for response in range(counts.shape[1]) if (number > 2).any() else ():
        others = counts.copy()
        others[:, response] -= 1
        without = (others * np.nan_to_num(agreement(others))).sum(1)
        added[:, response] = np.where(number[:, 0] > 2, total[:, 0] - without, added[:, response])
    shift = ratio(total - (counts * np.nan_to_num(added)).sum(1, keepdims=True), number)
    return np.where(number > 1, added + shift, np.nan)


def vote_interaction(counts: Array, agreement: Callable[[Array], Array]) -> Array:
    """Compute how much less two votes add to their item's sum of agreements together than each alone.

    Args:
        counts: Votes by item and response.
        agreement: `agreement_of_two` or `agreement_with_others`.

    Returns:
        The second difference of the sum, by item and the responses of the two votes. Shape (items, responses,
        responses). It means nothing for responses that an item's votes are not for.
    """
    responses = counts.shape[1]
    remove = np.eye(responses)

    def total(votes: Array) -> Array:
        return np.asarray((votes * np.nan_to_num(agreement(votes))).sum(1))

    whole, single = total(counts), [total(counts - one) for one in remove]
    found = np.empty((len(counts), responses, responses))
    for first in range(responses):
        for second in range(first, responses):
            both = whole - single[first] - single[second] + total(counts - remove[first] - remove[second])
            found[:, first, second] = found[:, second, first] = both
    return found


def consensus_of(counts: Array, ties: Array) -> Ints:
    """Return the place of each item in `CONSENSUS`, -1 for items with fewer than two votes.

    Votes are unanimous if all are for one response, clear if at least two thirds are, and else split. Votes for a tie
    count among all votes.
    """
    most, number = counts.max(1), counts.sum(1) + ties
    places = np.where(most == number, 0, np.where(most * CLEAR[1] >= number * CLEAR[0], 1, 2))
    return np.where(number > 1, places, -1).astype(np.int64)


def margins_of(scores: Array) -> Array:
    """Return the difference of the two highest scores of each item; NaN with fewer. Shape (items,)."""
    ordered = -np.sort(-scores, axis=1)  # NaN last
    return np.asarray(ordered[:, 0] - ordered[:, 1])


def rank_correlation(first: Array, second: Array, cluster: Ints) -> Estimate:
    """Compute Spearman's rank correlation of two numbers of items, with an interval over clusters.

    The ranks are those of the data; the interval takes them as fixed.
    """
    names, place = np.unique(cluster, return_inverse=True)
    x, y = (_ranks(values) for values in (first, second))
    ones = np.ones((len(names), 1))
    products = [x, y, x * x, y * y, x * y]
    counts = np.bincount(place, minlength=len(names)).astype(np.float64)[:, None] * ones
    linearized = linearize(*(Sums(np.bincount(place, one)[:, None] * ones, counts) for one in products))
    means = [source.pooled([0]) for source in linearized.sources]
    covariance = means[4] - means[0] * means[1]
    spread = (means[2] - means[0] ** 2) * (means[3] - means[1] ** 2)
    if spread[0] <= 0:
        return Estimate(None, n=len(x), clusters=len(names))
    return linearized.estimate(covariance / np.sqrt(spread), [[0]], len(x), len(names), (-1.0, 1.0))


def _ranks(values: Array) -> Array:
    """Average ranks, from -1/2 to 1/2."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((counts.cumsum() - counts / 2)[place.ravel()] / len(values) - 0.5)


def folds_of(scores: Array, counts: Array, cluster: Ints) -> Ints:
    """Assign whole clusters of items to `FOLDS` folds by their scores and votes, whatever the names and the order.

    Responses count by their votes, then by their scores, so that which one comes first in the data makes no difference.
    """
    place = np.unique(cluster, return_inverse=True)[1].ravel()
    order = np.lexsort([scores, -counts], axis=1)  # responses without their places in the data
    scores, counts = (np.take_along_axis(values, order, axis=1) for values in (scores, counts))
    columns = np.concatenate([np.nan_to_num(scores), counts, np.ones((len(scores), 1))], axis=1)
    sums = np.stack([np.bincount(place, column) for column in columns.T])
    return (np.lexsort(sums.round(9)).argsort() % FOLDS)[place].astype(np.int64)


def predicted_shares(scores: Array, counts: Array, fold: Ints) -> tuple[Array, Array]:
    """Predict the share of the votes for each response from scores, by the Bradley-Terry model.

    The shares are the softmax of scores times an inverse temperature, the same for all items. It is fitted to the votes
    on the items of other folds by maximum likelihood, from 0 to `STEEPEST` per standard deviation of an item's scores,
    which have NaN for padding.

    Returns:
        The shares, 0 for padding, and the inverse temperature of each item's fold.
    """
    shares, inverse = np.zeros(scores.shape), np.zeros(len(scores))
    for number in np.unique(fold):
        own = fold == number
        inverse[own] = fit_inverse_temperature(scores[~own], counts[~own])
        shares[own] = _softmax(scores[own] * inverse[own][:, None])
    return shares, inverse


def fit_inverse_temperature(scores: Array, counts: Array) -> float:
    """Fit the inverse temperature of `predicted_shares` to votes; 0 without any difference of scores."""
    centered = scores - ratio(np.nansum(scores, 1), (~np.isnan(scores)).sum(1))[:, None]
    spread = float(np.sqrt(np.nanmean(centered**2))) if centered.size else 0.0
    if not spread > 0:
        return 0.0
    number, chosen = counts.sum(1), np.nansum(centered * counts)

    def rises(inverse: float) -> bool:
        """Whether the likelihood still rises at this inverse temperature."""
        expected = number @ np.nansum(_softmax(centered * inverse) * centered, 1)
        return bool(chosen > expected)

    low, high = 0.0, STEEPEST / spread
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) else (low, middle)
    return low


def _softmax(logits: Array) -> Array:
    shifted = np.exp(logits - np.nanmax(logits, axis=1, keepdims=True))
    return np.asarray(np.nan_to_num(shifted) / np.nansum(shifted, 1, keepdims=True))


def log_losses(shares: Array) -> Array:
    """Return the log loss of a vote for each response, in nats; shares count as at least 1e-12."""
    return np.asarray(-np.log(np.maximum(shares, 1e-12)))


def divergence(shares: Array, observed: Array) -> Array:
    """Compute the Jensen-Shannon divergence of predicted from observed shares, in nats. Shape (items,)."""
    return np.asarray(_divergence_terms(shares, observed).sum(-1))


def entropies(counts: Array) -> Array:
    """Estimate the entropy of the true shares of votes in nats, the smallest expected log loss of a vote, by item.

    See `_polynomials`. The largest error for a response is 0.10 nats with two votes, 0.05 with three, 0.03 with four,
    and 0.01 with ten. Items with fewer than two votes have NaN.
    """
    return _by_votes(counts, lambda own, votes, _: _entropy_terms(votes)[own])


def excess_divergence(shares: Array, counts: Array) -> Array:
    """Estimate the Jensen-Shannon divergence of predicted from true shares, in nats.

    The divergence from the shares of few votes is larger even for the true shares, because votes scatter, and with very
    few votes it is smallest for shares that are too extreme. This estimate has no such floor: its expectation is 0 for
    the true shares, up to the error of `_polynomials`, and above 0 for others. That error is for a response at most
    0.048 nats with two votes, 0.024 with three, 0.014 with four and 0.005 with ten. Items with fewer than two votes
    have NaN.
    """
    place = np.arccos(1 - 2 * shares.clip(0, 1)) / np.pi * GRID  # on the grid of shares
    low = np.minimum(place.astype(np.int64), GRID - 1)
    weight = place - low

    def terms(own: Ints, votes: int, items: NDArray[np.bool_]) -> Array:
        table, at, right = _divergence_table(votes), low[items], weight[items]
        return np.asarray((1 - right) * table[own, at] + right * table[own, at + 1])

    return _by_votes(counts, terms)


def _by_votes(counts: Array, terms: Callable[[Ints, int, NDArray[np.bool_]], Array]) -> Array:
    """Sum terms of responses over each item, by the number of its votes; NaN with fewer than two."""
    number = counts.sum(1).astype(np.int64)
    values = np.full(len(counts), np.nan)
    for votes in np.unique(number[number > 1]).tolist():
        items = number == votes
        values[items] = terms(counts[items].astype(np.int64), votes, items).sum(1)
    return values


@cache
def _entropy_terms(votes: int) -> Array:
    """The estimate of a response's part of the entropy, by how many of the votes are for it. Shape (votes + 1,)."""
    return _polynomials(votes, -_x_log_x(_grid())[:, None])[:, 0]


@cache
def _divergence_table(votes: int) -> Array:
    """That of a response's part of the divergence from each predicted share. Shape (votes + 1, GRID + 1)."""
    shares = _grid()
    return _polynomials(votes, _divergence_terms(shares[None], shares[:, None]))


def _polynomials(votes: int, values: Array) -> Array:
    """Find estimates of functions of an unknown share p by how many of the votes are for it: (votes + 1, functions).

    No estimate is unbiased for every p, but h(k) of k among n votes has the expectation of a polynomial of degree n in
    p. h is the one closest to the function on a grid, with a small penalty on its variance, and exact for p = 0 and 1.
    `values` has the functions at each share of the grid, of shape (GRID + 1, functions).
    """
    from scipy.special import gammaln, xlog1py, xlogy

    chosen, share = np.arange(votes + 1)[None], _grid()[:, None]
    ways = gammaln(votes + 1) - gammaln(chosen + 1) - gammaln(votes - chosen + 1)
    weights = np.exp(ways + xlogy(chosen, share) + xlog1py(votes - chosen, -share))
    normal = weights.T @ weights
    penalized = normal + RIDGE * (np.diag(weights.sum(0)) - normal)
    ends, inner = [0, votes], slice(1, votes)
    terms = np.empty((votes + 1, values.shape[1]))
    terms[ends] = values[[0, -1]]
    terms[inner] = np.linalg.solve(
        penalized[inner, inner], (weights.T @ values - penalized[:, ends] @ terms[ends])[inner]
    )
    return terms


def _grid() -> Array:
    """Shares from 0 to 1, denser at the ends."""
    return np.asarray((1 - np.cos(np.linspace(0, np.pi, GRID + 1))) / 2)


def _divergence_terms(shares: Array, observed: Array) -> Array:
    middle = (shares + observed) / 2
    return (_x_log_x(shares) + _x_log_x(observed)) / 2 - _x_log_x(middle)


def _x_log_x(values: Array) -> Array:
    return np.asarray(values * np.log(np.where(values > 0, values, 1.0)))


def bins_of_shares(shares: Array) -> Ints:
    """Assign predicted shares to one of `BINS` equal bins from 0 to 1."""
    return np.minimum((shares * BINS).astype(np.int64), BINS - 1)


def alpha_of_votes(counts: Array, cluster: Ints, by_chance: Array | None = None) -> Estimate:
    """Compute Krippendorff's nominal alpha of votes with an interval over clusters; see `agreement`.

    A tie can be an answer. Items with fewer than two votes are left out. `by_chance` has votes by item and answer that
    give the agreement by chance, with the same sums by item, such as even ones over responses whose order in the data
    means something. Default: the votes.
    """
    several = counts.sum(1) > 1
    by_chance = (counts if by_chance is None else by_chance)[several]
    counts, (names, place) = counts[several], np.unique(cluster[several], return_inverse=True)
    number, clusters, answers = counts.sum(1), len(names), counts.shape[1]
    differing = (number**2 - (counts**2).sum(1)) / (number - 1)
    columns = [*by_chance.T, differing]
    won = np.stack([np.bincount(place, column, clusters) for column in columns], axis=1).astype(np.float64)
    sizes = np.tile(np.bincount(place, number, clusters).astype(np.float64)[:, None], answers + 1)
    if not (by_chance.sum(0) > 0).sum() > 1:
        return Estimate(None, n=len(counts), clusters=clusters)
    linearized = linearize(Sums(won, sizes))
    totals = linearized.sources[0].won
    votes = totals[:, :answers].sum(1)
    expected = (votes**2 - (totals[:, :answers] ** 2).sum(1)) / (votes - 1)
    alpha = 1 - totals[:, answers] / expected
    return linearized.estimate(alpha, [range(answers + 1)], len(counts), clusters, (-1.0, 1.0))
