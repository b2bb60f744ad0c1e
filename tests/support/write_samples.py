"""Writes the samples of five benchmarks in the evaluator's wheel from the releases that the builders make bare.

`uv run --group test python tests/support/write_samples.py`, after a builder's own sample has changed.
"""

from collections import Counter
from pathlib import Path

import polars as pl
from members import ROOT
from pluralbench_release import read_manifest
from samples import sample

FOLDER = ROOT / "evaluators" / "src" / "pluralbench" / "data" / "samples"
NAMES = ("chinese", "multilingual", "persona-judge", "personalized")
BUILDERS = {**{name: [f"build-{name}"] for name in NAMES}, "personalized-training": ["build-personalized", "training"]}


def tables(*builder: str) -> dict[str, pl.DataFrame]:
    """The rows of the release that a builder makes bare: those to test on, or every split of a config with several."""
    release = sample(*builder).release
    made = read_manifest(release).tables
    splits = Counter(table.config for table in made)
    return {
        f"{table.config}_{table.split}" if splits[table.config] > 1 else table.config: pl.read_parquet(
            release / table.path
        )
        for table in made
        if splits[table.config] > 1 or table.split == "test"
    }


def write(folder: Path, frames: dict[str, pl.DataFrame]) -> None:
    """A JSON Lines file for each of these, in place of those that were there."""
    for old in folder.glob("*.jsonl"):
        old.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    for config, frame in frames.items():
        frame.write_ndjson(folder / f"{config}.jsonl")


if __name__ == "__main__":
    for name, builder in BUILDERS.items():
        write(FOLDER / name, tables(*builder))
