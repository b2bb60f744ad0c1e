"""Reports, comparisons and checks of benchmarks of right and wrong responses."""

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pluralbench import compare
from pluralbench.contract import Group
from pluralbench.data.benchmark_entries import benchmark_entries
from pluralbench.leaderboard.checks import check_submission
from pluralbench.leaderboard.comparisons import notes_of
from pluralbench.reports.benchmarks import benchmark_rows
from pluralbench.results import Run
from rendered import render
from rich.console import Console
from verbs import by_length, by_text, score
from written_tables import write

Rows = list[dict[str, Any]]
Scorer = Callable[[Sequence[Group]], list[list[float]]]


def listed_pairs(items: int = 6) -> Rows:
    """Rows of PPE: four responses, two of them right, and a pair that is listed twice."""
    pairs = {"sampled_conflict_pairs": [[0, 1], [2, 1], [0, 1]]}
    right = {"scores": [True, False, True, False]}
    texts = {f"response_{place + 1}": "long answer"[: 4 + 2 * place] for place in range(4)}
    return [{"question_id": f"q{n}", "prompt": f"p{n}", **right, **pairs, **texts} for n in range(items)]


def best_of_four(right: str = "a", wrong: Sequence[str] = ("a", "b", "cc")) -> Rows:
    """Rows of RewardBench 2, with a question of Ties."""
    rows = [
        {"id": f"{n}", "prompt": f"p{n}", "subset": "Math", "chosen": [right], "rejected": [*wrong]} for n in range(4)
    ]
    ties = [("tied:1", ["aaa", "bbbb"]), ("ref:1", ["aaa"])]
    return rows + [
        {"id": name, "prompt": name, "subset": "Ties", "chosen": chosen, "rejected": ["c", "d"]}
        for name, chosen in ties
    ]


def styles(domains: Sequence[str] = ("chat", "math", "code", "safety-refuse")) -> Rows:
    """Rows of RM-Bench, whose texts are longer in the more elaborate styles."""
    return [
        {
            "id": n,
            "prompt": f"{domain} {n}",
            "domain": domain,
            "chosen": ["r", "rrr", "rrrrr"],
            "rejected": ["ww", "wwww", "wwwwww"],
        }
        for domain in domains
        for n in range(3)
    ]


def pairs_of_sources() -> Rows:
    rows = []
    for n, (source, label) in enumerate([("livecodebench", "A>B"), ("livecodebench", "B>A"), ("mmlu-pro-law", "B>A")]):
        texts = {"question": f"q{n}", "response_A": "same", "response_B": "size"}
        rows.append({"pair_id": f"{n}", "source": source, "label": label, **texts})
    return rows


def made(folder: Path, benchmark: str, rows: Rows, model: Scorer = by_length, **options: Any) -> Run:
    return score(model, benchmark=benchmark, data=write(folder / "d.jsonl", rows), out=folder / "run", **options)


def table(run: Run, **options: Any) -> str:
    console = Console(width=300, file=io.StringIO(), force_terminal=False)
    console.print(render([run], "table", **options))
    return " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]


def test_each_rule_is_in_the_report_in_words(tmp_path: Path) -> None:
    judgebench = table(made(tmp_path / "judgebench", "judgebench", pairs_of_sources()))
    assert "Overall: mean over all items; equal scores decide for B." in judgebench
    assert "invalid answers are wrong, and ties unless the rule says otherwise" in judgebench
    assert "Pairs without a winner: 3 ties." in judgebench
    shared = table(made(tmp_path / "shared", "reward-bench-2", best_of_four()))
    assert "1/k credit if k responses tie for the highest score; in Ties, the score of each prompt" in shared
    means = table(made(tmp_path / "means", "ppe-gpqa", listed_pairs()))
    assert "an item's number is the share of its pairs that are right" in means
    assert "; ties and invalid answers are wrong." in means
    listed = {row["name"]: row for row in benchmark_rows(benchmark_entries())}
    assert listed["rmb-best-of-n"]["overall"].startswith("unweighted mean of the sections; an item is right if its")
    assert (listed["judgebench"]["unit"], listed["rankings"]["unit"]) == ("pairs", "rankings")


def test_a_table_has_the_further_metrics_of_its_benchmark(tmp_path: Path) -> None:
    matrix = made(tmp_path / "matrix", "rm-bench", styles())
    (row, *_) = json.loads(str(render([matrix], "json")))
    assert list(row["parts"]) == ["Chat", "Math", "Code", "Safety", "easy", "normal", "hard"]
    assert [row["parts"][level]["value"] for level in ("easy", "normal", "hard")] == [1.0, 0.0, 0.0]
    detail = table(matrix, detail=True)
    for text in ("easy: Chat 100.0", "hard 0.0", "style 2 against 0 100.0"):
        assert text in detail
    assert "RM-Bench (d.jsonl), 12 items" in detail, "the config of joined tables has no name of its own"
    curve = made(tmp_path / "curve", "ppe-gpqa", listed_pairs())
    (row, *_) = json.loads(str(render([curve], "json")))
    assert list(row["parts"]) == ["best of 4", "max", "loss", "AUC"]
    best = curve.metrics.filter(metric="best_of_k", k=1)["value"][0]
    assert f"d: best of 1 {100 * best:.1f}" in table(curve, detail=True)
    macro = json.loads(str(render([made(tmp_path / "macro", "judgebench", pairs_of_sources())], "json")))[0]
    assert macro["overall"]["value"] == pytest.approx(2 / 3)
    assert list(macro["parts"])[-1] == "mean of sections"


def test_a_section_without_items_is_named_where_the_overall_number_is_missing(tmp_path: Path) -> None:
    run = made(tmp_path, "rm-bench", styles(["chat", "code"]))
    assert "No overall number, because no item counts in: Math, Safety." in table(run)
    assert "No overall number" not in table(made(tmp_path / "all", "rm-bench", styles()))


def test_counts_of_pairs_are_not_those_of_items(tmp_path: Path) -> None:
    def without_the_first(groups: Sequence[Group]) -> list[list[float]]:
        scores = by_length(groups)
        scores[0][0] = float("nan")
        return scores

    run = made(tmp_path, "reward-bench-2", best_of_four(right="dddd"), without_the_first)
    place = {"config": "d", "section": "Math", "subset": "Math"}
    assert run.estimate("invalid", **place).value == 3, "pairs of the invalid response"
    assert run.estimate("accuracy", **place).value == 3 / 4
    valid = run.estimate("accuracy_of_valid", **place)
    assert (valid.value, valid.n) == (1.0, 3)
    detail = table(run, detail=True)
    assert "accuracy n pairs invalid" in detail
    assert f"d – {4 + 2} {4 * 3 + 4 + 2} 3" in detail


@pytest.mark.parametrize("invalid", [0, 1, 3])
def test_an_invalid_score_loses_in_best_of_k(tmp_path: Path, invalid: int) -> None:
    """Right in two of 20 prompts, with an invalid score in each other; `invalid` is its response, 0 a right one."""
    scores = np.array([0, 1, 0, 1]) + np.random.default_rng(0).random((20, 4))
    scores[:2] = 1 - scores[:2]
    scores[2:, invalid] = np.nan
    run = made(tmp_path, "ppe-gpqa", listed_pairs(20), lambda groups: scores.tolist()[: len(groups)])
    assert run.estimate("best_of_k", config="d", k=4).value == 2 / 20
    low, high = np.nanmin(scores, 1, keepdims=True), np.nanmax(scores, 1, keepdims=True)
    scaled = (scores - low) / (high - low)
    pairs = [(one, other) for one in scaled[:, ::2].flat for other in scaled[:, 1::2].flat]
    auc = sum((one > other) + (one == other) / 2 for one, other in pairs) / len(
        pairs
    )  # a comparison with an invalid score is lost
    assert run.estimate("auc", config="d").value == pytest.approx(auc)
    assert "With an invalid score, which loses in best of k: 18 responses." in table(run)


def test_prompts_without_a_twin_and_rows_that_are_not_selected_are_counted(tmp_path: Path) -> None:
    run = made(tmp_path, "reward-bench-2", best_of_four(), limit=5)
    assert "Without credit because the twin has no score: 1 prompt." in table(run)
    own = tmp_path / "own.toml"
    own.write_text('title = "Own"\nrows = { language = ["en"] }\n', encoding="utf-8")
    rows = [
        {"id": n, "prompt": f"p{n}", "chosen": "aa", "rejected": "b", "language": "de" if n else "en"} for n in range(3)
    ]
    run = made(tmp_path / "own", str(own), rows)
    text = "Left out because the benchmark does not select them: 2 rows."
    assert text in table(run)


@pytest.mark.heavy
def test_runs_with_listed_pairs_and_with_twins_can_be_compared_and_checked(tmp_path: Path) -> None:
    for benchmark, rows in (("ppe-gpqa", listed_pairs()), ("reward-bench-2", best_of_four())):
        first = made(tmp_path / benchmark / "first", benchmark, rows)
        second = made(tmp_path / benchmark / "second", benchmark, rows, by_text)
        result = compare(first, second)
        decisions = sum(first.count(name) for name in ("wins", "losses", "ties"))
        assert (result.decisions, result.left_out) == (decisions, 0)
        parts = result.parts.filter(pl.col("section").is_not_null())
        ours = {name: first.estimate("accuracy", config="d", section=name).value for name in parts["section"]}
        assert dict(parts.select("section", "first").iter_rows()) == pytest.approx(ours)
        assert result.headline.first == pytest.approx(first.headline.value)
        for run in (first, second):
            assert check_submission(run).state == "checked"


def test_sections_made_of_groups_are_the_benchmarks_own_rules(tmp_path: Path) -> None:
    run = made(tmp_path, "rm-bench", styles())
    assert [*notes_of(run)] == []
    record = run.config.benchmark
    other = record.description.model_copy(update={"credit": {"*": "best-of-n"}, "sections": {"Chat": {"chat": 1.0}}})
    config = run.config.model_copy(update={"benchmark": record.model_copy(update={"description": other})})
    changed = Run(run.path, config, run.result, run.provenance, run.metrics)
    (finding,) = notes_of(changed)
    assert finding.text == "Its rules differ from those of `rm-bench`: `sections`, `credit`."


@pytest.mark.heavy
def test_a_coin_is_the_same_in_each_computation(tmp_path: Path) -> None:
    runs = [made(tmp_path / f"{n}", "reward-bench-2", best_of_four()) for n in range(3)]
    coins = {run.estimate("accuracy", config="d", section="Ties", baseline="coin").value for run in runs}
    assert len(coins) == 1
    assert None not in coins
