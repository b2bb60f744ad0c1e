"""Paired tests of two runs on the same decisions."""

from collections.abc import Iterator, Sequence

import numpy as np

from pluralbench_measures.bootstrap import Array, Resampled, Sums

PERMUTATIONS = 9999
SIGNS_AT_ONCE = 20_000_000  # clusters times permutations in memory at a time
ROUNDING = 1e-9  # smaller differences count as equal


def exchange(first: Sums, second: Sums, seed: int, permutations: int = PERMUTATIONS) -> tuple[Resampled, Resampled]:
    """Exchange two runs within random clusters.

    The exchanged clusters depend only on the seed and the number of clusters (see `exchanges`).

    Args:
        first: Sums of the first run.
        second: Sums of the second run, on the same decisions and clusters.
        seed: Seed of the drawn exchanges.
        permutations: Number of exchanges that are drawn if enumerating all would take more.

    Returns:
        The sums by leaf of either run: row 0 has the data, each other row one exchange.
    """
    difference = second.won - first.won
    # An exchanged cluster gives each run the other's decisions, so its difference changes sign.
    differences = np.concatenate([signs @ difference for signs in exchanges(len(difference), seed, permutations)])
    counts = np.broadcast_to(first.counts.sum(0), differences.shape)
    present = first.counts > 0
    total = (first.won + second.won).sum(0)
    return Resampled((total - differences) / 2, counts, present), Resampled((total + differences) / 2, counts, present)


def exchanges(clusters: int, seed: int, permutations: int = PERMUTATIONS) -> Iterator[Array]:
    """Yield the signs of exchanges in parts of shape (exchanges, clusters): -1 for an exchanged cluster, else 1.

    The first exchange is the data, without any exchanged cluster. All 2^clusters exchanges follow if these are at most
    `permutations`; otherwise the data once more, and `permutations` exchanges that are drawn.
    """
    yield np.ones((1, clusters))
    if clusters < permutations.bit_length():
        ways = np.arange(2**clusters)[:, None] >> np.arange(clusters)
        yield (1 - 2 * (ways & 1)).astype(np.float64)
        return
    yield np.ones((1, clusters))
    generator = np.random.default_rng(seed)
    remaining = permutations
    while remaining:
        size = min(remaining, max(1, SIGNS_AT_ONCE // clusters))
        yield (2 * generator.integers(0, 2, (size, clusters), dtype=np.int8) - 1).astype(np.float64)
        remaining -= size


def p_value(differences: Array) -> float | None:
    """Compute a two-sided p-value: the share of exchanges with an absolute difference at least as large.

    Args:
        differences: The difference of the data, then of each exchange. One exchange equals the data, so p is never 0.
            Shape (1 + exchanges,).

    Returns:
        The p-value; None if the difference is missing.
    """
    if np.isnan(differences[0]):
        return None
    return float((np.abs(differences[1:]) >= abs(differences[0]) - ROUNDING).mean())


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust the p-values of several tests by Holm's method, in the same order; None is not a test and stays None."""
    tested = np.array([p for p in p_values if p is not None])
    order = tested.argsort()
    steps = np.maximum.accumulate(tested[order] * np.arange(len(tested), 0, -1))
    adjusted = iter(np.minimum(steps, 1.0)[order.argsort()].tolist())
    return [None if p is None else next(adjusted) for p in p_values]
