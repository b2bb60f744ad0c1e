"""Checks of what the rules and metrics of a benchmark require of its items."""

import re

import polars as pl
from pluralbench_runs import plural

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.texts import first_ids
from pluralbench.errors import DataError

TWIN = re.compile("(ref|tied):(.+)")
"""Ids of RewardBench 2's subset Ties: a prompt with one right response, and its twin with several."""
KINDS = ("ref", "tied")


def check_rules(benchmark: Benchmark, items: pl.DataFrame, where: str, *, complete: bool) -> None:
    """Check that items of a style matrix have one response of each style, and each prompt of Ties its twin.

    Args:
        benchmark: The benchmark.
        items: The items of a table.
        where: Name of the table in errors.
        complete: Whether these are all items of the table.

    Raises:
        DataError: If an item has no twin, or not one response of each style.
    """
    if "style_accuracy" in benchmark.metrics:
        right, wrong = (pl.col("rank").list.count_matches(rank) for rank in (1, 2))
        uneven = items.filter(right != wrong)["id"].to_list()
        if uneven:
            raise DataError(
                f"{where} has {plural(len(uneven), 'item')} with more right than wrong responses or "
                f"fewer (ids {first_ids(uneven)}); the style matrix needs one of each style."
            )
    of_ties = [subset for subset in items["subset"].unique() if benchmark.credit_of(subset) == "ties"]
    ids = items.filter(pl.col("subset").is_in(of_ties, nulls_equal=True))["id"].to_list()
    unknown = [row_id for row_id in ids if not TWIN.fullmatch(row_id)]
    if unknown:
        raise DataError(f"{where}: the ids {first_ids(unknown)} of Ties are neither ref:NAME nor tied:NAME.")
    present = set(ids)
    single = [row_id for row_id in ids if twin_of(row_id) not in present]
    if single and complete:
        raise DataError(
            f"{where} has {plural(len(single), 'prompt')} of Ties without a twin (ids "
            f"{first_ids(single)}); add the twins, which count together with them."
        )


def twin_of(item_id: str) -> str:
    """Return the id of an item's twin: of "ref:5", "tied:5"."""
    kind, _, name = item_id.partition(":")
    return f"{KINDS[kind == KINDS[0]]}:{name}"
