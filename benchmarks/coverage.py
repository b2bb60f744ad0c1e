"""Measure how often a 95 % interval contains the true value, by number of clusters, on generated data.

    uv run --group evaluator python benchmarks/coverage.py --out coverage

Draws clusters of decisions, computes the interval with `pluralbench_measures` as the metrics do, and checks whether it
contains the true value. The percentile bootstrap of the same package, which the metrics used before, is the comparison.
Writes `coverage.png`, and `coverage.csv` with all numbers; prints a table.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import typer
from numpy.typing import NDArray
from pluralbench.reports.figures.chart import Chart, Mark, Panel, Point
from pluralbench.reports.figures.files import write
from pluralbench.reports.figures.series import series_of_judges
from pluralbench_measures.bootstrap import Array, Estimate, Resampled, Sums, bootstrap_estimate, resample
from pluralbench_measures.intervals import Linearization, Strata, linearize
from pluralbench_runs import run

CLUSTERS = (2, 3, 4, 5, 7, 10, 15, 30, 100, 500)
SHARES = (0.5, 0.7, 0.9)
CORRELATION = 0.3  # of decisions of a cluster
MAX_DECISIONS = 4  # of a cluster
SHARED = 0.6  # share of decisions that a similar model copies; the two then agree on about 90 %
CLUSTERS_BEFORE = (2, 3, 5, 10, 30, 100)
BEFORE, AFTER = "percentile bootstrap", "current intervals"


@dataclass(frozen=True)
class Drawn:
    """Generated data of one or two models, the strata of the statistic, and its true value."""

    tables: Sequence[Sums]
    strata: Strata
    truth: float

    def value(self, sources: Sequence[Resampled]) -> Array:
        """Compute the mean over strata of one model, or the difference of two. Shape (rows,)."""
        cells = [cell for stratum in self.strata for cell in stratum]
        means = [source.weighted(cells, [1.0] * len(cells)) for source in sources]
        return means[0] if len(means) == 1 else means[1] - means[0]


def coverage(design: str, clusters: int, share: float, draws: int, method: str, seed: int = 0) -> tuple[int, int]:
    """Count the draws whose interval contains the true value, and the draws with an interval."""
    generator = np.random.default_rng([seed, clusters, round(100 * share), list(DESIGNS).index(design)])
    intervals = []
    for drawn in _draws(design, clusters, share, draws, generator):
        estimate = METHODS[method](drawn, clusters)
        if estimate.low is not None and estimate.high is not None:
            intervals.append((drawn.truth, estimate.low, estimate.high))
    return sum(low - 1e-9 <= truth <= high + 1e-9 for truth, low, high in intervals), len(intervals)


def _draws(design: str, clusters: int, share: float, draws: int, generator: np.random.Generator) -> list[Drawn]:
    return [DESIGNS[design](clusters, share, generator) for _ in range(draws)]


def _now(drawn: Drawn, clusters: int) -> Estimate:
    linearized = linearize(*drawn.tables)
    estimate: Callable[..., Estimate] = Linearization.share if len(drawn.tables) == 1 else Linearization.difference
    return estimate(linearized, drawn.value(linearized.sources), drawn.strata, None, clusters)


def _before(drawn: Drawn, _: int) -> Estimate:
    return bootstrap_estimate(drawn.value(resample(drawn.tables, 0)))


def _single(clusters: int, share: float, generator: np.random.Generator) -> Drawn:
    """Clusters of one decision, such as prompts."""
    won = (generator.random(clusters) < share).astype(np.float64)
    return Drawn([Sums(won[:, None], np.ones((clusters, 1)))], [[0]], share)


def _clustered(clusters: int, share: float, generator: np.random.Generator) -> Drawn:
    """Clusters of one to four correlated decisions, such as users."""
    sizes = generator.integers(1, MAX_DECISIONS + 1, clusters)
    won = generator.binomial(sizes, _rates(share, clusters, generator))
    return Drawn([Sums(won[:, None].astype(np.float64), sizes[:, None].astype(np.float64))], [[0]], share)


def _sections(clusters: int, share: float, generator: np.random.Generator) -> Drawn:
    """Sections of three clusters each (the last with the rest), with shares around the true value."""
    number = max(1, min(10, clusters // 3))
    section = np.minimum(np.arange(clusters) // 3, number - 1)
    apart = min(share, 1 - share) * np.linspace(-0.5, 0.5, number) if number > 1 else np.zeros(1)
    won = generator.random(clusters) < (share + apart)[section]
    sums = Sums(np.zeros((clusters, number)), np.zeros((clusters, number)))
    sums.won[np.arange(clusters), section] = won
    sums.counts[np.arange(clusters), section] = 1
    return Drawn([sums], [[place] for place in range(number)], share)


def _independent(clusters: int, share: float, generator: np.random.Generator) -> Drawn:
    """Two equally accurate models with only the clusters in common; they agree on about 75 %."""
    return _paired(clusters, share, 0.0, generator)


def _similar(clusters: int, share: float, generator: np.random.Generator) -> Drawn:
    """Two equally accurate models that rarely differ."""
    return _paired(clusters, share, SHARED, generator)


def _paired(clusters: int, share: float, copied: float, generator: np.random.Generator) -> Drawn:
    """Two models on clusters of one to four decisions; the second copies a share of decisions from the first."""
    sizes = generator.integers(1, MAX_DECISIONS + 1, clusters)
    there = np.arange(MAX_DECISIONS) < sizes[:, None]
    rates = _rates(share, clusters, generator)[:, None]
    first = generator.random((clusters, MAX_DECISIONS)) < rates
    second = np.where(
        generator.random((clusters, MAX_DECISIONS)) < copied, first, generator.random((clusters, MAX_DECISIONS)) < rates
    )
    counts = sizes[:, None].astype(np.float64)
    tables = [Sums((won & there).sum(1, keepdims=True).astype(np.float64), counts) for won in (first, second)]
    return Drawn(tables, [[0]], 0.0)


def _rates(share: float, clusters: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """The accuracy of each cluster, beta-distributed so that its decisions have the correlation `CORRELATION`."""
    strength = (1 - CORRELATION) / CORRELATION
    return generator.beta(share * strength, (1 - share) * strength, clusters)


DESIGNS: Mapping[str, Callable[[int, float, np.random.Generator], Drawn]] = {
    "one decision per cluster": _single,
    "one to four per cluster": _clustered,
    "sections of three": _sections,
    "difference of two models": _independent,
    "of two similar models": _similar,
}
METHODS: Mapping[str, Callable[[Drawn, int], Estimate]] = {AFTER: _now, BEFORE: _before}

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(help=__doc__)
def command(
    out: Annotated[Path, typer.Option(help="Directory for the figure and its numbers.")] = Path("coverage"),
    draws: Annotated[int, typer.Option(min=10, help="Draws per cell.")] = 1000,
    before: Annotated[int, typer.Option(min=10, help="Draws per cell for the bootstrap, which is slow.")] = 200,
) -> None:
    """Measure, write and print."""
    rows = [
        (design, method, clusters, share, *coverage(design, clusters, share, often, method))
        for design in DESIGNS
        for method, among, often in ((AFTER, CLUSTERS, draws), (BEFORE, CLUSTERS_BEFORE, before))
        for clusters in among
        for share in SHARES
    ]
    names = ["design", "method", "clusters", "share", "covered", "intervals"]
    results = pl.DataFrame(rows, schema=names, orient="row")
    out.mkdir(parents=True, exist_ok=True)
    results.write_csv(out / "coverage.csv")
    grouped = results.group_by("design", "method", "clusters", maintain_order=True)
    summary = grouped.agg(pl.col("covered", "intervals").sum()).filter(pl.col("intervals") > 0)
    summary = summary.with_columns(covered=100 * pl.col("covered") / pl.col("intervals"))
    _draw(summary, out, f"{draws} draws each, {before} of the bootstrap")
    with pl.Config(tbl_rows=-1, fmt_str_lengths=40, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True):
        print(summary.drop("intervals").with_columns(pl.col("covered").round(1)))


def _draw(summary: pl.DataFrame, folder: Path, draws: str) -> None:
    series = series_of_judges({AFTER: None, BEFORE: None})
    panels = []
    for design in DESIGNS:
        marks = [
            Mark(float(clusters), Point(covered), one)
            for one in series
            for clusters, covered in summary.filter(design=design, method=one.name).select("clusters", "covered").rows()
        ]
        label = "Intervals with the true value (%)"
        panels.append(Panel(marks, label, design, "Clusters", {95: "--"}, joined=True, log=True))
    note = f"Means over true shares of 0.5, 0.7 and 0.9, {draws}. Dashed: 95 %."
    chart = Chart("How often a 95 % interval contains the true value", panels, note, len(DESIGNS))
    write({"coverage": chart}, folder)


def main() -> None:
    """Run the command and print errors in one sentence."""
    run(app, "pluralbench")


if __name__ == "__main__":
    main()
