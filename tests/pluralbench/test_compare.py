"""Two runs on the same items: what differs in the overall number and its parts, how sure that is, what is refused."""

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_runs import by_length, changed, decision, keep, run_of, scored, with_items
from pluralbench import compare, find_benchmark
from pluralbench.data.clusters import Clusters
from pluralbench.data.metric_key import MetricKey, finest_dimension
from pluralbench.errors import RunError
from pluralbench.evaluation.compare import MIN_TESTED, PART, RunComparison
from pluralbench.reports.comparison import comparison_notes
from pluralbench.results import Run
from written_tables import write

Command = Callable[..., tuple[int, str, str]]
SUBSETS = [subset for weights in find_benchmark("multilingual").sections.values() for subset in weights]


def made(name: str, outcomes: Sequence[str], clusters: Sequence[int] | None = None, content: str = "d") -> Run:
    """A run of these outcomes."""
    names = clusters or range(len(outcomes))
    rows = [
        decision(place, outcome, cluster=f"u{cluster}", digest=content)
        for place, (outcome, cluster) in enumerate(zip(outcomes, names, strict=True))
    ]
    return run_of(rows, path=name)


def contingency(both: int, first: int, second: int, neither: int) -> tuple[Run, Run]:
    ours = ["win"] * both + ["win"] * first + ["loss"] * second + ["tie"] * neither
    theirs = ["win"] * both + ["loss"] * first + ["win"] * second + ["invalid"] * neither
    return made("a", ours), made("b", theirs)


def headline(found: RunComparison) -> tuple[float, float, float, float]:
    """Difference, bounds and p-value, where all are there."""
    head = found.headline
    values = head.difference, head.low, head.high, head.p_value
    assert None not in values
    return values  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("both", "first", "second", "neither"), [(40, 6, 18, 20), (10, 5, 5, 3), (60, 1, 9, 0), (25, 15, 0, 0)]
)
def test_a_known_table_gives_its_difference_and_the_sign_tests_probability(
    both: int, first: int, second: int, neither: int
) -> None:
    found = compare(*contingency(both, first, second, neither))
    from scipy.stats import binomtest

    total = both + first + second + neither
    assert (found.only_first, found.only_second, found.decisions, found.clusters) == (first, second, total, total)
    assert found.headline.first == pytest.approx((both + first) / total)
    assert found.headline.second == pytest.approx((both + second) / total)
    difference, low, high, p_value = headline(found)
    assert difference == pytest.approx((second - first) / total)
    assert p_value == pytest.approx(binomtest(second, first + second).pvalue, abs=0.02)
    assert low <= difference <= high
    assert (found.left_out, found.first, found.second, found.tested) == (0, "a", "b", 0)
    assert (low, high) == pytest.approx(tango(first, second, total), abs=0.035)


def tango(first: int, second: int, total: int) -> tuple[float, float]:
    """The score interval of a paired difference by Tango's formula (1998, Stat. Med. 17:891)."""
    every = np.linspace(-0.9999, 0.9999, 19999)
    middle = -first - second + (2 * total - second + first) * every
    one_way = (np.sqrt(middle**2 + 8 * total * first * every * (1 - every)) - middle) / (4 * total)
    far = (second - first - total * every) ** 2 / (total * (2 * one_way + every * (1 - every)))
    near = every[far <= 1.96**2]
    return near[0], near[-1]


def test_the_other_way_round_is_the_same_finding_with_the_other_sign() -> None:
    first, second = contingency(40, 6, 18, 20)
    there, low, high, p_there = headline(compare(first, second))
    back, *bounds, p_back = headline(compare(second, first))
    assert (there, low, high) == pytest.approx((-back, -bounds[1], -bounds[0]))
    assert p_there == p_back


def test_a_run_does_not_differ_from_itself() -> None:
    from scipy.stats import t

    run = made("a", ["win", "loss", "tie"] * 9)
    found = compare(run, run)
    difference, low, high, p_value = headline(found)
    assert (difference, low, p_value) == (0.0, -high, 1.0)
    # That 27 decisions are the same does not say that the next will be: as for a share of 0 (Wilson 1927), with t.
    square = t.ppf(0.975, 27) ** 2
    assert high == pytest.approx(square / (27 + square), rel=1e-4)
    assert (found.only_first, found.only_second) == (0, 0)


def test_rows_of_one_cluster_are_no_independent_evidence() -> None:
    ours, theirs = ["loss"] * 10 + ["win"] * 30, ["win"] * 10 + ["win"] * 30
    alone = compare(made("a", ours), made("b", theirs))
    users = [0] * 10 + [1 + place % 6 for place in range(30)]
    together = compare(made("a", ours, users), made("b", theirs, users))
    assert headline(alone)[3] < 0.01
    assert headline(together)[3] > 0.3, "one user of seven says nothing"
    assert together.clusters == 7
    assert together.headline.difference == alone.headline.difference


@pytest.mark.heavy
@given(st.lists(st.tuples(st.sampled_from("wl"), st.sampled_from("wl")), min_size=1, max_size=30))
@settings(max_examples=25)
def test_interval_p_value_and_sentence_agree(pairs: list[tuple[str, str]]) -> None:
    words = {"w": "win", "l": "loss"}
    runs = [
        replace(made(name, [words[pair[side]] for pair in pairs]), path=Path(name)) for side, name in enumerate("ab")
    ]
    found = compare(*runs)
    head = found.headline
    if head.low is None or head.high is None or head.p_value is None:
        assert head.low is head.high is head.p_value is None
        assert found.sentence.endswith("too few for an interval.")
        return
    excluded = head.low > 0 or head.high < 0
    assert (head.p_value < 0.05) == excluded == ("is better than" in found.sentence)
    assert excluded != ("cannot be told apart" in found.sentence)


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ((40, 6, 18, 20), "m (b) is better than m (a) by 14.3 points on these 84 people (95% interval "),
        ((40, 18, 6, 20), "m (a) is better than m (b) by 14.3 points on these 84 people (95% interval "),
        (
            (10, 5, 6, 3),
            "m (b) and m (a) cannot be told apart on these 24 people: m (b) minus m (a) is +4.2 points (95% ",
        ),
        ((1, 0, 1, 0), "m (b) minus m (a) is +50.0 points on these 2 people, which are too few for an interval."),
    ],
)
def test_the_sentence_says_which_is_better_or_which_minus_which(counts: tuple[int, ...], sentence: str) -> None:
    runs = [changed(run, data__clusters=None) for run in contingency(*counts)]
    assert compare(*runs).sentence.startswith(sentence)


def test_a_part_with_few_prompts_is_not_tested() -> None:
    rows = [
        [decision(n, outcome, config="few" if n < 9 else "many") for n, outcome in enumerate(outcomes)]
        for outcomes in (["loss"] * 20, ["win"] * 20)
    ]
    found = compare(*(run_of(one, "personalized") for one in rows))
    assert found.untested.select("config", "clusters", "p_value", "p_holm").rows() == [("few", 9, None, None)]
    [part] = found.parts.filter(config="many").to_dicts()
    assert found.tested == 1
    assert part["p_holm"] == part["p_value"] < 0.05
    assert part["low"] > 0


def test_ties_and_invalid_outcomes_are_counted_for_each_run() -> None:
    found = compare(*contingency(1, 3, 2, 5))
    assert (found.ties, found.invalid) == ((5, 0), (0, 5))
    text = " ".join(comparison_notes(replace(found, coin=0.5)))
    assert "Without a winner: A 5 ties, 0 invalid; B 0 ties, 5 invalid." in text
    assert "A coin has 50.0, more than both." in text
    assert "A coin" not in " ".join(comparison_notes(replace(found, coin=0.3)))


def test_a_run_without_verdicts_is_not_compared() -> None:
    found = compare(made("a", ["win"] * 20 + ["loss"] * 20), made("b", ["invalid"] * 40))
    assert (found.headline.difference, found.headline.p_value, found.parts.height) == (None, None, 0)
    assert found.sentence == "m (b) and m (a) cannot be compared: most verdicts or scores of m (b) are invalid."


def test_what_only_one_run_decided_is_left_out_and_counted() -> None:
    first = made("a", ["win", "win", "dropped", "loss", "equal"])
    second = made("b", ["loss", "win", "win", "win", "equal"])
    found = compare(first, second)
    assert (found.decisions, found.left_out, found.only_first, found.only_second) == (3, 1, 1, 1)


def languages(seed: int, right: float) -> list[dict[str, Any]]:
    """Decisions in three languages on the same ids, and on another number of them in each."""
    draw = random.Random(seed)
    return [
        decision(
            place * 3 + number, "win" if draw.random() < right else "loss",
            config=code, id=f"{place}-{number}", cluster=f"{place}-{number}", subset=subset,
        )
        for size, code in enumerate(("eng_Latn", "spa_Latn", "hin_Deva"), start=1)
        for place, subset in enumerate(SUBSETS)
        for number in range(size)
    ]  # fmt: skip


def rankings(seed: int, right: float) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    return [
        decision(
            prompt, "win" if draw.random() < right else draw.choice(["loss", "tie"]),
            config=config, id=f"{config}{prompt}", cluster=f"{config}{prompt}", subset="abc"[prompt % 3],
            chosen=str(pair), rejected=str(pair + 1),
        )
        for config in ("open", "human")
        for prompt in range(14 if config == "open" else 30)
        for pair in range(prompt % 3 + 1)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("benchmark", "rows", "parts"),
    [
        ("multilingual", languages, {("config", 2 + 1), ("section", 3 * 4)}),
        ("chinese", rankings, {(None, 2), ("config", 2 * 2), ("category", 2 * 3 * 2)}),
        ("personalized", rankings, {("config", 2)}),
    ],
)
def test_what_is_tested_are_the_numbers_of_the_runs_themselves(
    benchmark: str, rows: Callable[[int, float], list[dict[str, Any]]], parts: set[tuple[str | None, int]]
) -> None:
    first, second = run_of(rows(1, 0.5), benchmark, path="a"), run_of(rows(2, 0.8), benchmark, path="b")
    found = compare(first, second)
    assert found.headline.first == first.headline.value
    assert found.headline.second == second.headline.value
    assert found.rule == first.config.benchmark.rule
    kinds = [finest_dimension(MetricKey(**one)) for one in found.parts.select(PART).to_dicts()]
    assert set(Counter(kinds).items()) == parts
    for row in found.parts.iter_rows(named=True):
        place = {name: row[name] for name in PART}
        assert row["first"] == pytest.approx(first.estimate(**place).value)
        assert row["second"] == pytest.approx(second.estimate(**place).value)
        assert row["difference"] == pytest.approx(row["second"] - row["first"])
        assert (row["n"], row["clusters"]) == (first.estimate(**place).n, first.estimate(**place).clusters)
        if row["clusters"] < MIN_TESTED or row["low"] is None:
            assert row["p_value"] is row["p_holm"] is None
        else:
            assert row["p_holm"] >= row["p_value"] > 0
    assert found.tested == found.parts["p_value"].count() == found.parts.height - found.untested.height


def test_an_overall_number_that_weighs_configs_alike_is_tested_as_such() -> None:
    """Pooled, the second run is better; the mean of the configs says the opposite."""
    small = [("win", "loss")] * 12 + [("win", "win")] * 8
    large = [("loss", "win")] * 30 + [("win", "win")] * 170
    rows = [
        [decision(n, pair[side], config="small" if n < 20 else "large") for n, pair in enumerate([*small, *large])]
        for side in (0, 1)
    ]
    found = compare(*(run_of(one, "personalized") for one in rows))
    assert found.only_second > found.only_first
    difference, _, high, p_value = headline(found)
    assert difference == pytest.approx((-12 / 20 + 30 / 200) / 2)
    assert high < 0
    assert p_value < 0.01
    assert compare(*(run_of(one, "pairs") for one in rows)).headline.difference == pytest.approx(18 / 220)


def test_holms_p_is_for_all_parts_that_were_tested() -> None:
    found = compare(run_of(rankings(1, 0.5), "chinese"), run_of(rankings(2, 0.9), "chinese"))
    plain, adjusted = (sorted(found.parts[name].drop_nulls()) for name in ("p_value", "p_holm"))
    assert adjusted[0] == pytest.approx(min(1.0, plain[0] * found.tested))
    assert adjusted == sorted(adjusted)


def test_runs_of_different_things_are_refused() -> None:
    run = made("a", ["win"] * 3)
    disjoint = made("b", ["win"] * 3)
    disjoint = with_items(disjoint, disjoint.items.with_columns(id=pl.Series(["x", "y", "z"])))
    with pytest.raises(RunError, match="a and b share no decision; compare runs on the same items"):
        compare(run, disjoint)
    renamed = with_items(run, run.items.with_columns(config=pl.lit("renamed")))
    with pytest.raises(RunError, match=r"share no decision \(configs c and renamed\);"):
        compare(run, renamed)
    other = run_of([decision(0)], "personalized", path="b")
    with pytest.raises(RunError, match="a is a run of the benchmark pairs and b of personalized"):
        compare(run, other)
    plain, legacy = (run_of(languages(1, 0.5), "multilingual", path=str(flag), legacy=flag) for flag in (False, True))
    with pytest.raises(RunError, match="the same benchmark and `legacy`"):
        compare(plain, legacy)
    by_user = [changed(one, data__clusters=Clusters(column="user")) for one in (run, made("b", ["win"] * 3, [5, 5, 5]))]
    with pytest.raises(
        RunError, match=r"3 items have other clusters \(prompts or users\) in b than in a \(first c/q0\)"
    ):
        compare(*by_user)
    with pytest.raises(RunError, match=r"of a are people and those of b are prompts; rerun one"):
        compare(changed(run, data__clusters=None), made("b", ["win"] * 3, [5, 5, 5]))
    moved = with_items(replace(run, path=Path("b")), run.items.with_columns(subset=pl.lit("s")))
    with pytest.raises(RunError, match="3 items have other subsets in b than in a"):
        compare(run, moved)


@pytest.mark.heavy
def test_two_translations_of_the_same_items_are_compared_when_asked(run: Command, tmp_path: Path) -> None:
    rows = languages(1, 0.5)
    first = keep(run_of(rows, "multilingual"), tmp_path / "google")
    other = [row | {"digest": "e", "outcome": "win"} for row in rows]
    second = keep(run_of(other, "multilingual"), tmp_path / "nllb")
    status, _, error = run("compare", first.path, second.path)
    assert (status, error.count("\n")) == (2, 1)
    assert "have the same ids but different texts" in error
    assert "--differing-text" in error
    found = compare(first, second, differing_text=True)
    assert (found.decisions, found.headline.second) == (len(rows), 1.0)
    assert run("compare", first.path, second.path, "--differing-text")[0] == 0


def test_runs_with_a_limit_are_compared_on_what_they_share(tmp_path: Path) -> None:
    rows = [{"id": str(n), "prompt": f"{n}?", "chosen": "x" * (n % 5), "rejected": "xx"} for n in range(1, 40)]
    data = write(tmp_path / "p.jsonl", [row | {"chosen": row["chosen"] or "y"} for row in rows])
    few = scored("pairs", data, tmp_path / "few", limit=9)
    many = scored("pairs", data, tmp_path / "many", lambda p, r: [-value for value in by_length(p, r)], limit=25)
    found = compare(few, many)
    assert (found.decisions, found.left_out) == (9, 16)
    won = [run.items["score_chosen"] > run.items["score_rejected"] for run in (few, many)]
    assert (found.only_first, found.only_second) == (won[0].sum(), (many.items.head(9)["outcome"] == "win").sum())


def test_rankings_are_compared_pair_by_pair(tmp_path: Path) -> None:
    rows = [
        {"id": str(n), "prompt": f"p{n}?", "responses": ["x" * (n % 4 + 1), "xx", "xxx"], "rank": [1, 2, 2]}
        for n in range(12)
    ]
    data = write(tmp_path / "r.jsonl", rows)
    first = scored("rankings", data, tmp_path / "a")
    second = scored("rankings", data, tmp_path / "b", lambda _, responses: [-float(len(one)) for one in responses])
    found = compare(first, second)
    assert (found.decisions, found.clusters) == (24, 12)
    assert (found.headline.first, found.headline.second) == (first.headline.value, second.headline.value)


def test_the_command_says_what_differs_in_words_and_in_json(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = keep(run_of(rankings(1, 0.5), "chinese"), tmp_path / "a")
    second = keep(run_of(rankings(2, 0.8), "chinese"), tmp_path / "b")
    found = compare(first, second)
    assert found.tested == 12
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    status, said, _ = run("compare", "a", "b")
    assert status == 0
    for part in (
        f"CheemsBench: {found.decisions} decisions on 44 prompts",
        "B: m (b) (b) Overall:",
        "human: a, exact match",
        "Holm: p adjusted for the 12 tested parts.",
        "Not tested, with fewer than 10 prompts or one per subset: open: a (5), open: b (5), open: c (4).",
        f"Decisions that only A gets right: {found.only_first:,}; only B: {found.only_second:,}.",
    ):
        assert part in " ".join(said.split())
    assert " ".join(said.split()).endswith(found.sentence)
    assert max(map(len, said.splitlines()[2:])) <= 80
    assert run("compare", "a", "b", "--wide")[1].split()[-20:] == said.split()[-20:]
    status, said, _ = run("compare", "a", "b", "--json")
    values = json.loads(said)
    assert status == 0
    assert values["headline"]["p_value"] == found.headline.p_value
    assert len(values["parts"]) == 18
