"""Paired tests: whether two runs on the same decisions differ by more than chance."""

from collections.abc import Iterator, Sequence

import numpy as np

from pluralbench_measures.bootstrap import Array, Resampled, Sums

PERMUTATIONS = 9999
EXCHANGED_AT_ONCE = 20_000_000  # clusters times permutations in memory at a time
ROUNDING = 1e-9  # differences that are equal but for rounding


def exchange(first: Sums, second: Sums, seed: int, permutations: int = PERMUTATIONS) -> tuple[Resampled, Resampled]:
    """Two runs' sums as they are (row 0), and as they are when the runs are exchanged within some clusters.

    first, second: of the same decisions, cluster by cluster. Which clusters are exchanged depends only on the seed and
    the number of clusters. Where there are no more than `permutations` ways to exchange them, each way is there once;
    else as many as that are drawn, and one more leaves all as it is.
    """
    together, apart = first.won + second.won, second.won - first.won
    # An exchanged cluster gives each run the other's decisions: its part of the difference changes its sign.
    moved = np.concatenate([signs @ apart for signs in exchanges(len(apart), seed, permutations)])
    counts = np.broadcast_to(first.counts.sum(0), moved.shape)
    present = first.counts > 0
    total = together.sum(0)
    return Resampled((total - moved) / 2, counts, present), Resampled((total + moved) / 2, counts, present)


def exchanges(clusters: int, seed: int, permutations: int = PERMUTATIONS) -> Iterator[Array]:
    """-1 for each cluster that is exchanged, else 1: [ways, clusters]; the first two ways leave all as it is."""
    yield np.ones((1, clusters))
    if clusters < permutations.bit_length():
        ways = np.arange(2**clusters)[:, None] >> np.arange(clusters)
        yield (1 - 2 * (ways & 1)).astype(np.float64)
        return
    yield np.ones((1, clusters))
    generator = np.random.default_rng(seed)
    left = permutations
    while left:
        size = min(left, max(1, EXCHANGED_AT_ONCE // clusters))
        yield (2 * generator.integers(0, 2, (size, clusters), dtype=np.int8) - 1).astype(np.float64)
        left -= size


def p_value(differences: Array) -> float | None:
    """The two-sided p-value of a difference: the share of exchanges whose difference is at least as large, either way.

    differences: as it is, then for each exchange, of which one leaves all as it is, so p is never 0: [1 + exchanges].
    None where the difference is missing.
    """
    if np.isnan(differences[0]):
        return None
    return float((np.abs(differences[1:]) >= abs(differences[0]) - ROUNDING).mean())


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p-values of several tests, in the order given; what is None is no test and stays None."""
    tested = np.array([p for p in p_values if p is not None])
    order = tested.argsort()
    steps = np.maximum.accumulate(tested[order] * np.arange(len(tested), 0, -1))
    adjusted = iter(np.minimum(steps, 1.0)[order.argsort()].tolist())
    return [None if p is None else next(adjusted) for p in p_values]
