"""What a run of `score` leaves: a row for each item, the metrics, and where everything comes from."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import verbs
from pluralbench import load_run
from pluralbench.contract import Group
from pluralbench.reports.runs import details, run_header
from pluralbench.results import Run
from pluralbench.results.evaluations import EvaluationRunConfig, ScoreRunConfig
from verbs import scoring, value, work
from written_tables import TEXTS, write

Rows = list[dict[str, Any]]
FILES = ["items.parquet", "metrics.json", "run.json"]


@pytest.fixture
def data(pairs: Callable[..., Rows], tmp_path: Path) -> Path:
    return write(tmp_path / "p.jsonl", pairs(24, unused="x"))


def alone(rows: Rows) -> list[Group]:
    return [Group(r["id"], [{"role": "user", "content": r["prompt"]}], [r["chosen"], r["rejected"]]) for r in rows]


def scores(run: Run) -> list[tuple[float, float]]:
    return list(run.items.select("score_chosen", "score_rejected").iter_rows())


def strict(path: Path) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def test_scores_belong_to_their_rows_and_are_the_models_own_in_both_modes(
    score: Callable[..., Run], model: str, data: Path, pairs: Callable[..., Rows]
) -> None:
    from reward_models import classifier_alone

    rows = pairs(24)
    fast, exact = (score("pairs", data, by=model, mode=mode, token_budget=150) for mode in ("fast", "exact"))
    theirs = classifier_alone(model, alone(rows))
    for run in (fast, exact):
        assert run.items["id"].to_list() == [row["id"] for row in rows]
        for mine, others in zip(scores(run), theirs, strict=True):
            assert mine == pytest.approx(others, abs=1e-5)
    assert fast.items["outcome"].to_list() == exact.items["outcome"].to_list()
    assert min(map(abs, fast.items["margin"])) > 1e-3, "no decision is close, so that a run this small measures nothing"
    for run in (fast, exact):
        assert (scoring(run).tolerance, scoring(run).decisions_within_tolerance) == (None, None)
        assert "was not measured, since the run is small and no decision is close" in "".join(details([run]).notes)
    assert work(fast).computed_tokens <= work(fast).unique_tokens < work(exact).computed_tokens


def test_implicit_rewards_are_the_difference_of_the_log_probabilities(
    score: Callable[..., Run], language_models: Callable[..., str], data: Path, pairs: Callable[..., Rows]
) -> None:
    from reward_models import implicit_alone

    policy, reference = language_models(0), language_models(1)
    run = score("pairs", data, by=policy, kind="implicit", reference=reference, limit=6)
    for mine, other in zip(scores(run), implicit_alone(policy, alone(pairs(24)[:6]), reference), strict=True):
        assert mine == pytest.approx(other, abs=1e-2)
    recorded = run.result.model
    assert (recorded.kind, recorded.reference) == ("implicit", reference)
    assert recorded.digest != recorded.reference_digest is not None


def test_a_run_of_a_model_says_where_its_numbers_come_from(score: Callable[..., Run], model: str, data: Path) -> None:
    run = score("pairs", data, by=model, mode="exact", dtype="float32")
    assert sorted(path.name for path in run.path.iterdir()) == FILES
    assert not run.path.with_name(run.path.name + ".work").exists()
    config, made = run.config, run.result.model
    assert isinstance(config, ScoreRunConfig)
    assert (made.name, made.kind, len(made.digest or "")) == (model, "classifier", 64)
    assert (made.device, made.dtype, made.architecture) == ("cpu", "float32", "LlamaForSequenceClassification")
    assert (run.verb, config.benchmark.name, config.prompt.profile) == ("score", "pairs", "none")
    assert (config.data.location, config.data.revision, config.data.rows) == (str(data), None, {"p": 24})
    assert (len(config.data.digest), config.data.ignored_columns) == (64, ("unused",))
    assert len(made.chat_template_digest or "") == len(config.prompt.wordings_digest or "") == 64
    assert (config.scoring.mode, config.scoring.on_overflow, work(run).strategy) == ("exact", "error", "exact")
    assert (work(run).max_length, work(run).conversations) == (1024, 48)
    for package in ("pluralbench", "pluralbench-local", "torch", "transformers", "tokenizers"):
        assert run.provenance.packages[package]
    assert run.provenance.git is None or len(run.provenance.git.commit) == 40


def test_a_pair_is_a_row_and_a_ranking_a_row_for_each_response(
    score: Callable[..., Run], data: Path, tmp_path: Path
) -> None:
    items = score("pairs", data).items
    for column in ("config", "id", "score_chosen", "score_rejected", "truncated"):
        assert items[column].null_count() == 0
    assert (items.height, items["truncated"].any()) == (24, False)
    row = {"id": "a", "prompt": "a quiet hobby", "responses": ["origami", "drumming", "x"], "rank": [2, 1, 2]}
    ranked = score("rankings", write(tmp_path / "r.jsonl", [row])).items
    for column in ("config", "id", "response", "rank", "score", "truncated"):
        assert ranked[column].null_count() == 0
    assert ranked.height == 3


def test_the_metrics_follow_from_the_items(score: Callable[..., Run], data: Path) -> None:
    run = score("pairs", data)
    chosen, rejected = run.items["score_chosen"], run.items["score_rejected"]
    assert (run.count("wins"), run.count("losses")) == ((chosen > rejected).sum(), (chosen < rejected).sum())
    assert value(run, "pooled_accuracy") == pytest.approx((chosen > rejected).mean())
    assert value(run, "mean_margin") == pytest.approx((chosen - rejected).mean())
    assert run.estimate("pooled_accuracy").n == run.count("items") == 24
    assert [run.count(what) for what in ("ties", "invalid", "dropped", "equal", "truncated")] == [0] * 5
    assert run.config.benchmark.rule == "mean over all items"
    assert {row.get("config") for row in strict(run.path / "metrics.json")["rows"]} == {None, *run.configs}


def test_a_constant_scorer_has_only_ties_and_no_accuracy(score: Callable[..., Run], data: Path) -> None:
    run = score("pairs", data, by=lambda groups: [[1.0, 1.0] for _ in groups])
    assert (run.count("ties"), run.headline.value, run.headline.low) == (24, 0.0, 0.0)
    assert 0.05 < (run.headline.high or 0) < 0.2


def test_a_run_reads_back_as_it_was_and_shows_a_table(score: Callable[..., Run], data: Path) -> None:
    run = score("pairs", data)
    again = load_run(run.path, EvaluationRunConfig)
    assert again.items.equals(run.items)
    assert again.metrics.equals(run.metrics)
    assert (again.config, again.result, again.name) == (run.config, run.result, run.name)
    assert "by_text on Pairs" in again._repr_html_()


def test_texts_of_all_scripts_are_scored(score: Callable[..., Run], tmp_path: Path) -> None:
    texts = [*TEXTS, "\u202eright to left\u202c", "a\u2028b\x0bc"]
    rows = [
        {"id": f"ש{n}", "prompt": f"{text}?", "chosen": text, "rejected": f"{text}!"} for n, text in enumerate(texts)
    ]
    seen: list[Group] = []

    def shorter(groups: Sequence[Group]) -> list[list[float]]:
        seen.extend(groups)
        return [[-float(len(response)) for response in group.responses] for group in groups]

    run = score("pairs", write(tmp_path / "p.jsonl", rows), by=shorter)
    assert run.items["id"].to_list() == [row["id"] for row in rows]
    assert [list(group.responses) for group in seen] == [[row["chosen"], row["rejected"]] for row in rows]
    assert run.headline.value == 1.0


def test_an_ignored_column_without_a_name_is_named_as_such(tmp_path: Path) -> None:
    """Such as the index of pandas."""
    (tmp_path / "p.csv").write_text(",id,prompt,chosen,rejected,note\n0,a,q?,yes,no,x\n", encoding="utf-8")
    run = verbs.score(verbs.by_length, benchmark="pairs", data=tmp_path / "p.csv", out=tmp_path / "run")
    assert run.config.data.ignored_columns == ("", "note")
    assert "Ignored columns: one without a name, note." in run_header(run)
