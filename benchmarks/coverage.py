"""How often a 95 % interval holds the truth, by the number of clusters: made data whose truth is known.

    uv run --group evaluator python benchmarks/coverage.py --out coverage

Draws clusters of decisions, asks `pluralbench_measures` for the interval as the metrics do, and looks whether the truth
is in it; beside it the percentiles of the same package's bootstrap, as the metrics had them before. Writes
`coverage.png`, and `coverage.csv` with every number; prints a table.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
import typer
from numpy.typing import NDArray
from pluralbench.reports.figures import style
from pluralbench.reports.figures.series import COLORS, MARKERS
from pluralbench_measures.bootstrap import Array, Estimate, Resampled, Sums, bootstrap_estimate, resample
from pluralbench_measures.intervals import Perturbed, Strata, perturb
from pluralbench_runs import run

CLUSTERS = (2, 3, 4, 5, 7, 10, 15, 30, 100, 500)
SHARES = (0.5, 0.7, 0.9)
ALIKE = 0.3  # the correlation of decisions of a cluster
MOST = 4  # decisions of a cluster
SELDOM = 0.6  # of its decisions a model takes from another that it seldom differs from; then they agree in some 90 %
CLUSTERS_BEFORE = (2, 3, 5, 10, 30, 100)
BEFORE, AFTER = "percentiles of a bootstrap", "as they are made now"


@dataclass(frozen=True)
class Drawn:
    """Made data of one model or of two, the strata of its number, and the truth."""

    tables: Sequence[Sums]
    strata: Strata
    truth: float

    def value(self, sources: Sequence[Resampled]) -> Array:
        """The number of a model, a mean over strata, or the difference of two: [rows]."""
        leaves = [leaf for inner in self.strata for leaf in inner]
        means = [source.weighted(leaves, [1.0] * len(leaves)) for source in sources]
        return means[0] if len(means) == 1 else means[1] - means[0]


def coverage(design: str, clusters: int, share: float, draws: int, method: str, seed: int = 0) -> tuple[int, int]:
    """Of how many draws the interval holds the truth, and how many had one."""
    generator = np.random.default_rng([seed, clusters, round(100 * share), list(DESIGNS).index(design)])
    found = [(drawn, METHODS[method](drawn, clusters)) for drawn in _many(design, clusters, share, draws, generator)]
    printed = [(drawn.truth, one.low, one.high) for drawn, one in found if one.low is not None and one.high is not None]
    return sum(low - 1e-9 <= truth <= high + 1e-9 for truth, low, high in printed), len(printed)


def _many(design: str, clusters: int, share: float, draws: int, generator: np.random.Generator) -> list[Drawn]:
    return [DESIGNS[design](clusters, share, generator) for _ in range(draws)]


def _now(drawn: Drawn, clusters: int) -> Estimate:
    tilted = perturb(*drawn.tables)
    make: Callable[..., Estimate] = Perturbed.share if len(drawn.tables) == 1 else Perturbed.difference
    return make(tilted, drawn.value(tilted.sources), drawn.strata, None, clusters)


def _before(drawn: Drawn, _: int) -> Estimate:
    return bootstrap_estimate(drawn.value([resample(sums, 0) for sums in drawn.tables]))


def _single(clusters: int, share: float, generator: np.random.Generator) -> Drawn:
    """Clusters of one decision, such as prompts."""
    won = (generator.random(clusters) < share).astype(np.float64)
    return Drawn([Sums(won[:, None], np.ones((clusters, 1)))], [[0]], share)


def _clustered(clusters: int, share: float, generator: np.random.Generator) -> Drawn:
    """Clusters of one to four decisions that hang together, such as users."""
    sizes = generator.integers(1, MOST + 1, clusters)
    won = generator.binomial(sizes, _rates(share, clusters, generator))
    return Drawn([Sums(won[:, None].astype(np.float64), sizes[:, None].astype(np.float64))], [[0]], share)


def _sections(clusters: int, share: float, generator: np.random.Generator) -> Drawn:
    """Sections of three clusters each, the last with what is left, whose shares lie around the truth."""
    number = max(1, min(10, clusters // 3))
    section = np.minimum(np.arange(clusters) // 3, number - 1)
    apart = min(share, 1 - share) * np.linspace(-0.5, 0.5, number) if number > 1 else np.zeros(1)
    won = generator.random(clusters) < (share + apart)[section]
    sums = Sums(np.zeros((clusters, number)), np.zeros((clusters, number)))
    sums.won[np.arange(clusters), section] = won
    sums.counts[np.arange(clusters), section] = 1
    return Drawn([sums], [[place] for place in range(number)], share)


def _apart(clusters: int, share: float, generator: np.random.Generator) -> Drawn:
    """Two models that are right alike often and have only the clusters in common: they agree in some 75 %."""
    return _paired(clusters, share, 0.0, generator)


def _alike(clusters: int, share: float, generator: np.random.Generator) -> Drawn:
    """Two models that are right alike often and seldom differ."""
    return _paired(clusters, share, SELDOM, generator)


def _paired(clusters: int, share: float, taken: float, generator: np.random.Generator) -> Drawn:
    """Two models on clusters of one to four decisions. taken: how many the second takes from the first."""
    sizes = generator.integers(1, MOST + 1, clusters)
    there = np.arange(MOST) < sizes[:, None]
    rates = _rates(share, clusters, generator)[:, None]
    first = generator.random((clusters, MOST)) < rates
    second = np.where(generator.random((clusters, MOST)) < taken, first, generator.random((clusters, MOST)) < rates)
    counts = sizes[:, None].astype(np.float64)
    tables = [Sums((won & there).sum(1, keepdims=True).astype(np.float64), counts) for won in (first, second)]
    return Drawn(tables, [[0]], 0.0)


def _rates(share: float, clusters: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """How often each cluster is right: beta, so that its decisions have the correlation `ALIKE`."""
    strength = (1 - ALIKE) / ALIKE
    return generator.beta(share * strength, (1 - share) * strength, clusters)


DESIGNS: Mapping[str, Callable[[int, float, np.random.Generator], Drawn]] = {
    "one decision a cluster": _single,
    "one to four a cluster": _clustered,
    "sections of three": _sections,
    "difference of two models": _apart,
    "of two that seldom differ": _alike,
}
METHODS: Mapping[str, Callable[[Drawn, int], Estimate]] = {AFTER: _now, BEFORE: _before}

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(help=__doc__)
def command(
    out: Annotated[Path, typer.Option(help="Where the figure and its numbers go.")] = Path("coverage"),
    draws: Annotated[int, typer.Option(min=10, help="How often each number is drawn.")] = 1000,
    before: Annotated[int, typer.Option(min=10, help="How often for the bootstrap, which is slow.")] = 200,
) -> None:
    """Run, write and print."""
    rows = [
        (design, method, clusters, share, *coverage(design, clusters, share, often, method))
        for design in DESIGNS
        for method, among, often in ((AFTER, CLUSTERS, draws), (BEFORE, CLUSTERS_BEFORE, before))
        for clusters in among
        for share in SHARES
    ]
    names = ["design", "method", "clusters", "share", "held", "printed"]
    found = pl.DataFrame(rows, schema=names, orient="row")
    out.mkdir(parents=True, exist_ok=True)
    found.write_csv(out / "coverage.csv")
    shown = found.group_by("design", "method", "clusters", maintain_order=True).agg(pl.col("held", "printed").sum())
    shown = shown.filter(pl.col("printed") > 0).with_columns(held=100 * pl.col("held") / pl.col("printed"))
    _draw(shown, out, f"{draws} draws each, {before} of the bootstrap")
    with pl.Config(tbl_rows=-1, fmt_str_lengths=40, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True):
        print(shown.drop("printed").with_columns(pl.col("held").round(1)))


def _draw(shown: pl.DataFrame, folder: Path, drawn: str) -> None:
    width, height, gap = 2.1, 1.9, 0.35
    with style.drawing():
        figure = style.sheet(len(DESIGNS) * (width + gap), height)
        for number, design in enumerate(DESIGNS):
            ax = style.place(figure, number * (width + gap), 0, width, height)
            ax.axhspan(93, 97, color="0.92", linewidth=0, zorder=0)
            for place, method in enumerate((AFTER, BEFORE)):
                own = shown.filter(design=design, method=method)
                looks: Any = {"color": COLORS[place], "marker": MARKERS[place], "markersize": 3}
                ax.plot(own["clusters"].to_list(), own["held"].to_list(), label=method, linewidth=1, **looks)
            ax.set(xscale="log", xlabel="Clusters", ylim=(40, 101), title=design)
            ax.set_xticks([2, 5, 10, 30, 100, 500], ["2", "5", "10", "30", "100", "500"])
            ax.minorticks_off()
            if number:
                ax.set_yticklabels([])
            else:
                ax.set_ylabel("Intervals that hold\nthe truth (%)")
                ax.legend(loc="lower right")
        note = f"Means over true shares of 0.5, 0.7 and 0.9, {drawn}. Band: 93 to 97 %."
        style.heading(figure, "How often a 95 % interval holds the truth", note)
        figure.savefig(folder / "coverage.png", dpi=110, bbox_inches="tight", pad_inches=0.1)


def main() -> None:
    """Run the command; a mistake is one sentence."""
    run(app, "pluralbench")


if __name__ == "__main__":
    main()
