"""Rankings by category in a run's metrics: one measure with that of the rewards package, intervals, calibration."""

import random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench import find_benchmark
from pluralbench.calibration import measure_calibration
from pluralbench.decisions import decide
from pluralbench.items import ITEMS
from pluralbench.metrics import measure
from pluralbench_rewards import rankings

Prompt = tuple[str, str, list[int], list[float]]


def decisions(prompts: list[Prompt]) -> pl.DataFrame:
    rows = [
        {"config": config, "id": str(n), "cluster": f"c{n}", "subset": category, "rank": rank}
        | {"response_ids": [str(place) for place in range(len(rank))], "responses": [""] * len(rank)}
        for n, (config, category, rank, _) in enumerate(prompts)
    ]
    return decide(pl.DataFrame(rows, schema=ITEMS), [scores for *_, scores in prompts], [0] * len(rows))


def measured(frame: pl.DataFrame, *, legacy: bool = False, seed: int = 0) -> dict[str, Any]:
    benchmark = find_benchmark("chinese", legacy=legacy)
    return measure(benchmark, frame, seed=seed) | measure_calibration(benchmark, frame, seed=seed)


@st.composite
def prompts(draw: st.DrawFn) -> list[Prompt]:
    made = []
    for _ in range(draw(st.integers(1, 8))):
        rank = draw(st.lists(st.integers(1, 4), min_size=2, max_size=5))
        scores = [draw(st.sampled_from([-1.0, 0.0, 0.5, 2.0, float("nan")])) for _ in rank]
        made.append((draw(st.sampled_from(["open", "human"])), draw(st.sampled_from("abc")), rank, scores))
    return made


def near(value: float | None) -> Any:
    return None if value is None else pytest.approx(value)


@settings(max_examples=60)
@given(prompts(), st.booleans())
def test_the_numbers_are_those_of_the_rewards_package(made: list[Prompt], legacy: bool) -> None:
    found = measured(decisions(made), legacy=legacy)
    frame = pl.DataFrame(made, schema=["config", "category", "rank", "reward"], orient="row")
    expected = rankings.measure(frame, legacy=legacy)
    assert found["overall"]["accuracy"] == near(expected["overall"])
    assert found["rankings"]["accuracy"]["accuracy"] == near(expected["accuracy"])
    assert found["rankings"]["exact_match"]["accuracy"] == near(expected["exact_match"])
    assert found["calibration"]["overall"]["error"] == near(expected["calibration_error"])
    for config, cell in expected["configs"].items():
        mine = found["configs"][config]
        assert mine["by_category"]["accuracy"] == near(cell["accuracy"])
        assert mine["exact_match_by_category"]["accuracy"] == near(cell["exact_match"])
        assert (mine["n"], mine["exact_match"]["prompts"]) == (cell["pairs"], cell["prompts"])
        assert mine["equal"] == cell["without_pair"]
        for category, own in cell["categories"].items():
            assert mine["subsets"][category]["accuracy"] == near(own["accuracy"])
            assert mine["subsets"][category]["exact_match"]["accuracy"] == near(own["exact_match"])


def many(seed: int, number: int = 60) -> list[Prompt]:
    draw = random.Random(seed)
    made = []
    for place in range(number):
        rank = [draw.randint(1, 5) for _ in range(5)]
        skill = draw.choice([0.4, 3.0])
        scores = [-skill * value + draw.gauss(0, 1) for value in rank]
        made.append((["open", "human"][place % 2], "abc"[place % 3], rank, scores))
    return made


@pytest.mark.parametrize("legacy", [False, True])
def test_every_number_has_its_interval_from_whole_prompts(legacy: bool) -> None:
    found = measured(decisions(many(0)), legacy=legacy)
    cells = [found["overall"], *found["rankings"].values()]
    for config in found["configs"].values():
        cells += [config["by_category"], config["exact_match"], config["exact_match_by_category"]]
        cells += [one for subset in config["subsets"].values() for one in (subset, subset["exact_match"])]
    for cell in cells:
        low, high = cell["interval"]
        assert 0 <= low <= cell["accuracy"] <= high <= 1
    assert found["overall"]["interval"][1] - found["overall"]["interval"][0] > 0.02
    again, other = (measured(decisions(many(0)), legacy=legacy, seed=seed)["overall"] for seed in (0, 1))
    assert again == found["overall"]
    assert other["interval"] != found["overall"]["interval"]


def test_a_prompt_that_was_dropped_counts_for_nothing_by_either_rule() -> None:
    made = many(1, 12)
    for legacy in (False, True):
        whole = measured(decisions([*made, ("open", "a", [1, 2, 3], [])]), legacy=legacy)
        without = measured(decisions(made), legacy=legacy)
        assert whole["overall"]["accuracy"] == without["overall"]["accuracy"]
        assert whole["configs"]["open"]["dropped"] == 3
        assert whole["configs"]["open"]["exact_match"] == without["configs"]["open"]["exact_match"]


def test_calibration_says_what_is_in_each_bin() -> None:
    found = measured(decisions(many(2)))["calibration"]
    assert found["largest"] == "in the last bin"
    assert set(found["configs"]) == {"open", "human"}
    cell = found["overall"]
    assert cell["pairs"] == sum(bin_["pairs"] for bin_ in cell["bins"])
    assert cell["error"] == pytest.approx(
        sum(bin_["pairs"] * abs(bin_["accuracy"] - bin_["probability"]) for bin_ in cell["bins"]) / cell["pairs"],
        rel=1e-9,
    )
    differences = [bin_["difference"] for bin_ in cell["bins"]]
    assert differences == sorted(differences)
    assert all(bin_["interval"][0] <= bin_["accuracy"] <= bin_["interval"][1] for bin_ in cell["bins"])
    low, high = cell["interval"]
    assert 0 <= low < high <= 1
    legacy = measured(decisions(many(2)), legacy=True)["calibration"]
    assert legacy["largest"] == "in no bin"
    assert legacy["overall"]["pairs"] == cell["pairs"] - 1


def test_rewards_that_are_log_odds_are_better_calibrated_than_the_same_ones_stretched() -> None:
    draw = random.Random(3)
    made: list[Prompt] = []
    for _ in range(400):
        gap = draw.uniform(0, 3)
        right = draw.random() < 1 / (1 + 2.718281828**-gap)
        made.append(("open", "a", [1, 2] if right else [2, 1], [gap, 0.0]))
    stretched = [(config, category, rank, [4 * value for value in own]) for config, category, rank, own in made]
    honest, sure = (measured(decisions(some))["calibration"]["overall"]["error"] for some in (made, stretched))
    assert honest < 0.06
    assert sure > 0.12


def test_other_benchmarks_have_no_calibration_and_no_legacy_rules_of_this_kind() -> None:
    frame = decisions(many(4, 6))
    assert measure_calibration(find_benchmark("rankings"), frame, seed=0) == {}
    assert "rankings" not in measure(find_benchmark("rankings"), frame, seed=0)
    assert find_benchmark("multilingual", legacy=True).strict
