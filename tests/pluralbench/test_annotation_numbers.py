"""Numbers of people's votes: by a plain count on real votes, and on simulated people whose true shares are known."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import krippendorff
import numpy as np
import polars as pl
import pytest
from annotated_votes import crossed_votes, decided_pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench.data.benchmark_entries import find_benchmark
from pluralbench.data.metric_key import MetricKey
from pluralbench.metrics.annotations import annotation_numbers
from pluralbench.metrics.decided import Decided
from pluralbench.metrics.frame import metrics_frame
from pluralbench_measures.bootstrap import Estimate

PANDALM = Path(__file__).parents[3] / "shared" / "data" / "multilingual" / "pandalm_testset-v1.json"


def numbers_of(decided: Decided) -> dict[MetricKey, Estimate]:
    numbers = dict(annotation_numbers(decided))
    metrics_frame(numbers.items())  # every number has a metric and its dimensions
    return numbers


def simulated(items: int = 300, each: int = 6, seed: int = 0) -> Decided:
    """A run whose scores are the log-odds of the true shares."""
    rng = np.random.default_rng(seed)
    odds = np.abs(rng.standard_normal(items) * 1.5)
    votes = crossed_votes(rng, 1 / (1 + np.exp(-odds)), each, 60)
    digests = [f"d{number}" for number in range(items)]
    return decided_pairs(np.stack([odds, np.zeros(items)], axis=1), votes, digest=digests)


def test_nothing_is_said_without_votes() -> None:
    assert not numbers_of(replace(simulated(20), annotations=None))


def test_a_model_with_the_true_scores_reaches_more_than_people_and_the_floor() -> None:
    numbers = numbers_of(simulated(600, 8))
    own, people = (numbers[MetricKey("agreement_with_annotations", baseline=one)] for one in (None, "people"))
    assert (own.value or 0) > (people.value or 1)
    assert own.method == people.method == "two-way"
    assert (numbers[MetricKey("share_of_reachable")].value or 0) == pytest.approx(
        (own.value or 0) / (people.value or 1)
    )
    assert (numbers[MetricKey("share_of_most_frequent")].value or 0) > (own.value or 1)
    loss, floor = (numbers[MetricKey("annotation_log_loss", baseline=one)] for one in (None, "people"))
    assert loss.value == pytest.approx(floor.value, abs=0.02)
    excess = numbers[MetricKey("excess_divergence")]
    assert (excess.low or 0) <= 0.002
    assert (excess.high or 0) >= -0.002
    for number in range(1, 11):
        observed, predicted = (
            numbers.get(MetricKey(name, bin=number)) for name in ("observed_share", "predicted_share")
        )
        if observed is not None and predicted is not None and (observed.n or 0) > 100:
            assert observed.value == pytest.approx(predicted.value, abs=0.05)
    keys = [MetricKey("margin_by_consensus", consensus=one) for one in ("unanimous", "clear", "split")]
    margins = [numbers[key].value or 0.0 for key in keys]
    assert margins == sorted(margins, reverse=True)
    assert (numbers[MetricKey("margin_and_consensus")].low or 0) > 0


@pytest.mark.heavy
@given(seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_names_and_order_change_no_digit(seed: int) -> None:
    decided = simulated(60, 5, seed)
    assert decided.annotations is not None
    assert decided.responses is not None
    rng = np.random.default_rng(seed)
    items = {f"q{place}": f"r{name}" for place, name in enumerate(rng.permutation(60).tolist())}
    people = {f"p{place}": f"s{name}" for place, name in enumerate(rng.permutation(60).tolist())}
    ids = pl.col("id").replace(items)
    frames = [decided.decisions, decided.responses]
    rows = [frame.with_columns(id=ids, cluster=pl.col("cluster").replace(items)) for frame in frames]
    order = rng.permutation(60)
    votes = decided.annotations.with_columns(id=ids, annotator=pl.col("annotator").replace(people))
    votes = votes.sample(fraction=1, shuffle=True, seed=seed)
    other = numbers_of(Decided(decided.benchmark, rows[0][order], responses=rows[1][order], annotations=votes))
    assert other == numbers_of(decided)


def test_a_model_that_serves_one_country_shows_that_gap_and_no_other() -> None:
    rng = np.random.default_rng(3)
    items, each = 300, 8
    item = np.repeat(np.arange(items), each)
    person = np.concatenate([rng.choice(80, each, replace=False) for _ in range(items)])
    likes = rng.integers(0, 2, items)[item]  # what the first country prefers; the second prefers the other response
    response = np.where(person < 40, likes, 1 - likes)
    response = np.where(rng.random(len(item)) < 0.1, 1 - response, response)
    votes = pl.DataFrame(
        {
            "item": item,
            "annotator": [f"p{one}" for one in person],
            "response": response,
            "attribute_country": np.where(person < 40, "first", "second"),
            "attribute_age": np.where(person % 2 == 0, "old", "young"),
            "attribute_town": [None if one else "small" for one in person < 75],
        }
    )
    prefers = likes[::each]
    numbers = numbers_of(decided_pairs(np.stack([1 - prefers, prefers], axis=1).astype(np.float64), votes))
    gap, age = (numbers[MetricKey("group_gap", attribute=one)] for one in ("country", "age"))
    assert (gap.low or 0) <= 0.8 <= (gap.high or 0)
    assert numbers[MetricKey("group_gap_p_value", attribute="country")].value == pytest.approx(0.0001)
    assert age.low == 0
    assert (numbers[MetricKey("group_gap_p_value", attribute="age")].value or 0) > 0.05
    differ = MetricKey("agreement_where_groups_differ", attribute="country", group="first", other_group="second")
    assert (numbers[differ].value or 0) > 0.85
    assert (numbers[differ._replace(group="second", other_group="first")].value or 0) < 0.15
    # Five people are shown, but not ranked; those without a value are counted.
    assert numbers[MetricKey("annotators", attribute="town", group="small")].value == 5
    assert MetricKey("group_gap", attribute="town") not in numbers
    assert (numbers[MetricKey("annotations_without_group", attribute="town")].value or 0) > 2000


def test_ties_and_items_without_an_answer_are_counted_and_no_votes() -> None:
    votes = pl.DataFrame(
        {
            "item": [0, 0, 0, 1, 1, 2, 3, 3],
            "response": [0, 0, None, 1, None, 0, 0, 1],
            "annotator": pl.Series([None] * 8, dtype=pl.String),
        }
    )
    decided = decided_pairs(np.array([[1.0, 0.0], [1.0, 0.0], [2.0, 2.0], [0.0, 1.0]]), votes)
    numbers = numbers_of(decided)
    counts = {name: numbers[MetricKey(name)].value for name in ("annotations", "tie_annotations", "annotators")}
    assert counts == {"annotations": 6, "tie_annotations": 2, "annotators": 0}
    assert numbers[MetricKey("agreement_with_annotations")].value == pytest.approx(
        3 / 6
    )  # equal scores agree with none
    assert numbers[MetricKey("single_annotations")].value == 2
    dropped = pl.when(pl.col("id") == "q3").then(pl.lit("dropped")).otherwise("outcome").alias("outcome")
    numbers = numbers_of(replace(decided, decisions=decided.decisions.with_columns(dropped)))
    assert numbers[MetricKey("annotations_without_answer")].value == 2
    assert numbers[MetricKey("annotations")].value == 4


def test_verdicts_of_a_judge_have_agreement_and_no_shares() -> None:
    decided = simulated(50, 5)
    scored, judged = numbers_of(decided), numbers_of(replace(decided, responses=None))
    key = MetricKey("agreement_with_annotations")
    assert judged[key] == scored[key]
    assert MetricKey("annotation_log_loss") in scored
    assert MetricKey("annotation_log_loss") not in judged
    assert MetricKey("margin_and_consensus") not in judged


def test_the_best_of_several_responses() -> None:
    """Four responses, the votes by their softmax; an invalid score of one response is no answer."""
    rng, items, each = np.random.default_rng(5), 200, 10
    scores = rng.standard_normal((items, 4))
    shares = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    response = np.stack([rng.choice(4, each, p=one) for one in shares])
    names = [f"q{number}" for number in range(items)]
    counts = np.stack([np.bincount(one, minlength=4) for one in response])
    rank = np.where(counts == counts.max(1, keepdims=True), 1, 2)
    rows = pl.DataFrame(
        {
            "config": "c",
            "id": np.repeat(names, 4),
            "cluster": np.repeat(names, 4),
            "digest": np.repeat(names, 4),
            "response": ["abcd"[place] for place in range(4)] * items,
            "rank": rank.ravel(),
            "score": scores.ravel(),
            "outcome": "scored",
        }
    )
    votes = pl.DataFrame({"config": "c", "id": np.repeat(names, each), "response": response.ravel()})
    votes = votes.with_columns(annotator=pl.lit(None, pl.String))
    decided = Decided(find_benchmark("pairs"), rows.select("config", "id"), responses=rows, annotations=votes)
    decided = replace(decided, decisions=rows.select("config", "id", "cluster", "digest", "outcome"))
    numbers = numbers_of(decided)
    expected = np.mean(response == scores.argmax(1)[:, None])
    assert numbers[MetricKey("agreement_with_annotations")].value == pytest.approx(expected)
    assert numbers[MetricKey("annotation_log_loss")].value == pytest.approx(
        numbers[MetricKey("annotation_log_loss", baseline="people")].value, abs=0.05
    )
    consensus = [
        numbers[MetricKey("items_by_consensus", consensus=one)].value for one in ("unanimous", "clear", "split")
    ]
    assert sum(one or 0 for one in consensus) == items
    broken = rows.with_columns(
        pl.when(pl.int_range(pl.len()) == 0).then(float("nan")).otherwise("score").alias("score")
    )
    fewer = numbers_of(replace(decided, responses=broken))[MetricKey("agreement_with_annotations")]
    right = np.sum(response[1:] == scores.argmax(1)[1:, None]) / response.size
    assert fewer.value == pytest.approx(right)


@pytest.mark.skipif(not PANDALM.exists(), reason="PandaLM's test set is not here")
def test_real_votes_by_a_plain_count() -> None:
    """PandaLM's three votes on 999 pairs, and a model that prefers the longer response."""
    rows = json.loads(PANDALM.read_text("utf-8"))
    votes = [[row[f"annotator{number}"] for number in (1, 2, 3)] for row in rows]
    lengths = [(len(str(row["response1"])), len(str(row["response2"]))) for row in rows]
    agreed = total = reachable = voters = people = 0.0
    consensus, right, decided_items = Counter[str](), Counter[str](), Counter[str]()
    for own, (first, second) in zip(votes, lengths, strict=True):
        prefers = 1 if first > second else 2 if second > first else 0
        picks = [one for one in own if one]
        agreed += sum(one == prefers for one in picks)
        total += len(picks)
        most, number = Counter(own).most_common(1)[0]
        top = max(own.count(1), own.count(2))
        name = "unanimous" if top == 3 else "clear" if top == 2 else "split"
        consensus[name] += 1
        if most and number > 1:
            decided_items[name] += 1
            right[name] += most == prefers
        for place, one in enumerate(picks) if len(picks) > 1 else ():
            others = Counter(picks[:place] + picks[place + 1 :])
            best = [vote for vote, count in others.items() if count == max(others.values())]
            people += (one in best) / len(best)
            reachable += one == prefers
            voters += 1
    majorities = [Counter(own).most_common(1)[0] for own in votes]
    outcomes = []
    for (most, number), (first, second) in zip(majorities, lengths, strict=True):
        prefers = 1 if first > second else 2 if second > first else 0
        equal = not most or number < 2
        outcomes.append("equal" if equal else "win" if prefers == most else "loss" if prefers else "tie")
    flips = np.random.default_rng(0).random(len(votes)) < 0.5
    # The pair's first response is what most prefer, or the table's first one.
    swapped = [most == 2 and number > 1 for most, number in majorities]
    scores = np.array([pair[::-1] if swap else pair for pair, swap in zip(lengths, swapped, strict=True)], dtype=float)
    frame = pl.DataFrame(
        [
            {"item": place, "response": None if not one else (one - 1) ^ int(swapped[place]), "annotator": None}
            for place, own in enumerate(votes)
            for one in own
        ],
        schema={"item": pl.Int64, "response": pl.Int64, "annotator": pl.String},
    )
    numbers = numbers_of(decided_pairs(scores, frame, outcome=outcomes))
    assert numbers[MetricKey("agreement_with_annotations")].value == pytest.approx(agreed / total)
    assert numbers[MetricKey("agreement_with_annotations", baseline="people")].value == pytest.approx(people / voters)
    assert numbers[MetricKey("share_of_reachable")].value == pytest.approx(reachable / people)
    # The run has the majority's response first; in an order by chance, alpha is the library's, but for the draw.
    shuffled = [[one and (3 - one if flip else one) for one in own] for own, flip in zip(votes, flips, strict=True)]
    library = krippendorff.alpha(reliability_data=np.array(shuffled).T, level_of_measurement="nominal")
    assert numbers[MetricKey("annotation_alpha")].value == pytest.approx(library, abs=0.002)
    for name in ("unanimous", "clear", "split"):
        assert numbers[MetricKey("items_by_consensus", consensus=name)].value == consensus[name]
        if decided_items[name]:
            accuracy = numbers[MetricKey("accuracy_by_consensus", consensus=name)]
            assert accuracy.value == pytest.approx(right[name] / decided_items[name])
            assert accuracy.n == decided_items[name]
