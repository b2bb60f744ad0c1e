"""Items as a model decides them that only compares two responses: in both orders, counted as a judge's verdicts are."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import polars as pl
from pluralbench_measures.rankings import pairs_of
from pluralbench_rewards import Cached, Group, OnScored, Pairs, PairwiseRewardModel, Scored

from pluralbench.config.judges import Vote
from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.column_types import BASE
from pluralbench.data.credits import credit_of
from pluralbench.data.decisions import COMPARED, lists_pairs
from pluralbench.data.layouts import layout_of
from pluralbench.data.layouts.steps import STEPS
from pluralbench.data.votes import INVALID, verdict
from pluralbench.errors import EvaluationError

EVEN = 0.5
"""Probability at which neither response is better."""


def compared_pairs(items: pl.DataFrame) -> list[Pairs]:
    """Return the pairs of each item that differ in rank, the better response first; those of `compared` if given."""
    if lists_pairs(items):
        return [[(better, worse) for better, worse in pairs or ()] for pairs in items["compared"]]
    return [pairs_of(ranks) for ranks in items["rank"]]


def in_both_orders(pairs: Pairs) -> Pairs:
    """Return each pair, and behind it the same pair in the other order."""
    return [order for one, other in pairs for order in ((one, other), (other, one))]


def mean_probabilities(number: int, values: Sequence[float]) -> list[float]:
    """Return the probability of each response to be better than another one, over all others and both orders.

    `values` are those of all pairs, in the order of `in_both_orders`; a single response gets 1/2.
    """
    sums = [0.0] * number
    for (one, other), probability in zip(in_both_orders(all_pairs(number)), values, strict=True):
        sums[one] += probability
        sums[other] += 1 - probability
    return [EVEN] if number == 1 else [total / (2 * (number - 1)) for total in sums]


def all_pairs(number: int) -> Pairs:
    """Return all pairs of this many responses, in the order of the data."""
    return list(combinations(range(number), 2))


def check_pairs(model: str, benchmark: Benchmark, items: pl.DataFrame, where: str) -> None:
    """Check that items can be decided by comparing responses.

    Raises:
        EvaluationError: If a subset counts by scores, the benchmark has legacy rules for rankings, or all responses of
            every item are tied.
    """
    if layout_of(benchmark) is STEPS:
        raise EvaluationError(
            f"{model} only compares two responses and gives no score of a step, which {where} needs; use a process "
            "reward model."
        )
    subsets = items["subset"].unique(maintain_order=True)
    scored = next((subset for subset in subsets if credit_of(benchmark, subset).of_scores), None)
    if scored is not None:
        raise EvaluationError(
            f"The subset {scored} of {where} counts by scores, and {model} only compares two responses; leave out this "
            "subset, or use another reward model."
        )
    if not benchmark.ties_break_exact_match:
        raise EvaluationError(
            f"The legacy rules count scores, and {model} only compares two responses; leave out `legacy=True`."
        )
    if not any(compared_pairs(items)):
        raise EvaluationError(f"{where} has only tied responses, so there is nothing to compare; choose other items.")


def compare_items(
    model: PairwiseRewardModel, groups: Sequence[Group], pairs: Sequence[Pairs], cached: Cached, on_scored: OnScored
) -> Scored:
    """Compare the responses of items in both orders.

    `pairs` are those of each item, none if all its responses are tied; `cached` and `on_scored` go by index of items.

    Returns:
        The probabilities of each item, in the order of `in_both_orders`.
    """
    places = [place for place, own in enumerate(pairs) if own]
    known = cached or {}
    scored = model.compare(
        [groups[place] for place in places],
        [in_both_orders(pairs[place]) for place in places],
        cached={number: known[place] for number, place in enumerate(places) if place in known},
        on_scored=None
        if on_scored is None
        else lambda compared: on_scored({places[number]: values for number, values in compared.items()}),
    )
    numbers = {place: number for number, place in enumerate(places)}

    def of_items(values: Sequence[Any], without: Any) -> list[Any]:
        return [values[numbers[place]] if place in numbers and values else without for place in range(len(groups))]

    return replace(
        scored,
        scores=of_items(scored.scores, []),
        tokens=[],
        tokens_cut=of_items(scored.tokens_cut, 0),
        dropped={places[number]: reason for number, reason in scored.dropped.items()},
    )


def compared_items(vote: Vote, items: pl.DataFrame, scored: Scored) -> pl.DataFrame:
    """Return the rows of `items.parquet`: a row per pair, with the verdict and the probability of each order.

    Verdicts and probabilities are those of the response that is shown first; C is a probability of exactly 1/2, and a
    probability that is not a number is invalid. The margin is the mean probability, over both orders, that the chosen
    response is better, less 1/2.
    """
    rows: list[dict[str, Any]] = []
    for place, (item, pairs) in enumerate(zip(items.iter_rows(named=True), compared_pairs(items), strict=True)):
        cut = scored.tokens_cut[place] if scored.tokens_cut else 0
        base = {name: item[name] for name in BASE} | {"truncated": cut > 0, "tokens_cut": cut}
        if not pairs:
            rows.append(base | {"outcome": "equal"})
        values = iter(scored.scores[place])
        for better, worse in pairs:
            row = base | {"chosen": item["response_ids"][better], "rejected": item["response_ids"][worse]}
            reason = scored.dropped.get(place)
            if reason is None:
                decided = _decided(next(values), next(values))
                decided["verdict"], decided["outcome"] = verdict(decided, vote)
                rows.append(row | decided)
            else:
                rows.append(row | {"outcome": "dropped", "reason": reason})
    return pl.DataFrame(rows, schema=COMPARED)


def _decided(chosen_first: float, rejected_first: float) -> dict[str, Any]:
    margin = (chosen_first - rejected_first) / 2
    return {
        "verdict_chosen_first": _letter(chosen_first),
        "verdict_rejected_first": _letter(rejected_first),
        "probability_chosen_first": chosen_first if math.isfinite(chosen_first) else None,
        "probability_rejected_first": rejected_first if math.isfinite(rejected_first) else None,
        "margin": margin if math.isfinite(margin) else None,
    }


def _letter(probability: float) -> str:
    if not math.isfinite(probability):
        return INVALID
    return "C" if probability == EVEN else "A" if probability > EVEN else "B"
