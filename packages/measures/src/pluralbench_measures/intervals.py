"""Confidence intervals of statistics of clustered decisions, valid for few clusters and for small parts.

A statistic is any function of the sums of its cells (see `pluralbench_measures.bootstrap`). Its derivative by each sum
gives the influence of each cluster (a prompt or a user), and the squared influences add up to its variance: the
linearized, or sandwich, variance of survey statistics (Binder 1983, Int. Stat. Rev. 51:279). With many clusters it
equals the variance of a bootstrap over clusters. With few clusters there are corrections:

- A cluster moves the mean against which it is measured. If h is its share of a stratum, the expected squared influence
  is too small by the factor (1 - h). It is therefore multiplied by 1 + h, and the remaining h^2 comes from a model: for
  a share, the binomial variance of one cluster at the stratum's share, which is shrunk toward the overall share by the
  weight of one cluster. A section of three items with equal outcomes thus has a variance, and so has a single item.
- A share has the binomial interval at its effective number of decisions, the number of independent decisions with the
  same variance (Korn and Graubard 1998, Surv. Methodol. 24:193). As in that paper, the number is reduced if the
  variance is estimated from few clusters; it is never below what it would be with one decision per cluster. A decision
  with a credit between 0 and 1 counts as the number of right or wrong ones with its variance. The interval is mid-P
  (Lancaster 1961, J. Am. Stat. Assoc. 56:223), because the exact one covers far more than 95 % at small numbers. A
  pseudo-decision, half right and half wrong, enters the variance, so that a value of 0 or 1 has an effective number of
  decisions: its number of clusters.
- Other statistics have a t interval. Its variance includes one more cluster of typical influence, because the number of
  clusters with an influence is random when it is small. Degrees of freedom are Satterthwaite's, from the weights of the
  clusters.
- The interval of a difference of shares contains all differences that a test does not reject. A difference d needs
  clusters that differ. If all of those differ in one direction, d has the variance |d| times the influence of one
  cluster, minus d^2 over the number of clusters; this variance is used where the data show less (as in score tests,
  Tango 1998, Stat. Med. 17:891). Two models without any differing decision thus have an interval too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from pluralbench_measures.bootstrap import CONFIDENCE, Array, Estimate, Resampled, Sums, order_by_sums, ratio

STEP = 1e-6  # of numerical derivatives, relative to a cell's decisions
MIN_CLUSTERS = 3
"""Smallest number of clusters with an interval; with fewer, no interval is both valid and useful."""
EFFECTIVE, STUDENT = "effective", "t"
"""The methods: for shares, and for differences and all other statistics."""
BISECTIONS = 40
CHUNK = 1_000  # clusters that are updated at a time
ROUNDING = 1e-10  # relative to a variance; smaller values are errors of the derivatives
TAIL = (1 - CONFIDENCE) / 2
Strata = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Influence:
    """The influence of clusters on a statistic.

    Attributes:
        variance: The part of the variance that the residuals show.
        clusters: Effective number of clusters, of equal weight.
        decisions: Effective number of decisions, of equal weight.
        partial: Mean of c (1 - c) over the credits c of decisions, 0 if each is right or wrong.
        degrees: Degrees of freedom, plus one.
        model: The part of the variance that no residual shows, by stratum, in units of a cluster's variance.
        shares: Share of right decisions, by stratum.
        strata_clusters: Effective number of clusters, by stratum.
        residual_share: The share of the variance that the residuals show if all clusters have equal variances.
        typical: Typical influence of the clusters that have any: the mean weighted by squares.
    """

    variance: float
    clusters: float
    decisions: float
    partial: float
    degrees: float
    model: Array
    shares: Array
    strata_clusters: Array
    residual_share: float
    typical: float

    @property
    def decision_weight(self) -> float:
        """The size of a decision relative to a cluster, at most 1."""
        return min(1.0, self.clusters / self.decisions)


@dataclass(frozen=True)
class Linearization:
    """Tables of sums, with one row of cell totals for the data and one for each perturbed sum, for their derivatives.

    Compute a statistic of `sources` row by row, and pass its `values` to a method to get an interval.

    Attributes:
        sums: The tables, on the same clusters and cells.
        sources: Cell totals of each table. Row 0 has the data; in each other row one sum of one table is a little
            larger. 1 + 2 * tables * cells rows.
    """

    sums: tuple[Sums, ...]
    sources: tuple[Resampled, ...]

    def share(
        self, values: Array, strata: Strata, n: int | None, clusters: int, *, stratified: bool = False
    ) -> Estimate:
        """Estimate a share from 0 to 1: a mean over strata, or a ratio within one stratum.

        A share slightly above 1, such as a score with a bonus, has the interval of 1, extended to the value.

        Args:
            values: The share, computed from each row of `sources`. Shape (rows,).
            strata: The cells of the share; those whose decisions are pooled form one stratum.
            n: Number of decisions, for the result.
            clusters: Number of clusters. With fewer than `MIN_CLUSTERS` there is no interval.
            stratified: The data were drawn by stratum, in numbers fixed beforehand. Differences between strata are then
                no error, so the effective number of decisions can be above the number of decisions. Default: it is at
                most that number; more where credits between 0 and 1 vary less than right and wrong.
        """
        value = float(values[0])
        if np.isnan(value) or clusters < MIN_CLUSTERS:
            return Estimate(None if np.isnan(value) else value, None, None, n, clusters)
        share = min(max(value, 0.0), 1.0)
        influence = self._influence(values, strata)
        variance = influence.variance + float((influence.model * _shrunk_variance(share, influence)).sum())
        low, high = _mid_p(share, _effective_size(share, variance, influence, stratified=stratified))
        return Estimate(value, min(low, value), max(high, value), n, clusters, EFFECTIVE)

    def difference(self, values: Array, strata: Strata, n: int | None, clusters: int) -> Estimate:
        """Estimate a difference of shares of two tables, from -1 to 1. Arguments as in `share`."""
        return self._student(values, strata, n, clusters, (-1.0, 1.0), _difference_bounds)

    def estimate(
        self,
        values: Array,
        strata: Strata,
        n: int | None,
        clusters: int,
        within: tuple[float, float] = (-inf, inf),
    ) -> Estimate:
        """Estimate any statistic within bounds; without an interval if no cluster has an influence on it."""
        return self._student(values, strata, n, clusters, within, _t_bounds)

    def _student(
        self,
        values: Array,
        strata: Strata,
        n: int | None,
        clusters: int,
        within: tuple[float, float],
        bounds_of: Callable[[float, Influence], tuple[float, float] | None],
    ) -> Estimate:
        value = float(values[0])
        without_interval = Estimate(None if np.isnan(value) else value, None, None, n, clusters)
        if np.isnan(value) or clusters < MIN_CLUSTERS:
            return without_interval
        influence = self._influence(values, strata)
        bounds = bounds_of(value, influence) if influence.residual_share > 0 else None
        if bounds is None:
            return without_interval
        return Estimate(value, max(bounds[0], within[0]), min(bounds[1], within[1]), n, clusters, STUDENT)

    def _influence(self, values: Array, strata: Strata) -> Influence:
        strata = [cells for cells in strata if len(cells)]
        cells = [cell for stratum in strata for cell in stratum]
        starts = np.cumsum([0, *(len(stratum) for stratum in strata)])[:-1]
        width = self.sums[0].won.shape[1]
        slopes = (values[1:] - values[0]).reshape(len(self.sums), 2, width)[:, :, cells] / STEP
        active = [index for index in range(len(self.sums)) if slopes[index].any()] or [0]
        influence, part, *by_stratum = _table_influence(self.sums[active[0]], cells, starts, slopes[active[0]])
        parts = [by_stratum]
        for index in active[1:]:  # adds up large arrays one by one to save memory
            more_influence, more_part, *by_stratum = _table_influence(self.sums[index], cells, starts, slopes[index])
            influence += more_influence
            part += more_part
            parts.append(by_stratum)
        part /= len(active)
        strata_weights, decisions, shares, partial = (np.array(values) for values in zip(*parts, strict=True))
        weights = np.abs(strata_weights).sum(0)
        if len(strata) == 1 or not weights.sum():
            weights = np.ones(len(strata))
        return _total_influence(
            influence=influence,
            part=part,
            weights=weights / weights.sum(),
            decisions=decisions.mean(0),
            shares=shares.mean(0),
            partial=partial.mean(0),
        )


def linearize(*sums: Sums) -> Linearization:
    """Perturb each sum of one or several tables on the same clusters and cells in turn, for the derivatives by it."""
    order = order_by_sums(sums)
    sums = tuple(replace(table, won=table.won[order], counts=table.counts[order]) for table in sums)
    cells = sums[0].won.shape[1]
    rows = 1 + 2 * cells * len(sums)
    sources = []
    for index, table in enumerate(sums):
        won, counts = (np.tile(array.sum(0), (rows, 1)) for array in (table.won, table.counts))
        first, cell = 1 + 2 * cells * index, np.arange(cells)
        step = STEP * table.counts.sum(0)
        won[first + cell, cell] += step
        counts[first + cells + cell, cell] += step
        sources.append(Resampled(won, counts, table.counts > 0))
    return Linearization(sums, tuple(sources))


def _table_influence(
    sums: Sums, cells: Sequence[int], starts: NDArray[np.int64], slopes: Array
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Sum the influence of clusters on a statistic over strata, whose cells are consecutive from `starts` on.

    `slopes` has the derivatives by the relative change of `won` and of `counts`, of shape (2, cells).

    Returns:
        By cluster and stratum, the influence and the share in the stratum's decisions. By stratum, its weight in the
        statistic, the number of its decisions, the share of right ones, and the mean of c (1 - c) over their credits c.
    """
    counts, won = sums.counts[:, cells], sums.won[:, cells]  # copies, which are overwritten below
    slope = ratio(slopes, counts.sum(0), 0.0)
    decisions = np.add.reduceat(counts.sum(0), starts)
    shares = ratio(np.add.reduceat(won.sum(0), starts), decisions, 0.0)
    won *= slope[0]
    for start in range(0, len(won), CHUNK):
        won[start : start + CHUNK] += counts[start : start + CHUNK] * slope[1]
    influence = np.add.reduceat(won, starts, axis=1)
    del won
    part = np.add.reduceat(counts, starts, axis=1)
    np.divide(part, decisions, out=part, where=decisions > 0)  # strata without decisions keep zeros
    partial = ratio(np.add.reduceat(np.broadcast_to(sums.partial, sums.won.shape[1])[cells], starts), decisions, 0.0)
    return influence, part, np.add.reduceat(slopes[0], starts), decisions, shares, partial


def _total_influence(
    influence: Array, part: Array, weights: Array, decisions: Array, shares: Array, partial: Array
) -> Influence:
    """Combine the strata; `influence` and `part` have shape (clusters, strata)."""
    squares = part**2
    total_squares = (part @ weights) ** 2
    square_sums = squares.sum(0)
    squares **= 2
    fourth_powers = squares.sum(0)
    del squares
    # The part of each cluster in the statistic if all clusters of its strata had the same size, and its influence
    # relative to that part.
    even = (part > 0) @ (weights * square_sums)
    relative = np.abs(ratio(influence.sum(1), even, 0.0))
    residuals = 1 + part
    np.sqrt(residuals, out=residuals)
    residuals *= influence
    return Influence(
        typical=_mean_by_squares(even) * (_mean_by_squares(relative) if relative.max() > ROUNDING**0.5 else 1.0),
        variance=float((residuals.sum(1) ** 2).sum()),
        clusters=1 / float(total_squares.sum()),
        decisions=1 / float((weights**2 / np.maximum(decisions, 1)).sum()),
        partial=float(weights @ partial),
        degrees=float(total_squares.sum() ** 2 / (total_squares**2).sum()),
        model=weights**2 * fourth_powers,
        shares=shares,
        strata_clusters=ratio(1.0, square_sums, 0.0),
        residual_share=1 - float(weights**2 @ fourth_powers) / float(weights**2 @ square_sums),
    )


def _mean_by_squares(sizes: Array) -> float:
    """The mean of sizes weighted by their squares, the size that dominates a variance."""
    return float((sizes**3).sum() / (sizes**2).sum())


def _shrunk_variance(value: float, influence: Influence) -> Array:
    """The variance of a cluster by stratum, at the stratum's share shrunk toward the overall share."""
    center = (influence.clusters * value + 0.5) / (influence.clusters + 1)
    shares = (influence.strata_clusters * influence.shares.clip(0, 1) + center) / (influence.strata_clusters + 1)
    return np.asarray(shares * (1 - shares))


def _t_bounds(value: float, influence: Influence) -> tuple[float, float] | None:
    """The t interval of any statistic, None if no cluster has an influence."""
    if influence.variance / influence.residual_share <= ROUNDING * max(1.0, value**2):
        return None
    half = _half_width(influence)
    return value - half, value + half


def _difference_bounds(value: float, influence: Influence) -> tuple[float, float]:
    """The t interval of a difference, extended by the differences that a score test does not reject."""
    quantile, half = _quantile(influence.degrees), _half_width(influence)
    bounds = [value - half, value + half]
    # A difference d has the variance |d| * typical - d^2 / clusters if all differing clusters agree in direction.
    scale = 1 + quantile**2 / influence.clusters
    for side in (1.0, -1.0):
        middle = side * value + quantile**2 * influence.typical / 2
        square = middle**2 - scale * value**2
        if middle > 0 and square >= 0:
            bounds += [side * (middle + root) / scale for root in (-(square**0.5), square**0.5)]
    return min(bounds), max(bounds)


def _half_width(influence: Influence) -> float:
    variance = influence.variance / influence.residual_share + influence.typical**2
    return _quantile(influence.degrees) * float(variance**0.5)


def _quantile(degrees: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(max(degrees, 1.0), 1 - TAIL))


def _effective_size(value: float, variance: float, influence: Influence, *, stratified: bool) -> float:
    """The effective number of independent decisions, with or without the limit of `Linearization.share`."""
    clusters, weight = influence.clusters, influence.decision_weight
    center = (clusters * value + weight / 2) / (clusters + weight)
    # How far the decisions of a cluster agree: 1 if they always have the same outcome.
    binomial = value * (1 - value)
    agreement = min(1.0, max(weight, clusters * variance / binomial)) if binomial > ROUNDING else 1.0
    added = weight * agreement * ((1 - center) ** 2 + center**2) / 2 + clusters * (value - center) ** 2
    size = clusters * center * (1 - center) * (clusters + weight) / (clusters**2 * variance + added)
    decisions = influence.decisions * _decisions_per_credit(value, influence)
    most, most_clusters = (inf, inf) if stratified else (max(decisions, clusters), clusters)
    # The larger of this number and that with one decision per cluster, each corrected for its degrees of freedom.
    candidates = ((min(size, most), decisions), (min(size, most_clusters), clusters))
    quantile = _quantile(influence.degrees - 1 + weight)
    return max(number * min(1.0, _quantile(of - 1 + weight) / quantile) ** 2 for number, of in candidates)


def _decisions_per_credit(value: float, influence: Influence) -> float:
    """How many decisions that are right or wrong have the variance of one with the observed credits, at least 1."""
    size = influence.decisions
    center = (size * value + 0.5) / (size + 1)
    variance = center * (1 - center)  # of all decisions and the pseudo-decision, if each were right or wrong
    return variance / (variance - influence.partial * size / (size + 1))


def _mid_p(value: float, size: float) -> tuple[float, float]:
    """The mid-P interval of a share of `size` independent decisions, which may be fractional."""
    from scipy.special import betainc

    won = value * size
    lost = size - won

    def above(share: float) -> float:
        """The probability of a larger value than the observed one, plus half that of an equal one."""
        at_least = betainc(won, lost + 1, share) if won > 0 else 1.0
        more = betainc(won + 1, lost, share) if lost > 0 else 0.0
        return float(at_least + more) / 2

    bounds = []
    for tail, edge in ((TAIL, won <= 0), (1 - TAIL, lost <= 0)):
        low, high = 0.0, 1.0
        for _ in range(0 if edge else BISECTIONS):
            middle = (low + high) / 2
            low, high = (low, middle) if above(middle) > tail else (middle, high)
        bounds.append((low + high) / 2)
    return (0.0 if won <= 0 else bounds[0]), (1.0 if lost <= 0 else bounds[1])
