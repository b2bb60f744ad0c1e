"""What a run of `score` leaves: a row for each item, the metrics, and where everything comes from."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pluralbench import Run, read_run
from pluralbench_rewards import Group
from reward_models import classifier_alone, implicit_alone, user
from verbs import scoring, work
from written_tables import write

Rows = list[dict[str, Any]]
FILES = ["items.parquet", "metrics.json", "run.json", "settings.toml"]


@pytest.fixture
def data(pairs: Callable[..., Rows], tmp_path: Path) -> Path:
    return write(tmp_path / "p.jsonl", pairs(24, unused="x"))


def alone(rows: Rows) -> list[Group]:
    return [Group(row["id"], user(row["prompt"]), [row["chosen"], row["rejected"]]) for row in rows]


def strict(path: Path) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


@pytest.mark.parametrize("mode", ["fast", "exact"])
def test_scores_belong_to_their_rows_and_are_the_models_own(
    score: Callable[..., Run], model: str, data: Path, pairs: Callable[..., Rows], mode: str
) -> None:
    run = score("pairs", data, mode=mode, token_budget=150)
    rows = pairs(24)
    assert run.items["id"].to_list() == [row["id"] for row in rows]
    found = list(run.items.select("score_chosen", "score_rejected").iter_rows())
    tolerance = scoring(run).tolerance
    assert 0 < tolerance < 1e-3
    for mine, theirs in zip(found, classifier_alone(model, alone(rows)), strict=True):
        assert mine == pytest.approx(theirs, abs=tolerance + 1e-6)


def test_implicit_rewards_are_the_difference_of_the_log_probabilities(
    score: Callable[..., Run], language_models: Callable[..., str], data: Path, pairs: Callable[..., Rows]
) -> None:
    run = score("pairs", data, by=language_models(0), kind="implicit", reference=language_models(1), limit=6)
    theirs = implicit_alone(language_models(0), alone(pairs(24)[:6]), language_models(1))
    found = list(run.items.select("score_chosen", "score_rejected").iter_rows())
    for mine, other in zip(found, theirs, strict=True):
        assert mine == pytest.approx(other, abs=1e-2)
    assert (run.record.model.kind, run.record.model.reference) == ("implicit", language_models(1))


def test_a_pair_is_a_row_and_a_ranking_a_row_for_each_response(
    score: Callable[..., Run], data: Path, tmp_path: Path
) -> None:
    items = score("pairs", data).items
    for column in ("config", "id", "score_chosen", "score_rejected", "tokens_chosen", "tokens_rejected", "truncated"):
        assert column in items.columns
        assert items[column].null_count() == 0
    assert (items.height, items["truncated"].any()) == (24, False)
    row = {"id": "a", "prompt": "a quiet hobby", "responses": ["origami", "drumming", "x"], "rank": [2, 1, 2]}
    ranked = score("rankings", write(tmp_path / "r.jsonl", [row])).items
    for column in ("config", "id", "response", "rank", "score", "tokens", "truncated"):
        assert ranked[column].null_count() == 0
    assert ranked.height == 3


def test_a_run_says_where_its_numbers_come_from(score: Callable[..., Run], model: str, data: Path) -> None:
    run = score("pairs", data, seed=3, mode="exact", dtype="float32")
    assert sorted(path.name for path in run.path.iterdir()) == FILES
    assert not run.path.with_name(run.path.name + ".work").exists()
    record = strict(run.path / "run.json")
    assert record == run.run
    assert (record["model"]["name"], record["model"]["kind"]) == (model, "classifier")
    assert len(record["model"]["digest"]) == 64
    assert (record["model"]["device"], record["model"]["dtype"]) == ("cpu", "float32")
    assert record["model"]["architecture"] == "LlamaForSequenceClassification"
    assert record["benchmark"]["name"] == "pairs"
    data_record = record["data"]
    assert (data_record["location"], data_record["revision"], data_record["rows"]) == (str(data), None, {"p": 24})
    assert len(data_record["digest"]) == 64
    assert data_record["ignored_columns"] == ["unused"]
    assert len(record["prompt"]["chat_template_digest"]) == len(record["prompt"]["wordings_digest"]) == 64
    assert record["prompt"]["profile"] == "none"
    scoring = record["scoring"]
    assert (scoring["mode"], scoring["strategy"], scoring["on_overflow"]) == ("exact", "exact", "error")
    assert (scoring["max_length"], scoring["conversations"]) == (1024, 48)
    assert scoring["tolerance"] > 0
    assert scoring["unique_tokens"] < scoring["computed_tokens"]
    assert record["seed"] == 3
    for package in ("pluralbench", "torch", "transformers", "tokenizers"):
        assert record["packages"][package]
    assert record["git"] is None or len(record["git"]["commit"]) == 40
    assert {"python", "platform", "finished", "command"} <= set(record)


def test_the_metrics_follow_from_the_items(score: Callable[..., Run], data: Path) -> None:
    run = score("pairs", data)
    cell = strict(run.path / "metrics.json")["pooled"]
    chosen, rejected = run.items["score_chosen"], run.items["score_rejected"]
    assert (cell["wins"], cell["losses"], cell["ties"]) == (
        (chosen > rejected).sum(),
        (chosen < rejected).sum(),
        (chosen == rejected).sum(),
    )
    assert cell["accuracy"] == pytest.approx((chosen > rejected).mean())
    assert cell["mean_margin"] == pytest.approx((chosen - rejected).mean())
    assert (cell["n"], cell["invalid"], cell["dropped"], cell["equal"], cell["truncated"]) == (24, 0, 0, 0, 0)
    assert strict(run.path / "metrics.json")["items"] == 24
    assert run.record.benchmark.rule == "mean over all items"


def test_a_constant_scorer_has_only_ties_and_no_accuracy(score: Callable[..., Run], constant: str, data: Path) -> None:
    metrics = score("pairs", data, by=constant).metrics
    assert (metrics["pooled"]["ties"], metrics["overall"]["accuracy"]) == (24, 0.0)
    low, high = metrics["overall"]["interval"]
    assert (low, 0.05 < high < 0.2) == (0.0, True)


def test_fast_and_exact_decide_alike(score: Callable[..., Run], data: Path) -> None:
    fast, exact = (score("pairs", data, mode=mode) for mode in ("fast", "exact"))
    clear = fast.items["margin"].abs() > scoring(fast).tolerance
    assert fast.items.filter(clear)["outcome"].to_list() == exact.items.filter(clear)["outcome"].to_list()
    assert scoring(fast).decisions_within_tolerance == 24 - clear.sum()
    assert work(fast).computed_tokens == work(fast).unique_tokens


def test_scores_do_not_move_with_the_batch_size(score: Callable[..., Run], data: Path) -> None:
    whole = score("pairs", data)
    for budget in (1, 40, 200):
        other = score("pairs", data, token_budget=budget)
        assert other.items["outcome"].to_list() == whole.items["outcome"].to_list()
        for column in ("score_chosen", "score_rejected"):
            apart = (other.items[column] - whole.items[column]).abs().max()
            assert apart is not None
            assert float(apart) <= scoring(whole).tolerance  # type: ignore[arg-type]


def test_a_limit_takes_the_first_items_of_each_config(
    score: Callable[..., Run], pairs: Callable[..., Rows], tmp_path: Path
) -> None:
    for config in ("fr", "zh"):
        write(tmp_path / "d" / f"{config}.jsonl", pairs(6))
    run = score("pairs", tmp_path / "d", limit=2)
    assert run.items.select("config", "id").rows() == [("fr", "q0"), ("fr", "q1"), ("zh", "q0"), ("zh", "q1")]
    assert run.record.data.limit == 2


def test_a_run_reads_back_as_it_was(score: Callable[..., Run], data: Path) -> None:
    run = score("pairs", data)
    again = read_run(run.path)
    assert again.items.equals(run.items)
    assert (again.metrics, again.run, again.name) == (run.metrics, run.run, run.name)
    assert isinstance(pl.read_parquet(run.path / "items.parquet"), pl.DataFrame)


def test_texts_of_all_scripts_are_scored(score: Callable[..., Run], tmp_path: Path) -> None:
    texts = ["أحب الشاي", "我喜欢喝“龙井”茶。", "🍵👨‍👩‍👧\u200d", "\u202eright to left\u202c", "a\u2028b\x0bc"]
    rows = [
        {"id": f"ש{n}", "prompt": f"{text}?", "chosen": text, "rejected": f"{text}!"} for n, text in enumerate(texts)
    ]
    run = score("pairs", write(tmp_path / "p.jsonl", rows))
    assert run.items["id"].to_list() == [row["id"] for row in rows]
    assert run.estimate("accuracy", "pooled").n == 5
