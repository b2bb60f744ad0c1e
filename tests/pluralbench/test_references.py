"""What a coin, the longer and the shorter answer get: the numbers of scorers that do just that."""

from collections.abc import Sequence
from itertools import permutations, product
from pathlib import Path
from statistics import fmean

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import decision, run_of
from pluralbench import find_benchmark, load_run, score
from pluralbench.config import DataConfig
from pluralbench.data.benchmark_entries import known_benchmarks
from pluralbench.data.decisions import decide
from pluralbench.data.items import load_items
from pluralbench.data.metric_key import MetricKey
from pluralbench.data.rules.by_category import chance_of_match
from pluralbench.metrics.accuracy import accuracy_estimates
from pluralbench.metrics.baselines import baseline_numbers
from pluralbench.metrics.decided import Decided
from pluralbench.results import Run
from pluralbench_rewards import Group
from verbs import by_length
from written_tables import write

METRICS = ("accuracy", "pooled_accuracy", "overall")
ranks = st.lists(st.integers(1, 4), min_size=1, max_size=5)


def shorter(groups: Sequence[Group]) -> list[list[float]]:
    return [[-score for score in scores] for scores in by_length(groups)]


def pairs(tmp_path: Path) -> str:
    rows = [
        {"prompt": f"q{n}", "chosen": "x" * (1 + n % 5), "rejected": "y" * (1 + n % 3), "subset": "ab"[n % 2]}
        for n in range(30)
    ]
    return str(write(tmp_path / "pairs.jsonl", rows))


def own(run: Run, baseline: str | None = None) -> pl.DataFrame:
    """The numbers of a run, or those of a baseline."""
    rows = run.metrics.filter(pl.col("metric").is_in(METRICS), pl.col("baseline").eq_missing(pl.lit(baseline)))
    return rows.drop("baseline").sort(pl.all())


@pytest.mark.parametrize(("scorer", "reference"), [(by_length, "longer"), (shorter, "shorter")])
def test_the_longer_and_the_shorter_answer_are_scorers_like_any_other(
    tmp_path: Path, scorer: object, reference: str
) -> None:
    data = pairs(tmp_path)
    run = score(scorer, benchmark="pairs", data=data, out=tmp_path / "run")  # type: ignore[arg-type]
    assert own(run, reference).equals(own(run))
    assert own(run).height >= 3
    coin = own(run, "coin")
    assert coin.height == own(run).height
    assert set(coin["value"]) == {0.5}
    assert coin["low"].null_count() == coin.height
    assert load_run(run.path).metrics.equals(run.metrics)


def test_a_run_that_was_recorded_without_references_shows_none() -> None:
    run = run_of([decision(0), decision(1)])
    assert run.metrics["baseline"].null_count() == run.metrics.height
    assert run.estimate("pooled_accuracy", baseline="coin").value is None


@given(ranks)
def test_a_coins_exact_match_is_the_share_of_orders_that_keep_the_ranking(rank: list[int]) -> None:
    orders = list(permutations(range(len(rank))))
    kept = sum(
        all(order[a] > order[b] for a, one in enumerate(rank) for b, other in enumerate(rank) if one < other)
        for order in orders
    )
    assert chance_of_match(rank) == pytest.approx(kept / len(orders))


@pytest.mark.heavy
def test_a_coin_gets_the_mean_over_all_orders_of_the_responses() -> None:
    """Each place of rankings by category, with ranks that tie, responses that tie and a prompt without a pair."""
    benchmark = find_benchmark("chinese")
    made = [("open", "x", [1, 2, 2]), ("open", "y", [2, 1]), ("human", "x", [1, 2]), ("open", "y", [1, 1])]
    items = pl.DataFrame(
        [
            {"config": config, "id": f"q{n}", "cluster": f"q{n}", "subset": subset, "digest": "d", "rank": rank}
            | {"response_ids": [*map(str, rank)], "responses": ["text"] * len(rank)}
            for n, (config, subset, rank) in enumerate(made)
        ]
    )
    every: dict[MetricKey, list[float]] = {}
    for orders in product(*(permutations(map(float, range(len(rank)))) for _, _, rank in made)):
        decisions = decide(items, orders)
        for key, found in accuracy_estimates(Decided(benchmark, decisions)):
            every.setdefault(key._replace(baseline="coin"), []).append(found.value or 0.0)
    numbers = baseline_numbers(Decided(benchmark, decisions, items))
    coin = {key: found for key, found in numbers if key.baseline == "coin"}
    assert coin.keys() == every.keys()
    assert {place: found.value for place, found in coin.items()} == {
        place: pytest.approx(fmean(values)) for place, values in every.items()
    }
    assert {found.low for found in coin.values()} == {None}


def test_a_benchmark_in_languages_has_references_at_its_means(tmp_path: Path) -> None:
    column = find_benchmark("multilingual").columns.subset or "subset"
    rows = [
        {"id": f"q{n}", "prompt": "q", "chosen": "longer", "rejected": "short", column: next(iter(weights))}
        for n, weights in enumerate(find_benchmark("multilingual").sections.values())
    ]
    for code in ("deu_Latn", "jpn_Jpan"):
        write(tmp_path / "data" / f"{code}.jsonl", rows)
    items = load_items(find_benchmark("multilingual"), DataConfig(location=str(tmp_path / "data")))
    found = dict(baseline_numbers(Decided(find_benchmark("multilingual"), pl.DataFrame(), items.frame)))
    for name in find_benchmark("multilingual").sections:
        places = [MetricKey("accuracy", section=name, baseline=one) for one in ("longer", "shorter", "coin")]
        assert [found[place].value for place in places] == [1.0, 0.0, 0.5]
    pooled = [MetricKey("pooled_accuracy", "deu_Latn", baseline=one) for one in ("longer", "shorter", "coin")]
    assert [found[place].value for place in pooled] == [1.0, 0.0, 0.5]


def test_the_persona_judge_has_references_in_which_no_way_to_choose_is_a_tie() -> None:
    options = pl.DataFrame({"option_a": ["long", "a", "same"], "option_b": ["b", "long", "text"]})
    decisions = pl.DataFrame([decision(n, config="prism") | {"truth": truth} for n, truth in enumerate("AAC")])
    benchmark = known_benchmarks()["persona-judge"]
    for answers, right in (
        (3, {"coin": 1 / 3, "longer": 2 / 3, "shorter": 2 / 3}),
        (2, {"coin": 1 / 2, "longer": 1 / 3}),
    ):
        verdicts = pl.DataFrame({"options": [answers]})
        found = dict(baseline_numbers(Decided(benchmark, decisions, options, verdicts=verdicts)))
        for baseline, share in right.items():
            assert found[MetricKey("pooled_accuracy", baseline=baseline)].value == pytest.approx(share)
