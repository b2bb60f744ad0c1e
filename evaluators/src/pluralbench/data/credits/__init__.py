"""How items count: the credit from 0 to 1 that an item gets for the decisions on its responses.

A benchmark's description names the rule of each subset (`Benchmark.credit`). Each rule is as published; "right" is a
response of rank 1, "wrong" one of rank 2, and a comparison is strict unless a rule says otherwise. An invalid score is
a loss, and the decisions count it. Items that were dropped have no credit.
"""

from fnmatch import fnmatchcase

import polars as pl

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.column_types import COUNTED
from pluralbench.data.credits.best_of_n import BEST_OF_N, BEST_OF_N_SHARED
from pluralbench.data.credits.credit import ITEM, Credit
from pluralbench.data.credits.pairs import MEAN_OF_PAIRS, PAIRS, SECOND_ON_TIES
from pluralbench.data.credits.ties import TIES

CREDITS = {one.name: one for one in (PAIRS, SECOND_ON_TIES, BEST_OF_N, BEST_OF_N_SHARED, MEAN_OF_PAIRS, TIES)}
_COLUMNS = {**dict.fromkeys(ITEM, pl.String), "credit": pl.Float64}


def credit_of(benchmark: Benchmark, subset: str | None) -> Credit:
    """Return the rule by which the items of a subset count: that of the first pattern that matches, else `PAIRS`."""
    names = (name for pattern, name in benchmark.credit.items() if fnmatchcase(subset or "", pattern))
    return CREDITS[next(names, PAIRS.name)]


def subsets_by_credit(benchmark: Benchmark, rows: pl.DataFrame) -> dict[Credit, pl.DataFrame]:
    """Split items or decisions by the rule of their subsets."""
    rules = {subset: credit_of(benchmark, subset) for subset in rows["subset"].unique(maintain_order=True)}
    return {
        rule: rows.filter(pl.col("subset").is_in([one for one in rules if rules[one] is rule], nulls_equal=True))
        for rule in rules.values()
    }


def item_credits(benchmark: Benchmark, decisions: pl.DataFrame) -> pl.DataFrame:
    """Return what counts and its credit: a row for each decision of the rule `pairs`, else for each item.

    The columns are `config`, `subset`, `id`, `cluster` and `credit`.
    """
    counted = decisions.filter(pl.col("outcome").is_in(COUNTED))
    parts = [rule.credits(part, benchmark.vote) for rule, part in subsets_by_credit(benchmark, counted).items()]
    columns = [pl.col(name).cast(kind) for name, kind in _COLUMNS.items()]
    return pl.concat([pl.DataFrame(schema=_COLUMNS), *(part.select(columns) for part in parts)])


def chance_credits(benchmark: Benchmark, decisions: pl.DataFrame) -> pl.DataFrame:
    """Return the expected credits of distinct random scores, in the form of `item_credits`."""
    sizes = decisions.group_by("config", "id").agg(pl.col("chosen").n_unique(), pl.col("rejected").n_unique())
    credited = item_credits(benchmark, decisions).join(sizes, on=["config", "id"], how="left", maintain_order="left")
    counted = subsets_by_credit(benchmark, decisions.filter(pl.col("outcome").is_in(COUNTED)))
    parts = [pl.DataFrame(schema=_COLUMNS)]
    for rule, part in subsets_by_credit(benchmark, credited).items():
        if rule.chance is None:
            parts.append(rule.drawn(counted[rule]))
        else:
            expected = [rule.chance(right, wrong) for right, wrong in part.select("chosen", "rejected").iter_rows()]
            parts.append(part.with_columns(credit=pl.Series(expected, dtype=pl.Float64)))
    return pl.concat(part.select(list(_COLUMNS)) for part in parts)


def check_credits(benchmark: Benchmark, items: pl.DataFrame, where: str, *, complete: bool) -> None:
    """Check that the items of a table can count by their rules; see `Credit.check`."""
    for rule, part in subsets_by_credit(benchmark, items).items():
        rule.check(part, where, complete=complete)
