"""Recompute a finished run's numbers without some of its items, such as contaminated ones; nothing is scored again."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import polars as pl
from pluralbench_release import read_tables
from pluralbench_runs import one_line, plural

from pluralbench.errors import RunError
from pluralbench.metrics.frame import metrics_frame
from pluralbench.results.kinds import numbers_of_run
from pluralbench.results.runs import Run
from pluralbench.results.suite import SuiteRun

LISTED = ("benchmark", "config", "id")
"""Columns of a list of items."""


class ItemList(NamedTuple):
    """Items of benchmarks, as `contamination --out` lists them."""

    path: Path
    items: pl.DataFrame


class WithoutItems(NamedTuple):
    """A run without some of its items.

    Attributes:
        run: The run with the other items and their metrics. It has no numbers of baselines, which need the texts.
        removed: Number of items that were removed.
        listed: Number of listed items of the run's benchmark, in the run or not.
    """

    run: Run
    removed: int
    listed: int


def read_item_list(path: Path) -> ItemList:
    """Read a list of items: a table with the columns benchmark, config and id.

    Raises:
        RunError: A column is missing, or a cell is empty.
        TablesError: The file cannot be read.
    """
    if path.is_file() and path.stat().st_size == 0 and path.suffix == ".jsonl":  # nothing is contaminated
        return ItemList(path, pl.DataFrame(schema=dict.fromkeys(LISTED, pl.String)))
    if not path.is_file():
        raise RunError(
            f"{one_line(str(path), 200)} is not a file; give the output of `pluralbench contamination --out`."
        )
    (frame,) = read_tables(str(path)).frames.values()
    missing = next((name for name in LISTED if name not in frame.columns), None)
    if missing is not None:
        raise RunError(
            f"{path} has no column `{missing}`; a list of items has the columns {', '.join(LISTED)}, as "
            "`pluralbench contamination --out` writes them."
        )
    nested = next((name for name in LISTED if frame.schema[name].is_nested()), None)
    if nested is not None:
        raise RunError(f"{path} has lists or objects in the column `{nested}`; a list of items has a text or a number.")
    items = frame.select(pl.col(name).cast(pl.String) for name in LISTED)
    for name in LISTED:
        if items[name].has_nulls():
            row = items[name].is_null().to_list().index(True) + 1
            raise RunError(f"{path}: row {row:,} has no `{name}`; add it, or remove the row.")
    return ItemList(path, items.unique(maintain_order=True))


def without_items(run: Run, items: pl.DataFrame) -> WithoutItems:
    """Recompute the metrics of a run without some items."""
    own = items.filter(pl.col("benchmark") == run.config.benchmark.name).select("config", "id").unique()
    kept = run.items.join(own, on=["config", "id"], how="anti", maintain_order="left")
    counts = [frame.select("config", "id").n_unique() for frame in (run.items, kept)]
    frames = {"items": kept}
    for name in run.frames_of_items:
        frames[name] = run.frame(name).join(kept, on=["config", "id"], how="semi", maintain_order="left")
    metrics = numbers_of_run(run.config, run.result, frames) if kept.height else metrics_frame(())
    return WithoutItems(replace(run, metrics=metrics, frames=frames), counts[0] - counts[1], own.height)


def emptied_subsets(run: Run, other: Run) -> str:
    """Name the subsets, by section, of which no item is left; "" if there are none."""
    sections = run.config.benchmark.description.section_of
    (before, after) = (one.items["subset"].drop_nulls().unique(maintain_order=True).to_list() for one in (run, other))
    left, places = set(after), dict.fromkeys(sections.get(name) for name in before)
    parts = []
    for section in places:
        own = [name for name in before if sections.get(name) == section]
        gone = [name for name in own if name not in left]
        if gone:
            of = f"{section}: " if section else ""
            parts.append(f"{of}{len(gone):,} of {len(own):,} subsets ({', '.join(gone)})")
    return "; ".join(parts)


def suite_without_items(suite: SuiteRun, items: pl.DataFrame) -> SuiteRun:
    """Recompute the runs of a suite without some items; the model's name says how many were removed."""
    others = {name: without_items(run, items) for name, run in suite.runs.items()}
    removed = sum(other.removed for other in others.values())
    model = suite.record.model.model_copy(update={"name": f"{suite.model} without {plural(removed, 'item')}"})
    record = suite.record.model_copy(update={"model": model})
    return replace(suite, record=record, runs={name: other.run for name, other in others.items()})
