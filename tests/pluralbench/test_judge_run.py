"""What a run of `judge` asks, in which order, and what becomes of the verdicts."""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import verbs
from chat_server import Reply, Script, serve
from pluralbench import Run
from pluralbench.evaluation.judge import verdict
from verbs import judging, value
from written_tables import TEXTS, write

Rows = list[dict[str, Any]]
SHOWN = re.compile(r"<(response(?:_[ab])?)>\n(.*?)\n</\1>", re.DOTALL)


def shown(body: dict[str, Any]) -> list[str]:
    """The responses that a request shows, in order."""
    return [text for _, text in SHOWN.findall(body["messages"][-1]["content"])]


def judged(
    script: Script, data: Path, out: Path, *, benchmark: str = "pairs", **options: Any
) -> tuple[Run, list[dict[str, Any]]]:
    """A judge's run and the requests that it made."""
    with serve(script) as server:
        run = verbs.judge("judge-1", benchmark=benchmark, data=str(data), base_url=server.base_url, out=out, **options)
        return run, server.requests


def says(text: str) -> Script:
    return lambda *_: Reply(text)


def prefers(word: str) -> Script:
    """A judge that chooses the response with this word, wherever it is, and rates it high."""

    def reply(body: dict[str, Any], _: int) -> Reply:
        responses = shown(body)
        if len(responses) == 1:
            return Reply("[[9]]" if word in responses[0] else "[[2]]")
        assert (word in responses[0]) != (word in responses[1])
        return Reply(f"Because.\n[[{'A' if word in responses[0] else 'B'}]]")

    return reply


@pytest.fixture
def data(pairs: Callable[..., Rows], tmp_path: Path) -> Path:
    rows = pairs(16)
    for row in rows:
        row["chosen"] += " right"
    return write(tmp_path / "p.jsonl", rows)


@pytest.mark.parametrize("how", [{"orders": "both"}, {"orders": "one"}, {"pointwise": True}])
def test_a_judge_that_knows_what_is_right_gets_all_of_it(data: Path, tmp_path: Path, how: dict[str, Any]) -> None:
    run, requests = judged(prefers("right"), data, tmp_path / "run", **how)
    assert run.headline.value == 1.0
    assert (run.headline.low or 1) < 0.9, "sixteen right verdicts are no certainty"
    assert len(requests) == (16 if how.get("orders") == "one" else 32)
    assert judging(run).calls == len(requests)
    assert run.items["id"].to_list() == [f"q{place}" for place in range(16)]


def test_a_judge_that_always_chooses_the_first_gets_nothing(data: Path, tmp_path: Path) -> None:
    run, _ = judged(says("[[A]]"), data, tmp_path / "run")
    assert set(run.items["verdict"]) == {"tie"}
    assert (run.count("ties"), run.headline.value) == (16, 0.0)
    bias = run.metrics["position"]
    assert bias["share_of_first"] == 1.0
    assert (bias["accuracy_chosen_first"], bias["accuracy_chosen_second"], bias["position_bias"]) == (1.0, 0.0, 1.0)
    assert (bias["asked_in_both_orders"], bias["changed_with_the_order"], bias["verdicts"]) == (16, 16, 32)


def test_a_judge_that_is_not_moved_by_the_order_has_no_bias(data: Path, tmp_path: Path) -> None:
    run, _ = judged(prefers("right"), data, tmp_path / "run")
    bias = run.metrics["position"]
    assert (bias["share_of_first"], bias["position_bias"], bias["changed_with_the_order"]) == (0.5, 0.0, 0)


def test_both_orders_are_asked_about_with_both_texts_in_one_prompt(data: Path, tmp_path: Path) -> None:
    _, requests = judged(says("[[B]]"), data, tmp_path / "run")
    rows = [json.loads(line) for line in data.read_text(encoding="utf-8").splitlines()]
    asked = Counter(tuple(shown(body)) for body in requests)
    expected = [(row["chosen"], row["rejected"]) for row in rows] + [(row["rejected"], row["chosen"]) for row in rows]
    assert asked == Counter(expected)


def orders(requests: list[dict[str, Any]]) -> dict[str, bool]:
    """By the question, whether the chosen response came first."""
    texts = [body["messages"][-1]["content"] for body in requests]
    return {text.split("</question>")[0]: "right" in shown(body)[0] for text, body in zip(texts, requests, strict=True)}


def test_one_order_is_drawn_by_the_seed_for_each_item_by_itself(data: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in data.read_text(encoding="utf-8").splitlines()]
    rows = [
        row | {"id": f"{row['id']}/{copy}", "prompt": f"{row['prompt']} {copy}"} for copy in range(3) for row in rows
    ]
    whole = write(tmp_path / "whole/p.jsonl", rows)
    fewer = write(tmp_path / "fewer/p.jsonl", [*rows[7:40], rows[2]])
    first, again, less, other = (
        orders(judged(says("[[A]]"), table, tmp_path / f"run{number}", orders="one", seed=seed)[1])
        for number, (table, seed) in enumerate([(whole, 0), (whole, 0), (fewer, 0), (whole, 1)])
    )
    assert len(first) == 48
    assert first == again
    assert less.items() <= first.items(), "another row changes no row's order"
    assert other != first
    assert 14 <= sum(first.values()) <= 34, "about half of them"


def test_one_order_says_how_the_accuracy_depends_on_the_place(data: Path, tmp_path: Path) -> None:
    run, requests = judged(says("[[A]]"), data, tmp_path / "run", orders="one")
    first = sum("right" in shown(body)[0] for body in requests)
    assert run.count("wins") == first
    assert run.count("losses") == 16 - first
    assert value(run, "position_bias", "position") == 1.0
    assert value(run, "asked_in_both_orders", "position") == 0
    assert judging(run).orders == "one"


@pytest.mark.parametrize(
    ("verdicts", "means"),
    [
        (("A", "B"), "chosen"),
        (("B", "A"), "rejected"),
        (("A", "A"), "tie"),
        (("B", "B"), "tie"),
        (("A", "invalid"), "invalid"),
        (("invalid", "A"), "invalid"),
        (("invalid", "invalid"), "invalid"),
        (("A", None), "chosen"),
        (("B", None), "rejected"),
        ((None, "A"), "rejected"),
        ((None, "B"), "chosen"),
        (("invalid", None), "invalid"),
        ((None, "invalid"), "invalid"),
    ],
)
def test_what_the_verdicts_in_the_orders_asked_amount_to(verdicts: tuple[str | None, str | None], means: str) -> None:
    assert verdict(*verdicts) == means


def test_a_reply_that_cannot_be_parsed_is_asked_again_and_then_invalid_never_the_first(
    data: Path, tmp_path: Path
) -> None:
    hows: list[dict[str, Any]] = [{"orders": "one"}, {"pointwise": True}]
    for number, options in enumerate(hows):
        run, requests = judged(says("A is better: [[A]] I mean."), data, tmp_path / f"run{number}", limit=3, **options)
        assert len(requests) == 3 * 4 * (1 + number)
        assert run.count("invalid") == run.estimate("accuracy", "pooled").n == 3
        assert (run.headline.value, run.count("wins")) == (0.0, 0)
        assert run.metrics["pooled"]["ids"]["invalid"] == ["q0", "q1", "q2"]
        assert sum(judging(run).invalid_reasons.values()) == 3 * (1 + number)
        for name in ("metrics.json", "run.json"):
            assert "NaN" not in (run.path / name).read_text(encoding="utf-8")


def test_an_invalid_verdict_is_no_half_point_and_no_part_of_the_share(data: Path, tmp_path: Path) -> None:
    def reply(body: dict[str, Any], _: int) -> Reply:
        return Reply("no idea") if " 0 right" in str(body) else prefers("right")(body, 0)

    run, _ = judged(reply, data, tmp_path / "run", attempts=2)
    assert (run.count("invalid"), run.count("wins")) == (1, 15)
    assert run.headline.value == pytest.approx(15 / 16)
    assert value(run, "invalid_verdicts", "position") == 2
    assert value(run, "share_of_first", "position") == 0.5
    row = run.items.filter(verdict="invalid").row(0, named=True)
    assert (row["id"], row["attempts"], bool(row["reason"])) == ("q0", 4, True)


def test_ratings_that_are_equal_are_ties(data: Path, tmp_path: Path) -> None:
    run, _ = judged(says("Rating: [[7]]"), data, tmp_path / "run", pointwise=True)
    assert run.count("ties") == 16
    assert run.items["score_chosen"].to_list() == [7.0] * 16
    assert "position" not in run.metrics


def test_rankings_are_judged_pair_by_pair(tmp_path: Path) -> None:
    row = {"id": "a", "prompt": "?", "responses": ["x1", "x2 right", "x3"], "rank": [2, 1, 2]}
    run, requests = judged(prefers("right"), write(tmp_path / "r.jsonl", [row]), tmp_path / "run", benchmark="rankings")
    assert len(requests) == 4
    assert run.items.select("chosen", "rejected", "verdict").rows() == [("1", "0", "chosen"), ("1", "2", "chosen")]
    assert run.headline.clusters == 1


def test_texts_of_all_scripts_are_judged(tmp_path: Path) -> None:
    rows = [
        {"id": f"ש{n}", "prompt": f"{text}?", "chosen": f"{text} نعم 好", "rejected": f"{text} لا 🎈 {{text}}"}
        for n, text in enumerate(TEXTS)
    ]
    run, requests = judged(prefers("نعم"), write(tmp_path / "p.jsonl", rows), tmp_path / "run")
    assert run.count("wins") == len(TEXTS)
    assert {tuple(sorted(shown(body))) for body in requests} == {
        tuple(sorted((row["chosen"], row["rejected"]))) for row in rows
    }


def test_a_run_keeps_its_calls_and_says_what_they_took(data: Path, tmp_path: Path) -> None:
    run, requests = judged(says("[[B]]"), data, tmp_path / "run", temperature=0.3, top_p=0.9, max_tokens=99, seed=4)
    names = sorted(path.name for path in run.path.iterdir())
    assert names == ["items.parquet", "ledger.parquet", "metrics.json", "run.json", "settings.toml"]
    assert not (tmp_path / "run.work").exists()
    assert pl.read_parquet(run.path / "ledger.parquet").height == len(requests) == 32
    judged_so = judging(run)
    assert (judging["calls"], judging["prompt_tokens"], judging["completion_tokens"]) == (32, 320, 160)
    assert (judging["temperature"], judging["top_p"], judging["max_tokens"], judging["attempts"]) == (0.3, 0.9, 99, 4)
    assert (run.record.model.name, run.record.model.kind) == ("judge-1", "generative")
    assert run.record.bootstrap.seed == 4
    assert len(run.record.prompt.prompts_digest) == 64
    assert run.record.data.digest
    for column in ("config", "id", "verdict", "verdict_chosen_first", "verdict_rejected_first", "attempts"):
        assert column in run.items.columns
