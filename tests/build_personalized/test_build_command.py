"""The command `build-personalized`: what works says what to do next, and what fails says so in one sentence.

What all builders promise alike is in tests/end_to_end/test_builder_contract.py.
"""

import json
import tomllib

import polars as pl
import pytest
from pluralbench_release import RECIPE
from samples import sample


@pytest.mark.smoke
def test_the_sample_says_what_it_made() -> None:
    out, output = sample("build-personalized")
    for part in ("72 recorded calls, 72 of them new", "Art_and_Entertainment", "hand-written"):
        assert part in output
    assert pl.read_parquet(out / "data/*/test.parquet").height == 24
    assert json.loads((out / "provenance/statistics.json").read_text(encoding="utf-8"))["drops"] == []
    assert tomllib.loads((out / RECIPE).read_text(encoding="utf-8"))["source"]["locations"] == ["sample"]
