"""`--items`: which items are drawn, that their number is right on average and its interval holds, and what is said."""

import json
import random
import sys
from collections.abc import Mapping, Sequence
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np
import pluralbench
import polars as pl
import pytest
import verbs
from hypothesis import given
from hypothesis import strategies as st
from made_runs import changed
from pluralbench import find_benchmark, known_benchmarks
from pluralbench.config import DataConfig
from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.drawing import allocate, draw_items, stratum_weights
from pluralbench.data.fields import Cell, Stratum
from pluralbench.errors import DataError
from pluralbench.evaluation.compare import compare
from pluralbench.evaluation.loading import load_benchmark
from pluralbench.leaderboard.checks import check_submission
from pluralbench.metrics.accuracy import accuracy_estimates, resampled_accuracies
from pluralbench.metrics.decided import Decided
from pluralbench.results import Run
from pluralbench_measures.bootstrap import Estimate, Resampled
from rendered import render
from written_tables import write

Parts = dict[str, pl.DataFrame]
PAIRS = find_benchmark("pairs")
RECORDED = Path(__file__).parents[3] / "shared" / "data" / "suite" / "recorded"
FEW_ITEMS = Path(__file__).parents[2] / "benchmarks" / "few_items.py"
SIZES = {"easy": 30, "hard": 90, "rare": 3}


def parts(sizes: Mapping[str, int], config: str = "c") -> Parts:
    """Items `SUBSET-NUMBER` of a config."""
    rows = [(f"{subset}-{number}", subset) for subset, size in sizes.items() for number in range(size)]
    return {config: pl.DataFrame(rows, schema=["id", "subset"], orient="row")}


def ids(benchmark: Benchmark, configs: Parts, number: int, seed: int = 0) -> list[tuple[str, str]]:
    drawn, strata = draw_items(benchmark, configs, number, seed)
    assert all(1 <= stratum.drawn <= stratum.items for stratum in strata)
    return [(config, item) for config, items in drawn.items() for item in items["id"]]


SUBSETS = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 20), min_size=1)


@given(st.lists(st.tuples(st.floats(0.01, 1), st.integers(1, 20)), min_size=1, max_size=8), st.integers(0, 99))
def test_strata_share_the_number_and_each_has_an_item(strata: Sequence[tuple[float, int]], number: int) -> None:
    weights, sizes = [weight for weight, _ in strata], [[1] * size for _, size in strata]
    number = min(len(strata) + number, sum(size for _, size in strata))
    counts = allocate(weights, sizes, number)
    assert sum(counts) == number
    assert all(1 <= count <= len(own) for count, own in zip(counts, sizes, strict=True))
    # No item would be better placed in another stratum, but for those that every stratum has.
    spare = [(2 * n - 1) / w for n, w in zip(counts, weights, strict=True) if n > 1]
    wanted = [(2 * n + 1) / w for n, w, own in zip(counts, weights, sizes, strict=True) if n < len(own)]
    assert not spare or not wanted or max(spare) <= min(wanted)


@pytest.mark.heavy
@given(SUBSETS, st.data())
def test_a_draw_is_part_of_each_larger_one_and_the_order_of_the_rows_is_nothing_to_it(
    sizes: Mapping[str, int], data: st.DataObject
) -> None:
    total, seed = sum(sizes.values()), data.draw(st.integers(0, 3))
    small = data.draw(st.integers(len(sizes), total))
    large = data.draw(st.integers(small, total))
    rows = parts(sizes)
    turned = {"c": rows["c"].sample(fraction=1, shuffle=True, seed=seed)}
    assert set(ids(PAIRS, rows, small, seed)) <= set(ids(PAIRS, turned, large, seed))
    assert set(ids(PAIRS, rows, small, seed)) == set(ids(PAIRS, turned, small, seed))
    assert len(ids(PAIRS, rows, small, seed)) == small


def test_another_item_in_the_data_moves_no_draw_elsewhere() -> None:
    before, after = (set(ids(PAIRS, parts(SIZES | {"hard": size}), 40)) for size in (90, 91))
    assert len(before - after) <= 1
    assert ids(PAIRS, parts(SIZES), 40) != ids(PAIRS, parts(SIZES), 40, seed=1)


@pytest.mark.heavy
@pytest.mark.parametrize("overall", ["items", "configs"])
def test_the_mean_over_all_draws_is_the_number_of_all_items(overall: str) -> None:
    """Six items of a small and a large subset, of which the rounded shares of four alone would give another mean."""
    benchmark = PAIRS.model_copy(update={"overall": overall})
    configs = parts({"small": 1, "large": 5})
    right = {"small-0", "large-1", "large-4"}
    drawn = [draw_items(benchmark, configs, 4, seed) for seed in range(600)]
    assert {strata for _, strata in drawn} == {drawn[0][1]}  # the numbers are fixed, only the items vary
    stratified = benchmark.model_copy(update={"strata": drawn[0][1]})
    own = {frozenset(found["c"]["id"]): found for found, _ in drawn}  # ten of them
    values = {ids: number(stratified, decisions(found, right)).value for ids, found in own.items()}
    plain = {ids: len(ids & right) / len(ids) for ids in own}
    mean, without = (float(np.mean([of[frozenset(one["c"]["id"])] for one, _ in drawn])) for of in (values, plain))
    assert mean == pytest.approx(0.5, abs=0.02)
    assert abs(without - 0.5) > 0.04


def decisions(configs: Parts, right: set[str]) -> pl.DataFrame:
    rows = pl.concat([items.with_columns(config=pl.lit(config)) for config, items in configs.items()])
    outcome = pl.when(pl.col("id").is_in(sorted(right))).then(pl.lit("win")).otherwise(pl.lit("loss"))
    return rows.with_columns(outcome.alias("outcome"), cluster="id")


def number(benchmark: Benchmark, rows: pl.DataFrame) -> Estimate:
    """The overall number of decisions."""
    return next(iter(accuracy_estimates(Decided(benchmark, rows))))[1]


def test_twins_are_drawn_together() -> None:
    benchmark = PAIRS.model_copy(update={"credit": {"ties": "ties"}, "sections": {"All": {"ties": 1.0, "other": 1.0}}})
    rows = [(f"{kind}:{place}", "ties") for place in range(20) for kind in ("ref", "tied")]
    rows += [(f"o{place}", "other") for place in range(20)]
    configs = {"c": pl.DataFrame(rows, schema=["id", "subset"], orient="row")}
    for wanted in range(3, 61):
        drawn = {item for _, item in ids(benchmark, configs, wanted)}
        assert wanted - 1 <= len(drawn) <= wanted
        twins = {item.partition(":")[::2] for item in drawn if ":" in item}
        assert {place for kind, place in twins if kind == "ref"} == {place for kind, place in twins if kind == "tied"}
    with pytest.raises(DataError, match="pass at least `items=3`"):
        draw_items(benchmark, configs, 2, 0)


@pytest.mark.parametrize("name", [name for name, entry in known_benchmarks().items() if not entry.persona_items])
def test_weights_of_every_benchmark_add_up_to_one(name: str) -> None:
    benchmark = known_benchmarks()[name]
    if benchmark.sample is None or benchmark.prompts_only:
        pytest.skip("it has no sample with responses")
    items = verbs.load_items(benchmark, "sample").frame
    counts = items.group_by("config", "subset", maintain_order=True).len()
    fitted = benchmark.fit_to(counts["subset"])
    sizes = {(config, subset): size for config, subset, size in counts.iter_rows()}
    weights = stratum_weights(fitted, sizes)
    assert sum(weights.values()) == pytest.approx(1)
    assert not any(weight for (config, _), weight in weights.items() if config in benchmark.outside_overall)
    if name == "processbench":  # an F1 is 0 if one kind of answers alone is right
        assert set(weights.values()) == {1 / len(sizes)}
    else:
        assert [*weights.values()] == if_only_one_is_right(fitted, sizes)


def if_only_one_is_right(benchmark: Benchmark, sizes: Mapping[Cell, int]) -> list[float]:
    """The overall number for each stratum, if its items are right and no others."""
    all_counts = np.tile(np.array([*sizes.values()], np.float64), (len(sizes), 1))
    right = Resampled(all_counts * np.eye(len(sizes)), all_counts, np.ones((1, len(sizes)), np.bool_))
    counts = dict.fromkeys(("decisions", "pairs", "exact"), right)
    return [*map(float, resampled_accuracies(benchmark, [*sizes], counts)[0].values)]


def test_originals_of_drawn_translations_are_scored_too() -> None:
    benchmark = find_benchmark("multilingual")
    drawn = verbs.load_items(benchmark, "sample", items=70)
    assert sum(stratum.drawn for stratum in drawn.strata) == 70
    own = drawn.frame.filter(pl.col("config") != "eng_Latn")
    assert own.height == 70
    assert set(drawn.frame.filter(config="eng_Latn")["id"]) == set(own["id"])
    assert "translation" not in set(drawn.frame["config"])


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of three subsets, in which the longer response is often right in one and seldom in another."""
    draw = random.Random(0)
    rows = []
    for subset, size in SIZES.items():
        for place in range(size):
            long = draw.random() < {"easy": 0.9, "hard": 0.4, "rare": 0.5}[subset]
            texts = {"chosen": "Yes" + " indeed" * long, "rejected": "No, never"}
            rows.append({"id": f"{subset}-{place}", "topic": subset, "prompt": f"{subset} {place}?"} | texts)
    draw.shuffle(rows)
    return write(tmp_path_factory.mktemp("data") / "mine.jsonl", rows)


def score(data: Path, out: Path, **options: Any) -> Run:
    return verbs.score(verbs.by_length, benchmark="pairs", data=data, columns=("subset=topic",), out=out, **options)


@pytest.fixture(scope="module")
def runs(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """All items, and 40 of them."""
    folder = tmp_path_factory.mktemp("runs")
    return {"all": score(data, folder / "all"), "some": score(data, folder / "some", items=40, items_seed=3)}


def test_a_run_records_its_draw_and_weighs_it(runs: dict[str, Run]) -> None:
    run, whole = runs["some"], runs["all"]
    record, strata = run.config.data, run.config.benchmark.description.strata
    assert (record.items, record.items_seed, record.rows) == (40, 3, {"mine": 40})
    assert strata == (
        Stratum(config="mine", subset="easy", drawn=10, items=30),
        Stratum(config="mine", subset="hard", drawn=29, items=90),
        Stratum(config="mine", subset="rare", drawn=1, items=3),
    )
    by_subset = {one.subset: run.estimate("accuracy", config="mine", subset=one.subset).value for one in strata}
    weighted = sum(one.items * (by_subset[one.subset] or 0) for one in strata) / 123
    assert run.headline.value == pytest.approx(weighted)
    assert (run.headline.n, run.items_counted, run.items_total) == (40, 40, 123)
    assert whole.headline.low is not None
    assert run.headline.low is not None
    assert run.headline.low < whole.headline.low
    assert whole.config.benchmark.description.strata == ()


def test_reports_say_how_many_of_how_many(runs: dict[str, Run]) -> None:
    text = str(render([runs["some"]], "markdown"))
    assert "40 of 123 items, stratified" in text
    assert "Drawn items, weighted as all items: 40 of 123 from 3 subsets by seed 3." in text
    both = str(render([*runs.values()], "markdown"))
    assert "**Pairs (mine.jsonl), mine, 123 items**" in both
    assert "**Pairs (mine.jsonl), mine, drawn by seed 3, 40 of 123 other items, stratified**" in both
    assert "Tables of one benchmark on other items cannot be compared" in both
    rows = json.loads(str(render([runs["some"]], "json")))
    assert (rows[0]["items_counted"], rows[0]["items"]) == (40, 123)


def test_a_check_reproduces_the_draw(runs: dict[str, Run], tmp_path: Path, data: Path) -> None:
    checked = check_submission(runs["some"])
    assert checked.state == "checked"
    description = runs["some"].config.benchmark.description
    first, *others = description.strata
    strata = (first.model_copy(update={"items": 300}), *others)
    description = description.model_copy(update={"strata": strata})
    forged = changed(runs["some"], benchmark__description=description)
    texts = [finding.text for finding in check_submission(forged).rejection_reasons]
    assert any("records another `description` of the benchmark" in text for text in texts)


def test_shards_of_a_draw_merge_to_it(runs: dict[str, Run], data: Path, tmp_path: Path) -> None:
    places = [tmp_path / f"mine-shard{n}of2" for n in (1, 2)]
    for place, path in enumerate(places, 1):
        score(data, path, items=40, items_seed=3, shard=f"{place}/2")
    merged = pluralbench.merge(places)
    assert merged.metrics.equals(runs["some"].metrics)
    assert merged.config == runs["some"].config


def test_a_comparison_weighs_the_drawn_items_in_either_order(runs: dict[str, Run], data: Path, tmp_path: Path) -> None:
    other = verbs.score(
        lambda groups: [[-value for value in row] for row in verbs.by_length(groups)],
        benchmark="pairs",
        data=data,
        columns=("subset=topic",),
        out=tmp_path / "other",
        items=40,
        items_seed=3,
    )
    forth, back = compare(runs["all"], other).headline, compare(other, runs["all"]).headline
    assert runs["some"].headline.value == pytest.approx(forth.first)
    assert forth.difference == pytest.approx(-(back.difference or 0))


def test_history_does_not_change_with_the_draw() -> None:
    """Earlier pairs of a user are what they were, whether or not they are drawn."""
    benchmark = find_benchmark("arena-personalized")
    whole = {row["id"]: row["earlier"] for row in verbs.load_items(benchmark, "sample").frame.to_dicts()}
    drawn = verbs.load_items(benchmark, "sample", items=max(2, len(whole) // 2))
    assert {row["id"]: row["earlier"] for row in drawn.frame.to_dicts()}.items() <= whole.items()


def test_items_without_a_weight_cannot_be_drawn(tmp_path: Path) -> None:
    rows = [{"id": "a", "prompt": "p", "chosen": ["a"], "rejected": ["b"], "subset": "Math"}]
    with pytest.raises(DataError, match=r"`items=1` draws none, since no item has a weight in the overall number"):
        load_benchmark("reward-bench-2", DataConfig(location=str(write(tmp_path / "a.jsonl", rows)), items=1), None)


def test_of_fewer_items_than_asked_all_are_used(data: Path, tmp_path: Path) -> None:
    run = score(data, tmp_path / "run", items=124)
    assert run.items.height == 123
    assert all(one.drawn == one.items for one in run.config.benchmark.description.strata)


def test_items_that_cannot_be_drawn_are_refused(data: Path) -> None:
    with pytest.raises(DataError, match=r"^`items=5` and `limit=3` exclude each other; pass one of them\.$"):
        load_benchmark("pairs", DataConfig(location="sample", items=5, limit=3), None)
    with pytest.raises(
        DataError, match=r"^`items=2` is too few for an item of each of the 3 subsets of Pairs; pass at"
    ):
        load_benchmark("pairs", DataConfig(location=str(data), columns=("subset=topic",), items=2), None)
    with pytest.raises(DataError, match="Only `score` and `judge` draw items; leave out `items=5`, or pass `limit`"):
        load_benchmark("pairs", DataConfig(location="sample", items=5), None, prompts_only=True)


def test_groups_of_subsets_keep_the_sizes_of_all_items(tmp_path: Path) -> None:
    sizes = {"chat": 20, "math": 20, "code": 20, "safety-refuse": 30, "safety-response": 9}
    texts = {"chosen": ["Yes.", "Yes, so.", "**Yes**"], "rejected": ["No.", "No, not so.", "**No**"]}
    rows = [
        {"id": f"{n}", "domain": domain, "prompt": f"{domain} {n}?", **texts}
        for domain, size in sizes.items()
        for n in range(size)
    ]
    path = write(tmp_path / "styles.jsonl", rows)
    whole, drawn = (
        load_benchmark("rm-bench", DataConfig(location=str(path), items=items), None) for items in (None, 13)
    )
    assert drawn.items.frame.height == 13
    assert drawn.benchmark.sections == whole.benchmark.sections
    assert drawn.benchmark.sections["Safety"] == {"safety-refuse": 30, "safety-response": 9}
    # A fourth of the overall number each.
    assert [one.drawn for one in drawn.items.strata] == [3, 3, 3, 3, 1]


@pytest.mark.heavy
def test_intervals_of_real_models_hold_their_full_scores() -> None:
    """95 % intervals of 100 drawn items of RewardBench, for 82 reward models."""
    if not RECORDED.exists():
        pytest.skip("needs recorded results of real models")
    sys.path.insert(0, str(FEW_ITEMS.parent))
    try:
        spec = util.spec_from_file_location("few_items", FEW_ITEMS)
        assert spec is not None
        assert spec.loader is not None
        program: Any = util.module_from_spec(spec)
        sys.modules["few_items"] = program
        spec.loader.exec_module(program)
    finally:
        sys.path.remove(str(FEW_ITEMS.parent))
    files = (RECORDED / f"rewardbench_v1_{name}.jsonl" for name in ("results", "items"))
    recorded = program.read_recorded(*files, find_benchmark("reward-bench"))
    rows = list(program.intervals(recorded, 100, 0))
    assert len(rows) == 82
    assert 0.92 <= np.mean([row["covered"] for row in rows]) <= 0.99
