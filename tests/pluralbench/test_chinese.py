"""The Chinese benchmark from end to end: a reward model and a judge on it, by the command."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import verbs
from chat_server import ChatServer, Reply, serve
from chinese_tables import CATEGORIES, Row, published, released, rows_of
from pluralbench import load_run
from pluralbench.contract import Group
from pluralbench.results import Run
from pluralbench.results.evaluations import ScoreRunConfig
from pluralbench_runs import OutputError
from reward_models import classifier_alone, user
from verbs import by_length, scoring, work

Command = Callable[..., tuple[int, str, str]]
SHOWN = re.compile(r"<response_[ab]>\n(.*?)\n</response_[ab]>", re.DOTALL)


def constant(groups: Sequence[Group]) -> list[list[float]]:
    return [[1.0] * len(group.responses) for group in groups]


@pytest.fixture
def scored(run: Command, model: str, tmp_path: Path) -> Callable[..., Run]:
    """`scored(data, "--mode", "exact")`: the run of a tiny model by the command."""

    def score(data: Path, *words: str, by: str = model) -> Run:
        out = tmp_path / "runs" / str(len(list(tmp_path.glob("runs/*"))))
        base = ("score", by, "--benchmark", "chinese", "--data", data, "--out", out, "--device", "cpu")
        status, said, error = run(*base, *words)
        assert status == 0, said + error
        return load_run(out)

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
    assert run.config.benchmark.title == "CheemsBench (bench)"
    expected = by_hand(run)
    for config, (accuracy, exact) in expected.items():
        assert run.estimate("accuracy", config=config).value == pytest.approx(accuracy)
        assert run.estimate("exact_match", config=config).value == pytest.approx(exact)
        assert run.estimate("exact_match", config=config).n == 6, "prompts whose responses are all tied are left out"
        assert run.count("equal", config=config) == 2, "and counted"
        assert run.names("category", config=config) == sorted(CATEGORIES[config])
        assert run.estimate("pooled_accuracy", config=config).n == sum(2 * pairs for pairs in (8, 10, 6))
    headline = run.headline
    assert headline.value == pytest.approx(fmean(map(fmean, expected.values())))
    assert 0 <= (headline.low or 0) <= (headline.value or 0) <= (headline.high or 1) <= 1
    for place, metric in enumerate(("accuracy", "exact_match")):
        assert run.estimate(metric).value == pytest.approx(fmean(pair[place] for pair in expected.values()))


@pytest.mark.heavy
def test_a_release_of_ours_gets_the_same_numbers(scored: Callable[..., Run], tmp_path: Path) -> None:
    theirs, ours = scored(published(tmp_path / "bench")), scored(released(tmp_path / "release"))
    assert ours.items["score"].to_list() == theirs.items["score"].to_list()
    assert ours.metrics.equals(theirs.metrics)


@pytest.mark.heavy
def test_groups_of_five_share_their_prompt_in_the_fast_mode(
    scored: Callable[..., Run], model: str, tmp_path: Path
) -> None:
    data = published(tmp_path / "bench")
    fast, exact = scored(data), scored(data, "--mode", "exact")
    assert [one.config.scoring.mode for one in (fast, exact) if isinstance(one.config, ScoreRunConfig)] == [
        "fast",
        "exact",
    ]
    done = work(fast)
    assert done.conversations == 2 * 8 * 5
    assert done.computed_tokens <= done.unique_tokens, "a prompt is computed once for its five responses"
    assert work(exact).computed_tokens == exact.items["tokens"].sum()
    shared = exact.items["tokens"].sum() - done.computed_tokens
    prompts = exact.items.group_by("config", "id").len().height
    assert shared >= prompts * 4 * len("第0个问题：龙井茶怎么泡才好喝？"), "four of five copies of at least the prompt"
    apart = (fast.items["score"] - exact.items["score"]).abs().to_list()
    tolerance = scoring(fast).tolerance
    assert tolerance is not None
    assert 0 < max(apart) <= tolerance
    groups = [
        Group(str(place), user(row["input"]), [one["content"] for one in row["responses"]])
        for config in ("human", "open")
        for place, row in enumerate(rows_of(config))
    ]
    alone = [value for values in classifier_alone(model, groups) for value in values]
    assert fast.items["score"].to_list() == pytest.approx(alone, abs=tolerance + 1e-6)
    if not scoring(fast).decisions_within_tolerance:
        assert fast.headline == exact.headline


def test_a_constant_scorer_gets_nothing_but_by_the_legacy_rules(tmp_path: Path) -> None:
    data = published(tmp_path / "bench")
    words: dict[str, Any] = {"benchmark": "chinese", "data": data}
    strict = verbs.score(constant, out=tmp_path / "strict", **words)
    legacy = verbs.score(constant, out=tmp_path / "legacy", legacy=True, **words)
    for config in CATEGORIES:
        assert (
            strict.estimate("accuracy", config=config).value,
            strict.estimate("exact_match", config=config).value,
        ) == (0.0, 0.0)
        assert (
            legacy.estimate("accuracy", config=config).value,
            legacy.estimate("exact_match", config=config).value,
        ) == (0.0, 1.0)
        assert legacy.estimate("exact_match", config=config).n == 8, "prompts without a pair count too"
    assert (strict.headline.value, legacy.headline.value) == (0.0, 0.5)
    assert "legacy rules" in legacy.config.benchmark.rule
    assert strict.estimate("ece").value == pytest.approx(0.5)
    assert legacy.estimate("ece").value is None, "all differences are the largest one"
    with pytest.raises(OutputError, match="benchmark_digest"):
        verbs.score(constant, out=tmp_path / "strict", legacy=True, **words)


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


@pytest.mark.heavy
def test_a_judge_is_asked_about_every_pair_in_both_orders(run: Command, judge: ChatServer, tmp_path: Path) -> None:
    data, out = published(tmp_path / "bench"), tmp_path / "run"
    words = ("judge", "j", "--benchmark", "chinese", "--data", data, "--base-url", judge.base_url, "--out", out)
    status, said, error = run(*words)
    assert status == 0, error
    made = load_run(out)
    assert len(judge.requests) == 2 * 96
    assert all(body["max_tokens"] == 512 and body["temperature"] == 0 for body in judge.requests)
    halves = []
    for config, categories in CATEGORIES.items():
        found = [(row["category"][0], longer(row)) for row in rows_of(config)]
        accuracies = [[gap > 0 for own, gaps in found if own == name for gap in gaps] for name in categories]
        exact = [[all(gap > 0 for gap in gaps) for own, gaps in found if own == name and gaps] for name in categories]
        assert made.estimate("accuracy", config=config).value == pytest.approx(fmean(map(fmean, accuracies)))
        assert made.estimate("exact_match", config=config).value == pytest.approx(fmean(map(fmean, exact)))
        assert made.count("ties", config=config) == sum(gap == 0 for _, gaps in found for gap in gaps)
        halves += [fmean(map(fmean, accuracies)), fmean(map(fmean, exact))]
    assert made.headline.value == pytest.approx(fmean(halves))
    assert made.estimate("ece").value is None, "verdicts have no margin"
    assert "Excluded from accuracy: 4 prompts whose responses all share one rank." in said
    assert "calibration" not in said


@pytest.mark.heavy
def test_a_legacy_judge_is_asked_once_a_pair(run: Command, judge: ChatServer, tmp_path: Path) -> None:
    data, out = published(tmp_path / "bench"), tmp_path / "run"
    words = ("judge", "j", "--benchmark", "chinese", "--data", data, "--base-url", judge.base_url, "--out", out)
    status, _, error = run(*words, "--legacy", "--reply-format", "brief", "--max-tokens", "16", "--attempts", "1")
    assert status == 0, error
    made = load_run(out)
    assert len(judge.requests) == 96
    assert {body["max_tokens"] for body in judge.requests} == {16}
    assert made.config.judge_setting("orders") == "one"
    assert made.count("ties") == 0
    first = made.items["verdict_chosen_first"].is_not_null().sum()
    assert 30 <= first <= 66, "about half of them"
    for config in CATEGORIES:
        assert made.estimate("exact_match", config=config).n == 6, "a prompt without a pair is never asked about"


@pytest.mark.heavy
def test_a_judge_that_rates_is_counted_like_a_reward_model(run: Command, tmp_path: Path) -> None:
    data = published(tmp_path / "bench")
    with serve(lambda *_: Reply("[[7]]")) as server:
        base = (
            "judge",
            "j",
            "--benchmark",
            "chinese",
            "--data",
            data,
            "--base-url",
            server.base_url,
            "--protocol",
            "pointwise",
        )
        for name, words, expected in (("strict", (), 0.0), ("legacy", ("--legacy",), 1.0)):
            status, _, error = run(*base, "--out", tmp_path / name, *words)
            assert status == 0, error
            made = load_run(tmp_path / name)
            assert made.estimate("exact_match").value == expected
            assert made.estimate("accuracy").value == 0.0
        assert len(server.requests) == 2 * 2 * 8 * 5


@pytest.mark.heavy
def test_the_report_has_a_row_for_each_category(run: Command, tmp_path: Path) -> None:
    out = tmp_path / "run"
    made = verbs.score(by_length, benchmark="chinese", data=published(tmp_path / "bench"), out=out)
    rows = json.loads(run("report", out, "--format", "json", "--detail")[1])
    assert [
        row["category"] for row in rows if row["category"] and row["metric"] == "accuracy" and not row["baseline"]
    ] == [name for config in ("human", "open") for name in sorted(CATEGORIES[config])]
    table = " ".join(run("report", out)[1].split())
    assert "(bench), 12 of" in table
    assert "16 items" in table
    table, markdown = (run("report", out, "--detail", "--format", form)[1] for form in ("table", "markdown"))
    for text in (" ".join(table.split()), markdown):
        assert "Excluded from accuracy: 4 prompts whose responses all share one rank." in text
    for config in CATEGORIES:
        own = made.estimate("exact_match", config=config)
        assert f"{100 * (own.value or 0):.1f} [{100 * (own.low or 0):.1f}, {100 * (own.high or 0):.1f}]" in markdown
    status, said, _ = run("report", out, "--plots", tmp_path / "plots")
    assert status == 0
    assert "calibration" not in said, "a function's scores may be anything"
    for stem in ("categories_open", "categories_human"):
        for form in ("png", "svg"):
            assert f"Wrote {tmp_path / 'plots' / stem}.{form}" in said
            assert (tmp_path / "plots" / f"{stem}.{form}").stat().st_size > 1000
