"""Votes of people: agreement by listing all pairs, shares with known truth, and PandaLM's votes by a plain count."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import combinations, permutations
from pathlib import Path

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_measures.agreement import krippendorff_alpha
from pluralbench_measures.annotators import (
    agreement_of_two,
    agreement_with_others,
    alpha_of_votes,
    bins_of_shares,
    consensus_of,
    count_votes,
    divergence,
    entropies,
    excess_divergence,
    fit_inverse_temperature,
    folds_of,
    log_losses,
    margins_of,
    predicted_shares,
    rank_correlation,
    vote_influence,
    vote_interaction,
)
from pluralbench_measures.crossed import Votes, share_of_votes, variance_of_pairs
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import jensenshannon
from scipy.stats import multinomial, norm, spearmanr

PANDALM = Path(__file__).parents[3] / "shared" / "data" / "multilingual" / "pandalm_testset-v1.json"
few_votes = st.lists(st.integers(0, 3), min_size=2, max_size=7)


def counts_of(votes: list[int]) -> np.ndarray:
    return count_votes(np.zeros(len(votes), dtype=np.int64), np.array(votes), (1, 4))


@given(few_votes)
def test_agreements_are_what_listing_people_gives(votes: list[int]) -> None:
    of_two, with_others = [], []
    for place, own in enumerate(votes):
        others = votes[:place] + votes[place + 1 :]
        of_two.append(sum(own == other for other in others) / len(others))
        counted = Counter(others)
        most = [vote for vote, number in counted.items() if number == max(counted.values())]
        with_others.append((own in most) / len(most))
    counts = counts_of(votes)
    assert agreement_of_two(counts)[0, votes] == pytest.approx(of_two)
    assert agreement_with_others(counts)[0, votes] == pytest.approx(with_others)
    for agreement, expected in ((agreement_of_two, of_two), (agreement_with_others, with_others)):
        assert vote_influence(counts, agreement)[0, votes].sum() == pytest.approx(sum(expected))


@pytest.mark.parametrize("agreement", [agreement_of_two, agreement_with_others])
def test_pairs_of_people_are_what_leaving_both_out_gives(agreement: Callable[[np.ndarray], np.ndarray]) -> None:
    rng, items = np.random.default_rng(6), 30
    votes = {item: {int(one): int(one % 2) for one in rng.permutation(7)[: 3 + item % 3]} for item in range(items)}

    def agreeing(item: int, *without: int) -> float:
        left = [int(vote) for person, vote in votes[item].items() if person not in without]
        return float(np.nan_to_num(agreement(counts_of(left))[0, left]).sum()) if left else 0.0

    seen = [(item, pair) for item in votes for pair in combinations(sorted(votes[item]), 2)]
    added = [agreeing(item) - agreeing(item, a) - agreeing(item, b) + agreeing(item, a, b) for item, (a, b) in seen]
    mean, sums = sum(added) / len(added), defaultdict[tuple[int, int], float](float)
    for (_, pair), value in zip(seen, added, strict=True):
        sums[pair] += value - mean
    expected = sum(one**2 for one in sums.values()) - sum((value - mean) ** 2 for value in added)
    assert expected > 0
    item, person, vote = np.array(
        [(item, person, vote) for item, own in votes.items() for person, vote in own.items()]
    ).T
    interaction = vote_interaction(count_votes(item, vote, (items, 4)), agreement)
    assert variance_of_pairs(interaction, item, vote, person) == pytest.approx(expected)
    order = rng.permutation(len(item))
    again = variance_of_pairs(interaction, item[order], vote[order], 6 - person[order])
    assert again == pytest.approx(expected)


def test_a_single_vote_agrees_with_nobody() -> None:
    counts = counts_of([2])
    assert np.isnan(agreement_of_two(counts)[0, 2])
    assert np.isnan(agreement_with_others(counts)[0, 2])
    assert np.isnan(entropies(counts)[0])
    assert consensus_of(counts, np.zeros(1)).tolist() == [-1]


@pytest.mark.parametrize(
    ("votes", "ties", "place"),
    [([1, 1, 1], 0, 0), ([1, 1, 0], 0, 1), ([1, 1], 1, 1), ([0, 1], 0, 2), ([0, 0, 0, 1, 2], 0, 2), ([0], 2, 2)],
)
def test_consensus_counts_ties_among_all_votes(votes: list[int], ties: int, place: int) -> None:
    assert consensus_of(counts_of(votes), np.array([ties])).tolist() == [place]


def people(rng: np.random.Generator, items: int, votes: int, responses: int, spread: float) -> tuple[np.ndarray, ...]:
    """Draw scores, their softmax as the true shares, and votes."""
    scores = spread * rng.standard_normal((items, responses))
    shares = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    return scores, shares, np.array([rng.multinomial(votes, one) for one in shares]).astype(np.float64)


def test_people_bracket_what_always_the_likeliest_answer_would_reach() -> None:
    """One against the majority of the others is below it, and the share of the most frequent vote above."""
    _, shares, counts = people(np.random.default_rng(1), 4000, 5, 3, 1.0)
    best = float(shares.max(1).mean())
    loo = (counts * agreement_with_others(counts)).sum() / counts.sum()
    two = (counts * np.nan_to_num(agreement_of_two(counts))).sum() / counts.sum()
    assert two < loo < best < counts.max(1).sum() / counts.sum()
    assert two == pytest.approx((shares**2).sum(1).mean(), abs=0.01)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("agreement", "reliability", "number", "votes", "least"),
    [
        (agreement_of_two, 0.0, 60, 2, 0.915),  # of up to three votes, both agreements are the same
        (agreement_of_two, 0.7, 60, 3, 0.915),
        (agreement_of_two, 0.7, 60, 6, 0.915),
        (agreement_with_others, 0.7, 60, 6, 0.915),
        (agreement_with_others, 3.0, 40, 6, 0.9),  # nearly always right or wrong; 0.83 without pairs of people
    ],
)
def test_the_interval_of_a_ceiling_covers(
    agreement: Callable[[np.ndarray], np.ndarray], reliability: float, number: int, votes: int, least: float
) -> None:
    """People differ in how often they see what most see; the truth is the mean over many draws."""
    rng, items, draws = np.random.default_rng(5), 200, 200
    values, bounds = list[float](), list[tuple[float, float]]()
    for _ in range(draws):
        person = rng.random((items, number)).argpartition(votes - 1, axis=1)[:, :votes].ravel()  # different ones
        item = np.repeat(np.arange(items), votes)
        right = norm.cdf(0.8 + reliability * rng.standard_normal(number))[person] > rng.random(len(item))
        counts = count_votes(item, right.astype(np.int64), (items, 2))
        own, influence = agreement(counts), vote_influence(counts, agreement)
        place = item, right.astype(np.int64)
        pairs = variance_of_pairs(vote_interaction(counts, agreement), *place, person)
        found = share_of_votes(own[place], Votes(item, person), influence[place], pairs)
        values.append(found.value or 0.0)
        bounds.append((found.low or 0.0, found.high or 1.0))
    truth = float(np.mean(values))
    assert np.mean([low <= truth <= high for low, high in bounds]) >= least


def test_the_temperature_is_that_of_maximum_likelihood() -> None:
    scores, _, counts = people(np.random.default_rng(2), 300, 4, 3, 1.5)
    scores *= 7
    scores[::5, 2], counts[::5, 2] = np.nan, 0

    def loss(inverse: float) -> float:
        logits = np.where(np.isnan(scores), -np.inf, scores * inverse)
        return float(-(counts * (np.nan_to_num(scores) * inverse - np.log(np.exp(logits).sum(1))[:, None])).sum())

    best = minimize_scalar(loss, bounds=(0, 2), method="bounded", options={"xatol": 1e-9}).x
    assert fit_inverse_temperature(scores, counts) == pytest.approx(best, rel=1e-4)
    assert fit_inverse_temperature(np.zeros((3, 2)), np.ones((3, 2))) == 0
    assert fit_inverse_temperature(-scores, counts) == 0  # a model that is always wrong says nothing


def test_shares_come_from_the_votes_on_other_items_whatever_the_order_of_rows() -> None:
    rng = np.random.default_rng(3)
    scores, _, counts = people(rng, 200, 4, 2, 1.0)
    cluster = np.arange(200) // 2
    fold = folds_of(scores, counts, cluster)
    assert (fold[::2] == fold[1::2]).all()
    assert set(Counter(fold.tolist()).values()) == {40}
    shares, inverse = predicted_shares(scores, counts, fold)
    for number in range(5):
        alone = fit_inverse_temperature(scores[fold != number], counts[fold != number])
        assert inverse[fold == number] == pytest.approx(alone)
    order, names = rng.permutation(200), rng.permutation(100)
    again = folds_of(scores[order], counts[order], names[cluster][order])
    assert (again == fold[order]).all()
    assert predicted_shares(scores[order], counts[order], again)[0] == pytest.approx(shares[order], abs=1e-12)


def test_divergence_is_scipys() -> None:
    rng = np.random.default_rng(4)
    shares, observed = (rng.dirichlet(np.ones(4), 20) for _ in range(2))
    observed[:5, 0] = 0
    observed /= observed.sum(1, keepdims=True)
    assert divergence(shares, observed) == pytest.approx(jensenshannon(shares, observed, axis=1) ** 2)


ERRORS = {2: (0.1, 0.048), 3: (0.05, 0.024), 4: (0.03, 0.014), 10: (0.01, 0.005)}


def every_outcome(votes: int, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All that the votes can be, with the probability of each."""
    every = np.array([one for one in np.ndindex(*[votes + 1] * len(shares)) if sum(one) == votes], dtype=np.float64)
    return every, multinomial.pmf(every, votes, shares)


@pytest.mark.parametrize("votes", ERRORS)
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.8, 0.2), (1.0, 0.0), (0.97, 0.03), (0.4, 0.3, 0.2, 0.1)])
def test_floors_are_what_the_true_shares_reach(votes: int, shares: tuple[float, ...]) -> None:
    """Exactly, by listing all that votes can be; the error of a response is as the docstrings say."""
    true, (of_loss, of_divergence) = np.array(shares), ERRORS[votes]
    every, weights = every_outcome(votes, true)
    losses = (every * log_losses(true)).sum(1) / votes
    assert weights @ entropies(every) == pytest.approx(weights @ losses, abs=of_loss * len(true))
    for predicted in (true, np.full(len(true), 1 / len(true)), true[::-1], 0.9 * true + 0.1 / len(true)):
        found = weights @ excess_divergence(np.tile(predicted, (len(every), 1)), every)
        expected = jensenshannon(predicted, true) ** 2
        assert found == pytest.approx(expected, abs=of_divergence * len(true))


@pytest.mark.parametrize(("votes", "error"), [(3, 0.03), (10, 0.005)])
def test_nothing_does_better_than_the_true_shares(votes: int, error: float) -> None:
    rng = np.random.default_rng(6)
    _, shares, counts = people(rng, 20_000, votes, 3, 1.2)

    def reached(predicted: np.ndarray) -> tuple[float, float]:
        loss = (counts * log_losses(predicted)).sum() / counts.sum()
        return float(loss), float(excess_divergence(predicted, counts).mean())

    true = reached(shares)
    assert true == pytest.approx((entropies(counts).mean(), 0), abs=error)
    others = [shares**power / (shares**power).sum(1, keepdims=True) for power in (0.3, 0.7, 1.5, 3.0)]
    others += [np.full_like(shares, 1 / 3), shares[rng.permutation(len(shares))], (shares + 0.2) / 1.6]
    for other in others:
        assert (np.array(reached(other)) > np.array(true)).all()


def test_the_scores_that_made_the_votes_reach_the_floor_and_are_calibrated() -> None:
    scores, _, counts = people(np.random.default_rng(7), 3000, 10, 4, 1.0)
    shares, inverse = predicted_shares(5 * scores, counts, folds_of(scores, counts, np.arange(3000)))
    assert inverse == pytest.approx(0.2, rel=0.05)
    loss = (counts * log_losses(shares)).sum() / counts.sum()
    assert loss == pytest.approx(entropies(counts).mean(), abs=0.01)
    assert excess_divergence(shares, counts).mean() == pytest.approx(0, abs=0.004)
    bins = bins_of_shares(shares)
    for number in range(10):
        own = bins == number
        assert (counts / 10)[own].mean() == pytest.approx(shares[own].mean(), abs=0.03)


@pytest.mark.heavy
def test_the_interval_of_a_rank_correlation_covers() -> None:
    rng, draws, rho = np.random.default_rng(8), 300, 0.4
    truth, held = 6 / np.pi * np.arcsin(rho / 2), 0
    for _ in range(draws):
        first = rng.standard_normal(150)
        second = rho * first + np.sqrt(1 - rho**2) * rng.standard_normal(150)
        found = rank_correlation(first, second, np.arange(150))
        assert found.value == pytest.approx(spearmanr(first, second).statistic)
        held += (found.low or 0.0) <= truth <= (found.high or 0.0)
    assert held / draws >= 0.92
    assert rank_correlation(np.ones(9), np.arange(9.0), np.arange(9)).value is None


@pytest.mark.heavy
def test_the_interval_of_alpha_covers() -> None:
    rng, values, intervals = np.random.default_rng(10), list[float](), list[tuple[float, float]]()
    for _ in range(300):
        _, _, counts = people(rng, 120, 4, 3, 1.0)
        counts[:20] = [[1, 0, 0]]  # a vote alone says nothing
        found = alpha_of_votes(counts, np.arange(120))
        assert found.value == pytest.approx(krippendorff_alpha(counts.astype(int).tolist())["nominal"])
        values.append(found.value or 0.0)
        intervals.append((found.low or 0.0, found.high or 0.0))
    truth = float(np.mean(values))
    assert np.mean([low <= truth <= high for low, high in intervals]) >= 0.92
    assert alpha_of_votes(np.array([[2.0, 0.0]]), np.zeros(1, dtype=np.int64)).value is None


def test_margins_leave_padding_out() -> None:
    assert margins_of(np.array([[1.0, 4.0, np.nan], [3.0, 1.0, 2.5]])).tolist() == [3.0, 0.5]


@pytest.mark.skipif(not PANDALM.exists(), reason="PandaLM's test set is not here")
def test_the_real_votes_of_pandalm_by_a_plain_count() -> None:
    rows = [[row[f"annotator{number}"] for number in (1, 2, 3)] for row in json.loads(PANDALM.read_text("utf-8"))]
    item, vote = np.repeat(np.arange(len(rows)), 3), np.array(rows).ravel()
    picks = vote > 0
    counts = count_votes(item[picks], vote[picks] - 1, (len(rows), 2))
    ties = np.bincount(item[~picks], minlength=len(rows)).astype(np.float64)
    same = total = with_majority = voters = 0.0
    consensus = Counter[str]()
    for row in rows:
        own = [one for one in row if one]
        most = max(own.count(1), own.count(2))
        consensus["unanimous" if most == 3 else "clear" if most == 2 else "split"] += 1
        if len(own) < 2:
            continue
        same += sum(first == second for first, second in permutations(own, 2)) / (len(own) - 1)
        total += len(own)
        for place, one in enumerate(own):
            others = own[:place] + own[place + 1 :]
            first, second = others.count(1), others.count(2)
            with_majority += 0.5 if first == second else float(one == (1 if first > second else 2))
            voters += 1
    several = counts.sum(1) > 1
    for agreement, expected in ((agreement_of_two, same), (agreement_with_others, with_majority)):
        assert (counts * agreement(counts))[several].sum() == pytest.approx(expected)
    assert counts[several].sum() == total == voters
    names = ("unanimous", "clear", "split")
    found = Counter(names[place] for place in consensus_of(counts, ties).tolist())
    assert found == consensus
    table = np.stack([ties, *counts.T], axis=1).astype(np.int64)
    library = krippendorff.alpha(reliability_data=np.array(rows).T, level_of_measurement="nominal")
    assert krippendorff_alpha(table.tolist())["nominal"] == pytest.approx(library)
    assert alpha_of_votes(table.astype(np.float64), np.arange(len(rows))).value == pytest.approx(library)
