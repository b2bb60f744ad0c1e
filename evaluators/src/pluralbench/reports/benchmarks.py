"""Rows and lines of `pluralbench list`: each benchmark with its items, its overall number and its data; suites."""

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from pluralbench_release.tables import HUB_REPOSITORY

from pluralbench.data.benchmark_entries import BenchmarkEntry
from pluralbench.data.layouts import layout_of
from pluralbench.data.rules import overall_rule
from pluralbench.data.suites import Suite

Row = dict[str, Any]


def benchmark_rows(benchmarks: Mapping[str, BenchmarkEntry]) -> list[Row]:
    """Return a row for each benchmark, as values that JSON can hold; `items` counts `unit`, None for your own data."""
    return [
        {
            "name": name,
            "title": described.title,
            "items": described.card.items,
            "unit": layout_of(described).unit,
            # Patterns of subsets stand for the subsets, which only the items show.
            "overall": overall_rule(described.fit_to([*described.section_of, *chain(*described.groups.values())])),
            "license": described.card.license,
            "hub": None if _is_here(described.data) else described.data,
            "revision": described.revision,
            "source": described.data if _is_here(described.data) else described.card.source,
            "data": described.card.accepts,
            "verbs": [*layout_of(described).commands],
        }
        for name, described in benchmarks.items()
    ]


def _is_here(location: str | None) -> bool:
    name = str(location).partition("@")[0]
    return location is not None and (Path(location).exists() or HUB_REPOSITORY.fullmatch(name) is None)


def benchmark_lines(row: Row) -> Iterator[str]:
    """Write a row of `benchmark_rows` as lines; the first has the name and title."""
    yield f"{row['name']}: {row['title']}"
    commit = f"at {row['revision']}" if row["revision"] else "(not pinned)"
    where = f"{row['hub']} on the Hub {commit}" if row["hub"] else row["source"]
    count = row["unit"] if row["items"] is None else f"{row['items']:,} {row['unit']}"
    license = f" ({row['license']})" if row["license"] else ""
    size = f"{count}{'' if where else ' of your own'}{license}"
    yield size if row["unit"] == "prompts" else f"{size}; overall: {row['overall']}"
    if where:
        yield f"data: {where}"
    if row["data"]:
        yield f"other data: {row['data']}"


def suite_rows(suites: Mapping[str, Suite]) -> list[Row]:
    """Return a row for each suite, as values that JSON can hold, with its benchmarks by column."""
    return [
        {
            "name": name,
            "title": suite.title,
            "columns": {column.name: [one.key for one in column.benchmarks] for column in suite.columns},
            "verbs": ["suite"],
        }
        for name, suite in suites.items()
    ]


def suite_lines(row: Row) -> Iterator[str]:
    """Write a row of `suite_rows` as lines; the first has the name and title."""
    columns: Mapping[str, list[str]] = row["columns"]
    yield f"{row['name']} (suite): {row['title']}"
    yield "; ".join(
        f"{name}: {', '.join(benchmarks)}" if len(benchmarks) > 1 else f"{name} ({benchmarks[0]})"
        for name, benchmarks in columns.items()
    )
