"""What a judge's verdicts owe to the order in which it saw the answers.

`verdicts`, `invalid_verdicts`: how many there are in all orders. `share_of_first`: of the valid ones, how many take the
first answer. `asked_in_both_orders`: decisions with a valid verdict in both, and `changed_with_the_order`: how many of
these say something else in the other order. Of a judge of pairs also the accuracy by the place of the chosen response
(`accuracy_chosen_first`, `accuracy_chosen_second`) with `position_bias`, how far these are apart;
`accuracy_over_orders`, the share of right verdicts in all orders, as PersonalRewardBench (SynthesizeMe) counts: a pair
that is right in one order of two is worth a half, and a verdict that cannot be read nothing; and
`accuracy_with_invalid_as_first`, in which a verdict that cannot be read is taken for the first response, as the script
of the paper of Personalized RewardBench does.
"""

import numpy as np
import polars as pl
from pluralbench_measures.bootstrap import Estimate, sums_of
from pluralbench_measures.intervals import perturb

from pluralbench.results.metrics_frame import Numbers, Place

INVALID = "invalid"


def position_of_pairs(decisions: pl.DataFrame) -> Numbers:
    """Of verdicts between pairs of responses.

    decisions: with `verdict_chosen_first` and `verdict_rejected_first`, each "A", "B", "invalid" or null (not asked).
    """
    first, second = decisions["verdict_chosen_first"], decisions["verdict_rejected_first"]
    yield from _orders(decisions["cluster"], first, second, changed=first == second)
    chosen_first, chosen_second = _share(first, "A"), _share(second, "B")
    yield Place("position", "accuracy_chosen_first"), chosen_first
    yield Place("position", "accuracy_chosen_second"), chosen_second
    won = _count(first == "A") + _count(second == "B")
    yield (
        Place("position", "accuracy_over_orders"),
        _over(decisions["cluster"], won, _count(first.is_not_null()) + _count(second.is_not_null())),
    )
    as_first = pl.concat([first.replace(INVALID, "A") == "A", second.replace(INVALID, "A") == "B"])
    yield Place("position", "accuracy_with_invalid_as_first"), _mean(as_first.drop_nulls())
    a, b = chosen_first.value, chosen_second.value
    yield Place("position", "position_bias"), Estimate(None if a is None or b is None else abs(a - b))


def position_of_options(decisions: pl.DataFrame) -> Numbers:
    """Of the persona judge's verdicts between two options.

    decisions: with `said` and `said_swapped`, each "A", "B", "C" or "invalid" as the judge saw the options; null where
    it was not asked.
    """
    said, swapped = decisions["said"], decisions["said_swapped"]
    back = swapped.replace({"A": "B", "B": "A"})
    yield from _orders(decisions["cluster"], said, swapped, changed=said != back)


def _over(cluster: pl.Series, hits: pl.Series, of: pl.Series) -> Estimate:
    """A share of the verdicts of all decisions, with an interval over clusters. hits, of: verdicts of each decision."""
    asked = pl.DataFrame({"cluster": cluster, "hits": hits, "of": of}).filter(pl.col("of") > 0)
    if asked.is_empty():
        return Estimate(None, n=0)
    numbered = asked["cluster"].rank("dense").cast(pl.Int64).to_numpy() - 1
    leaf = np.zeros(asked.height, dtype=np.int64)
    perturbed = perturb(sums_of(leaf, numbered, asked["hits"].to_numpy(), asked["of"].to_numpy()))
    [source] = perturbed.sources
    return perturbed.share(source.pooled([0]), [[0]], source.decisions([0]), source.clusters([0]))


def _count(verdicts: pl.Series) -> pl.Series:
    """1 where something holds of a verdict, else 0, also where it was not asked for."""
    return verdicts.fill_null(value=False).cast(pl.Float64)


def _orders(cluster: pl.Series, first: pl.Series, second: pl.Series, *, changed: pl.Series) -> Numbers:
    said = pl.concat([first, second.alias(first.name)]).drop_nulls()
    both = (first != INVALID) & (second != INVALID)
    counts = {
        "verdicts": len(said),
        "invalid_verdicts": int((said == INVALID).sum()),
        "asked_in_both_orders": int(both.sum()),
        "changed_with_the_order": int((both & changed).sum()),
    }
    for metric, value in counts.items():
        yield Place("position", metric), Estimate(float(value))
    valid = _count(first != INVALID) + _count(second != INVALID)
    yield Place("position", "share_of_first"), _over(cluster, _count(first == "A") + _count(second == "A"), valid)


def _share(verdicts: pl.Series, right: str) -> Estimate:
    return _mean(verdicts.drop_nulls() == right)


def _mean(values: pl.Series) -> Estimate:
    return Estimate(float(values.sum()) / len(values) if len(values) else None, n=len(values))
