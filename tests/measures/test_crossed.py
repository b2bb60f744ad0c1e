"""Intervals of crossed votes: formulas of their own, coverage on simulated people, gaps and their test."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_measures import crossed
from pluralbench_measures.bootstrap import Estimate
from pluralbench_measures.crossed import (
    MIN_PEOPLE,
    TWO_WAY,
    UNKNOWN,
    Votes,
    difference_of_votes,
    gap_difference,
    group_accuracies,
    mean_of_votes,
    ratio_of_votes,
    share_of_votes,
)
from scipy.stats import norm, t

BASE = 0.8
DRAWS, COVERED = 200, 0.915
"""How often intervals of 95 % are drawn, and the share that has to hold the truth: 2.3 standard errors below."""


def bounds(estimate: Estimate) -> tuple[float, float]:
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low, estimate.high


def holds(estimate: Estimate, truth: float) -> bool:
    low, high = bounds(estimate)
    return low <= truth <= high


def drawn_without(rng: np.random.Generator, rows: int, among: int, each: int) -> np.ndarray:
    """Draw `each` different numbers below `among` for each row."""
    return rng.random((rows, among)).argpartition(each - 1, axis=1)[:, :each].ravel()


def simulate(
    rng: np.random.Generator,
    prompts: int,
    people: int,
    each: int,
    prompt_sd: float,
    person_sd: float,
    base: float = 0.8,
) -> tuple[np.ndarray, Votes]:
    """Draw votes of `each` people on each prompt, which agree by a probit of prompt and person."""
    prompt = np.repeat(np.arange(prompts), each)
    person = drawn_without(rng, prompts, people, each)
    effects = BASE + prompt_sd * rng.standard_normal(prompts)[prompt] + person_sd * rng.standard_normal(people)[person]
    return (effects + rng.standard_normal(len(prompt)) > 0).astype(np.float64), Votes(prompt, person)


def true_share(prompt_sd: float, person_sd: float) -> float:
    return float(norm.cdf(BASE / np.sqrt(1 + prompt_sd**2 + person_sd**2)))


def test_the_variance_is_that_over_prompts_plus_people_less_votes() -> None:
    credit, votes = simulate(np.random.default_rng(1), 400, 60, 5, 0.5, 0.8)
    found = share_of_votes(credit, votes)
    one_way = share_of_votes(credit, Votes(votes.prompt, np.full(len(credit), UNKNOWN)))
    residuals = credit - credit.mean()
    variances = {}
    for name, keys in {
        "prompt": votes.prompt.tolist(),
        "person": votes.person.tolist(),
        "both": list(zip(votes.prompt.tolist(), votes.person.tolist(), strict=True)),
    }.items():
        sums: dict[object, float] = {}
        for key, residual in zip(keys, residuals, strict=True):
            sums[key] = sums.get(key, 0.0) + residual
        variances[name] = sum(one**2 for one in sums.values())
    expected = np.sqrt((variances["prompt"] + variances["person"] - variances["both"]) / variances["prompt"])
    expected *= t.ppf(0.975, 59) / t.ppf(0.975, 399)
    assert (found.method, one_way.method) == (TWO_WAY, "effective")
    assert np.diff(bounds(found)) == pytest.approx(expected * np.diff(bounds(one_way)), rel=0.02)
    assert expected > 1.5


@pytest.mark.parametrize(("people", "each"), [(MIN_PEOPLE - 1, 2), (1000, 1)])
def test_intervals_are_over_prompts_alone_with_few_people_or_one_vote_each(people: int, each: int) -> None:
    rng = np.random.default_rng(2)
    votes = Votes(np.repeat(np.arange(1000 // 2), 2), rng.permutation(1000) % people)
    credit = rng.integers(0, 2, 1000).astype(np.float64)
    assert share_of_votes(credit, votes).method == "effective"
    assert each == 1 or votes.people < MIN_PEOPLE


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("prompts", "people", "each", "prompt_sd", "person_sd"),
    [
        (200, 200, 5, 0.8, 0.0),  # people alike
        (200, 40, 5, 0.5, 0.7),
        (300, 25, 3, 0.0, 1.0),  # few people decide
        (60, 400, 10, 1.0, 0.5),  # few prompts
        (400, 400, 2, 0.3, 0.3),
    ],
)
def test_the_two_way_interval_covers(prompts: int, people: int, each: int, prompt_sd: float, person_sd: float) -> None:
    rng, truth = np.random.default_rng(7), true_share(prompt_sd, person_sd)
    held = dict.fromkeys(("two-way", *(["one-way"] if person_sd >= 0.7 else [])), 0)
    for _ in range(DRAWS):
        credit, votes = simulate(rng, prompts, people, each, prompt_sd, person_sd)
        unknown = Votes(votes.prompt, np.full(len(credit), UNKNOWN))
        for name in held:
            held[name] += holds(share_of_votes(credit, votes if name == "two-way" else unknown), truth)
    assert held["two-way"] / DRAWS >= COVERED
    assert held.get("one-way", 0) / DRAWS < 0.85  # what ignoring people would do


@pytest.mark.heavy
def test_intervals_of_ratios_and_differences_of_models_cover() -> None:
    """Two models on the same votes; what people of one group lose is the same for both, so it cancels."""
    rng, held = np.random.default_rng(11), np.zeros(3)
    prompts, people, each = 250, 40, 4
    sd = 0.6
    for _ in range(DRAWS):
        prompt = np.repeat(np.arange(prompts), each)
        person = drawn_without(rng, prompts, people, each)
        common = sd * rng.standard_normal(people)[person]
        first, second = (
            (base + common + 0.5 * rng.standard_normal(prompts)[prompt] + rng.standard_normal(len(prompt)) > 0) * 1.0
            for base in (0.8, 0.5)
        )
        votes = Votes(prompt, person)
        shares = [norm.cdf(base / np.sqrt(1.25 + sd**2)) for base in (0.8, 0.5)]
        for place, (found, truth) in enumerate(
            [
                (difference_of_votes(first, second, votes), shares[1] - shares[0]),
                (ratio_of_votes(second, first, votes), shares[1] / shares[0]),
                (mean_of_votes(first * 3, votes), shares[0] * 3),
            ]
        ):
            held[place] += holds(found, truth)
    assert (held / DRAWS >= COVERED).all()


Drawn = tuple[np.ndarray, np.ndarray, Votes, np.ndarray]


def served(rng: np.random.Generator, accuracies: list[float], people: int = 40, prompts: int = 150) -> Drawn:
    """Draw votes of groups with these accuracies, each person on 20 of the prompts."""
    person = np.repeat(np.arange(len(accuracies) * people), 20)
    prompt = drawn_without(rng, len(accuracies) * people, prompts, 20)
    group = person // people
    credit = (rng.random(len(person)) < np.array(accuracies)[group]).astype(np.float64)
    return credit, group, Votes(prompt, person), np.zeros_like(group)


def test_a_model_that_serves_one_group_only_shows_that_gap_and_no_other() -> None:
    rng = np.random.default_rng(3)
    credit, group, votes, stratum = served(rng, [0.9, 0.5])
    found = group_accuracies(credit, group, votes, stratum)
    assert found.accuracies[0].value == pytest.approx(0.9, abs=0.03)
    assert found.accuracies[1].value == pytest.approx(0.5, abs=0.04)
    assert holds(found.gap, 0.4)
    assert found.p_value == pytest.approx(1 / 10_000)
    other = rng.integers(0, 3, votes.person.max() + 1)[votes.person]  # an attribute that has nothing to do with it
    found = group_accuracies(credit, other, votes, stratum)
    assert found.p_value is not None
    assert found.p_value > 0.05
    assert found.gap.low == 0


@given(seed=st.integers(0, 10_000))
def test_names_and_order_change_no_digit_of_a_gap(seed: int) -> None:
    rng = np.random.default_rng(seed)
    credit, _, votes, stratum = in_strata(rng, 2, people=75)
    group = votes.person % 3
    credit = credit * rng.choice([1, 0.5, 1 / 3], len(credit))
    order = rng.permutation(len(credit))
    names, people, prompts = np.array([2, 0, 1]), rng.permutation(75), rng.permutation(100)
    renamed = Votes(prompts[votes.prompt[order]], people[votes.person[order]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crossed, "PERMUTATIONS", 99)
        found = group_accuracies(credit, group, votes, stratum)
        other = group_accuracies(credit[order], group[order], renamed, 1 - stratum[order])
        assert other == found
        other = group_accuracies(credit[order], names[group[order]], renamed, stratum[order])
        assert other.p_value == found.p_value
        assert {key: other.accuracies[names[key]] for key in found.accuracies} == found.accuracies
    whole, again = (mean_of_votes(*one) for one in ((credit, votes), (credit[order], renamed)))
    assert whole == again


def test_groups_of_few_people_and_of_unknown_ones_take_no_part_in_the_gap() -> None:
    rng = np.random.default_rng(6)
    credit, group, votes, stratum = served(rng, [0.7, 0.7, 0.1], people=40)
    few = (group == 2) & (votes.person % 40 >= MIN_PEOPLE - 1)
    kept = ~few
    found = group_accuracies(credit[kept], group[kept], votes.of(kept), stratum[kept])
    assert set(found.accuracies) == {0, 1, 2}
    assert found.gap.value == pytest.approx(0, abs=0.1)
    unknown = Votes(votes.prompt, np.full(len(credit), UNKNOWN))
    assert group_accuracies(credit, group, unknown, stratum).gap.value is None


def test_people_are_compared_within_strata() -> None:
    """Two languages of different difficulty, one country each: nothing says that it is the people."""
    credit, group, votes, _ = served(np.random.default_rng(8), [0.9, 0.5])
    found = group_accuracies(credit, group, votes, group)
    assert found.gap.value == pytest.approx(0.4, abs=0.05)
    assert found.p_value is None


def in_strata(rng: np.random.Generator, strata: int, people: int = 60, sd: float = 1.5) -> Drawn:
    """Votes of people who differ, each in some of the strata, and of groups that do not."""
    member = rng.random((strata, people)) < 0.8
    person = np.concatenate([np.repeat(np.flatnonzero(own), 15) for own in member])
    stratum = np.repeat(np.arange(strata), 15 * member.sum(1))
    effects = sd * rng.standard_normal(people)
    credit = (rng.random(len(person)) < norm.cdf(0.5 + effects[person])).astype(np.float64)
    prompt = rng.integers(0, 50, len(person)) + 50 * stratum
    return credit, (rng.permutation(people) % 2)[person], Votes(prompt, person), stratum


def test_a_person_keeps_one_group_in_all_strata(monkeypatch: pytest.MonkeyPatch) -> None:
    """By plain permutations of the people who vote in the same strata."""
    monkeypatch.setattr(crossed, "PERMUTATIONS", 1999)
    rng = np.random.default_rng(4)
    credit, group, votes, stratum = in_strata(rng, 3)
    people = np.arange(60)
    strata_of = [frozenset(stratum[votes.person == one].tolist()) for one in people]
    label = np.array([group[votes.person == one][0] if strata_of[one] else 0 for one in people])

    def gap(labels: np.ndarray) -> float:
        of_votes = labels[votes.person]
        return float(abs(credit[of_votes == 0].mean() - credit[of_votes == 1].mean()))

    larger = 1
    for _ in range(1999):
        labels = label.copy()
        for own in {*strata_of}:
            inside = np.array([one == own for one in strata_of])
            labels[inside] = rng.permutation(labels[inside])
        larger += gap(labels) >= gap(label) - 1e-9
    assert group_accuracies(credit, group, votes, stratum).p_value == pytest.approx(larger / 2000, abs=0.04)


@pytest.mark.heavy
def test_the_test_of_a_gap_keeps_its_level_where_people_vote_in_several_strata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crossed, "PERMUTATIONS", 199)
    rng, draws = np.random.default_rng(19), 150
    rejected = sum((group_accuracies(*in_strata(rng, 5)).p_value or 0) <= 0.05 for _ in range(draws))
    assert rejected / draws <= 0.09  # two standard errors above 0.05


@pytest.mark.heavy
def test_the_gap_covers_the_true_gap_and_its_test_keeps_its_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crossed, "PERMUTATIONS", 199)
    rng, draws = np.random.default_rng(13), 120
    held, rejected, signs = 0, 0, 0
    for _ in range(draws):
        credit, group, votes, stratum = served(rng, [0.7] * 5, people=20, prompts=100)
        found = group_accuracies(credit, group, votes, stratum)
        held += holds(found.gap, 0)
        rejected += (found.p_value or 0) <= 0.05
        signs += (found.gap.value or 0) > 0
    assert held / draws >= 0.92  # 1.5 standard errors below 0.95, as those of Bonferroni hold more often
    assert rejected / draws <= 0.09  # two above 0.05
    assert signs == draws  # the observed gap alone always looks like one
    covered = 0
    for _ in range(draws):
        credit, group, votes, stratum = served(rng, [0.75, 0.7, 0.6], people=20, prompts=100)
        covered += holds(group_accuracies(credit, group, votes, stratum).gap, 0.15)
    assert covered / draws >= 0.92


def test_the_gaps_bounds_hold_jointly_for_all_pairs() -> None:
    """By statsmodels' way: a difference of two independent shares at the joint level, people as the clusters."""
    credit, group, votes, stratum = served(np.random.default_rng(9), [0.9, 0.7, 0.5], people=60, prompts=2000)
    found = group_accuracies(credit, group, votes, stratum)
    bounds = []
    z = norm.ppf(1 - 0.025 / 3)
    for first, second in combinations(range(3), 2):
        shares = [credit[group == one].mean() for one in (first, second)]
        half = z * np.sqrt(sum(one * (1 - one) / 1200 for one in shares))
        bounds.append((shares[0] - shares[1] - half, shares[0] - shares[1] + half))
    assert found.gap.low == pytest.approx(max(low for low, _ in bounds), abs=0.02)
    assert found.gap.high == pytest.approx(max(high for _, high in bounds), abs=0.02)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("first", "second"), [([0.9, 0.5], [0.8, 0.6]), ([0.75, 0.7, 0.6], [0.7, 0.7, 0.65]), ([0.7] * 4, [0.7] * 4)]
)
def test_the_difference_of_two_gaps_covers(first: list[float], second: list[float]) -> None:
    """Two models whose answers to half of the votes are drawn together."""
    rng, draws, held = np.random.default_rng(17), 100, 0
    truth = np.ptp(second) - np.ptp(first)
    for _ in range(draws):
        _, group, votes, _ = served(rng, first)
        draw = rng.random(len(group))
        other = np.where(rng.random(len(group)) < 0.5, draw, rng.random(len(group)))
        credit = [np.float64(one < np.array(shares)[group]) for one, shares in ((draw, first), (other, second))]
        found = gap_difference(np.array(credit[0]), np.array(credit[1]), group, votes)
        assert found is not None
        assert found[2].value == pytest.approx(found[1] - found[0])
        held += holds(found[2], truth)
    assert held / draws >= 0.93


def test_gaps_need_two_groups_of_enough_people() -> None:
    credit, group, votes, _ = served(np.random.default_rng(1), [0.9, 0.5], people=MIN_PEOPLE - 1)
    assert gap_difference(credit, credit, group, votes) is None
