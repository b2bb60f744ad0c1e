"""Draw some items of a benchmark, stratified by subset.

For each seed, the units of a benchmark (items, or items that belong together) have one order; a draw of N items is the
longest beginning of that order with at most N items. Draws of one seed are therefore nested, and the order of the data
does not change them. The order starts with one unit of each stratum. Each further unit is of the stratum that has the
fewest drawn items for its weight in the overall number (the method of Webster and Sainte-Laguë).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import accumulate, takewhile

import polars as pl
from pluralbench_runs import rng_for

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.credits import credit_of
from pluralbench.data.fields import Cell, Stratum
from pluralbench.data.rules import rule_of
from pluralbench.errors import DataError

Unit = list[str]
"""Ids of items that are drawn together."""


def draw_items(
    benchmark: Benchmark, configs: Mapping[str, pl.DataFrame], number: int, seed: int
) -> tuple[dict[str, pl.DataFrame], tuple[Stratum, ...]]:
    """Draw items, stratified by config and subset, and return them in the order of the data, with the strata.

    Items without a weight in the overall number are left out, except the originals of drawn translations, which are not
    counted. If there are fewer than `number` items, all are drawn; one fewer can be if items are drawn together (twins
    of Ties). The benchmark is fitted to all items (`Benchmark.fit_to`).

    Raises:
        DataError: If the number does not suffice for one unit of each stratum, or no item has a weight.
    """
    units = _units_by_stratum(benchmark, configs)
    sizes = {cell: sum(map(len, own)) for cell, own in units.items()}
    weights = stratum_weights(benchmark, sizes)
    cells = [cell for cell, weight in weights.items() if weight > 0]
    if not cells:
        raise DataError(
            f"`items={number}` draws none, since no item has a weight in the overall number of {benchmark.title}; "
            "leave it out, or pass `limit`."
        )
    shuffled = [sorted(units[cell], key=partial(_key, seed, cell)) for cell in cells]
    smallest = sum(len(own[0]) for own in shuffled)
    if number < smallest:
        raise DataError(
            f"`items={number}` is too few for an item of each of the {len(cells):,} subsets of {benchmark.title}; "
            f"pass at least `items={smallest}`."
        )
    counts = allocate([weights[cell] for cell in cells], [[len(unit) for unit in own] for own in shuffled], number)
    drawn = {
        cell: [item for unit in own[:count] for item in unit]
        for cell, own, count in zip(cells, shuffled, counts, strict=True)
    }
    strata = tuple(
        Stratum(config=config, subset=subset, drawn=len(ids), items=sizes[config, subset])
        for (config, subset), ids in drawn.items()
    )
    return _drawn_items(benchmark, configs, drawn), strata


def stratum_weights(benchmark: Benchmark, sizes: Mapping[Cell, int]) -> dict[Cell, float]:
    """Return the weight of each stratum in the overall number, from the numbers of items.

    The weights add up to 1; all are 0 if a config lacks a section, since there is no overall number then.
    """
    ours: dict[str, dict[str | None, int]] = {}
    for (config, subset), size in sizes.items():
        if config not in benchmark.outside_overall:
            ours.setdefault(config, {})[subset] = size
    weights = rule_of(benchmark).weights(benchmark, ours)
    return {cell: weights.get(cell, 0.0) for cell in sizes}


def allocate(weights: Sequence[float], sizes: Sequence[Sequence[int]], number: int) -> list[int]:
    """Return how many units to draw of each stratum, by its weight above 0 and the sizes of its units in order.

    `number` is the maximum sum of the sizes, at least that of the first units.
    """
    order = sorted(
        # The first units come first.
        ((2 * before + 1) / weight if before else 0.0, place, size)
        for place, (weight, own) in enumerate(zip(weights, sizes, strict=True))
        for before, size in zip(accumulate(own, initial=0), own, strict=False)
    )
    within = takewhile(lambda drawn: drawn <= number, accumulate(size for *_, size in order))
    counts = Counter(place for (_, place, _), _ in zip(order, within, strict=False))
    return [counts[place] for place in range(len(sizes))]


def _units_by_stratum(benchmark: Benchmark, configs: Mapping[str, pl.DataFrame]) -> dict[Cell, list[Unit]]:
    strata: dict[Cell, dict[str, Unit]] = {}
    for config, items in configs.items():
        for subset, item_id in items.select("subset", "id").iter_rows():
            unit = credit_of(benchmark, subset).unit(item_id)
            strata.setdefault((config, subset), {}).setdefault(unit, []).append(item_id)
    names = sorted(strata, key=lambda cell: (cell[0], cell[1] or ""))
    return {cell: [sorted(unit) for unit in strata[cell].values()] for cell in names}


def _key(seed: int, cell: Cell, unit: Unit) -> tuple[float, Unit]:
    return rng_for(seed, "items", cell[0], *unit).random(), unit


def _drawn_items(
    benchmark: Benchmark, configs: Mapping[str, pl.DataFrame], drawn: Mapping[Cell, Sequence[str]]
) -> dict[str, pl.DataFrame]:
    ids: dict[str, list[str]] = {}
    for (config, _), own in drawn.items():
        ids.setdefault(config, []).extend(own)
    if benchmark.reference is not None:
        ids[benchmark.reference.config] = [item_id for own in ids.values() for item_id in own]
    return {config: items.filter(pl.col("id").is_in(ids[config])) for config, items in configs.items() if config in ids}
