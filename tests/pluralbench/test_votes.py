"""How verdicts in both orders of a pair count, against the published numbers of JudgeBench and LLMBar."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import verbs
from chat_server import Reply, Script, serve
from hypothesis import given
from hypothesis import strategies as st
from made_runs import by
from pluralbench import compare, find_benchmark
from pluralbench.data.decisions import JUDGED
from pluralbench.data.metric_key import MetricKey
from pluralbench.data.votes import SIDES, verdict
from pluralbench.leaderboard.checks import check_submission
from pluralbench.metrics import measure
from pluralbench.metrics.position import position_of_pairs
from pluralbench.results import Run
from rendered import render
from verbs import value
from written_tables import write

SUITE = Path(__file__).parents[2].parent / "shared" / "data" / "suite" / "recorded"
needs_suite = pytest.mark.skipif(not SUITE.is_dir(), reason=f"the recorded verdicts are not at {SUITE}")
FLIPPED = {"A>B": "B>A", "B>A": "A>B", "A=B": "A=B"}


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (SUITE / name).read_text(encoding="utf-8").splitlines()]


def row(first: str | None, second: str | None) -> dict[str, str | None]:
    return {name: letter for (name, _), letter in zip(SIDES, (first, second), strict=True)}


@pytest.mark.parametrize(
    ("letters", "unanimous", "signed"),
    [
        (("A", "B"), "win", "win"),
        (("B", "A"), "loss", "loss"),
        (("A", "A"), "tie", "tie"),
        (("A", "C"), "tie", "win"),
        (("C", "B"), "tie", "win"),
        (("C", "A"), "tie", "loss"),
        (("C", "C"), "tie", "tie"),
        (("A", "invalid"), "invalid", "win"),
        (("invalid", "A"), "invalid", "loss"),
        (("C", "invalid"), "invalid", "invalid"),
        (("invalid", "invalid"), "invalid", "invalid"),
        (("A", None), "win", "win"),
        ((None, "A"), "loss", "loss"),
        (("invalid", None), "invalid", "invalid"),
    ],
)
def test_votes(letters: tuple[str | None, str | None], unanimous: str, signed: str) -> None:
    assert verdict(row(*letters))[1] == unanimous
    assert verdict(row(*letters), "mean")[1] == unanimous
    assert verdict(row(*letters), "signed")[1] == signed


LETTERS = st.sampled_from(["A", "B", "C", "invalid"])


@given(LETTERS, LETTERS)
def test_a_signed_vote_does_not_depend_on_which_response_is_right(first: str, second: str) -> None:
    swapped = {"A": "B", "B": "A", "C": "C", "invalid": "invalid"}
    opposite = {"win": "loss", "loss": "win", "tie": "tie", "invalid": "invalid"}
    outcome = verdict(row(first, second), "signed")[1]
    assert verdict(row(swapped[first], swapped[second]), "signed")[1] == opposite[outcome]
    if verdict(row(first, second))[1] in {"win", "loss"}:
        assert outcome == verdict(row(first, second))[1], "unanimous verdicts have the same vote"


def letter(decision: str | None, label: str, first: str) -> str:
    """A recorded decision as the letter of our columns, where the right response is shown as `first`."""
    if decision is None:
        return "invalid"
    other = {"A": "B", "B": "A"}[first]
    return "C" if decision == "A=B" else first if decision == label else other


@needs_suite
@pytest.mark.parametrize(
    ("judge", "published", "nulls"),
    [
        ("o1-mini", {"Knowledge": 58.44, "Reasoning": 62.24, "Math": 82.14, "Coding": 78.57, "all": 65.71}, None),
        (
            "claude-3-haiku",
            {"Knowledge": 37.66, "Reasoning": 29.41, "Math": 32.35, "Coding": 9.68, "all": 32.22},
            13,
        ),
    ],
)
def test_judgebench_judges_have_their_published_accuracies(
    judge: str, published: Mapping[str, float], nulls: int | None
) -> None:
    benchmark = find_benchmark("judgebench")
    recorded = [one for one in rows("judgebench_judge_verdicts.jsonl") if judge in one["judge"]]
    recorded = [one for one in recorded if one["run"] == "official"]
    assert recorded
    decisions = []
    for number, one in enumerate(recorded):
        second = None if one["decision_2"] is None else FLIPPED[one["decision_2"]]
        letters = row(letter(one["decision_1"], one["label"], "A"), letter(second, one["label"], "B"))
        own = {"config": "gpt", "id": str(number), "cluster": one["pair_id"], "subset": one["source"]}
        own |= {"digest": "", "truncated": False, "outcome": verdict(letters, benchmark.vote)[1]}
        own |= {"chosen": one["label"][0], "rejected": one["label"][2]}
        decisions.append(own | letters)
    benchmark = benchmark.fit_to([one["source"] for one in recorded])
    metrics = measure(benchmark, pl.DataFrame(decisions, schema=JUDGED))
    sections = metrics.filter(by("section"), metric="accuracy")
    overall = metrics.filter(by(None), metric="overall")["value"][0]
    shares = dict(sections.select("section", "value").iter_rows()) | {"all": overall}
    assert {name: round(100 * share, 2) for name, share in shares.items()} == published
    missing = sum(one[name] is None for one in recorded for name in ("decision_1", "decision_2"))
    if nulls is not None:
        assert missing == nulls
    if judge == "o1-mini":
        single = sum(one["decision_1"] == one["label"] for one in recorded) / len(recorded)
        both = metrics.filter(metric="accuracy_in_both_orders")["value"][0]
        assert (round(100 * single, 2), round(100 * both, 2)) == (70.86, 58.0)


def compared(label: str, winner_1: str, winner_2: str, subset: str = "a") -> pl.DataFrame:
    """Decisions by the number of the response that wins ("-": unreadable), as LLMBar records them."""
    rows = []
    for place, (right, first, second) in enumerate(zip(label, winner_1, winner_2, strict=True)):
        letters = row(
            "invalid" if first == "-" else "A" if first == right else "B",
            "invalid" if second == "-" else "B" if second == right else "A",
        )
        item = f"{subset} {place}"
        own = {"config": "llmbar", "subset": subset, "id": item, "cluster": item, "digest": "", "truncated": False}
        rows.append(own | {"chosen": right, "rejected": "", "outcome": verdict(letters, "mean")[1]} | letters)
    return pl.DataFrame(rows, schema=JUDGED)


def in_two_orders(decisions: pl.DataFrame) -> dict[str, float]:
    numbers = dict(position_of_pairs(decisions))
    names = ("accuracy_over_orders", "accuracy_in_both_orders", "same_in_both_orders")
    return {name: numbers[MetricKey(name)].value or 0.0 for name in names}


def test_the_shares_over_both_orders_by_hand() -> None:
    # Right twice; right once, in two pairs; wrong and unreadable; unreadable twice.
    assert in_two_orders(compared("12121", "1111-", "122--")) == {
        "accuracy_over_orders": 0.4,
        "accuracy_in_both_orders": 0.2,
        "same_in_both_orders": 0.4,
    }


def share(text: str) -> float:
    return float(text.rpartition("=")[2].strip().rstrip("%")) / 100


@pytest.mark.heavy
@needs_suite
def test_llmbar_judges_have_their_published_statistics() -> None:
    published = {(one["judge"], one["subset"]): one for one in rows("llmbar_published_statistics.jsonl")}
    recorded = rows("llmbar_judge_verdicts.jsonl")
    assert len(recorded) == len(published) > 100
    by_judge: dict[str, list[pl.DataFrame]] = {}
    for one in recorded:
        decisions = compared(one["label"], one["winner_1"], one["winner_2"], one["subset"])
        by_judge.setdefault(one["judge"], []).append(decisions)
        expected = published[one["judge"], one["subset"]]
        assert in_two_orders(decisions) == pytest.approx(
            {
                "accuracy_over_orders": share(expected["correct_average"]),
                "accuracy_in_both_orders": share(expected["correct_both"]),
                "same_in_both_orders": share(expected["equal"]),
            }
        ), (one["judge"], one["subset"])
    for judge in list(by_judge)[::12]:
        decisions = pl.concat(by_judge[judge])
        metrics = measure(find_benchmark("llmbar").fit_to(decisions["subset"]), decisions)
        own = metrics.filter(by("section"), metric="accuracy").select("section", "value")
        averages = {name: share(published[judge, name]["correct_average"]) for name in own["section"]}
        assert dict(own.iter_rows()) == pytest.approx(averages)
        overall = metrics.filter(by(None), metric="overall")["value"][0]
        assert overall == pytest.approx(sum(averages.values()) / 5)


def pairs(count: int) -> list[dict[str, Any]]:
    return [
        {"id": f"q{n}", "prompt": f"Question {n}?", "chosen": f"{n} yes", "rejected": f"{n} no"} for n in range(count)
    ]


def asked(script: Script, benchmark: str, data: Path, out: Path, **options: Any) -> Run:
    with serve(script) as server:
        return verbs.judge(
            "j", benchmark=benchmark, data=str(data), base_url=server.base_url, out=out, attempts=1, **options
        )


def by_order(body: dict[str, Any], _: int) -> Reply:
    """Right in both orders about questions 0 to 3, in the first order about 4 to 6, unreadable there about 7."""
    text = body["messages"][-1]["content"]
    number = int(text.split("Question ")[1].split("?")[0])
    chosen_first = "yes" in text.split("<response_a>")[1].split("</response_a>")[0]
    if number > 6:
        return Reply("?" if chosen_first else "[[B]]")
    return Reply("[[A]]" if chosen_first or number > 3 else "[[B]]")


@pytest.mark.parametrize(
    ("rule", "overall", "valid", "note"),
    [
        pytest.param("unanimous", 4 / 8, 4 / 7, "Counted as wrong: 3 ties, 1 invalid.", marks=pytest.mark.heavy),
        pytest.param(
            "signed",
            5 / 8,
            5 / 8,
            "Verdicts in both orders: a right verdict with a tie or an invalid one is right (signed vote).",
            marks=pytest.mark.heavy,
        ),
        (
            "mean",
            6 / 8,
            5.5 / 7,
            "Pairs without a winner: 3 ties, 1 invalid. Verdicts in both orders: each order counts by itself, as half "
            "of the pair.",
        ),
    ],
)
def test_a_benchmark_names_the_vote(tmp_path: Path, rule: str, overall: float, valid: float, note: str) -> None:
    data = write(tmp_path / "p.jsonl", pairs(8))
    own = tmp_path / "own.toml"
    own.write_text(f'title = "Own"\nvote = "{rule}"\n', encoding="utf-8")
    run = asked(by_order, str(own), data, tmp_path / "run")
    assert run.headline.value == overall
    assert run.headline.low is not None
    assert value(run, "accuracy_of_valid") == pytest.approx(valid)
    assert value(run, "accuracy_over_orders") == 6 / 8
    checked = check_submission(run)
    assert checked.state == "checked", checked
    text = " ".join(str(render([run], "markdown")).split())
    assert note in text.replace("- ", "")
    assert "Verdict changed with answer order: 3 of 7 pairs" in text
    single = asked(by_order, str(own), data, tmp_path / "single", orders="one")
    assert single.headline.value == single.count("wins") / 8, "one order has nothing to combine"
    scored = verbs.score(verbs.by_length, data=data, benchmark=str(own), out=tmp_path / "scored")
    for first, second in ((run, scored), (scored, run), (run, single)):
        headline = compare(first, second).headline
        assert (headline.first, headline.second) == (first.headline.value, second.headline.value)
