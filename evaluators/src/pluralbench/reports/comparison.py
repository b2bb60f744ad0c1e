"""The comparison of two runs as a table with notes."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl
from pluralbench_measures.bootstrap import CONFIDENCE, Estimate
from pluralbench_runs import plural

from pluralbench.evaluation.compare import MIN_TESTED, PART, RunComparison
from pluralbench.evaluation.compare_suites import SuiteComparison
from pluralbench.reports.annotations import GAP
from pluralbench.reports.tables import Column, Row, Table
from pluralbench.results.numbers import p_value, points

VOTES = "single votes"
METRICS = {"exact_match": "exact match", "agreement_with_annotations": VOTES, "group_gap": GAP}
COLUMNS = (Column("A"), Column("B"), Column("B minus A", points), Column("p", p_value), Column("Holm", p_value))
MAX_UNTESTED = 8
"""Largest number of parts without a test that a note names."""


def heading_lines(comparison: RunComparison, title: str) -> Iterator[str]:
    """Yield the lines above the table: what is compared, and how the overall number is computed."""
    counted = "" if comparison.counted == comparison.decisions else f", over {comparison.counted:,} of these"
    yield f"{title}: {comparison.decisions:,} decisions on {comparison.clusters:,} {comparison.clustered_by}"
    yield f"  A: {comparison.names[0]} ({comparison.first})"
    yield f"  B: {comparison.names[1]} ({comparison.second})"
    yield f"Overall: {comparison.rule}{counted}"


def comparison_table(comparison: RunComparison) -> Table:
    """Make a row for the overall number and each tested part: both numbers, the difference, p and p by Holm."""
    head = comparison.headline
    rows = [Row("overall", (head.first, head.second, head.estimate, head.p_value, ""))]
    for row in comparison.parts.iter_rows(named=True):
        if row["p_value"] is not None:
            difference = Estimate(*(row[name] for name in ("difference", "low", "high", "n", "clusters", "method")))
            values = (row["first"], row["second"], difference, row["p_value"], row["p_holm"])
            # Parts by group of people are rows below their attribute, so that long names are not cut.
            if row["attribute"] is None:
                rows.append(Row(_name(row), values))
            else:
                rows.append(Row(row["group"] or METRICS[row["metric"]], values, group=f"{row['attribute']}, {VOTES}"))
    columns = COLUMNS if comparison.tested else COLUMNS[:-1]
    return Table("", "", columns, [row._replace(values=row.values[: len(columns)]) for row in rows])


def comparison_notes(comparison: RunComparison) -> Iterator[str]:
    """Yield the sentences below the table, which explain its numbers and name what is not among them."""
    yield "Accuracies in percent; differences in points, with 95% intervals, which exclude 0 if p < 0.05."
    if comparison.tested:
        yield f"Holm: p adjusted for the {plural(comparison.tested, 'tested part')}."
    alone = comparison.parts.filter(pl.col("p_value") < 1 - CONFIDENCE, pl.col("p_holm") >= 1 - CONFIDENCE)
    if alone.height:
        names = "; ".join(_name(row) for row in alone.iter_rows(named=True))
        yield f"Differs by its own interval, which is not adjusted, but not by Holm's p: {names}."
    # Both metrics of a part are on the same prompts.
    untested = {_place(row): row["clusters"] for row in comparison.untested.iter_rows(named=True)}
    if untested:
        named = [f"{place} ({clusters:,})" for place, clusters in untested.items()][:MAX_UNTESTED]
        more = [f"and {len(untested) - MAX_UNTESTED} more"] if len(untested) > MAX_UNTESTED else []
        yield (
            f"Not tested, with fewer than {MIN_TESTED} {comparison.clustered_by} or one per subset: "
            f"{', '.join([*named, *more])}."
        )
    yield f"Decisions that only A gets right: {comparison.only_first:,}; only B: {comparison.only_second:,}."
    undecided = {"tie": comparison.ties, "invalid": comparison.invalid}
    counts = [(noun, pair) for noun, pair in undecided.items() if any(pair)]
    sides = [[plural(pair[at], noun, f"{noun}s" * (noun == "tie") or noun) for noun, pair in counts] for at in (0, 1)]
    if counts:
        yield f"Without a winner: A {', '.join(sides[0])}; B {', '.join(sides[1])}."
    close = [f"{side} {text}" for side, text in zip("AB", comparison.close_margins, strict=True) if text]
    if close:
        yield f"Could come out otherwise on another machine or in another mode: {'; '.join(close)}."
    best = max(comparison.headline.first or 0.0, comparison.headline.second or 0.0)
    if comparison.headline.difference is not None and comparison.coin is not None and best < comparison.coin:
        yield f"A coin has {100 * comparison.coin:.1f}, more than both."
    if comparison.left_out:
        yield f"{comparison.left_out:,} decisions are in only one of the runs and were left out."


def suites_table(suites: SuiteComparison) -> Table:
    """Make a row for each benchmark, each column of several benchmarks, and the mean."""
    listed = {name: (one.headline, suites.p_holm[name]) for name, one in suites.benchmarks.items()}
    listed |= {name: (one, None) for name, one in suites.means.items() if name not in listed}
    rows = [
        Row(name, (one.first, one.second, one.estimate, one.p_value, "" if adjusted is None else adjusted))
        for name, (one, adjusted) in listed.items()
    ]
    return Table("", "", COLUMNS, rows)


def suites_notes(suites: SuiteComparison) -> Iterator[str]:
    """Yield the sentences below the table of two suites."""
    yield f"A: {suites.names[0]} ({suites.first}). B: {suites.names[1]} ({suites.second})."
    yield "Overall numbers in percent; differences in points, with 95% intervals, of means for independent benchmarks."
    yield "Holm: p adjusted for the number of benchmarks."
    if suites.left_out:
        yield f"Run by only one of the suites, and left out: {', '.join(suites.left_out)}."


def _name(row: Mapping[str, Any]) -> str:
    """ "human: 知识, exact match", or "all configs" for a mean over configs."""
    return _place(row) + ("" if row["metric"] == "accuracy" else f", {METRICS.get(row['metric'], row['metric'])}")


def _place(row: Mapping[str, Any]) -> str:
    places = [row[name] for name in PART[1:] if row[name] is not None]
    return ": ".join(places) or "all configs"
