"""`pluralbench list`: what benchmarks there are, for people and as JSON, without a network."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pluralbench import known_benchmarks
from pluralbench.commands.printing import console
from pluralbench.data.benchmark_entries import benchmark_entries
from pluralbench.data.suites import known_suites

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "width", 80)


def test_every_benchmark_is_listed_with_where_it_comes_from(run: Command) -> None:
    status, said, error = run("list")
    assert (status, error) == (0, "")
    assert max(map(len, said.splitlines())) <= 80
    blocks = said.split("\n\n")
    suites = [f"{name} (suite)" for name in known_suites()]
    assert [block.partition(":")[0] for block in blocks] == [*known_benchmarks(), *suites]
    for block, described in zip(blocks, benchmark_entries().values(), strict=False):
        assert described.title in block
        assert "other data: " in block
        commit = f"at {described.revision}" if described.revision else "(not pinned)"
        assert f"data: {described.data} on the Hub {commit}" in " ".join(block.split()) or described.data is None


def test_a_file_is_not_on_the_hub(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    for location in ("data.jsonl", "./mine/x", "mine", "/data/rows.csv"):
        (tmp_path / "mine.toml").write_text(f"title = 'Mine'\ndata = '{location}'\n", encoding="utf-8")
        status, said, _ = run("list", "mine.toml")
        assert (status, f"data: {location}\n" in said, "on the Hub" in said) == (0, True, False)


def test_the_rows_are_json(run: Command) -> None:
    rows = {row["name"]: row for row in json.loads(run("list", "--json")[1])}
    assert list(rows) == [*known_benchmarks(), *known_suites()]
    assert rows["release"]["columns"]["RMB"] == ["rmb-pairs", "rmb-best-of-n"]
    assert (rows["release"]["verbs"], rows["all"]["title"]) == (["suite"], known_suites()["all"].title)
    whole = rows["personalized"]
    assert (whole["items"], whole["unit"], whole["license"]) == (2830, "pairs", "Apache-2.0")
    assert whole["hub"] == "QiyaoMa/Personalized-RewardBench"
    assert whole["verbs"] == ["score", "judge", "train", "best-of-n", "optimize"]
    assert rows["multilingual"]["items"] == 23 * 2869 + 800
    assert len(rows["multilingual"]["revision"]) == 40
    assert whole["revision"] is None
    assert rows["chinese"]["items"] == 1146 + 1346
    assert (rows["chinese"]["unit"], rows["pairs"]["items"]) == ("rankings", None)
    assert (rows["persona-judge"]["verbs"], rows["prompts"]["verbs"]) == (["judge-personas"], ["best-of-n", "optimize"])
    assert "accuracy and exact match" in rows["chinese"]["overall"]


def test_a_benchmark_of_ones_own_is_listed_beside_others(run: Command, tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(
        'title = "Mine"\ndata = "org/name"\noverall = "configs"\n[columns]\nprompt = ["question"]\n'
        '[card]\nitems = 1200\nlicense = "CC0-1.0"\n',
        encoding="utf-8",
    )
    status, said, _ = run("list", own, "pairs", "rankings")
    assert status == 0
    assert said.splitlines()[:3] == [
        f"{own}: Mine",
        "  1,200 pairs (CC0-1.0); overall: unweighted mean of the configs",
        "  data: org/name on the Hub (not pinned)",
    ]
    assert "  pairs of your own; overall: mean over all items" in said
    assert "  rankings of your own; overall: mean over all pairs of responses" in said


def test_a_suite_is_listed_with_the_benchmarks_of_its_columns(run: Command) -> None:
    status, said, _ = run("list", "plural")
    assert status == 0
    assert said.startswith("plural (suite): Benchmarks in which")
    assert "PersonalRewardBench: arena-personalized, prism-personalized" in " ".join(said.split())
    assert [row["name"] for row in json.loads(run("list", "plural", "pairs", "--json")[1])] == ["pairs", "plural"]
