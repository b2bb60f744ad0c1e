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


def ledger_of(kind: str) -> Callable[[Path, Path], None]:
    """Write the calls of one kind alone."""

    def write(path: Path, release: Path) -> None:
        frame = read_ledger(release / LEDGER).filter(kind=kind)
        frame.write_parquet(path, metadata={"pluralbench_ledger_format": "1"})

    return write


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (
            ledger_of("rank"),
            ["has no answer for chosen answer for ", ", attempt 1", "a replay sends nothing", "0 of 24"],
        ),
        (ledger_of("chat"), ["has no answer for ranking of the posts of art-01"]),
        (lambda path, _: path.write_bytes(b""), ["is not a ledger"]),
        (lambda path, _: path.mkdir(), ["There is no ledger"]),
    ],
)
def test_a_replay_without_the_right_ledger(
    run: Run, release: Path, tmp_path: Path, make: Callable[[Path, Path], object], parts: list[str]
) -> None:
    make(tmp_path / "ledger", release)
    before = files_of(release)
    refused(run("--replay", tmp_path / "ledger", "--fresh", "--out", release), *parts)
    assert files_of(release) == before
