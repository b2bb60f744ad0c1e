"""Estimates of votes that are crossed: people vote on several prompts, and prompts have the votes of several people.

A mean over votes varies with the prompts and with the people that were drawn. Its variance is the sum of the variances
over prompts and over people, less that over single votes, which both contain (Cameron, Gelbach and Miller 2011, J. Bus.
Econ. Stat. 29:238). It is never taken to be below that over prompts or over people alone. The interval over prompts
(`pluralbench_measures.intervals`) is widened by the root of the ratio of this variance to that over prompts, and by the
ratio of Student's quantiles if people are fewer than prompts.

Few people are not a sample of others. If fewer than `MIN_PEOPLE` are known, or none votes on several prompts, the
interval is over prompts alone: for the people who voted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import fsum, inf

import numpy as np
from numpy.typing import NDArray

from pluralbench_measures.bootstrap import CONFIDENCE, Array, Estimate, Sums, ratio, sums_of
from pluralbench_measures.intervals import linearize
from pluralbench_measures.paired import PERMUTATIONS, ROUNDING

MIN_PEOPLE = 20
"""Smallest number of people with an interval over people, and of a group that takes part in a gap."""
TWO_WAY = "two-way"
"""The method of intervals over prompts and people."""
UNKNOWN = -1
"""Number of a person who is not known."""
MOST_PAIRED = 100
"""Largest number of votes on an item of which pairs are counted. With more, two people matter little."""
PERMUTED_AT_ONCE = 10_000_000  # people times permutations in memory at a time
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Votes:
    """Prompt, or its cluster, and person of votes by number; a person may be `UNKNOWN`. Shape (votes,)."""

    prompt: Ints
    person: Ints

    def of(self, chosen: NDArray[np.bool_]) -> "Votes":
        """Return some of the votes."""
        return Votes(self.prompt[chosen], self.person[chosen])

    @property
    def people(self) -> int:
        """Number of known people."""
        return len(np.unique(self.person[self.person != UNKNOWN]))

    @property
    def crossed(self) -> bool:
        """Whether intervals are over people too."""
        known = self.person[self.person != UNKNOWN]
        return self.people >= MIN_PEOPLE and len(known) > self.people


def variance_of_pairs(interaction: Array, item: Ints, response: Ints, person: Ints) -> float:
    """Estimate the variance of a sum over items because of which people vote together: that of pairs of people.

    The influences of single votes are its first-order terms. Where people agree as little as they can, these are about
    0, and which people are drawn matters by pairs alone. As in a two-way variance, squares of single items are
    subtracted, since they are part of the variance over votes. `interaction` is what two votes on an item add together,
    of shape (items, responses, responses).
    """
    known = np.flatnonzero(person != UNKNOWN)
    known = known[np.argsort(item[known], kind="stable")]
    starts, sizes = np.unique(item[known], return_index=True, return_counts=True)[1:]
    keys, parts = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    for size in np.unique(sizes[(sizes > 1) & (sizes <= MOST_PAIRED)]).tolist():
        rows = known[starts[sizes == size][:, None] + np.arange(size)]
        first, second = (rows[:, side].ravel() for side in np.triu_indices(size, 1))
        parts.append(interaction[item[first], response[first], response[second]])
        people = np.sort(person[[first, second]], axis=0)
        keys.append(people[0] * (int(person.max()) + 1) + people[1])
    values, pairs = np.concatenate(parts), np.unique(np.concatenate(keys), return_inverse=True)[1]
    if not len(values):
        return 0.0
    values = values - fsum(values) / len(values)  # exact sums, which the order of people does not change
    order = np.argsort(values, kind="stable")
    return max(0.0, fsum(np.bincount(pairs[order], values[order]) ** 2) - fsum(values**2))


def share_of_votes(credit: Array, votes: Votes, influence: Array | None = None, pairs: float = 0.0) -> Estimate:
    """Estimate a mean of credits from 0 to 1 over votes, each with the same weight.

    `influence` is what each vote adds to the sum of credits, if it also changes the credits of others, and `pairs` what
    `variance_of_pairs` adds to the variance of the sum over people.
    """
    sums, own = _sums(credit, votes), credit if influence is None else influence
    linearized = linearize(sums)
    estimate = linearized.share(linearized.sources[0].pooled([0]), [[0]], len(credit), len(sums.won))
    return two_way(estimate, own - (estimate.value or 0.0), votes, (0.0, 1.0), pairs)


def mean_of_votes(values: Array, votes: Votes, within: tuple[float, float] = (-inf, inf)) -> Estimate:
    """Estimate a mean of any values over votes, such as a log loss; `within` limits the bounds."""
    sums = _sums(values, votes)
    linearized = linearize(sums)
    estimate = linearized.estimate(linearized.sources[0].pooled([0]), [[0]], len(values), len(sums.won), within)
    return two_way(estimate, values - (estimate.value or 0.0), votes, within)


def ratio_of_votes(
    first: Array, second: Array, votes: Votes, influence: Array | None = None, pairs: float = 0.0
) -> Estimate:
    """Estimate the ratio of two means over the same votes, such as of a model's agreement to that of people.

    `influence` and `pairs` are those of the credits below the line, as in `share_of_votes`.
    """
    tables = [_sums(credit, votes) for credit in (first, second)]
    linearized = linearize(*tables)
    above, below = (source.pooled([0]) for source in linearized.sources)
    clusters = len(tables[0].won)
    estimate = linearized.estimate(ratio(above, below), [[0]], len(first), clusters, (0.0, inf))
    value = estimate.value or 0.0
    own = first - value * (second if influence is None else influence)
    return two_way(estimate, own, votes, (0.0, inf), pairs * value**2)


def difference_of_votes(credit: Array, others: Array, votes: Votes) -> Estimate:
    """Estimate the difference of two mean credits over the same votes, such as two models': second less first."""
    tables = [_sums(values, votes) for values in (credit, others)]
    linearized = linearize(*tables)
    before, after = (source.pooled([0]) for source in linearized.sources)
    estimate = linearized.difference(after - before, [[0]], len(credit), len(tables[0].won))
    return two_way(estimate, others - credit - (estimate.value or 0.0), votes, (-1.0, 1.0))


def two_way(
    estimate: Estimate,
    influence: Array,
    votes: Votes,
    within: tuple[float, float] = (-inf, inf),
    pairs: float = 0.0,
) -> Estimate:
    """Widen an interval over prompts to one over prompts and people, if intervals of these votes are over people.

    `influence` is that of each vote on the value, up to a common factor, and sums to 0. `pairs` is the variance by
    `variance_of_pairs`, in the unit of the squared influence. Bounds stay `within` these limits.
    """
    if estimate.low is None or not votes.crossed:
        return estimate
    factor = _widening(influence, votes, pairs)
    return replace(widened(estimate, factor, within), method=TWO_WAY)


def widened(estimate: Estimate, factor: float, within: tuple[float, float] = (-inf, inf)) -> Estimate:
    """Multiply the distances of an interval's bounds from the value by a factor, within limits."""
    value, low, high = estimate.value, estimate.low, estimate.high
    if value is None or low is None or high is None:
        return estimate
    bounds = value - factor * (value - low), value + factor * (high - value)
    return replace(estimate, low=max(bounds[0], min(within[0], low)), high=min(bounds[1], max(within[1], high)))


def _widening(influence: Array, votes: Votes, pairs: float = 0.0) -> float:
    """The width of a two-way interval relative to that over prompts."""
    from scipy.special import stdtrit

    person = _distinct(votes.person)
    both = np.unique(votes.prompt * (int(person.max()) + 1) + person, return_inverse=True)[1]
    order = np.argsort(influence, kind="stable")  # sums depend on their order in the last digits
    (over_prompts, prompts), (over_people, people), (over_both, _) = (
        _variance(influence[order], cluster[order]) for cluster in (votes.prompt, person, both)
    )
    if over_prompts <= ROUNDING**2:
        return 1.0
    variance = max(over_prompts + over_people - over_both, over_prompts, over_people) + pairs
    tail = (1 + CONFIDENCE) / 2
    quantiles = [stdtrit(max(clusters - 1, 1), tail) for clusters in (min(prompts, people), prompts)]
    return float((variance / over_prompts) ** 0.5 * quantiles[0] / quantiles[1])


def _variance(influence: Array, cluster: Ints) -> tuple[float, float]:
    """Sum the squared influences of clusters; also return the effective number of clusters, by their sizes."""
    sums, sizes = np.bincount(cluster, influence), np.bincount(cluster).astype(np.float64)
    number = sizes.sum() ** 2 / (sizes**2).sum()
    return fsum(sums**2) * number / max(number - 1, 1), float(number)


def _distinct(person: Ints) -> Ints:
    """Number each person who is not known as one more person."""
    known = person != UNKNOWN
    numbers = np.arange(len(person)) + int(person.max(initial=0)) + 1
    return _renumbered(np.where(known, person, numbers))


def _renumbered(numbers: Ints) -> Ints:
    """Number what occurs without gaps, in the same order: `np.unique` without its sort."""
    occurs = np.bincount(numbers) > 0
    return (np.cumsum(occurs) - 1)[numbers]


def _sums(values: Array, votes: Votes) -> Sums:
    cluster = _renumbered(votes.prompt)
    return sums_of(np.zeros_like(cluster), cluster, np.asarray(values, dtype=np.float64), np.ones(len(cluster)))


@dataclass(frozen=True)
class Groups:
    """Accuracies of groups of people, and the gap between the best and the worst served.

    Attributes:
        accuracies: Mean credit of the votes of each group, by group.
        gap: The largest accuracy less the smallest, of groups with at least `MIN_PEOPLE` people; without a value if
            these are fewer than two. The interval holds for the true gap, whichever groups are the extremes: its bounds
            are the largest bounds of the differences of all pairs, which hold jointly (Bonferroni).
        p_value: Share of permutations of people among groups whose gap is at least as large. A person keeps one group
            in all strata, so those who vote in the same strata are permuted among each other. None if there are none
            of two groups.
    """

    accuracies: Mapping[int, Estimate]
    gap: Estimate
    p_value: float | None = None


def group_accuracies(credit: Array, group: Ints, votes: Votes, stratum: Ints, seed: int = 0) -> Groups:
    """Estimate how well groups of people are served.

    People who are not known have groups, but take no part in a gap. A stratum, such as a language, is what each vote's
    person is compared within. The seed is that of the permutations.
    """
    numbers = np.unique(group).tolist()
    accuracies = {one: share_of_votes(credit[group == one], votes.of(group == one)) for one in numbers}
    large = [one for one in numbers if votes.of(group == one).people >= MIN_PEOPLE]
    if len(large) < 2:
        return Groups(accuracies, Estimate(None))
    chosen = np.isin(group, large)
    credit, group, votes, stratum = credit[chosen], group[chosen], votes.of(chosen), stratum[chosen]
    gap = _gap(credit, group, votes, large)
    return Groups(accuracies, gap, _gap_p_value(credit, group, votes, stratum, seed))


def _gap(credit: Array, group: Ints, votes: Votes, large: Sequence[int]) -> Estimate:
    from scipy.special import ndtri

    cluster = _renumbered(votes.prompt)
    place = np.searchsorted(large, group).astype(np.int64)
    sums = sums_of(place, cluster, credit, np.ones(len(credit)), shape=(int(cluster.max()) + 1, len(large)))
    linearized = linearize(sums)
    accuracies = [linearized.sources[0].pooled([one]) for one in range(len(large))]
    sizes, means = np.bincount(place), np.array([one[0] for one in accuracies])
    influence = (credit - means[place]) / sizes[place]
    pairs = [*combinations(range(len(large)), 2)]
    tail = (1 - CONFIDENCE) / 2
    jointly = float(ndtri(tail / len(pairs)) / ndtri(tail))
    clusters = len(sums.won)
    bounds, methods = [], set()
    for first, second in pairs:
        values = accuracies[first] - accuracies[second]
        one = linearized.estimate(values, [[first], [second]], None, clusters, (-1.0, 1.0))
        own = influence * (place == first) - influence * (place == second)
        both = np.isin(place, [first, second])
        one = widened(two_way(one, own[both], votes.of(both), (-1.0, 1.0)), jointly, (-1.0, 1.0))
        if one.low is None or one.high is None:
            continue
        bounds += [(one.low, one.high), (-one.high, -one.low)]
        methods.add(one.method)
    value = float(np.ptp(means))
    if len(bounds) < 2 * len(pairs):  # a pair without an interval
        return Estimate(value, None, None, len(credit), clusters)
    low, high = max(0.0, *(one for one, _ in bounds)), max(one for _, one in bounds)
    method = TWO_WAY if TWO_WAY in methods else methods.pop()
    return Estimate(value, min(low, value), max(high, value), len(credit), clusters, method)


def gap_difference(first: Array, second: Array, group: Ints, votes: Votes) -> tuple[float, float, Estimate] | None:
    """Estimate the difference of the gaps of two models on the same votes, the second's less the first's.

    The interval is for the groups that are the best and the worst served ones in the data, by each model.

    Returns:
        The gap of each model and their difference; None with fewer than two groups of `MIN_PEOPLE` people.
    """
    large = [one for one in np.unique(group).tolist() if votes.of(group == one).people >= MIN_PEOPLE]
    if len(large) < 2:
        return None
    chosen = np.isin(group, large)
    votes, place = votes.of(chosen), np.searchsorted(large, group[chosen]).astype(np.int64)
    credits_of = [credit[chosen] for credit in (first, second)]
    cluster = _renumbered(votes.prompt)
    shape, ones, sizes = (int(cluster.max()) + 1, len(large)), np.ones(len(place)), np.bincount(place)
    linearized = linearize(*(sums_of(place, cluster, credit, ones, shape=shape) for credit in credits_of))
    gaps, influences, used = list[Array](), list[Array](), set[int]()
    for credit, source in zip(credits_of, linearized.sources, strict=True):
        means = np.bincount(place, credit) / sizes
        best, worst = int(means.argmax()), int(means.argmin())
        used |= {best, worst}
        gaps.append(source.pooled([best]) - source.pooled([worst]))
        side = (place == best).astype(np.float64) - (place == worst)
        influences.append((credit - means[place]) / sizes[place] * side)
    strata = [[one] for one in sorted(used)]
    estimate = linearized.estimate(gaps[1] - gaps[0], strata, len(place), shape[0], (-1.0, 1.0))
    estimate = two_way(estimate, influences[1] - influences[0], votes, (-1.0, 1.0))
    return float(gaps[0][0]), float(gaps[1][0]), estimate


def _gap_p_value(credit: Array, group: Ints, votes: Votes, stratum: Ints, seed: int) -> float | None:
    known = votes.person != UNKNOWN
    credit, stratum = credit[known], stratum[known]
    (groups, _), own = np.unique([group[known], votes.person[known]], axis=1, return_inverse=True)
    own = own.ravel()
    won, counts = (np.bincount(own, weights).astype(np.float64) for weights in (credit, None))
    votes_in = np.zeros((len(groups), int(stratum.max()) + 1), dtype=np.bool_)
    votes_in[own, stratum] = True
    same_strata = np.unique(votes_in, axis=0, return_inverse=True)[1].ravel()
    # Numbered by the votes, so that names and the order of rows do not change which permutations are drawn.
    places, groups = (_by_votes(labels, won, counts) for labels in (same_strata, groups))
    order = np.lexsort([won, counts, groups, places])
    places, groups, won, counts = places[order], groups[order], won[order], counts[order]
    same = np.split(np.arange(len(places)), np.flatnonzero(np.diff(places)) + 1)
    permuted = [people for people in same if groups[people[0]] != groups[people[-1]]]
    if not permuted:
        return None
    # People of a group who vote in the same strata are next to each other.
    starts = np.flatnonzero(np.diff(places, prepend=-1) | np.diff(groups, prepend=-1))
    into = (groups[starts][:, None] == np.unique(groups)).astype(np.float64)

    def gaps(people: Ints) -> Array:
        sums = [np.add.reduceat(one[people], starts, axis=1) @ into for one in (won, counts)]
        return np.asarray(np.ptp(ratio(*sums), axis=1))

    every = np.arange(len(groups), dtype=np.int64)
    observed, larger, remaining = gaps(every[None])[0], 1, PERMUTATIONS
    generator = np.random.default_rng(seed)
    while remaining:
        size = min(remaining, max(1, PERMUTED_AT_ONCE // len(groups)))
        people = np.tile(every, (size, 1))
        for one in permuted:
            within = slice(one[0], one[-1] + 1)
            people[:, within] = generator.permuted(people[:, within], axis=1)
        larger += int((gaps(people) >= observed - ROUNDING).sum())
        remaining -= size
    return larger / (PERMUTATIONS + 1)


def _by_votes(labels: Ints, won: Array, counts: Array) -> Ints:
    """Number labels of people by the votes and the credits of their people."""
    place, sizes = np.unique(labels, return_inverse=True, return_counts=True)[1:]
    people = np.split(np.lexsort([won, counts, place]), np.cumsum(sizes)[:-1])
    keys = [(len(own), counts[own].tolist(), won[own].tolist()) for own in people]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return np.argsort(order)[place].astype(np.int64)
