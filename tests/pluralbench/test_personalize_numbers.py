"""What a profile is worth, from decisions: accuracies, gains, tests and bins."""

from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_personalize import made_items
from pluralbench.data.metric_key import MetricKey
from pluralbench.metrics.frame import metrics_frame
from pluralbench.metrics.personalize import BINS, MEASURES, MIN_DECISIONS, method_numbers
from pluralbench_measures.bootstrap import Estimate
from pluralbench_measures.paired import holm

BY_CONFIG = {"new": False, "scored": True}
DOMAINS = ("Art", "Society")
Numbers = dict[MetricKey, Estimate]


def numbers(items: pl.DataFrame, by_config: dict[str, bool] = BY_CONFIG) -> Numbers:
    found = list(method_numbers(items, by_config))
    metrics_frame(found)  # which refuses a place that is there twice
    return dict(found)


@pytest.fixture(scope="module")
def items() -> pl.DataFrame:
    return made_items(
        methods=("bt", "pal"),
        conditions=("without", "with", "shuffled"),
        users=8,
        sets={"new": ("c",), "scored": DOMAINS},
    )


@pytest.fixture(scope="module")
def found(items: pl.DataFrame) -> Numbers:
    return numbers(items)


def numbers_of(one: Estimate) -> tuple[float, float, float]:
    """Its lower bound, its value and its upper bound, all of them there."""
    assert one.low is not None
    assert one.value is not None
    assert one.high is not None
    return one.low, one.value, one.high


def share(items: pl.DataFrame, **values: Any) -> float:
    chosen = items.filter(**values)["correct"].cast(pl.Float64)
    assert len(chosen)
    return float(chosen.mean())  # type: ignore[arg-type]


def test_an_accuracy_is_the_share_of_the_decisions_of_all_seeds(items: pl.DataFrame, found: Numbers) -> None:
    for method in ("bt", "pal"):
        for condition in ("without", "with", "shuffled"):
            which = {"method": method, "condition": condition}
            one = found[MetricKey("accuracy", set="new", method=method, condition=condition)]
            assert one.value == pytest.approx(share(items, set="new", **which))
            assert (one.n, one.clusters) == (16, 8)
            low, middle, high = numbers_of(one)
            assert low < middle < high
            domains = [share(items, set="scored", config=config, **which) for config in DOMAINS]
            overall = found[MetricKey("accuracy", set="scored", method=method, condition=condition)].value
            assert overall == pytest.approx(np.mean(domains))
            for config, value in zip(DOMAINS, domains, strict=True):
                own = found[MetricKey("accuracy", config, set="scored", method=method, condition=condition)]
                assert own.value == pytest.approx(value)
            seeds = [share(items, set="new", seed=seed, **which) for seed in range(2)]
            spread = found[MetricKey("seeds_sd", set="new", method=method, condition=condition)]
            assert spread.value == pytest.approx(np.std(seeds, ddof=1))


def test_a_gain_is_the_difference_and_tests_are_adjusted_over_methods(found: Numbers) -> None:
    for name in BY_CONFIG:
        for first, second in (("without", "with"), ("shuffled", "with")):
            which = f"{second}-{first}"
            plain, adjusted = (
                [found[MetricKey(metric, set=name, method=method, condition=which)].value for method in ("bt", "pal")]
                for metric in ("p_value", "p_holm")
            )
            assert adjusted == holm(plain)
            for method in ("bt", "pal"):
                one, other = (
                    found[MetricKey("accuracy", set=name, method=method, condition=condition)].value
                    for condition in (first, second)
                )
                assert one is not None
                assert other is not None
                low, gain, high = numbers_of(found[MetricKey("gain", set=name, method=method, condition=which)])
                assert gain == pytest.approx(other - one)
                assert low <= gain <= high


def test_one_seed_has_no_spread() -> None:
    found = numbers(made_items(methods=("bt",), seeds=1, users=4, sets={"new": ("c",)}), {"new": False})
    assert found[MetricKey("seeds_sd", set="new", method="bt", condition="with")].value is None


def test_a_profile_that_tells_much_is_found_and_one_that_tells_nothing_is_not() -> None:
    """Of 60 users, 30 points are found and 0 are not, which chance spoils for one seed in 20."""

    def p_of(better: float) -> float:
        items = made_items(methods=("bt",), users=60, sets={"new": ("c",)}, better=better)
        p = numbers(items, {"new": False})[MetricKey("p_value", set="new", method="bt", condition="with-without")].value
        assert p is not None
        return p

    assert p_of(0.6) < 0.01
    assert p_of(0.0) > 0.05


@given(st.integers(0, 10_000))
@settings(max_examples=2)
def test_bins_hold_every_decision_once_in_rising_order(seed: int) -> None:
    items = made_items(methods=("bt",), seeds=1, users=20, sets={"new": ("c",)})
    draw = np.random.default_rng(seed)
    drawn = draw.integers(0, 6, items.height)
    by_item = dict(zip(items["item"], drawn.tolist(), strict=True))
    items = items.with_columns(posts=pl.Series([by_item[name] for name in items["item"]]))
    found = numbers(items, {"new": False})
    for measure in MEASURES:
        bins = [key for key in found if key.measure == measure and key.metric == "least"]
        ends = [(found[one].value, found[one._replace(metric="most")].value, found[one].n) for one in bins]
        assert sum(n or 0 for _, _, n in ends) == 40
        assert 1 <= len(bins) <= BINS
        assert [low for low, _, _ in ends] == sorted(low or 0.0 for low, _, _ in ends)
        for (_, high, _), (low, _, _) in pairwise(ends):
            assert (high or 0.0) < (low or 0.0)
        rows = [found[one._replace(metric="accuracy", condition="with")] for one in bins]
        right = sum((one.value or 0.0) * (one.n or 0) for one in rows)
        assert right == pytest.approx(40 * share(items, condition="with"))


def test_few_decisions_are_one_bin_and_what_is_not_known_is_in_none() -> None:
    items = made_items(methods=("bt",), seeds=1, users=MIN_DECISIONS // 2, sets={"new": ("c",)})
    found = numbers(items.with_columns(distance=pl.lit(None, pl.Float64)), {"new": False})
    assert found[MetricKey("least", set="new", method="bt", measure="words", bin=1)].n == MIN_DECISIONS
    assert MetricKey("least", set="new", method="bt", measure="words", bin=2) not in found
    assert not [place for place in found if place.measure == "distance"]


@given(st.lists(st.tuples(st.integers(0, 7), st.booleans(), st.booleans()), min_size=4, max_size=30))
@settings(max_examples=4)
def test_exchanged_conditions_change_the_sign_of_the_gain_and_no_p_value(
    decided: list[tuple[int, bool, bool]],
) -> None:
    def one_way(first: int, second: int) -> pl.DataFrame:
        rows = [
            {
                "method": "bt", "condition": condition, "seed": 0, "set": "new", "config": "c", "item": str(number),
                "pair": 0, "cluster": f"u{row[0]}", "margin": 0.0, "correct": row[place], "posts": 1, "words": 1,
                "distance": 0.5,
            }
            for number, row in enumerate(decided)
            for condition, place in (("without", first), ("with", second))
        ]  # fmt: skip
        return pl.DataFrame(rows)

    ours, theirs = (numbers(one_way(*places), {"new": False}) for places in ((1, 2), (2, 1)))
    gain, p = (MetricKey(metric, set="new", method="bt", condition="with-without") for metric in ("gain", "p_value"))
    assert ours[gain].value == pytest.approx(-(theirs[gain].value or 0.0))
    assert ours[p].value == pytest.approx(theirs[p].value)
