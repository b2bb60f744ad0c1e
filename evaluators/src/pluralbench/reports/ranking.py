"""Ranks of the models of a table, and which of them differ significantly."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from pluralbench_measures.bootstrap import Estimate
from pluralbench_measures.ranks import Pair, RankInterval, distinct_pairs, ranks

from pluralbench.errors import RunError
from pluralbench.evaluation.compare import counted_decisions, overall_difference
from pluralbench.reports.sheets import Sheet

RANKS = (
    "Models share a rank unless their overall numbers on the same items differ significantly (p < 0.05, "
    "Holm-corrected over all pairs of the table). A range lists every rank that a model may have."
)


class Ranking(NamedTuple):
    """The ranks of the rows of a table.

    Attributes:
        ranks: A rank for each row; None for a row that is not ranked.
        differences: Difference of the overall numbers, by the indices of two rows.
        problem: Why the rows cannot be ranked; empty if they can.
    """

    ranks: Sequence[RankInterval | None]
    differences: Mapping[Pair, Estimate]
    problem: str = ""

    def indistinct(self, row: int) -> list[int]:
        """Return the ranked rows that do not differ significantly from a row."""
        distinct = {frozenset(pair) for pair in distinct_pairs(self.differences)}
        ranked = [other for other, rank in enumerate(self.ranks) if rank is not None and other != row]
        return [other for other in ranked if frozenset((row, other)) not in distinct]

    def difference(self, row: int, other: int) -> Estimate:
        """Return the first row's number minus that of the second; no value if they were not compared."""
        if other < row:
            return self.differences.get((other, row), Estimate(None))
        gap = self.differences.get((row, other), Estimate(None))
        value, high, low = (None if one is None else -one for one in (gap.value, gap.low, gap.high))
        return Estimate(value, low, high, gap.n, gap.clusters, gap.method)


def rank_sheet(sheet: Sheet) -> Ranking:
    """Rank the runs of a sheet that have an overall number and whose verdicts can be read."""
    scored = [at for at, run in enumerate(sheet.runs) if run.headline.value is not None]
    decisions = {index: counted_decisions(sheet.runs[index]) for index in scored}
    try:
        differences = {
            (one, other): overall_difference(sheet.runs[one], sheet.runs[other], decisions[one], decisions[other])
            for one, other in combinations(scored, 2)
        }
    except RunError as error:
        return Ranking([None] * len(sheet.runs), {}, f"The models are not ranked. {error}")
    return Ranking(ranks_of_rows(len(sheet.runs), scored, differences), differences)


def ranks_of_rows(rows: int, scored: Sequence[int], differences: Mapping[Pair, Estimate]) -> list[RankInterval | None]:
    """Rank the scored rows of a table; the other rows get None.

    Args:
        rows: Number of rows of the table.
        scored: Indices of the rows that have a number.
        differences: By the indices of two rows; see `pluralbench_measures.ranks`.
    """
    positions = {index: position for position, index in enumerate(scored)}
    by_position = {(positions[one], positions[other]): gap for (one, other), gap in differences.items()}
    intervals = iter(ranks(len(scored), by_position))
    return [next(intervals) if index in positions else None for index in range(rows)]
