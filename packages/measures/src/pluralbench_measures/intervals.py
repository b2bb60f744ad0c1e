"""Intervals of numbers that are made of sums by cluster: right for few clusters and many, and for small parts.

A number is any function of the sums of its leaves (see `pluralbench_measures.bootstrap`). Its derivative by each sum
says how far each cluster (a prompt or a user) pulls it, and the squares of these pulls are its variance: the
linearised, or sandwich, variance of survey statistics (Binder 1983, Int. Stat. Rev. 51:279). It is the same as that of
a bootstrap over clusters where these are many. Where they are few:

- A cluster pulls the mean that it is measured against. With h its share of a stratum, its square is on average
  (1 - h) of what it should be, so it is multiplied by 1 + h, and the remaining h^2 comes from a model: for a share the
  binomial variance of a whole cluster at the stratum's share, drawn to that of the whole by one cluster. So a section
  of three items that came out alike has a variance, and so has one of a single item.
- A share has the binomial interval at its effective number of decisions, that at which independent ones would have this
  variance (Korn and Graubard 1998, Surv. Methodol. 24:193), less for a variance known from few clusters, as they adjust
  it, but no less than if each cluster were one decision. The interval is the mid-P one (Lancaster 1961, J. Am. Stat.
  Assoc. 56:223), since the exact one holds far more than 95 % at small numbers. One decision, half right and half
  wrong, enters the variance, so that a value of 0 or 1 has an effective number: that of its clusters.
- Other numbers have a t interval, with one more cluster in their variance that pulls as far as those that do: where few
  pull, how many is by chance. Degrees of freedom are Satterthwaite's, as if each cluster weighed what it does.
- A difference of shares has all differences that a test does not tell from it. To differ by d, clusters must: if all
  that do differ one way, it has a variance of |d| times what each adds, less d^2 over their number, and so it has where
  the data show less (as in score tests, Tango 1998, Stat. Med. 17:891). So two models that never differed have an
  interval too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluralbench_measures.bootstrap import CONFIDENCE, Array, Estimate, Resampled, Sums, ratio

STEP = 1e-6  # of a leaf's decisions, for derivatives
FEWEST = 3
"""Of how many clusters an interval is: of fewer none is both right and of use."""
EFFECTIVE, STUDENT = "effective", "t"
"""The methods: of shares, and of differences and all other numbers."""
HALVINGS = 40
AT_ONCE = 1_000  # clusters
ROUNDING = 1e-10  # of a variance; what is less is an error of the derivatives
TAIL = (1 - CONFIDENCE) / 2
Strata = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Influence:
    """How clusters pull a number.

    variance: what their residuals show of it, of which `shown` is the share if all clusters vary alike. clusters,
    decisions: how many of equal weight would be worth as much. degrees: of freedom, and one. unit: how far one of those
    that pull it does, the mean of all weighted by their squares. By stratum, [strata]: shares, how many clusters of
    equal size are worth as much, and what no residual shows, in units of a cluster's variance (model).
    """

    variance: float
    clusters: float
    decisions: float
    degrees: float
    model: Array
    shares: Array
    strata_clusters: Array
    shown: float
    unit: float

    @property
    def one(self) -> float:
        """What one decision is of a cluster, at most 1."""
        return min(1.0, self.clusters / self.decisions)


@dataclass(frozen=True)
class Perturbed:
    """Sums as they are (row 0) and with one of them raised a little (each other row), of one or several tables.

    sums: the tables, on the same clusters and leaves. sources: of each table all rows, [1 + 2 * tables * leaves]. What
    is made of the sources row by row, a number's `values`, says how it depends on each sum.
    """

    sums: tuple[Sums, ...]
    sources: tuple[Resampled, ...]

    def share(self, values: Array, strata: Strata, n: int | None, clusters: int) -> Estimate:
        """The estimate of a share from 0 to 1: a mean over strata, or a ratio within one.

        strata: the leaves that it is made of, together where their decisions are pooled. n, clusters: see `Estimate`.
        """
        value = float(values[0])
        if np.isnan(value) or clusters < FEWEST:
            return Estimate(None if np.isnan(value) else value, None, None, n, clusters)
        pulls = self._pulls(values, strata)
        variance = pulls.variance + float((pulls.model * _drawn_in(value, pulls)).sum())
        size = _effective(value, variance, pulls)
        return Estimate(value, *_mid_p(value, size), n, clusters, EFFECTIVE)

    def difference(self, values: Array, strata: Strata, n: int | None, clusters: int) -> Estimate:
        """The estimate of a difference of shares, from -1 to 1, whose sides are two of the tables."""
        return self._student(values, strata, n, clusters, (-1.0, 1.0), _between)

    def spread(
        self,
        values: Array,
        strata: Strata,
        n: int | None,
        clusters: int,
        within: tuple[float, float] = (-inf, inf),
    ) -> Estimate:
        """The estimate of any number that lies `within` these; it has no interval where no cluster pulls it."""
        return self._student(values, strata, n, clusters, within, _around)

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
        none = Estimate(None if np.isnan(value) else value, None, None, n, clusters)
        if np.isnan(value) or clusters < FEWEST:
            return none
        pulls = self._pulls(values, strata)
        bounds = bounds_of(value, pulls) if pulls.shown > 0 else None
        if bounds is None:
            return none
        return Estimate(value, max(bounds[0], within[0]), min(bounds[1], within[1]), n, clusters, STUDENT)

    def _pulls(self, values: Array, strata: Strata) -> Influence:
        strata = [leaves for leaves in strata if len(leaves)]
        leaves = [leaf for inner in strata for leaf in inner]
        starts = np.cumsum([0, *(len(inner) for inner in strata)])[:-1]
        width = self.sums[0].won.shape[1]
        moved = (values[1:] - values[0]).reshape(len(self.sums), 2, width)[:, :, leaves] / STEP
        active = [place for place in range(len(self.sums)) if moved[place].any()] or [0]
        pull, part, *others = _of_table(self.sums[active[0]], leaves, starts, moved[active[0]])
        small = [others]
        for place in active[1:]:  # the large tables are added up as they come, so that few are there at once
            more_pull, more_part, *others = _of_table(self.sums[place], leaves, starts, moved[place])
            pull += more_pull
            part += more_part
            small.append(others)
        part /= len(active)
        every = [np.array(values) for values in zip(*small, strict=True)]
        weights = np.abs(every[0]).sum(0)
        if len(strata) == 1 or not weights.sum():
            weights = np.ones(len(strata))
        return _summed(
            pull=pull, part=part, weights=weights / weights.sum(), decisions=every[1].mean(0), shares=every[2].mean(0)
        )


def perturb(*sums: Sums) -> Perturbed:
    """Some tables of sums on the same clusters and leaves, each sum raised in turn."""
    leaves = sums[0].won.shape[1]
    rows = 1 + 2 * leaves * len(sums)
    sources = []
    for place, one in enumerate(sums):
        won, counts = (np.tile(table.sum(0), (rows, 1)) for table in (one.won, one.counts))
        first, each = 1 + 2 * leaves * place, np.arange(leaves)
        step = STEP * one.counts.sum(0)
        won[first + each, each] += step
        counts[first + leaves + each, each] += step
        sources.append(Resampled(won, counts, one.counts > 0))
    return Perturbed(sums, tuple(sources))


class _Table(NamedTuple):
    """What the clusters of a table do to a number, by stratum.

    pull: how far each cluster pulls it, and part, its share of the stratum's decisions: [clusters, strata]. weights: of
    the stratum in the number. decisions, shares: of the stratum.
    """

    pull: Array
    part: Array
    weights: Array
    decisions: Array
    shares: Array


def _of_table(sums: Sums, leaves: Sequence[int], starts: NDArray[np.int64], moved: Array) -> _Table:
    """leaves: of the strata, one after the other, which begin at `starts`. moved: by a raised sum, [2, leaves]."""
    counts, won = sums.counts[:, leaves], sums.won[:, leaves]  # copies, which are written over below
    slope = ratio(moved, counts.sum(0), 0.0)
    decisions = np.add.reduceat(counts.sum(0), starts)
    shares = ratio(np.add.reduceat(won.sum(0), starts), decisions, 0.0)
    won *= slope[0]
    for start in range(0, len(won), AT_ONCE):
        won[start : start + AT_ONCE] += counts[start : start + AT_ONCE] * slope[1]
    pull = np.add.reduceat(won, starts, axis=1)
    del won
    part = np.add.reduceat(counts, starts, axis=1)
    np.divide(part, decisions, out=part, where=decisions > 0)  # where there is none, each cluster has none
    return _Table(pull, part, np.add.reduceat(moved[0], starts), decisions, shares)


def _summed(pull: Array, part: Array, weights: Array, decisions: Array, shares: Array) -> Influence:
    """pull, part: [clusters, strata], the latter the cluster's share of the stratum."""
    squares = part**2
    whole = (part @ weights) ** 2
    square_sums = squares.sum(0)
    squares **= 2
    lacking = squares.sum(0)
    del squares
    # What each cluster would be of the number if those of its strata were as large, and how much of that it pulls.
    even = (part > 0) @ (weights * square_sums)
    pulled = np.abs(ratio(pull.sum(1), even, 0.0))
    seen = float(weights**2 @ square_sums)
    residuals = 1 + part
    np.sqrt(residuals, out=residuals)
    residuals *= pull
    return Influence(
        unit=_usual(even) * (_usual(pulled) if pulled.max() > ROUNDING**0.5 else 1.0),
        variance=float((residuals.sum(1) ** 2).sum()),
        clusters=1 / float(whole.sum()),
        decisions=1 / float((weights**2 / np.maximum(decisions, 1)).sum()),
        degrees=float(whole.sum() ** 2 / (whole**2).sum()),
        model=weights**2 * lacking,
        shares=shares,
        strata_clusters=ratio(1.0, square_sums, 0.0),
        shown=1 - float(weights**2 @ lacking) / seen,
    )


def _usual(sizes: Array) -> float:
    """The mean of sizes, weighted by their squares: what decides how much so many of them vary."""
    return float((sizes**3).sum() / (sizes**2).sum())


def _drawn_in(value: float, pulls: Influence) -> Array:
    """The variance of a cluster in each stratum, by its own share drawn to that of the whole by one cluster."""
    middle = (pulls.clusters * value + 0.5) / (pulls.clusters + 1)
    shares = (pulls.strata_clusters * pulls.shares + middle) / (pulls.strata_clusters + 1)
    return np.asarray(shares * (1 - shares))


def _around(value: float, pulls: Influence) -> tuple[float, float] | None:
    """The t interval of any number, None where nothing pulls it."""
    if pulls.variance / pulls.shown <= ROUNDING * max(1.0, value**2):
        return None
    half = _half(pulls)
    return value - half, value + half


def _between(value: float, pulls: Influence) -> tuple[float, float]:
    """The t interval of a difference, and all that the differences at its ends would themselves reach."""
    quantile, half = _quantile(pulls.degrees), _half(pulls)
    bounds = [value - half, value + half]
    # A difference d has the variance |d| * unit - d^2 / clusters if all that differs does so one way.
    scale = 1 + quantile**2 / pulls.clusters
    for side in (1.0, -1.0):
        middle = side * value + quantile**2 * pulls.unit / 2
        square = middle**2 - scale * value**2
        if middle > 0 and square >= 0:
            bounds += [side * (middle + root) / scale for root in (-(square**0.5), square**0.5)]
    return min(bounds), max(bounds)


def _half(pulls: Influence) -> float:
    return _quantile(pulls.degrees) * float((pulls.variance / pulls.shown + pulls.unit**2) ** 0.5)


def _quantile(degrees: float) -> float:
    from scipy.special import stdtrit  # noqa: PLC0415 - two seconds that `--help` saves

    return float(stdtrit(max(degrees, 1.0), 1 - TAIL))


def _effective(value: float, variance: float, pulls: Influence) -> float:
    """How many independent decisions would say as much."""
    clusters, one = pulls.clusters, pulls.one
    middle = (clusters * value + one / 2) / (clusters + one)
    # What of a decision's weight the decisions of its cluster share: all of it where they always come out alike.
    whole = value * (1 - value)
    alike = min(1.0, max(one, clusters * variance / whole)) if whole > ROUNDING else 1.0
    added = one * alike * ((1 - middle) ** 2 + middle**2) / 2 + clusters * (value - middle) ** 2
    size = clusters * middle * (1 - middle) * (clusters + one) / (clusters**2 * variance + added)
    size = min(size, max(pulls.decisions, clusters))
    # Either as many decisions, or each cluster as one decision, which is the least that they can be worth.
    both = ((size, pulls.decisions), (min(size, clusters), clusters))
    perhaps = _quantile(pulls.degrees - 1 + one)
    return max(many * min(1.0, _quantile(of - 1 + one) / perhaps) ** 2 for many, of in both)


def _mid_p(value: float, size: float) -> tuple[float, float]:
    """The mid-P interval of a share of `size` independent decisions, which need not be a whole number."""
    from scipy.special import betainc  # noqa: PLC0415 - two seconds that `--help` saves

    won = value * size
    lost = size - won

    def above(share: float) -> float:
        """How likely more is than was found, equal counting half."""
        more = betainc(won, lost + 1, share) if won > 0 else 1.0
        most = betainc(won + 1, lost, share) if lost > 0 else 0.0
        return float(more + most) / 2

    bounds = []
    for tail, edge in ((TAIL, won <= 0), (1 - TAIL, lost <= 0)):
        low, high = 0.0, 1.0
        for _ in range(0 if edge else HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if above(middle) > tail else (middle, high)
        bounds.append((low + high) / 2)
    return (0.0 if won <= 0 else bounds[0]), (1.0 if lost <= 0 else bounds[1])
