"""Benchmarks of right and wrong responses: the numbers that others published, and each rule beside its neighbours."""

import json
from collections.abc import Callable, Mapping, Sequence
from math import tanh
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import polars as pl
import pytest
import verbs
from hypothesis import given, settings
from hypothesis import strategies as st
from made_runs import by
from pluralbench.contract import Group
from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.credits import chance_credits, item_credits
from pluralbench.data.decisions import decide, decisions_of
from pluralbench.metrics import measure
from pluralbench.metrics.frame import KEY
from pluralbench.results import Run
from polars.testing import assert_frame_equal
from verbs import by_length, by_text, score
from written_tables import write

Rows = list[dict[str, Any]]
SUITE = Path(__file__).parents[2].parent / "shared" / "data" / "suite"
needs_suite = pytest.mark.skipif(not SUITE.is_dir(), reason=f"the real rows and recorded scores are not at {SUITE}")
JUDGEBENCH = {
    "Ray2333/GRM-Gemma-2B-rewardmodel-ft": (62.99, 53.06, 64.29, 54.76, 59.43),
    "Skywork/Skywork-Reward-Gemma-2-27B": (59.74, 66.33, 83.93, 50.00, 64.29),
    "Skywork/Skywork-Reward-Llama-3.1-8B": (59.09, 64.29, 76.79, 50.00, 62.29),
    "internlm/internlm2-20b-reward": (62.34, 69.39, 66.07, 50.00, 63.43),
    "internlm/internlm2-7b-reward": (56.49, 61.22, 71.43, 50.00, 59.43),
}
REWARD_BENCH = {
    "internlm/internlm2-20b-reward": (98.9, 76.5, 89.5, 95.8),
    "Ray2333/GRM-Llama3-8B-rewardmodel-ft": (95.5, 86.2, 90.8, 93.6),
}


def rows_of(name: str) -> Rows:
    return [json.loads(line) for line in (SUITE / name).read_text(encoding="utf-8").splitlines()]


def percent(run: Run, digits: int = 2, **place: Any) -> float:
    return round(100 * verbs.value(run, **place), digits)


def sections(run: Run, digits: int = 2) -> tuple[float, ...]:
    return tuple(round(100 * value, digits) for value in run.metrics.filter(by("section"), metric="accuracy")["value"])


def by_id(scores: Mapping[str, Sequence[float]]) -> Callable[[Sequence[Group]], list[list[float]]]:
    """A reward model that gives the responses of a prompt the scores recorded for its id."""
    return lambda groups: [list(scores[group.id]) for group in groups]


@pytest.mark.heavy
@needs_suite
def test_judgebench_has_the_published_rows(tmp_path: Path) -> None:
    recorded = pl.DataFrame(rows_of("recorded/judgebench_rm_scores.jsonl"))
    for (model, kind), part in recorded.partition_by("model", "run", as_dict=True).items():
        scores = {row["pair_id"]: (row["score_A"], row["score_B"]) for row in part.iter_rows(named=True)}
        where = tmp_path / f"{kind}-{str(model).replace('/', '-')}"
        run = score(by_id(scores), benchmark="judgebench", data=SUITE / "judgebench/gpt.jsonl", out=where)
        numbers = (*sections(run), percent(run, metric="overall"))
        if kind == "official":
            assert numbers == JUDGEBENCH[str(model)]
        else:
            assert numbers[-1] == 62.00
        assert percent(run, metric="accuracy", config=run.configs[0]) == pytest.approx(fmean(sections(run)), abs=0.01)


@pytest.mark.heavy
@needs_suite
def test_reward_bench_has_the_published_sections(tmp_path: Path) -> None:
    subsets = rows_of("recorded/rewardbench_v1_items.jsonl")
    rows = [
        {"id": str(row["index"]), "prompt": f"p{row['index']}", "chosen": "c", "rejected": "r", "subset": row["subset"]}
        for row in subsets
    ]
    data = write(tmp_path / "filtered.jsonl", rows)
    results = {row["model"]: row["results"] for row in rows_of("recorded/rewardbench_v1_results.jsonl")}
    for model, published in REWARD_BENCH.items():
        scores = {str(place): (float(right), 0.5) for place, right in enumerate(results[model])}
        run = score(by_id(scores), benchmark="reward-bench", data=data, out=tmp_path / model.replace("/", "-"))
        assert sections(run, 1) == published


@needs_suite
def test_rewardmath_has_the_published_row(tmp_path: Path) -> None:
    recorded = {str(row["problem_id"]): row["score"] for row in rows_of("recorded/rewardmath_scores.jsonl")[:483]}
    rows = [
        {"problem": f"p{problem}", "problem_id": problem, "eval_solution": ["step", f"{place}"], "solution_type": kind}
        for problem in recorded
        for place, kind in enumerate(["chosen", *["rejected"] * 9])
    ]
    run = score(
        by_id(recorded), benchmark="rewardmath", data=write(tmp_path / "math.jsonl", rows), out=tmp_path / "armorm"
    )
    names = ("overall", "accuracy_with_ties", "reciprocal_rank")
    assert [percent(run, 1, metric=name) for name in names] == [20.5, 21.5, 42.2]
    assert run.count("ties") > 0, "decisions that are neither won nor lost are counted"


@needs_suite
def test_rmb_reads_objects_and_folders_of_files(tmp_path: Path) -> None:
    recorded = rows_of("recorded/rmb_armorm_scores.jsonl")
    rows = [
        {
            "pair_uid": row["pair_uid"],
            "category_path": row["category_path"],
            "conversation_input": [{"role": "user", "content": f"p{row['pair_uid']}"}],
            "chosen": {"llm_name": "a", "answer": "good"},
            "reject": {"llm_name": "b", "answer": "bad"},
        }
        for row in recorded
    ]
    folder = tmp_path / "Pairwise_set"
    write(folder / "Helpfulness" / "one.json", rows[:400])
    write(folder / "Helpfulness" / "two.json", rows[400:])
    harmless = [
        row | {"pair_uid": f"h{row['pair_uid']}", "category_path": "Pairwise_set/Harmlessness/S1"} for row in rows
    ]
    write(folder / "Harmlessness" / "S1.json", harmless[:50])
    scores = {row["pair_uid"]: (row["chosen_reward"], row["reject_reward"]) for row in recorded}
    scores |= {f"h{name}": (1.0, 1.0) for name in scores}
    run = score(by_id(scores), benchmark="rmb-pairs", data=folder, out=tmp_path / "pairs")
    assert sections(run) == (79.51, 0.0), "published: 675 of 849; a tie is not right"
    assert percent(run, metric="overall") == 39.75

    shapes = [row for row in rows_of("rmb/shape_without_texts.jsonl") if "bon_uid" in row]
    data = write(tmp_path / "bon.json", shapes)
    run = score(by_text, benchmark="rmb-best-of-n", data=data, out=tmp_path / "bon")
    own = run.items.group_by("id").agg(
        (pl.col("score").arg_max() == 0).cast(pl.Int64).first(), pl.col("config").first()
    )
    assert percent(run, metric="pooled_accuracy") == round(100 * own["score"].mean(), 2)  # type: ignore[operator, arg-type]
    assert min(run.items.group_by("id").len()["len"].to_list()) >= 3


@needs_suite
def test_rm_bench_pools_safety_and_has_three_levels(tmp_path: Path) -> None:
    rows = rows_of("rm_bench/sample.jsonl")
    math = [row | {"domain": "math", "prompt": f"{row['prompt']} math"} for row in rows if row["domain"] == "chat"]
    data = write(tmp_path / "train.jsonl", rows + math)
    run = score(by_length, benchmark="rm-bench", data=data, out=tmp_path / "run")
    matrices: dict[str, list[Any]] = {}
    for row in rows + math:
        won = [[len(right) > len(wrong) for wrong in row["rejected"]] for right in row["chosen"]]
        matrices.setdefault(row["domain"].split("-")[0], []).append(won)
    matrix = {domain: np.mean(won, axis=0) for domain, won in matrices.items()}
    for name, place in (("chat", "Chat"), ("math", "Math"), ("code", "Code"), ("safety", "Safety")):
        assert percent(run, metric="accuracy", config=run.configs[0], section=place) == round(
            100 * matrix[name].mean(), 2
        )
    below, above = np.tril_indices(3, -1), np.triu_indices(3, 1)
    levels = {"easy": below, "normal": np.diag_indices(3), "hard": above}
    for level, places in levels.items():
        expected = round(100 * fmean(one[places].mean() for one in matrix.values()), 2)
        assert percent(run, metric="style_accuracy", level=level) == expected
    mean = fmean(percent(run, 6, metric="style_accuracy", level=level) for level in levels)
    assert percent(run, 6, metric="overall") == pytest.approx(mean)


def ties_score(prompts: dict[str, tuple[list[float], list[float]]]) -> float:
    """The score of Ties as the reference states it: means of six terms over all prompts, from the scores alone."""
    gap = {name: min(right) - max(wrong) for name, (right, wrong) in prompts.items()}
    spread = {name: max(right) - min(right) for name, (right, _) in prompts.items()}
    names = sorted(name.removeprefix("tied:") for name in prompts if name.startswith("tied:"))

    def bonus(name: str) -> float:
        smaller, over = min(gap[f"ref:{name}"], gap[f"tied:{name}"]), spread[f"tied:{name}"]
        if over:
            return tanh(smaller / over - 1)
        return float(np.sign(smaller))

    terms: list[tuple[float, list[Any]]] = [
        (0.3, [gap[f"tied:{name}"] > 0 for name in names]),
        (0.3, [gap[f"ref:{name}"] > 0 for name in names]),
        (0.2, [gap[f"tied:{name}"] > spread[f"tied:{name}"] for name in names]),
        (0.2, [min(gap[f"ref:{name}"], gap[f"tied:{name}"]) > spread[f"tied:{name}"] for name in names]),
        (0.01, [bonus(name) for name in names]),
    ]
    return sum(weight * float(np.mean(values)) for weight, values in terms)


def items_of(
    prompts: dict[str, tuple[list[float], list[float]]], subset: str
) -> tuple[pl.DataFrame, list[list[float]]]:
    frame = pl.DataFrame(
        [
            {
                "config": "c",
                "id": name,
                "cluster": name,
                "subset": subset,
                "digest": name,
                "response_ids": [f"chosen {n}" for n in range(len(right))]
                + [f"rejected {n}" for n in range(len(wrong))],
                "responses": [f"{n}" for n in range(len(right) + len(wrong))],
                "rank": [1] * len(right) + [2] * len(wrong),
            }
            for name, (right, wrong) in prompts.items()
        ]
    )
    return frame, [right + wrong for right, wrong in prompts.values()]


some_scores = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=4)
prompts_of_ties = st.dictionaries(
    st.integers(0, 9).map(str),
    st.tuples(st.tuples(some_scores, some_scores), st.integers(-3, 3), some_scores),
    min_size=1,
)


@pytest.mark.heavy
@settings(max_examples=60)
@given(prompts_of_ties)
def test_ties_has_the_score_of_the_formula(drawn: dict[str, Any]) -> None:
    prompts: dict[str, Any] = {}
    for name, (tied, right, wrong) in drawn.items():
        prompts |= {f"tied:{name}": tied, f"ref:{name}": ([float(right)], wrong)}
    items, scores = items_of(prompts, "Ties")
    benchmark = Benchmark(title="t", credit={"Ties": "ties"})
    credit = item_credits(benchmark, decide(items, scores))
    assert credit["credit"].mean() == pytest.approx(ties_score(prompts))
    assert credit.height == len(prompts)


def test_constant_scores_get_nothing_in_ties_and_a_perfect_model_a_bonus() -> None:
    benchmark = Benchmark(title="t", credit={"Ties": "ties"})
    for right, wrong, expected in ((1.0, 1.0, 0.0), (1.0, 0.0, 1.01)):
        prompts = {"tied:1": ([right] * 2, [wrong] * 3), "ref:1": ([right], [wrong] * 2)}
        items, scores = items_of(prompts, "Ties")
        assert item_credits(benchmark, decide(items, scores))["credit"].to_list() == pytest.approx([expected] * 2)


@pytest.mark.heavy
@settings(max_examples=60)
@given(st.dictionaries(st.text("ab", min_size=1, max_size=3), st.tuples(some_scores, some_scores), min_size=1))
def test_credits_are_those_of_the_definitions(prompts: dict[str, Any]) -> None:
    items, scores = items_of(prompts, "s")
    decisions = decide(items, scores)

    def credit(rule: Any) -> dict[str, float]:
        return dict(
            item_credits(Benchmark(title="t", credit={"*": rule}), decisions).select("id", "credit").iter_rows()
        )

    for name, (right, wrong) in prompts.items():
        best = max(right + wrong)
        assert credit("best-of-n")[name] == (min(right) > max(wrong))
        shared = right.count(best) / (right + wrong).count(best)
        assert credit("best-of-n-shared")[name] == pytest.approx(shared)
        pairs = [a > b for a in right for b in wrong]
        assert credit("mean-of-pairs")[name] == pytest.approx(fmean(pairs))


def test_a_coin_has_the_chance_of_each_rule() -> None:
    rng = np.random.default_rng(1)
    sizes = {"one": (1, 3), "two": (2, 2)}
    for rule in ("best-of-n", "best-of-n-shared", "mean-of-pairs", "pairs"):
        benchmark = Benchmark(title="t", credit={"*": rule})
        for name, (right, wrong) in sizes.items():
            scores = {f"{name} {number}": rng.random(right + wrong).tolist() for number in range(300)}
            items, listed = items_of({own: (of[:right], of[right:]) for own, of in scores.items()}, "s")
            decisions = decide(items, listed)
            drawn = item_credits(benchmark, decisions)["credit"].to_list()
            assert len(drawn) % 300 == 0
            assert chance_credits(benchmark, decisions)["credit"].mean() == pytest.approx(np.mean(drawn), abs=0.07)


def correctness_rows(items: int, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(items):
        right = [bool(value) for value in rng.random(32) < 0.5]
        pairs = [[i, j] for i, j in rng.integers(0, 32, (12, 2)).tolist() if right[i] != right[j]]
        row: dict[str, Any] = {"question_id": f"q{number}", "prompt": f"p{number}", "scores": right}
        row |= {f"response_{place + 1}": f"answer {number} {place}" for place in range(32)}
        rows.append(row | {"sampled_conflict_pairs": [*pairs, *pairs[:1]]})
    return rows


def test_ppe_counts_the_listed_pairs_and_the_best_of_k(tmp_path: Path) -> None:
    from scipy.stats import mannwhitneyu

    rows = correctness_rows(12)
    run = score(by_text, benchmark="ppe-gpqa", data=write(tmp_path / "gpqa.jsonl", rows), out=tmp_path / "run")
    scores = {row_id: part["score"].to_list() for (row_id,), part in run.items.partition_by("id", as_dict=True).items()}
    accuracy, positive, negative = [], [], []
    for row in rows:
        own, right = scores[row["question_id"]], row["scores"]
        accuracy.append(fmean((own[i] > own[j]) == right[i] for i, j in row["sampled_conflict_pairs"]))
        scaled = [(value - min(own)) / (max(own) - min(own)) for value in own]
        positive += [value for value, label in zip(scaled, right, strict=True) if label]
        negative += [value for value, label in zip(scaled, right, strict=True) if not label]
    assert percent(run, 6, metric="overall") == pytest.approx(100 * fmean(accuracy))
    auc = mannwhitneyu(positive, negative).statistic / (len(positive) * len(negative))
    assert percent(run, 6, metric="auc", config=run.configs[0]) == pytest.approx(100 * auc, abs=1e-5)
    best = fmean(row["scores"][int(np.argmax(scores[row["question_id"]]))] for row in rows)
    assert percent(run, 6, metric="best_of_k", config=run.configs[0], k=32) == pytest.approx(100 * best)
    share = fmean(fmean(row["scores"]) for row in rows)
    assert percent(run, 6, metric="best_of_k", config=run.configs[0], k=1) == pytest.approx(100 * share, abs=5)
    assert run.items["compared"].list.len().sum() == sum(len(row["sampled_conflict_pairs"]) for row in rows)
    again = measure(run.config.benchmark.description, decisions_of(run.items), responses=run.items)
    computed = run.metrics.filter(pl.col("baseline").is_null())
    assert_frame_equal(again.sort(KEY), computed.sort(KEY))


def test_several_splits_are_configs_and_rows_are_selected(tmp_path: Path) -> None:
    rows = [
        {"pair_id": f"{n}", "source": "livecodebench", "question": f"q{n}", "response_A": "a", "response_B": "bb"}
        | {"label": "B>A", "language": "en" if n % 2 else "de"}
        for n in range(6)
    ]
    write(tmp_path / "data" / "gpt.jsonl", rows)
    write(tmp_path / "data" / "claude.jsonl", [row | {"label": "A>B"} for row in rows])
    run = score(by_length, benchmark="judgebench", data=tmp_path / "data", split="gpt,claude", out=tmp_path / "both")
    assert percent(run, metric="overall") == 100
    assert percent(run, metric="accuracy", config="claude") == 0
    own = tmp_path / "own.toml"
    own.write_text(
        'title = "Own"\nrows = { language = ["en"] }\nlabels = { first = ["A>B"], second = ["B>A"] }\n[columns]\n'
        'id = "pair_id"\nprompt = ["question"]\nfirst = "response_A"\nsecond = "response_B"\nlabels = ["label"]\n',
        encoding="utf-8",
    )
    run = score(by_length, benchmark=str(own), data=tmp_path / "data" / "gpt.jsonl", out=tmp_path / "own")
    assert (run.items.height, run.config.data.left_out) == (3, {"gpt": 3})
