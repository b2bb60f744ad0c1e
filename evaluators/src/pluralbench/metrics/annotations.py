"""Votes of people: how far a run agrees with single votes, with groups of people, and with the shares of votes.

Every vote has the same weight; `annotated` says which ones count. Intervals are over prompts, and over people too if at
least `pluralbench_measures.crossed.MIN_PEOPLE` are known and some voted on several prompts.
"""

from collections.abc import Callable, Iterator
from itertools import permutations
from math import inf

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pluralbench_measures import annotators, crossed
from pluralbench_measures.bootstrap import Array, Estimate, ratio
from pluralbench_measures.crossed import MIN_PEOPLE, UNKNOWN, Ints, Votes

from pluralbench.data.metric_key import MetricKey
from pluralbench.metrics.annotated import NONE, Annotated, annotated, numbered
from pluralbench.metrics.decided import Decided
from pluralbench.metrics.metric import PEOPLE, Metric, Numbers, computed_by

FROM_0 = (0.0, inf)
"""Limits of the bounds of losses and distances."""
Mask = NDArray[np.bool_]


def annotation_numbers(decided: Decided) -> Numbers:
    """Yield the numbers of votes of people; nothing without votes."""
    own = annotated(decided)
    if own is None:
        return
    yield from _counts(own)
    if not len(own.item):
        return
    yield from _agreement(own, np.ones(len(own.item), dtype=np.bool_), None)
    for number, name in enumerate(own.configs) if len(own.configs) > 1 else ():
        inside = own.config[own.item] == number
        if inside.any():
            yield from _agreement(own, inside, name)
    yield from _consensus(own)
    yield from _shares(own)
    for name, values in own.attributes.items():
        yield from _groups(own, name, values)


def _counts(own: Annotated) -> Numbers:
    votes, number = own.counts.sum(1), len(np.unique(own.person[own.person != UNKNOWN]))
    counts = {
        "annotations": len(own.item),
        "tie_annotations": own.ties.sum(),
        "annotations_without_answer": own.without_answer,
        "annotators": number,
        "single_annotations": (votes == 1).sum(),
    }
    yield from ((MetricKey(name), Estimate(float(count))) for name, count in counts.items())
    # The first response of a pair is the majority's, so that chance is even over the responses of an item.
    present = np.arange(own.counts.shape[1]) < own.responses[:, None]
    even = np.where(present, ratio(votes, own.responses)[:, None], 0.0)
    tables = [np.concatenate([counts, own.ties[:, None]], axis=1) for counts in (own.counts, even)]
    yield MetricKey("annotation_alpha"), annotators.alpha_of_votes(tables[0], own.cluster, tables[1])


def _agreement(own: Annotated, chosen: Mask, config: str | None) -> Numbers:
    counts, votes = own.counts, own.votes.of(chosen)
    key = MetricKey("agreement_with_annotations", config)
    yield key, crossed.share_of_votes(own.credit[chosen], votes)
    several = chosen & (counts.sum(1) > 1)[own.item]
    if not several.any():
        return
    place, votes = (own.item[several], own.response[several]), own.votes.of(several)

    def changes(agreement: Callable[[Array], Array]) -> tuple[Array, float]:
        """What each vote and each two people add to the agreement of people."""
        pairs = crossed.variance_of_pairs(annotators.vote_interaction(counts, agreement), *place, votes.person)
        return annotators.vote_influence(counts, agreement)[place], pairs

    others, added = annotators.agreement_with_others(counts)[place], changes(annotators.agreement_with_others)
    yield key._replace(baseline=PEOPLE), crossed.share_of_votes(others, votes, *added)
    yield MetricKey("share_of_reachable", config), crossed.ratio_of_votes(own.credit[several], others, votes, *added)
    of_two, added = annotators.agreement_of_two(counts)[place], changes(annotators.agreement_of_two)
    yield MetricKey("agreement_of_two_annotators", config), crossed.share_of_votes(of_two, votes, *added)
    most = (counts.max(1) / counts.sum(1).clip(1))[own.item[several]]
    yield MetricKey("share_of_most_frequent", config), crossed.share_of_votes(most, _over_prompts(votes.prompt))


def _over_prompts(cluster: Ints) -> Votes:
    """Votes or items with intervals over prompts alone."""
    return Votes(cluster, np.full(len(cluster), UNKNOWN))


def _consensus(own: Annotated) -> Numbers:
    counts = own.counts
    place = annotators.consensus_of(counts, own.ties)
    right = (own.answer == own.majority).astype(np.float64)
    margins = annotators.margins_of(own.scores)
    scored = np.isfinite(margins) & (place >= 0)
    mean = margins[scored].mean() if scored.any() else 0.0
    for number, name in enumerate(annotators.CONSENSUS):
        inside = place == number
        yield MetricKey("items_by_consensus", consensus=name), Estimate(float(inside.sum()))
        decided = inside & (own.majority != NONE)
        if decided.any():
            estimate = crossed.share_of_votes(right[decided], _over_prompts(own.cluster[decided]))
            yield MetricKey("accuracy_by_consensus", consensus=name), estimate
        if mean > 0 and (inside & scored).any():
            relative = margins[inside & scored] / mean
            estimate = crossed.mean_of_votes(relative, _over_prompts(own.cluster[inside & scored]), FROM_0)
            yield MetricKey("margin_by_consensus", consensus=name), estimate
    if scored.any():
        share = ratio(counts.max(1), counts.sum(1) + own.ties)
        estimate = annotators.rank_correlation(margins[scored], share[scored], own.cluster[scored])
        yield MetricKey("margin_and_consensus"), estimate


def _shares(own: Annotated) -> Numbers:
    """Yield how the predicted shares of votes fit the observed ones, on items with at least two votes."""
    counts = own.counts
    used = (counts.sum(1) > 1) & np.isfinite(own.scores[:, 0])
    if len(np.unique(own.cluster[used])) < annotators.FOLDS:
        return
    scores, counts, cluster = own.scores[used], counts[used], own.cluster[used]
    fold = annotators.folds_of(scores, counts, cluster)
    shares, _ = annotators.predicted_shares(scores, counts, fold)
    place = np.full(len(used), NONE)
    place[used] = np.arange(used.sum())
    chosen = used[own.item]
    item, response = place[own.item[chosen]], own.response[chosen]
    votes = own.votes.of(chosen)
    losses = annotators.log_losses(shares)[item, response]
    yield MetricKey("annotation_log_loss"), crossed.mean_of_votes(losses, votes, FROM_0)
    over_prompts = _over_prompts(votes.prompt)
    entropy = crossed.mean_of_votes(annotators.entropies(counts)[item], over_prompts, FROM_0)
    yield MetricKey("annotation_log_loss", baseline=PEOPLE), entropy
    observed = ratio(counts, counts.sum(1, keepdims=True))
    over_items = _over_prompts(cluster)
    divergence = annotators.divergence(shares, observed)
    yield MetricKey("annotation_divergence"), crossed.mean_of_votes(divergence, over_items, FROM_0)
    yield (
        MetricKey("excess_divergence"),
        crossed.mean_of_votes(annotators.excess_divergence(shares, counts), over_items),
    )
    present = ~np.isnan(scores)
    bins = annotators.bins_of_shares(shares[present])
    clusters = np.broadcast_to(cluster[:, None], scores.shape)[present]
    for number in np.unique(bins).tolist():
        inside = bins == number
        key = MetricKey("observed_share", bin=number + 1)
        yield key, crossed.share_of_votes(observed[present][inside], _over_prompts(clusters[inside]))
        mean = float(shares[present][inside].mean())
        yield key._replace(metric="predicted_share"), Estimate(mean, n=int(inside.sum()))


def _groups(own: Annotated, attribute: str, values: pl.Series) -> Numbers:
    known = values.is_not_null().to_numpy()
    yield MetricKey("annotations_without_group", attribute=attribute), Estimate(float((~known).sum()))
    yield MetricKey("annotators_without_group", attribute=attribute), Estimate(float(own.votes.of(~known).people))
    if not known.any():
        return
    names, group = values.drop_nulls().unique().sort().to_list(), numbered(values.drop_nulls())
    votes, stratum = own.votes.of(known), own.config[own.item[known]]
    groups = crossed.group_accuracies(own.credit[known], group, votes, stratum)
    key = MetricKey("agreement_with_annotations", attribute=attribute)
    large = []
    for number, name in enumerate(names):
        yield key._replace(group=name), groups.accuracies[number]
        people = votes.of(group == number).people
        yield MetricKey("annotators", attribute=attribute, group=name), Estimate(float(people))
        large += [number] if people >= MIN_PEOPLE else []
    if groups.gap.value is None:
        return
    yield MetricKey("group_gap", attribute=attribute), groups.gap
    yield MetricKey("group_gap_p_value", attribute=attribute), Estimate(groups.p_value, n=groups.gap.n)
    majorities = {number: _majority(own, known, group == number) for number in large}
    for first, second in permutations(large, 2):
        yield from _sided(own, majorities, first, second, attribute, names)


def _majority(own: Annotated, known: Mask, inside: Mask) -> Ints:
    """Return the response that most of some votes on each item are for, `NONE` if none or several."""
    counts = annotators.count_votes(own.item[known][inside], own.response[known][inside], own.scores.shape)
    most = counts.max(1, keepdims=True)
    alone = ((counts == most).sum(1) == 1) & (most[:, 0] > 0)
    return np.where(alone, counts.argmax(1), NONE)


def _sided(
    own: Annotated, majorities: dict[int, Ints], first: int, second: int, attribute: str, names: list[str]
) -> Iterator[tuple[MetricKey, Estimate]]:
    ours, theirs = majorities[first], majorities[second]
    differ = (ours != NONE) & (theirs != NONE) & (ours != theirs)
    if not differ.any():
        return
    right = (own.answer == ours)[differ].astype(np.float64)
    key = MetricKey("agreement_where_groups_differ", attribute=attribute, group=names[first], other_group=names[second])
    yield key, crossed.share_of_votes(right, _over_prompts(own.cluster[differ]))


_OF_ALL = ("", "config")
UNCOUNTED = "Votes that do not count"
METRICS = computed_by(
    annotation_numbers,
    Metric(
        "agreement_with_annotations",
        "share",
        "Share of people's votes for the response that the model prefers; of people, agreement of one with the "
        "majority of the others.",
        ("", "config", "attribute group"),
        "single votes",
        in_tables=True,
        terms={
            "single votes": "share of people's votes that are for the response that the model prefers.",
            "people": "how often one person's vote is that of most others on the item, which a model can pass only by "
            "knowing better than a few votes what most would say.",
        },
    ),
    Metric(
        "share_of_reachable",
        "share",
        "Agreement of the model with single votes over that of people, on items with at least two votes.",
        _OF_ALL,
        "of reachable",
        in_tables=True,
        terms={"of reachable": "single votes over those of people, on the same items."},
    ),
    Metric("agreement_of_two_annotators", "share", "Share of two votes on an item that are the same.", _OF_ALL),
    Metric(
        "share_of_most_frequent",
        "share",
        "Share of votes for the most frequent response of their item; above what any model can reach on new votes.",
        _OF_ALL,
    ),
    Metric("annotation_alpha", "number", "Krippendorff's nominal alpha of votes; chance is even over responses."),
    Metric("annotations", "count", "Votes of people for a response, on items with an answer."),
    Metric("annotators", "count", "People who are known.", ("", "attribute group")),
    Metric(
        "tie_annotations",
        "count",
        "Votes for a tie, which count only in the consensus and in alpha.",
        note=(UNCOUNTED, "for a tie", "for a tie"),
    ),
    Metric("single_annotations", "count", "Items with a single vote for a response, which say nothing of agreement."),
    Metric(
        "annotations_without_answer",
        "count",
        "Votes on items that were dropped or not asked, which do not count.",
        note=(UNCOUNTED, "on an item without an answer", "on items without an answer of the model"),
    ),
    Metric(
        "items_by_consensus",
        "count",
        "Items whose votes are unanimous, clear (at least two thirds for one response) or split, as are ties.",
        ("consensus",),
    ),
    Metric("accuracy_by_consensus", "share", "Accuracy against the majority on these items.", ("consensus",)),
    Metric(
        "margin_by_consensus",
        "number",
        "Mean difference of the two highest scores on these items, over that of all items.",
        ("consensus",),
    ),
    Metric(
        "margin_and_consensus",
        "correlation",
        "Spearman's correlation of an item's margin with the share of its most frequent response.",
    ),
    Metric(
        "annotation_log_loss",
        "number",
        "Mean log loss, in nats, of votes by predicted shares; of people, the entropy of the true shares, which no "
        "prediction is below.",
    ),
    Metric(
        "annotation_divergence", "number", "Mean Jensen-Shannon divergence, in nats, of predicted and observed shares."
    ),
    Metric(
        "excess_divergence",
        "number",
        "The same from the true shares, estimated by leaving out the scatter of few votes; 0 is the best.",
    ),
    Metric("observed_share", "share", "Share of votes for responses whose predicted share is in a bin.", ("bin",)),
    Metric("predicted_share", "share", "Mean predicted share of these responses.", ("bin",)),
    Metric("annotations_without_group", "count", "Votes of people without a value of an attribute.", ("attribute",)),
    Metric("annotators_without_group", "count", "People who are known, without such a value.", ("attribute",)),
    Metric(
        "group_gap",
        "difference",
        "Agreement with the best served group less that with the worst, of groups of at least 20 people.",
        ("attribute",),
    ),
    Metric(
        "group_gap_p_value",
        "p-value",
        "Share of permutations of the groups of people who vote in the same configs with a gap as large.",
        ("attribute",),
    ),
    Metric(
        "agreement_where_groups_differ",
        "share",
        "Share of items on which the model prefers what most of a group prefer, where most of another group differ.",
        ("attribute group other_group",),
    ),
)
