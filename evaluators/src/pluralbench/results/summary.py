"""Short views of results, for notebooks: columns of a row, numbers in a line, and small HTML tables."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

import polars as pl
from pluralbench_measures.bootstrap import Estimate
from pluralbench_runs import plural

from pluralbench.metrics.metric import BASELINES, SHOWN_COUNTS
from pluralbench.results.numbers import DASH, number

if TYPE_CHECKING:
    from pluralbench.results.runs import Run

SUMMARY = pl.Schema(
    dict.fromkeys(("model", "benchmark", "profile"), pl.String())
    | dict.fromkeys(("overall", "low", "high"), pl.Float64())
    | dict.fromkeys(("n", "clusters"), pl.Int64())
    | {"coin": pl.Float64()}
    | dict.fromkeys(SHOWN_COUNTS, pl.Int64())
    | {"run": pl.String()}
)
"""Columns of `Run.summary` and `pluralbench.read_results`."""

RIGHT = 'style="text-align: right"'
MAX_PARTS = 10
"""Largest number of parts in the HTML table of a run."""


def summary_frame(run: "Run") -> pl.DataFrame:
    """Return the overall number of a run with its interval and counts as a row."""
    number = run.headline
    row = {
        "model": run.name,
        "benchmark": run.config.benchmark.name,
        "profile": run.config.prompt.profile,
        "overall": number.value,
        "low": number.low,
        "high": number.high,
        "n": run.items_counted,
        "clusters": number.clusters,
        "coin": run.estimate("overall", baseline="coin").value,
        **{name: run.count(name) for name in SHOWN_COUNTS},
        "run": str(run.path),
    }
    return pl.DataFrame([row], schema=SUMMARY)


def run_text(run: "Run") -> str:
    """Describe a run in a line: model, benchmark, overall number, items and directory."""
    number = f"unreadable ({run.unreadable} invalid)" if run.unreadable else number_text(run.headline)
    parts = [run.config.benchmark.title, number, *filter(None, [run.mostly_close_margins]), run.size, str(run.path)]
    return f"{run.name} on {', '.join(parts)}"


def run_html(run: "Run") -> str:
    """Make the HTML table of a run: the overall number, its parts and the baselines on the same items."""
    parts = [] if run.unreadable else [*_parts(run)]
    left = len(parts) - MAX_PARTS
    baselines = [(name, run.estimate("overall", baseline=key)) for key, name in BASELINES.items()]
    numbers = [("overall", run.headline), *parts[:MAX_PARTS]]
    numbers += [(name, number) for name, number in baselines if number.value is not None]
    counts = [f"{name.capitalize()}: {run.count(name):,}" for name in SHOWN_COUNTS if run.count(name)]
    counts += [f"Further parts, in `metrics`: {left:,}"] if left > 0 else []
    title = f"{run.name}: {run.config.benchmark.title}, {run.size} ({run.path})"
    return table_html(title, numbers, ". ".join(["Accuracy in %", *counts]) + ".")


def _parts(run: "Run") -> Iterator[tuple[str, Estimate]]:
    """Yield the numbers of the configs; of a single config those of its sections."""
    configs = [*run.configs, *run.excluded_configs]
    if len(configs) > 1:
        yield from ((config, run.estimate("accuracy", config=config)) for config in configs)
    for config in configs if len(configs) == 1 else ():
        for section in run.names("section", config=config):
            yield section, run.estimate("accuracy", config=config, section=section)


def items_text(counted: Sequence[int], total: int) -> str:
    """Describe the number of items, such as "24 items", or "1 of 805 items" if not all are counted.

    Args:
        counted: Number of counted items behind each of some numbers.
        total: Number of items.
    """
    least, most = min(counted), max(counted)
    part = "" if least == total else f"{least:,} of " if least == most else f"{least:,} to {most:,} of "
    return f"{part}{plural(total, 'item')}"


def number_text(estimate: Estimate) -> str:
    """Format a share in percent with its interval, as "41.7 % [22.9, 62.5]"."""
    value, low, high, _ = number(estimate)
    if value == DASH:
        return "no overall number"
    return f"{value} % [{low}, {high}]" if low else f"{value} %"


def table_html(title: str, numbers: Sequence[tuple[str, Estimate]], note: str) -> str:
    """Make a small HTML table, a row for each named share, with a note below."""
    head = "".join(f'<th scope="col" {RIGHT}>{name}</th>' for name in ("accuracy", "95 % interval", "n"))
    cells = ((name, "".join(f"<td {RIGHT}>{cell}</td>" for cell in _cells(estimate))) for name, estimate in numbers)
    body = "".join(f'<tr><th scope="row">{escape(name)}</th>{row}</tr>' for name, row in cells)
    return (
        f"<table><caption>{escape(title)}</caption><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<p>{escape(note)}</p>"
    )


def _cells(estimate: Estimate) -> Iterator[str]:
    value, low, high, _ = number(estimate)
    yield value
    yield f"{low} to {high}" if low else ""
    yield "" if estimate.n is None else f"{estimate.n:,}"
