"""Judges that pick the best of a list: what they are asked, what is recorded, and what a pick is worth."""

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import verbs
from chat_server import Reply, Script, serve
from html_runs import Read
from made_runs import by
from pluralbench import merge
from pluralbench.data.decisions import decisions_of
from pluralbench.errors import EvaluationError
from pluralbench.leaderboard.checks import check_submission
from pluralbench.results import Run
from pluralbench_calls import CallsError
from rendered import render
from verbs import judging, value
from written_tables import write

Command = Callable[..., tuple[int, str, str]]
SHOWN = re.compile(r"<response(?:_\d+)?>\n(.*?)\n</response", re.DOTALL)


def shown(body: dict[str, Any]) -> list[str]:
    """The responses that a request shows, in order."""
    return SHOWN.findall(body["messages"][-1]["content"])


def items(count: int, responses: int = 4) -> list[dict[str, Any]]:
    """Items with one right response, at position `number % responses`."""
    return [
        {
            "id": f"q{number}",
            "prompt": f"Question {number}?",
            "responses": [
                f"{number}.{place} {'right' if place == number % responses else 'wrong'} 好"
                for place in range(responses)
            ],
            "rank": [1 if place == number % responses else 2 for place in range(responses)],
        }
        for number in range(count)
    ]


def several_right(count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"t{n}",
            "prompt": f"Tie {n}?",
            "responses": [f"{n} right a", f"{n} right b", f"{n} no"],
            "rank": [1, 1, 2],
        }
        for n in range(count)
    ]


def picks(word: str) -> Script:
    """A judge that picks the response with this word, and rates it high."""

    def reply(body: dict[str, Any], _: int) -> Reply:
        responses = shown(body)
        if len(responses) == 1:
            return Reply("[[9]]" if word in responses[0] else "[[2]]")
        return Reply(f"Because.\n[[{next(n for n, text in enumerate(responses, 1) if word in text)}]]")

    return reply


def judged(script: Script, data: Path, out: Path, **options: Any) -> tuple[Run, list[dict[str, Any]]]:
    with serve(script) as server:
        options = {"benchmark": "rankings", "protocol": "listwise"} | options
        run = verbs.judge("judge-1", data=str(data), base_url=server.base_url, out=out, **options)
        return run, server.requests


def position(run: Run, *metrics: str) -> list[float]:
    return [value(run, metric) for metric in metrics]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "r.jsonl", items(12))


def test_a_right_pick_beats_every_wrong_response_in_one_call(data: Path, tmp_path: Path) -> None:
    run, requests = judged(picks("right"), data, tmp_path / "run")
    assert (len(requests), judging(run).calls) == (12, 12)
    assert (run.headline.value, run.count("wins"), run.count("ties")) == (1.0, 36, 0)
    for row in run.items.iter_rows(named=True):
        assert (row["score"], row["outcome"]) == (float(row["rank"] == 1), "scored")
    assert run.config.judge_setting("orders") is None


def test_a_wrong_pick_loses_to_the_picked_response_and_ties_with_the_others(tmp_path: Path) -> None:
    row = {"id": "a", "prompt": "?", "responses": ["best", "middle", "x"], "rank": [1, 2, 2]}
    run, _ = judged(picks("middle"), write(tmp_path / "r.jsonl", [row]), tmp_path / "run")
    decisions = decisions_of(run.items)
    assert decisions.select("chosen", "rejected", "outcome").rows() == [("0", "1", "loss"), ("0", "2", "tie")]
    assert run.headline.value == 0.0


@pytest.mark.heavy
def test_positions_are_drawn_by_the_seed_recorded_and_shown(data: Path, tmp_path: Path) -> None:
    run, requests = judged(picks("right"), data, tmp_path / "run")
    by_question = {re.findall(r"Question \d+", str(body))[0]: shown(body) for body in requests}
    rows = [json.loads(line) for line in data.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        own = run.items.filter(id=row["id"]).sort("position")
        assert own["position"].to_list() == [1, 2, 3, 4]
        assert [row["responses"][int(name)] for name in own["response"]] == by_question[row["prompt"][:-1]]
    right = Counter(run.items.filter(rank=1)["position"])
    assert len(right) >= 3, "the right response is everywhere"
    fewer, _ = judged(picks("right"), write(tmp_path / "fewer" / "r.jsonl", rows[3:7]), tmp_path / "less")
    other, _ = judged(picks("right"), data, tmp_path / "other", seed=1)
    columns = ["id", "response", "position"]
    kept = run.items.filter(pl.col("id").is_in(fewer.items["id"].unique().to_list()))
    assert kept.select(columns).equals(fewer.items.select(columns)), "another row changes no row's order"
    assert not run.items.select(columns).equals(other.items.select(columns))


@pytest.mark.parametrize("text", ["They are all good.", "[[1]] and [[2]] are equal.", "[[5]]", "[[A]]"])
def test_an_invalid_pick_never_wins_and_is_counted(data: Path, tmp_path: Path, text: str) -> None:
    def reply(body: dict[str, Any], number: int) -> Reply:
        return Reply(text) if "Question 3?" in str(body) else picks("right")(body, number)

    run, requests = judged(reply, data, tmp_path / "run", attempts=2)
    assert len(requests) == 13
    assert (run.count("wins"), run.count("invalid")) == (33, 3)
    assert run.headline.value == pytest.approx(11 / 12)
    own = run.items.filter(id="q3")
    assert set(own["outcome"]) == {"invalid"}
    assert all(len(calls) == 2 for calls in own["calls"])
    assert sum(judging(run).invalid_reasons.values()) == 1
    assert position(run, "picks", "invalid_picks") == [12, 1]
    assert "NaN" not in (run.path / "run.json").read_text(encoding="utf-8")


def test_pairwise_asks_about_the_right_response_against_each_wrong_one(tmp_path: Path) -> None:
    data = write(tmp_path / "r.jsonl", items(2, 32))
    for orders, calls in (("one", 31), ("both", 62)):
        run, requests = judged(
            lambda body, _: Reply(f"[[{'AB'['right' in body['messages'][-1]['content'].split('<response_b>')[1]]}]]"),
            data,
            tmp_path / orders,
            protocol="pairwise",
            orders=orders,
        )
        assert len(requests) == 2 * calls
        assert run.headline.value == 1.0
        verdicts = run.items.select("verdict_chosen_first", "verdict_rejected_first").rows()
        assert all((None in pair) == (orders == "one") for pair in verdicts)
        assert run.items["rejected"].n_unique() == 32
    assert {("A", None), (None, "B")} >= set(judged_orders(tmp_path / "one"))


def judged_orders(path: Path) -> list[tuple[str | None, str | None]]:
    return pl.read_parquet(path / "items.parquet").select("verdict_chosen_first", "verdict_rejected_first").rows()


def test_a_subset_with_several_right_responses_is_rated(tmp_path: Path) -> None:
    rows = [row | {"kind": "one"} for row in items(4)] + [row | {"kind": "several"} for row in several_right(3)]
    rows.append(items(5)[4] | {"kind": "several"})
    data = write(tmp_path / "r.jsonl", rows)
    run, requests = judged(picks("right"), data, tmp_path / "run", columns=("subset=kind",))
    assert len(requests) == 4 + 3 * 3 + 4
    assert position(run, "picks", "rated") == [4, 4]
    rated = run.items.filter(subset="several")
    assert rated["position"].null_count() == rated.height
    assert set(rated["score"]) == {2.0, 9.0}
    assert run.items["id"].unique(maintain_order=True).to_list() == [row["id"] for row in rows]
    assert run.headline.value == 1.0


@pytest.mark.parametrize(
    ("benchmark", "rows", "problem"),
    [
        ("rankings", several_right(2), "no subset of .* has one best response per item"),
        ("rankings", [{"id": "a", "prompt": "?", "responses": ["x", "y", "z"], "rank": [1, 2, 3]}], "no subset of"),
        ("pairs", [{"id": "a", "prompt": "?", "chosen": "x", "rejected": "y"}], "has pairs, which"),
    ],
)
def test_items_that_a_pick_cannot_rank_are_refused(
    tmp_path: Path, benchmark: str, rows: list[dict[str, Any]], problem: str
) -> None:
    with pytest.raises(EvaluationError, match=problem):
        judged(picks("right"), write(tmp_path / "r.jsonl", rows), tmp_path / "run", benchmark=benchmark)
    assert not (tmp_path / "run").exists()


@pytest.mark.heavy
def test_a_recorded_run_is_checked_against_its_replies(data: Path, tmp_path: Path) -> None:
    run, _ = judged(picks("right"), data, tmp_path / "run")
    checked = check_submission(run)
    assert (checked.state, checked.findings) == ("checked", [])
    swapped = run.items.with_columns(position=5 - pl.col("position"), score=1 - pl.col("score"))
    (finding,) = check_submission(replace(run, frames={"items": swapped})).findings
    assert "items.parquet has in 48 rows another `score`, `position` than follows from" in finding.text


def of_four(ties: int) -> list[dict[str, Any]]:
    """Rows in the form of RewardBench 2: one right response of four, and in Ties one or several."""
    rows = [
        {"id": f"f{n}", "prompt": f"F {n}?", "chosen": [f"{n} right"], "rejected": [f"{n} a", f"{n} b", f"{n} c"]}
        | {"subset": "Focus"}
        for n in range(4)
    ]
    for n in range(ties):
        wrong = [f"{n} no", f"{n} never"]
        several = [f"{n} right", f"{n} right too"]
        rows.append(
            {"id": f"ref:{n}", "prompt": f"One {n}?", "chosen": several[:1], "rejected": wrong, "subset": "Ties"}
        )
        rows.append({"id": f"tied:{n}", "prompt": f"Any {n}?", "chosen": several, "rejected": wrong, "subset": "Ties"})
    return rows


def of_subset(run: Run) -> dict[str, float]:
    return dict(run.metrics.filter(by("subset"), metric="accuracy").select("subset", "value").iter_rows())


@pytest.mark.heavy
def test_ties_of_reward_bench_2_are_rated_and_the_rest_is_picked(tmp_path: Path) -> None:
    data = write(tmp_path / "r.jsonl", of_four(2))
    run, requests = judged(picks("right"), data, tmp_path / "run", benchmark="reward-bench-2")
    assert len(requests) == 4 + 2 * 3 + 2 * 4
    assert position(run, "picks", "rated") == [4, 4]
    assert of_subset(run) == {"Focus": 1.0, "Ties": pytest.approx(1.01)}
    wrong, _ = judged(picks("c"), data, tmp_path / "wrong", benchmark="reward-bench-2")
    assert of_subset(wrong)["Focus"] == 0.0
    text = " ".join(str(render([run], "markdown")).split())
    assert "Rated, because a pick cannot rank them: 4 items." in text
    assert re.search(r"The judge picked the first response of the list: \d+% of 4 valid picks \(25% by chance\)", text)


def test_ties_of_reward_bench_2_are_not_compared_in_pairs(tmp_path: Path) -> None:
    data = write(tmp_path / "r.jsonl", of_four(1))
    with pytest.raises(EvaluationError, match=r"The subset Ties of .* counts by scores"):
        judged(picks("right"), data, tmp_path / "run", benchmark="reward-bench-2", protocol="pairwise")


def test_an_invalid_rating_is_neither_a_score_nor_a_win(tmp_path: Path) -> None:
    def reply(body: dict[str, Any], _: int) -> Reply:
        [text] = shown(body)
        return Reply({"right": "[[11]]", "a": "[[3]]", "b": "7 of 10", "c": "[[5]]"}[text.split()[1]])

    data = write(tmp_path / "r.jsonl", of_four(0)[:1])
    run, _ = judged(reply, data, tmp_path / "run", benchmark="reward-bench-2", protocol="pointwise", attempts=1)
    outcomes = dict(run.items.select("response", "outcome").iter_rows())
    assert sorted(outcomes.values()) == ["invalid", "invalid", "scored", "scored"]
    assert (of_subset(run), run.count("wins"), run.count("invalid")) == ({"Focus": 0.0}, 0, 3)


def test_only_the_listed_pairs_are_compared(tmp_path: Path) -> None:
    row = {
        "question_id": "a",
        "prompt": "?",
        **{f"response_{n}": f"{n} {'right' if n < 3 else 'no'}" for n in range(1, 5)},
        "scores": [True, True, False, False],
        "sampled_conflict_pairs": [[0, 2], [3, 1], [0, 2]],
    }

    def reply(body: dict[str, Any], _: int) -> Reply:
        return Reply(f"[[{'AB'['right' in body['messages'][-1]['content'].split('<response_b>')[1]]}]]")

    data = write(tmp_path / "p.jsonl", [row])
    run, requests = judged(reply, data, tmp_path / "run", benchmark="ppe-math", protocol="pairwise")
    assert len(requests) == 4, "a pair that is listed twice is asked about once"
    assert run.items.height == 3
    assert run.headline.value == 1.0


def test_show_and_the_page_have_one_reply_for_the_whole_list(data: Path, tmp_path: Path, run: Command) -> None:
    made, _ = judged(picks("right"), data, tmp_path / "run")
    status, text, _ = run("show", made.path, "--id", "q2")
    number = made.items.filter(id="q2", rank=1)["position"][0]
    assert status == 0
    assert f"Answer 2, rank 1, score 1, number {number} in the list" in text
    assert text.count("[[") == 1
    assert "Judge, all answers in one list" in text
    page = tmp_path / "page.html"
    assert run("report", made.path, "--html", page)[0] == 0
    order = made.items.filter(id="q2").sort("position")["response"]
    title = "Picked from the list " + ", ".join(f"{place}: {name}" for place, name in enumerate(order, 1))
    read = Read(page.read_text(encoding="utf-8"))
    blocks = "".join(json.dumps(read.block(key)) for attributes, _ in read.scripts if (key := attributes.get("id")))
    assert title in blocks
    assert blocks.count("Picked from the list") == 12


def test_a_judge_that_always_picks_the_first_is_right_by_chance(data: Path, tmp_path: Path) -> None:
    run, requests = judged(lambda *_: Reply("[[1]]"), data, tmp_path / "run")
    right = sum("right" in shown(body)[0] for body in requests)
    assert run.count("wins") == 3 * right
    assert run.count("losses") == 12 - right
    names = ("picks", "invalid_picks", "picks_of_first", "picks_of_first_by_chance", "rated")
    assert position(run, *names) == [12, 0, 1.0, 0.25, 0]


@pytest.mark.heavy
def test_a_run_that_was_cut_off_asks_only_what_is_missing(data: Path, tmp_path: Path) -> None:
    def dying(body: dict[str, Any], number: int) -> Reply:
        return Reply(picks("right")(body, number).text, hang_up=number >= 5)

    options = {"concurrency": 1, "max_retries": 0}
    with pytest.raises(CallsError, match="5 of 12 picks are recorded; rerun the same command to resume"):
        judged(dying, data, tmp_path / "run", **options)
    run, requests = judged(picks("right"), data, tmp_path / "run", **options)
    whole, _ = judged(picks("right"), data, tmp_path / "whole", **options)
    assert len(requests) == 7
    assert run.items.equals(whole.items)


@pytest.mark.heavy
def test_shards_join_to_the_whole_run(data: Path, tmp_path: Path) -> None:
    whole, _ = judged(picks("right"), data, tmp_path / "whole")
    parts = [judged(picks("right"), data, tmp_path / f"part{n}", shard=f"{n}/2")[0].path for n in (1, 2)]
    joined = merge(parts, out=tmp_path / "joined")
    assert joined.items.equals(whole.items)
    assert joined.metrics.equals(whole.metrics)
