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
from pluralbench.config import JudgeConfig
from pluralbench.data.votes import SIDES, verdict
from pluralbench.leaderboard.checks import check_submission
from pluralbench.reports.notes import notes
from pluralbench.reports.sheets import sheets_of
from pluralbench.results import Run
from pluralbench.results.evaluations import JudgeRunConfig
from pluralbench_calls import CallsError
from pluralbench_runs.errors import ConfigError
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


def position(run: Run, *metrics: str) -> Any:
    """What the verdicts owe to the order: a number, or several."""
    found = tuple(value(run, metric) for metric in metrics)
    return found if len(found) > 1 else found[0]


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


@pytest.mark.parametrize(
    "how", [{"orders": "both"}, pytest.param({"orders": "one"}, marks=pytest.mark.heavy), {"protocol": "pointwise"}]
)
def test_a_judge_that_knows_what_is_right_gets_all_of_it(data: Path, tmp_path: Path, how: dict[str, Any]) -> None:
    run, requests = judged(prefers("right"), data, tmp_path / "run", **how)
    assert run.headline.value == 1.0
    assert (run.headline.low or 1) < 0.9, "sixteen right verdicts are no certainty"
    assert len(requests) == (16 if how.get("orders") == "one" else 32)
    assert judging(run).calls == len(requests)
    if how == {"orders": "both"}:
        assert position(run, "share_of_first", "position_bias", "changed_with_the_order") == (0.5, 0.0, 0)
    assert run.items["id"].to_list() == [f"q{place}" for place in range(16)]


def test_a_judge_that_always_chooses_the_first_gets_nothing(data: Path, tmp_path: Path) -> None:
    run, _ = judged(says("[[A]]"), data, tmp_path / "run")
    assert set(run.items["verdict"]) == {"tie"}
    assert (run.count("ties"), run.headline.value) == (16, 0.0)
    assert position(run, "share_of_first") == 1.0
    assert position(run, "accuracy_chosen_first", "accuracy_chosen_second", "position_bias") == (1.0, 0.0, 1.0)
    assert position(run, "asked_in_both_orders", "changed_with_the_order", "verdicts") == (16, 16, 32)


def test_further_fields_of_requests_are_sent_and_recorded(data: Path, tmp_path: Path) -> None:
    extra = {"reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": False}}
    plain, asked = judged(prefers("right"), data, tmp_path / "plain", limit=2, concurrency=1)
    run, requests = judged(prefers("right"), data, tmp_path / "run", limit=2, concurrency=1, extra=extra)
    assert requests == [body | extra for body in asked]
    assert isinstance(run.config, JudgeRunConfig)
    assert (run.config.judging.extra, run.config.model.extra) == (extra, extra)
    assert not {key for calls in run.items[SIDES[0][1]] for key in calls} & {
        key for calls in plain.items[SIDES[0][1]] for key in calls
    }, "another request is another call"
    assert check_submission(run).accepted


@pytest.mark.parametrize("field", ["messages", "temperature", "n"])
def test_a_field_that_the_program_sets_is_refused_by_name(field: str) -> None:
    with pytest.raises(ConfigError, match=f"`{field}` is set by the program"):
        JudgeConfig(extra={field: 1})


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


@pytest.mark.heavy
def test_one_order_is_drawn_by_the_seed_for_each_item_by_itself(data: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in data.read_text(encoding="utf-8").splitlines()]
    rows = [
        row | {"id": f"{row['id']}/{copy}", "prompt": f"{row['prompt']} {copy}"} for copy in range(3) for row in rows
    ]
    whole = write(tmp_path / "whole/p.jsonl", rows)
    fewer = write(tmp_path / "fewer/p.jsonl", [*rows[7:30], rows[2]])
    first, again, less, other = (
        orders(judged(says("[[A]]"), table, tmp_path / f"run{number}", orders="one", seed=seed)[1])
        for number, (table, seed) in enumerate([(whole, 0), (whole, 0), (fewer, 0), (fewer, 1)])
    )
    assert len(first) == 48
    assert first == again
    assert less.items() <= first.items(), "another row changes no row's order"
    assert other != less
    assert 14 <= sum(first.values()) <= 34, "about half of them"


def test_one_order_says_how_the_accuracy_depends_on_the_place(data: Path, tmp_path: Path) -> None:
    run, requests = judged(says("[[A]]"), data, tmp_path / "run", orders="one")
    first = sum("right" in shown(body)[0] for body in requests)
    assert run.count("wins") == first
    assert run.count("losses") == 16 - first
    assert position(run, "position_bias", "asked_in_both_orders") == (1.0, 0)
    assert run.config.judge_setting("orders") == "one"


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
    assert verdict({name: said for (name, _), said in zip(SIDES, verdicts, strict=True)})[0] == means


def test_a_reply_that_cannot_be_parsed_is_asked_again_and_then_invalid_never_the_first(
    data: Path, tmp_path: Path
) -> None:
    hows: list[dict[str, Any]] = [{"orders": "one"}, {"protocol": "pointwise"}]
    for number, options in enumerate(hows):
        run, requests = judged(says("A is better, I mean."), data, tmp_path / f"run{number}", limit=3, **options)
        assert len(requests) == 3 * 4 * (1 + number)
        assert run.count("invalid") == run.estimate("pooled_accuracy").n == 3
        assert (run.headline.value, run.count("wins")) == (None, 0)
        assert run.items.filter(outcome="invalid")["id"].to_list() == ["q0", "q1", "q2"]
        assert sum(judging(run).invalid_reasons.values()) == 3 * (1 + number)
        for name in ("metrics.json", "run.json"):
            assert "NaN" not in (run.path / name).read_text(encoding="utf-8")


def in_a_sentence(body: dict[str, Any], _: int) -> Reply:
    """A judge that knows what is right, and says so in different ways."""
    right = "A" if "right" in shown(body)[0] else "B"
    number = int(re.findall(r" (\d+) right", str(body))[0])
    if number < 4:
        return Reply(f"[[{right}]]")
    if number < 10:
        return Reply(f"So the better answer is [[{right}]].")
    return Reply("[[A]] has more, [[B]] is shorter.") if number < 15 else Reply("I cannot say.")


def test_a_run_counts_what_each_rule_reads_and_gives_the_count_of_m_rewardbench(data: Path, tmp_path: Path) -> None:
    for rule, counts in (("lenient", (10, 6)), ("strict", (4, 12))):
        run, _ = judged(in_a_sentence, data, tmp_path / rule, attempts=1, verdict_parsing=rule)
        assert (run.count("wins"), run.count("invalid")) == counts
        assert judging(run).readings == {"strict": 8, "lenient": 20, "legacy": 30}
        # Its code takes a reply with both markers for A, which is right in one of each two orders.
        expected = (20 + 5 + 2 * 0.5) / 32
        assert value(run, "accuracy_with_invalid_as_half") == pytest.approx(expected)
        assert run.estimate("accuracy_with_invalid_as_half").n == 32


def test_the_criterion_is_in_the_question(data: Path, tmp_path: Path) -> None:
    asked = [judged(says("[[A]]"), data, tmp_path / one, limit=1, criterion=one)[1][0] for one in ("quality", "person")]
    assert asked[0]["messages"] != asked[1]["messages"]


def test_an_invalid_verdict_is_no_half_point_and_no_part_of_the_share(data: Path, tmp_path: Path) -> None:
    def reply(body: dict[str, Any], _: int) -> Reply:
        return Reply("no idea") if " 0 right" in str(body) else prefers("right")(body, 0)

    run, _ = judged(reply, data, tmp_path / "run", attempts=2)
    assert (run.count("invalid"), run.count("wins")) == (1, 15)
    assert run.headline.value == pytest.approx(15 / 16)
    assert position(run, "invalid_verdicts", "share_of_first") == (2, 0.5)
    row = run.items.filter(verdict="invalid").row(0, named=True)
    assert (row["id"], row["attempts"], bool(row["reason"])) == ("q0", 4, True)


@pytest.mark.heavy
def test_each_verdict_names_the_calls_that_it_rests_on(data: Path, tmp_path: Path) -> None:
    def reply(body: dict[str, Any], _: int) -> Reply:
        about_the_first = any(re.search(r" 0( right|!)$", text) for text in shown(body))
        return Reply(f"{' | '.join(shown(body))}: {'who knows' if about_the_first else prefers('right')(body, 0).text}")

    hows: list[dict[str, Any]] = [{"orders": "both"}, {"orders": "one"}, {"protocol": "pointwise"}]
    for number, options in enumerate(hows):
        run, _ = judged(reply, data, tmp_path / f"run{number}", attempts=3, limit=4, **options)
        replies = dict(pl.read_parquet(run.path / "ledger.parquet").select("key", "text").iter_rows())
        columns = [name for name in run.items.columns if name.startswith("calls_")]
        keys = {key for name in columns for calls in run.items[name].drop_nulls() for key in calls}
        assert keys == replies.keys(), "every call is of a verdict"
        for place, row in enumerate(run.items.iter_rows(named=True)):
            for name in columns:
                tries = [replies[key] for key in row[name] or []]
                # The side that stands first in the reply is the one that the column names.
                assert all((" right" in said.split(" | ")[0]) == ("_chosen" in name) for said in tries)
                if tries:
                    assert len(tries) == (3 if place == 0 else 1)


def test_ratings_that_are_equal_are_ties(data: Path, tmp_path: Path) -> None:
    run, _ = judged(says("Rating: [[7]]"), data, tmp_path / "run", protocol="pointwise")
    assert run.count("ties") == 16
    assert run.items["score_chosen"].to_list() == [7.0] * 16
    assert "position_bias" not in run.metrics["metric"]
    assert run.config.judge_setting("orders") is None


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
    run, requests = judged(
        lambda *_: Reply("[[B]]", cached=4), data, tmp_path / "run", temperature=0.3, top_p=0.9, max_tokens=99, seed=4
    )
    names = sorted(path.name for path in run.path.iterdir())
    assert names == ["items.parquet", "ledger.parquet", "metrics.json", "run.json"]
    assert not (tmp_path / "run.work").exists()
    assert pl.read_parquet(run.path / "ledger.parquet").height == len(requests) == 32
    result, config = judging(run), run.config
    assert isinstance(config, JudgeRunConfig)
    assert (result.calls, result.prompt_tokens, result.completion_tokens, result.cached_tokens) == (32, 320, 160, 128)
    assert [config.judge_setting(name) for name in ("temperature", "top_p", "max_tokens", "attempts")] == [
        0.3,
        0.9,
        99,
        4,
    ]
    assert (run.result.model.name, run.result.model.kind) == ("judge-1", "generative")
    assert (config.seed, len(config.prompts_digest), len(config.data.digest)) == (4, 64, 64)
    for column in ("config", "id", "verdict", "verdict_chosen_first", "verdict_rejected_first", "attempts"):
        assert column in run.items.columns


def told(run: Run) -> str:
    """The notes of a run's report."""
    return " ".join(notes(sheets_of([run])))


@pytest.mark.heavy
def test_a_call_that_always_fails_is_counted_and_sent_again_by_the_same_command(data: Path, tmp_path: Path) -> None:
    def poisoned(body: dict[str, Any], number: int) -> Reply:
        fails = " 7 right" in body["messages"][-1]["content"]
        return Reply("out of memory", status=500) if fails else prefers("right")(body, number)

    def judge_all(script: Script) -> tuple[Run, int]:
        run, requests = judged(script, data, tmp_path / "run", max_retries=0)
        return run, len(requests)

    (run, sent), (again, sent_again) = judge_all(poisoned), judge_all(poisoned)
    assert (sent, sent_again) == (32, 2)
    assert run.metrics.equals(again.metrics)
    assert (run.items["outcome"].to_list().count("invalid"), judging(run).failed_calls) == (1, 2)
    assert judging(run).invalid_reasons == {"not answered by the server": 1}
    assert check_submission(run).accepted
    assert "not answer, which count as invalid; the same command sends them again: 2 of 32." in told(run)
    (mended, sent), (_, sent_again) = judge_all(prefers("right")), judge_all(prefers("right"))
    assert (sent, sent_again) == (2, 0)
    assert (value(mended, "overall"), judging(mended).failed_calls, judging(mended).calls) == (1.0, 0, 32)
    assert mended.result.cost is not None
    assert run.result.cost is not None
    assert mended.result.cost.seconds > run.result.cost.seconds
    assert check_submission(mended).accepted


def test_a_server_without_token_counts_is_named_and_charged_the_maximum_in_each_command(
    data: Path, tmp_path: Path
) -> None:
    """The next commands begin with what the earlier ones spent."""
    sent = []
    for _ in range(3):
        with serve(lambda *_: Reply("[[A]]", tokens=(0, 0))) as server:
            with pytest.raises(CallsError, match="ceiling"):
                verbs.judge(
                    "judge-1", benchmark="pairs", data=str(data), base_url=server.base_url, out=tmp_path / "run",
                    price="1/2", max_cost=0.02, max_tokens=99,
                )  # fmt: skip
            sent.append(len(server.requests))
    assert sent[0] > 0
    assert sum(sent[1:]) <= 1
    run, _ = judged(lambda *_: Reply("[[A]]", tokens=(0, 0)), data, tmp_path / "run", max_tokens=99)
    assert "Calls without token counts, whose cost is not known: 32 of 32." in told(run)


def about(section: str, request: dict[str, Any]) -> str:
    """What a section of a request says; "" where there is none."""
    found = re.search(rf"<{section}>\n(.*?)\n</{section}>", request["messages"][-1]["content"], re.DOTALL)
    return found[1] if found else ""


@pytest.mark.heavy
def test_the_language_has_a_place_of_its_own_and_says_nothing_about_the_person(
    pairs: Callable[..., Rows], tmp_path: Path
) -> None:
    rows = [row | {"source": "hep-go" if number else "mt-bench-easy"} for number, row in enumerate(pairs(2))]
    for config in ("spa_Latn", "eng_Latn"):
        write(tmp_path / "d" / f"{config}.jsonl", rows)
    for number, how in enumerate(({}, {"protocol": "pointwise"})):
        reply = says("[[5]]" if how else "[[A]]")
        _, requests = judged(reply, tmp_path / "d", tmp_path / f"run{number}", benchmark="multilingual", **how)
        told = {about("language", request) for request in requests}
        assert told == {
            "The question is in Spanish, and the answer should be in Spanish.",
            "The question is in Spanish, and the answer should be in English.",
            "The question is in English, and the answer should be in English.",
        }
        for request in requests:
            system, user = (message["content"] for message in request["messages"])
            assert "about_the_person" not in user
            assert "one point among others" in system
            assert "helpful, relevant, correct and complete" in system
    plain, requests = judged(says("[[A]]"), write(tmp_path / "p.jsonl", pairs(2)), tmp_path / "plain")
    assert plain.config.judge_setting("answer_language") is None
    assert not [request for request in requests if "language" in str(request)]
