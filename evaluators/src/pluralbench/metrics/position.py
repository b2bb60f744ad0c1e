"""Position bias of a judge's verdicts."""

from dataclasses import replace

import numpy as np
import polars as pl
from pluralbench_measures.bootstrap import Estimate, sums_of
from pluralbench_measures.intervals import linearize

from pluralbench.data.metric_key import MetricKey
from pluralbench.metrics.decided import Decided
from pluralbench.metrics.metric import Metric, Numbers, computed_by

INVALID = "invalid"


def position_numbers(decided: Decided) -> Numbers:
    """Yield the position bias of a judge's verdicts; nothing for other models."""
    for column, numbers in (
        ("verdict_chosen_first", position_of_pairs),
        ("choice", position_of_options),
        ("position", position_of_picks),
    ):
        if column in decided.decisions.columns:
            yield from numbers(decided.decisions)


def position_of_pairs(decisions: pl.DataFrame) -> Numbers:
    """Yield the position bias of verdicts on pairs of responses.

    A verdict is "A", "B", "invalid" or null (order not judged); "C" if a probability is exactly 1/2.
    """
    yield from _orders(decisions, "verdict_chosen_first", "verdict_rejected_first")
    first, second = decisions["verdict_chosen_first"], decisions["verdict_rejected_first"]
    chosen_first, chosen_second = _share(first, "A"), _share(second, "B")
    yield MetricKey("accuracy_chosen_first"), chosen_first
    yield MetricKey("accuracy_chosen_second"), chosen_second
    won = _count(first == "A") + _count(second == "B")
    yield (
        MetricKey("accuracy_over_orders"),
        _over(decisions["cluster"], won, _count(first.is_not_null()) + _count(second.is_not_null())),
    )
    as_first = pl.concat([first.replace(INVALID, "A") == "A", second.replace(INVALID, "A") == "B"])
    yield MetricKey("accuracy_with_invalid_as_first"), _mean(as_first.drop_nulls())
    both = first.is_not_null() & second.is_not_null()
    right, same = (first == "A") & (second == "B"), (first == INVALID) & (second == INVALID)
    same |= (first != INVALID) & (second != INVALID) & (first == _unswapped(second))
    yield MetricKey("accuracy_in_both_orders"), _over(decisions["cluster"], _count(both & right), _count(both))
    yield MetricKey("same_in_both_orders"), _over(decisions["cluster"], _count(both & same), _count(both))
    a, b = chosen_first.value, chosen_second.value
    yield MetricKey("position_bias"), Estimate(None if a is None or b is None else abs(a - b))
    if "probability_chosen_first" in decisions.columns:
        margin = decisions["margin"]
        estimate = _over(decisions["cluster"], _count(margin > 0), _count(margin.is_not_null()))
        yield MetricKey("accuracy_of_mean_probability"), estimate


def position_of_options(decisions: pl.DataFrame) -> Numbers:
    """Return the position bias of the persona judge's verdicts on two options, in the order that the judge saw."""
    return _orders(decisions, "choice", "choice_swapped")


def position_of_picks(decisions: pl.DataFrame) -> Numbers:
    """Yield the position bias of picks from lists of responses; `position` and `listed` are those of `decisions_of`."""
    items = decisions.unique(["config", "id"], maintain_order=True)
    listed = items.filter(pl.col("listed").is_not_null())
    picked = listed.filter((pl.col("position") > 0).fill_null(value=True))  # where several are the best, none is picked
    valid = picked.filter(pl.col("position").is_not_null())
    counts = {"picks": picked.height, "invalid_picks": picked.height - valid.height}
    for metric, value in (counts | {"rated": items.height - listed.height}).items():
        yield MetricKey(metric), Estimate(float(value))
    first = _count(valid["position"] == 1)
    yield MetricKey("picks_of_first"), _over(valid["cluster"], first, first * 0 + 1)
    yield MetricKey("picks_of_first_by_chance"), _mean(1 / valid["listed"])


def _over(cluster: pl.Series, hits: pl.Series, of: pl.Series) -> Estimate:
    """Return a share of verdicts with a clustered interval. `hits`, `of`: numbers of verdicts by decision."""
    judged = pl.DataFrame({"cluster": cluster, "hits": hits, "of": of}).filter(pl.col("of") > 0)
    if judged.is_empty():
        return Estimate(None, n=0)
    clusters = judged["cluster"].rank("dense").cast(pl.Int64).to_numpy() - 1
    cell = np.zeros(judged.height, dtype=np.int64)
    won, verdicts = judged["hits"].to_numpy(), judged["of"].to_numpy()
    # The verdicts in both orders are one decision, which is half right if they differ.
    partial = float((won * (verdicts - won) / verdicts).sum())
    linearized = linearize(replace(sums_of(cell, clusters, won, verdicts), partial=partial))
    [source] = linearized.sources
    return linearized.share(source.pooled([0]), [[0]], source.decisions([0]), source.clusters([0]))


def _count(verdicts: pl.Series) -> pl.Series:
    return verdicts.fill_null(value=False).cast(pl.Float64)


def _unswapped(verdicts: pl.Series) -> pl.Series:
    return verdicts.replace({"A": "B", "B": "A"})


def _orders(decisions: pl.DataFrame, column: str, swapped: str) -> Numbers:
    first, second = decisions[column], decisions[swapped]
    verdicts = pl.concat([first, second.alias(first.name)]).drop_nulls()
    both = (first != INVALID) & (second != INVALID)
    counts = {
        "verdicts": len(verdicts),
        "invalid_verdicts": int((verdicts == INVALID).sum()),
        "asked_in_both_orders": int(both.sum()),
        "changed_with_the_order": int((both & (first != _unswapped(second))).sum()),
    }
    for metric, value in counts.items():
        yield MetricKey(metric), Estimate(float(value))
    valid = _count(first != INVALID) + _count(second != INVALID)
    yield MetricKey("share_of_first"), _over(decisions["cluster"], _count(first == "A") + _count(second == "A"), valid)


def _share(verdicts: pl.Series, right: str) -> Estimate:
    return _mean(verdicts.drop_nulls() == right)


def _mean(values: pl.Series) -> Estimate:
    return Estimate(float(values.sum()) / len(values) if len(values) else None, n=len(values))


METRICS = computed_by(
    position_numbers,
    Metric("verdicts", "count", "Verdicts in all orders."),
    Metric("invalid_verdicts", "count", "Verdicts that cannot be read."),
    Metric("asked_in_both_orders", "count", "Decisions with a valid verdict in both orders."),
    Metric("changed_with_the_order", "count", "Of these, decisions whose verdict changed with the order."),
    Metric("share_of_first", "share", "Share of valid verdicts for the first response."),
    Metric("accuracy_chosen_first", "share", "Share of right verdicts with the better response first."),
    Metric("accuracy_chosen_second", "share", "Share of right verdicts with the better response second."),
    Metric("position_bias", "difference", "Absolute difference of these two."),
    Metric("accuracy_over_orders", "share", "Share of right verdicts in all orders (PersonalRewardBench)."),
    Metric("accuracy_with_invalid_as_first", "share", "The same if an invalid verdict is for the first response."),
    Metric(
        "accuracy_with_invalid_as_half",
        "share",
        "The same if an invalid verdict is half right (M-RewardBench).",
        of_texts=True,
    ),
    Metric("accuracy_in_both_orders", "share", "Share of pairs with two right verdicts (LLMBar)."),
    Metric("same_in_both_orders", "share", "Share of pairs with the same verdict in both orders (LLMBar)."),
    Metric(
        "accuracy_of_mean_probability",
        "share",
        "Share of pairs in which the better response has a mean probability above 1/2 over both orders (LLM-Blender).",
    ),
    Metric("picks", "count", "Lists from which a judge picked."),
    Metric("invalid_picks", "count", "Lists without a readable pick."),
    Metric(
        "rated",
        "count",
        "Items that a pick cannot rank, whose responses were rated instead.",
        note=("Rated, because a pick cannot rank them", "item"),
    ),
    Metric("picks_of_first", "share", "Share of valid picks of the first response in the list."),
    Metric("picks_of_first_by_chance", "share", "The same for picks by chance: the mean of 1/k."),
)
