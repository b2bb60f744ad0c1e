"""Notes on the data of a run: subsets, sections and rows that are not part of its numbers."""

from collections.abc import Sequence

import polars as pl
from pluralbench_runs import plural

from pluralbench.results.runs import Run
from pluralbench.results.summary import items_text

NAMED = 5  # names or ids in a note


def unsectioned(run: Run) -> str:
    """List the subsets that are in no section, the largest first, as "new (297 items), newer (3 items)"."""
    benchmark = run.config.benchmark.description
    if not benchmark.sections:
        return ""
    items = run.items.filter(~pl.col("config").is_in(sorted(benchmark.outside_overall)))
    own = items.filter(pl.col("subset").is_null() | ~pl.col("subset").is_in(list(benchmark.section_of)))
    counts = own.select("config", "id", "subset").unique()["subset"].value_counts(sort=True)
    return list_names([f"{name or 'no subset'} ({items_text([n], n)})" for name, n in counts.iter_rows()])


def unmatched(run: Run) -> str:
    """List the subsets of sections that have no items."""
    sectioned, present = run.config.benchmark.description.section_of, set(run.items["subset"])
    return list_names([name for name in sectioned if name not in present])


def empty_sections(run: Run) -> str:
    """List the sections without a number, which leave the run without an overall number."""
    benchmark = run.config.benchmark.description
    if run.headline.value is not None:
        return ""
    configs = [config for config in run.names("config", "pooled_accuracy") if config not in benchmark.outside_overall]
    return list_names(
        [
            name if len(configs) == 1 else f"{name} of {config}"
            for config in configs
            for name in benchmark.sections
            if run.estimate("accuracy", config=config, section=name).value is None
        ]
    )


def left_out(run: Run) -> str:
    """Return how many rows the benchmark does not select, by config if there are several."""
    counts = run.config.data.left_out
    several = len(run.config.data.rows) > 1
    return ", ".join(f"{plural(n, 'row')}{f' of {config}' * several}" for config, n in counts.items())


def unpaired(run: Run) -> str:
    """Return how many prompts of Ties have no twin with a score; see `pluralbench.metrics.ties`."""
    count = run.count("unpaired")
    return plural(count, "prompt") if count else ""


def list_names(names: Sequence[str]) -> str:
    """List the first names and the number of the others, as "a, b, c, d, e, 3 more"."""
    more = [f"{len(names) - NAMED:,} more"] if len(names) > NAMED else []
    return ", ".join([*names[:NAMED], *more])
