"""Differences of two runs in their agreement with votes of people: with all, with each group, and in the gap."""

from collections.abc import Iterator

import numpy as np
import polars as pl
from pluralbench_measures.bootstrap import Estimate
from pluralbench_measures.crossed import difference_of_votes, gap_difference

from pluralbench.data.metric_key import MetricKey
from pluralbench.errors import RunError
from pluralbench.metrics.annotated import ITEM, NONE, annotated
from pluralbench.metrics.decided import Decided


def annotation_differences(
    first: Decided, second: Decided, where: str
) -> Iterator[tuple[MetricKey, float, float, Estimate]]:
    """Yield the numbers of both runs and the difference, the second's less the first's, on items that both answered.

    Raises:
        RunError: The runs have different votes on the same items.
    """
    if first.annotations is None or second.annotations is None:
        return
    _check_votes(first.annotations, second.annotations, where)
    ours, theirs = annotated(first), annotated(second)
    if ours is None or theirs is None:
        return
    places = ours.ids.join(theirs.ids.with_row_index("place"), on=ITEM, how="left", maintain_order="left")["place"]
    place = places.cast(pl.Int64).fill_null(NONE).to_numpy()[ours.item]
    both = place != NONE
    if not both.any():
        return
    before = ours.credit[both]
    after = np.asarray(theirs.answer[place[both]] == ours.response[both], dtype=np.float64)
    votes, key = ours.votes.of(both), MetricKey("agreement_with_annotations")
    yield key, float(before.mean()), float(after.mean()), difference_of_votes(before, after, votes)
    for attribute, every in ours.attributes.items():
        values = every.filter(pl.Series(both))
        for name in values.drop_nulls().unique().sort():
            inside = (values == name).fill_null(value=False).to_numpy()
            own, other = before[inside], after[inside]
            estimate = difference_of_votes(own, other, votes.of(inside))
            yield key._replace(attribute=attribute, group=name), float(own.mean()), float(other.mean()), estimate
        known = values.is_not_null().to_numpy()
        group = np.asarray(values.drop_nulls().rank("dense").cast(pl.Int64).to_numpy(), dtype=np.int64)
        gaps = gap_difference(before[known], after[known], group, votes.of(known)) if known.any() else None
        if gaps is not None:
            yield MetricKey("group_gap", attribute=attribute), *gaps


def _check_votes(ours: pl.DataFrame, theirs: pl.DataFrame, where: str) -> None:
    columns = sorted(set(ours.columns) & set(theirs.columns))
    sides = [
        one.join(other.select(ITEM).unique(), on=ITEM, how="semi").select(columns).sort(columns)
        for one, other in ((ours, theirs), (theirs, ours))
    ]
    if set(ours.columns) != set(theirs.columns) or not sides[0].equals(sides[1]):
        raise RunError(f"{where} have different votes of people on the same items; score both on the same data.")
