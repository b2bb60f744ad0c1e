"""The recipes of `docs/how-to/benchmark.md` for published files, on rows of their shapes."""

import json
import runpy
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from blocks import PAGES, blocks
from pluralbench.results import Run
from published_rows import write_published
from verbs import by_length, score

(PAGE,) = (page for page in PAGES if page.parts[-2:] == ("how-to", "benchmark.md"))
CODE = {block.code.partition("\n")[0]: block.code for block in blocks(PAGE)}
PYTHON = {
    name: code
    for code in (block.code for block in blocks(PAGE) if block.language == "python")
    for name in ("hh-rlhf.jsonl", "open-assistant.jsonl")
    if f'"{name}"' in code
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The published files, in the working directory."""
    write_published(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(data: str) -> dict[str, Any]:
    """The benchmark and the columns of the page's command that reads this data."""
    lines = [line for block in blocks(PAGE) if block.language == "console" for line in block.code.splitlines()]
    (words,) = (shlex.split(line) for line in lines if data in line)
    values = dict(pairwise(words))
    columns = [value for name, value in pairwise(words) if name == "--column"]
    return {"benchmark": values["--benchmark"], "data": values["--data"], "columns": columns}


def scored(folder: Path, data: str) -> Run:
    options = command(data)
    return score(by_length, **options, out=folder / "runs")


def test_benchmarks_read_the_files_that_were_downloaded(folder: Path) -> None:
    judgebench = scored(folder, "judgebench/gpt.jsonl")
    assert judgebench.items_total == 3
    assert judgebench.headline.value == pytest.approx(2 / 3)
    rm_bench = score(by_length, benchmark="rm-bench", data="rm-bench/total_dataset.json", out=folder / "styles")
    assert rm_bench.estimate("style_accuracy", level="easy").value == 1.0
    assert rm_bench.headline.value is not None
    pairs = score(by_length, benchmark="rmb-pairs", data="RMB_dataset/Pairwise_set", out=folder / "pairs")
    assert (pairs.items_total, pairs.headline.value) == (4, 0.0)
    best = score(by_length, benchmark="rmb-best-of-n", data="RMB_dataset/BoN_set", out=folder / "best")
    assert best.items_counted == 4
    assert best.items["score"].to_list()[:3] == [6.0, 6.0, 5.0]


def test_alpaca_eval_has_a_file_of_a_few_lines(folder: Path) -> None:
    (folder / "alpaca-eval.toml").write_text(CODE["# alpaca-eval.toml"], encoding="utf-8")
    run = scored(folder, "annotations.json")
    assert [run.count(name) for name in ("wins", "losses", "equal")] == [1, 1, 1]
    (folder / "solutions.toml").write_text(CODE["# solutions.toml"], encoding="utf-8")
    run = score(by_length, benchmark="solutions.toml", out=folder / "solutions")
    assert (run.items_counted, run.items.height) == (2, 6)


def test_transcripts_are_split_into_prompt_and_responses(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "block.py").write_text(PYTHON["hh-rlhf.jsonl"], encoding="utf-8")
    runpy.run_path("block.py")
    assert capsys.readouterr().out == "1 pairs left out\n"
    first, _ = map(json.loads, (folder / "hh-rlhf.jsonl").read_text(encoding="utf-8").splitlines())
    assert [message["role"] for message in first["prompt"]] == ["user", "assistant", "user"]
    assert (first["prompt"][-1]["content"], first["chosen"], first["rejected"]) == ("Why?", "It is warm.", "Because.")
    assert scored(folder, "hh-rlhf.jsonl").count("wins") == 2


def test_trees_of_messages_become_rankings(folder: Path) -> None:
    (folder / "block.py").write_text(PYTHON["open-assistant.jsonl"], encoding="utf-8")
    runpy.run_path("block.py")
    run = scored(folder, "open-assistant.jsonl")
    assert (run.items_total, run.items.height) == (6, 3 * (2 + 3))
    assert run.items["cluster"].n_unique() == 3
    assert run.headline.n == 3 * (1 + 3)
