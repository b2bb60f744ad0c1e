"""No output of a command replaces what the command reads, or a part of a run."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pluralbench
import pytest
from releases import files_of
from verbs import by_text
from written_tables import write

Rows = list[dict[str, Any]]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def place(pairs: Callable[..., Rows], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a training set, a benchmark's data and list of items, a run and a suite's run."""
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("train.jsonl", "pairs.jsonl")):
        write(tmp_path / name, pairs(9, seed=seed))
    write(tmp_path / "listed.jsonl", [{"benchmark": "pairs", "config": "default", "id": "none"}])
    (tmp_path / "suite.toml").write_text(
        'title = "t"\n[[columns]]\nname = "A"\nbenchmarks = [{ name = "pairs", location = "pairs.jsonl" }]\n',
        encoding="utf-8",
    )
    pluralbench.score(by_text, benchmark="pairs", data="pairs.jsonl", out="run")
    return tmp_path


CONTAMINATION = ["contamination", "train.jsonl", "--benchmark", "pairs", "--data", "pairs=pairs.jsonl", "--out"]
REFUSED: list[Sequence[str]] = [
    [*CONTAMINATION, "train.jsonl"],
    [*CONTAMINATION, "pairs.jsonl"],
    [*CONTAMINATION, "run/items.parquet"],
    ["report", "run", "--html", "run/run.json"],
    ["report", "run", "--out", "run/metrics.json"],
    ["report", "run", "--without", "listed.jsonl", "--out", "listed.jsonl"],
    ["report", "run", "--html", "pairs.jsonl"],
    ["suite", "local", "--suite", "suite.toml", "--html", "run/run.json"],
]


def test_an_input_and_a_part_of_a_run_are_not_replaced(place: Path, run: Command) -> None:
    before = files_of(place)
    for words in REFUSED:
        status, _, log = run(*words)
        assert (status, words[-1] in log) == (2, True), words
        assert "would be overwritten; choose another file." in " ".join(log.split()), words
        assert files_of(place) == before, words


def test_an_earlier_output_is_replaced(place: Path, run: Command) -> None:
    for words in ([*CONTAMINATION, "out.jsonl"], ["report", "run", "--html", "run/page.html", "--out", "row.md"]) * 2:
        assert run(*words)[0] == 0
