"""The command `build-personalized`: what works says what to do next, and what fails says so in one sentence.

What all builders promise alike is in tests/end_to_end/test_builder_contract.py.
"""

import json
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from commands import refused
from pluralbench_calls import read_ledger
from pluralbench_release import LEDGER, RECIPE
from releases import files_of
from samples import sample


@pytest.mark.smoke
def test_the_sample_says_what_it_made() -> None:
    out, output = sample("build-personalized")
    for part in ("72 recorded calls, 72 of them new", "Art_and_Entertainment", "hand-written"):
        assert part in output
    assert pl.read_parquet(out / "data/*/test.parquet").height == 24
    assert json.loads((out / "provenance/statistics.json").read_text(encoding="utf-8"))["drops"] == []
    assert tomllib.loads((out / RECIPE).read_text(encoding="utf-8"))["source"]["locations"] == ["sample"]


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A copy of the sample's release, to be endangered."""
    return shutil.copytree(sample("build-personalized").release, tmp_path / "release")


def test_a_replay_without_the_right_ledger_leaves_the_release(run: Run, release: Path, tmp_path: Path) -> None:
    rankings = read_ledger(release / LEDGER).filter(kind="rank")
    rankings.write_parquet(tmp_path / "ledger", metadata={"pluralbench_ledger_format": "1"})
    before = files_of(release)
    result = run("--replay", tmp_path / "ledger", "--fresh", "--out", release)
    refused(result, "chosen answer for ", "0 of 24")
    assert files_of(release) == before
