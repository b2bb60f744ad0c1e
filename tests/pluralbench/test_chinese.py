"""The Chinese benchmark from end to end: a reward model and a judge on it, by the command."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl
import pytest
from chat_server import ChatServer, Reply, serve
from chinese_tables import CATEGORIES, Row, published, released, rows_of
from pluralbench import Run, compare, read_run
from pluralbench_rewards import Group
from reward_models import classifier_alone, user

Command = Callable[..., tuple[int, str, str]]
PAIRS = {config: [10 - ties for ties in (2, 0, 4, 10)] for config in CATEGORIES}
SHOWN = re.compile(r"<response_[ab]>\n(.*?)\n</response_[ab]>", re.DOTALL)


@pytest.fixture
def scored(run: Command, model: str, tmp_path: Path) -> Callable[..., Run]:
    """`scored(data, "--legacy")`: the run of a tiny model by the command."""

    def score(data: Path, *words: str, by: str = model) -> Run:
        out = tmp_path / "runs" / str(len(list(tmp_path.glob("runs/*"))))
        base = ("score", by, "--benchmark", "chinese", "--data", data, "--out", out, "--device", "cpu")
        status, said, error = run(*base, *words)
        assert status == 0, said + error
        return read_run(out)

    return score


def by_hand(run: Run) -> dict[str, tuple[float, float]]:
    """Accuracy and exact match of each config from its scores alone."""
    found = {}
    for config in CATEGORIES:
        pairs: dict[str, list[bool]] = {}
        exact: dict[str, list[bool]] = {}
        for _, rows in run.items.filter(config=config).group_by("id", maintain_order=True):
            values = rows.select("rank", "score").rows()
            won = [a[1] > b[1] for a in values for b in values if a[0] < b[0]]
            if won:
                pairs.setdefault(rows["subset"][0], []).extend(won)
                exact.setdefault(rows["subset"][0], []).append(all(won))
        found[config] = fmean(map(fmean, pairs.values())), fmean(map(fmean, exact.values()))
    return found


def test_a_reward_model_is_scored_by_category(scored: Callable[..., Run], tmp_path: Path) -> None:
    run = scored(published(tmp_path / "bench"))
    assert run.run["benchmark"]["title"] == "CheemsBench"
    expected = by_hand(run)
    for config, (accuracy, exact) in expected.items():
        cell = run.metrics["configs"][config]
        assert cell["by_category"]["accuracy"] == pytest.approx(accuracy)
        assert cell["exact_match_by_category"]["accuracy"] == pytest.approx(exact)
        assert list(cell["subsets"]) == CATEGORIES[config]
        assert sum(one["exact_match"]["prompts"] for one in cell["subsets"].values()) == 6
        assert (cell["equal"], cell["exact_match"]["prompts"]) == (2, 6), "all tied: left out and counted"
        assert cell["n"] == sum(2 * len_ for len_ in (8, 10, 6))
    assert run.metrics["overall"]["accuracy"] == pytest.approx(fmean(map(fmean, expected.values())))
    low, high = run.metrics["overall"]["interval"]
    assert 0 <= low <= run.metrics["overall"]["accuracy"] <= high <= 1
    assert run.metrics["rankings"]["accuracy"]["accuracy"] == pytest.approx(fmean(a for a, _ in expected.values()))
    assert run.metrics["rankings"]["exact_match"]["accuracy"] == pytest.approx(fmean(e for _, e in expected.values()))


def test_a_release_of_ours_gets_the_same_numbers(scored: Callable[..., Run], tmp_path: Path) -> None:
    theirs, ours = scored(published(tmp_path / "bench")), scored(released(tmp_path / "release"))
    assert ours.metrics["configs"].keys() == theirs.metrics["configs"].keys() == {"open", "human"}
    assert ours.items["score"].to_list() == theirs.items["score"].to_list()
    for name in ("overall", "rankings", "calibration"):
        assert ours.metrics[name] == theirs.metrics[name]


def test_groups_of_five_share_their_prompt_in_the_fast_mode(
    scored: Callable[..., Run], model: str, tmp_path: Path
) -> None:
    data = published(tmp_path / "bench")
    fast, exact = scored(data), scored(data, "--mode", "exact")
    assert [one.run["scoring"]["mode"] for one in (fast, exact)] == ["fast", "exact"]
    scoring = fast.run["scoring"]
    assert scoring["conversations"] == 2 * 8 * 5
    assert scoring["computed_tokens"] == scoring["unique_tokens"], "a prompt is computed once for its five responses"
    assert exact.run["scoring"]["computed_tokens"] == exact.items["tokens"].sum()
    shared = exact.items["tokens"].sum() - scoring["computed_tokens"]
    prompts = exact.items.group_by("config", "id").len().height
    assert shared >= prompts * 4 * len("第0个问题：龙井茶怎么泡才好喝？"), "four of five copies of at least the prompt"
    apart = (fast.items["score"] - exact.items["score"]).abs().to_list()
    assert 0 < max(apart) <= scoring["tolerance"]
    groups = [
        Group(str(place), user(row["input"]), [one["content"] for one in row["responses"]])
        for config in ("human", "open")
        for place, row in enumerate(rows_of(config))
    ]
    alone = [value for values in classifier_alone(model, groups) for value in values]
    assert fast.items["score"].to_list() == pytest.approx(alone, abs=scoring["tolerance"] + 1e-6)
    if not scoring["decisions_within_tolerance"]:
        assert fast.metrics["overall"] == exact.metrics["overall"]


def test_a_constant_scorer_gets_nothing_but_by_the_legacy_rules(
    scored: Callable[..., Run], constant: str, tmp_path: Path
) -> None:
    data = published(tmp_path / "bench")
    strict, legacy = scored(data, by=constant), scored(data, "--legacy", by=constant)
    for cell in strict.metrics["configs"].values():
        assert (cell["by_category"]["accuracy"], cell["exact_match_by_category"]["accuracy"]) == (0.0, 0.0)
    for cell in legacy.metrics["configs"].values():
        assert (cell["by_category"]["accuracy"], cell["exact_match_by_category"]["accuracy"]) == (0.0, 1.0)
        assert cell["exact_match"]["prompts"] == 8, "prompts without a pair count too"
    assert (strict.metrics["overall"]["accuracy"], legacy.metrics["overall"]["accuracy"]) == (0.0, 0.5)
    assert "legacy rules" in legacy.metrics["overall"]["rule"]
    assert strict.metrics["calibration"]["overall"]["error"] == pytest.approx(0.5)
    assert legacy.metrics["calibration"]["overall"]["error"] is None, "all differences are the largest one"


def test_legacy_rules_are_settings_of_their_own(
    scored: Callable[..., Run], run: Command, model: str, tmp_path: Path
) -> None:
    data = published(tmp_path / "bench")
    made = scored(data)
    words = (
        "score",
        model,
        "--benchmark",
        "chinese",
        "--data",
        data,
        "--out",
        made.path,
        "--device",
        "cpu",
        "--legacy",
    )
    status, _, error = run(*words)
    assert (status, "benchmark_digest" in error) == (2, True)


def test_two_models_are_compared_pair_by_pair(
    scored: Callable[..., Run], classifiers: Callable[..., str], tmp_path: Path
) -> None:
    data = published(tmp_path / "bench")
    found = compare(scored(data), scored(data, by=classifiers(seed=1)))
    assert (found.decisions, found.clusters, found.left_out) == (2 * 48, 12, 0)


def judges(body: dict[str, Any], _: int) -> Reply:
    """A judge that likes the longer response, and the first one where both are as long."""
    first, second = SHOWN.findall(body["messages"][-1]["content"])
    return Reply("[[B]]" if len(second) > len(first) else "[[A]]")


@pytest.fixture
def judge() -> Iterator[ChatServer]:
    with serve(judges) as server:
        yield server


def longer(row: Row) -> list[int]:
    """For each pair of the row, how many more letters the better response has."""
    length = {one["id"]: len(one["content"]) for one in row["responses"]}
    return [length[a] - length[b] for a in length for b in length if row["rank"][a] < row["rank"][b]]


def test_a_judge_is_asked_about_every_pair_in_both_orders(run: Command, judge: ChatServer, tmp_path: Path) -> None:
    data, out = published(tmp_path / "bench"), tmp_path / "run"
    words = ("judge", "j", "--benchmark", "chinese", "--data", data, "--base-url", judge.base_url, "--out", out)
    status, said, error = run(*words)
    assert status == 0, error
    made = read_run(out)
    assert len(judge.requests) == 2 * 96
    assert all(body["max_tokens"] == 512 and body["temperature"] == 0 for body in judge.requests)
    halves = []
    for config, categories in CATEGORIES.items():
        found = [(row["category"][0], longer(row)) for row in rows_of(config)]
        accuracies = [[gap > 0 for own, gaps in found if own == name for gap in gaps] for name in categories]
        exact = [[all(gap > 0 for gap in gaps) for own, gaps in found if own == name and gaps] for name in categories]
        cell = made.metrics["configs"][config]
        assert cell["by_category"]["accuracy"] == pytest.approx(fmean(map(fmean, accuracies)))
        assert cell["exact_match_by_category"]["accuracy"] == pytest.approx(fmean(map(fmean, exact)))
        assert cell["ties"] == sum(gap == 0 for _, gaps in found for gap in gaps)
        halves += [fmean(map(fmean, accuracies)), fmean(map(fmean, exact))]
    assert made.metrics["overall"]["accuracy"] == pytest.approx(fmean(halves))
    assert "calibration" not in made.metrics, "verdicts have no margin"
    assert "all share one rank: 4; they are left out" in said
    assert "calibration" not in said


def test_a_legacy_judge_is_asked_once_a_pair(run: Command, judge: ChatServer, tmp_path: Path) -> None:
    data, out = published(tmp_path / "bench"), tmp_path / "run"
    words = ("judge", "j", "--benchmark", "chinese", "--data", data, "--base-url", judge.base_url, "--out", out)
    status, _, error = run(*words, "--legacy", "--reply", "brief", "--max-tokens", "16", "--attempts", "1")
    assert status == 0, error
    made = read_run(out)
    assert len(judge.requests) == 96
    assert {body["max_tokens"] for body in judge.requests} == {16}
    assert made.run["judging"]["orders"] == "one"
    assert made.metrics["pooled"]["ties"] == 0
    first = made.items["verdict_chosen_first"].is_not_null().sum()
    assert 30 <= first <= 66, "about half of them"
    for cell in made.metrics["configs"].values():
        assert cell["exact_match"]["prompts"] == 6, "a prompt without a pair is never asked about"


def test_a_judge_that_rates_is_counted_like_a_reward_model(run: Command, tmp_path: Path) -> None:
    data = published(tmp_path / "bench")
    with serve(lambda *_: Reply("[[7]]")) as server:
        base = ("judge", "j", "--benchmark", "chinese", "--data", data, "--base-url", server.base_url, "--pointwise")
        for name, words, expected in (("strict", (), 0.0), ("legacy", ("--legacy",), 1.0)):
            status, _, error = run(*base, "--out", tmp_path / name, *words)
            assert status == 0, error
            metrics = read_run(tmp_path / name).metrics
            assert metrics["rankings"]["exact_match"]["accuracy"] == expected
            assert metrics["rankings"]["accuracy"]["accuracy"] == 0.0
        assert len(server.requests) == 2 * 2 * 8 * 5


def test_each_form_of_the_report_has_a_row_for_each_category(
    scored: Callable[..., Run], run: Command, tmp_path: Path
) -> None:
    made = scored(published(tmp_path / "bench"))
    rows = json.loads(run("report", made.path, "--format", "json")[1])
    names = [row["config"] for row in rows]
    assert names == [
        "overall", "mean of configs", "human", "human: 推理", "human: 理解", "human: 复杂指令", "open", "open: 推理",
        "open: 其他",
    ]  # fmt: skip
    frame = pl.DataFrame(rows)
    for row in frame.filter(pl.col("config").str.contains("human|open|mean")).iter_rows(named=True):
        assert row["low"] <= row["accuracy"] <= row["high"]
        assert row["exact_low"] <= row["exact"] <= row["exact_high"]
    assert frame.filter(config="human")["prompts"].to_list() == [6]
    assert [row["error"] is None for row in rows] == [name not in {"overall", "human", "open"} for name in names]
    table = run("report", made.path)[1]
    markdown = run("report", made.path, "--format", "markdown")[1]
    for text in (table, markdown):
        assert "share one rank: 4; they are left out" in text
        assert f"the largest difference in the last bin: overall {frame['error'][0]:.3f} [" in text
    shares = [
        f"{100 * row['exact']:.1f} [{100 * row['exact_low']:.1f}, {100 * row['exact_high']:.1f}]" for row in rows[1:]
    ]
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    assert "exact match" in lines[0]
    for name, share, line in zip(names[1:], shares, lines[3:], strict=True):
        assert line.split("|")[2].strip() == name
        assert share in line
    status, said, _ = run("report", made.path, "--plots", tmp_path / "plots")
    assert status == 0
    for stem in ("categories_open", "categories_human", "calibration"):
        for form in ("png", "svg"):
            assert f"Wrote {tmp_path / 'plots' / stem}.{form}" in said
            assert (tmp_path / "plots" / f"{stem}.{form}").stat().st_size > 1000
