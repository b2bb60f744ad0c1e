"""Writes the samples of four benchmarks in the evaluator's wheel from the releases that the builders make bare.

`uv run --group test python tests/support/write_samples.py`, after a builder's own sample has changed.
"""

from pathlib import Path

import polars as pl
from members import ROOT
from pluralbench_release import read_tables
from samples import sample

FOLDER = ROOT / "evaluators" / "src" / "pluralbench" / "data" / "samples"
BUILDERS = {name: f"build-{name}" for name in ("chinese", "multilingual", "persona-judge", "personalized")}


def tables(builder: str) -> dict[str, pl.DataFrame]:
    """The rows of each config of the release that a builder makes bare, the split `test`."""
    return read_tables(str(sample(builder).release)).frames


def write(folder: Path, frames: dict[str, pl.DataFrame]) -> None:
    """A JSON Lines file for each config, in place of those that were there."""
    for old in folder.glob("*.jsonl"):
        old.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    for config, frame in frames.items():
        frame.write_ndjson(folder / f"{config}.jsonl")


if __name__ == "__main__":
    for name, builder in BUILDERS.items():
        write(FOLDER / name, tables(builder))
