"""Paths that no system has end in a sentence from Python too."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pluralbench
import pytest
from pluralbench import DataConfig, compare, correlate, load_run, score
from pluralbench.reports.runs import rows_of
from pluralbench_runs import UserError
from verbs import by_length
from written_tables import write

LONG, HALF = "x" * 5000, "\ud800x"
CALLS: dict[str, Callable[[str, Path], Any]] = {
    "data": lambda path, folder: score(by_length, benchmark="pairs", data=path, out=folder / "o"),
    "out": lambda path, folder: score(by_length, benchmark="pairs", data="sample", out=path),
    "model": lambda path, folder: score(path, benchmark="pairs", data="sample", out=folder / "o"),
    "load_run": lambda path, folder: load_run(path),
    "compare": lambda path, folder: compare(path, path),
    "correlate": lambda path, folder: correlate(path, path),
}


@pytest.mark.parametrize("suffix", ["", ".toml"])
@pytest.mark.parametrize("name", [LONG, HALF], ids=["long", "surrogate"])
@pytest.mark.parametrize("call", CALLS)
def test_a_path_of_no_file_system_is_refused_in_a_sentence(tmp_path: Path, call: str, name: str, suffix: str) -> None:
    with pytest.raises(UserError):
        CALLS[call](f"{tmp_path}/{name}{suffix}", tmp_path)


def test_subsets_without_sections_have_rows_in_the_detailed_table(tmp_path: Path) -> None:
    rows = [
        {"id": n, "prompt": f"{n}?", "chosen": "yes" * (n % 3), "rejected": "no", "kind": "abc"[n % 3]}
        for n in range(12)
    ]
    data = DataConfig(location=str(write(tmp_path / "p.jsonl", rows)), columns={"subset": "kind"}, on_empty="keep")
    run = pluralbench.score(by_length, benchmark="pairs", data=data, out=tmp_path / "run")
    found = {name: (shares["accuracy"].value, counts.get("items")) for name, shares, counts in rows_of(run)}
    assert {name: value for name, (value, _) in found.items()} == {
        "overall": 2 / 3,
        "p": 2 / 3,
        "p: a": 0.0,
        "p: b": 1.0,
        "p: c": 1.0,
    }
