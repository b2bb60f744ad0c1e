"""Which of a table's models can be told apart, and what ranks that leaves them."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from pluralbench_measures.bootstrap import Estimate
from pluralbench_measures.ranks import Pair, RankInterval, ranks

from pluralbench.errors import RunError
from pluralbench.evaluation.compare import counted_decisions, overall_difference
from pluralbench.reports.sheets import Sheet

RANKS = (
    "Models share a rank unless the difference of their overall numbers on the same items is beyond chance (p < 0.05 "
    "by Holm over all pairs of the table). A range has all ranks that a model may have."
)


class Ranked(NamedTuple):
    """The ranks of a sheet's rows, in their order, and the differences behind them, by the numbers of two rows.

    rejection_reasons: where rows cannot be compared, a sentence that says why; then there are no ranks.
    """

    ranks: Sequence[RankInterval | None]
    differences: Mapping[Pair, Estimate]
    rejection_reasons: str = ""


def ranked(sheet: Sheet) -> Ranked:
    """The ranks of the runs of a sheet; None of one without an overall number."""
    numbered = [place for place, run in enumerate(sheet.runs) if run.headline.value is not None]
    decisions = {place: counted_decisions(sheet.runs[place]) for place in numbered}
    try:
        found = {
            (one, other): overall_difference(sheet.runs[one], sheet.runs[other], decisions[one], decisions[other])
            for one, other in combinations(numbered, 2)
        }
    except RunError as error:
        return Ranked([None] * len(sheet.runs), {}, f"There are no ranks here. {error}")
    return Ranked(spread_over(len(sheet.runs), numbered, found), found)


def spread_over(rows: int, numbered: Sequence[int], differences: Mapping[Pair, Estimate]) -> list[RankInterval | None]:
    """The ranks of those rows that have a number, at their places among all of so many rows.

    differences: by the places of two rows, see `pluralbench_measures.ranks`.
    """
    at = {place: number for number, place in enumerate(numbered)}
    given = {(at[one], at[other]): found for (one, other), found in differences.items()}
    found = iter(ranks(len(numbered), given))
    return [next(found) if place in at else None for place in range(rows)]
