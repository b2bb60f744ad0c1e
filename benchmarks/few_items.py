"""Measure how well a few items of a benchmark predict the scores of real reward models on all items.

    uv run --group test python benchmarks/few_items.py results.jsonl items.jsonl

`results.jsonl` has a line with `model` and `results` for each model: one character per item, 1 (right), 0 (wrong) or -
(missing); models with a missing item are left out. `items.jsonl` has a line with the `subset` of each item. The score
is the overall number of the benchmark's entry.

Each draw selects items and splits the models into five folds. Selections:

- stratified: as `--items` draws, and the score that a run reports
- random: items at random, and their mean with the weights of the score
- 2PL: the score that a two-parameter logistic model predicts from the same items; its items are fitted on the models of
  the other folds, and drawn items keep their results
- most informative: the items with the most Fisher information at the abilities of the other folds' models, with the 2PL

Prints tables of the mean absolute error and Kendall's tau, of the intervals, and of differences between two models.
"""

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
import typer
from machine import describe_machine
from mirt import fit_mirt, fscores
from numpy.typing import NDArray
from pluralbench.data.benchmark_entries import find_benchmark
from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.drawing import draw_items, stratum_weights
from pluralbench.errors import DataError
from pluralbench.metrics.accuracy import (
    accuracy_estimates,
    count,
    linearize_counts,
    resampled_accuracies,
)
from pluralbench.metrics.decided import Decided
from pluralbench_measures.bootstrap import Array
from pluralbench_runs import run, write_text
from pluralbench_tables import read_jsonl
from scipy.stats import kendalltau

CONFIG = "default"
FOLDS = 5
MISSING = -1
RESULTS = {"1": 1, "0": 0, "-": MISSING}
GAPS = (0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 100.0)  # points between two models
METHODS = ("stratified", "random", "stratified, 2PL", "random, 2PL", "most informative, 2PL")
Matrix = NDArray[np.int64]

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@dataclass(frozen=True)
class Recorded:
    """Recorded results of models, and the weight of each item in the score.

    Attributes:
        benchmark: Description of the benchmark.
        items: Items with `id` and `subset`.
        results: 1 for right, 0 for wrong. Shape (models, items).
    """

    benchmark: Benchmark
    items: pl.DataFrame
    results: Matrix

    @cached_property
    def weights(self) -> Array:
        """Weight of each item. Shape (items,)."""
        sizes = dict(self.items["subset"].value_counts().iter_rows())
        weights = stratum_weights(self.benchmark, {(CONFIG, subset): size for subset, size in sizes.items()})
        by_subset = {subset: weight / sizes[subset] for (_, subset), weight in weights.items()}
        return np.array([by_subset[subset] for subset in self.items["subset"]])

    @cached_property
    def scores(self) -> Array:
        """Scores of the models on all items. Shape (models,)."""
        return self.results @ self.weights

    def draw(self, number: int, seed: int) -> tuple[Benchmark, NDArray[np.int64]]:
        """Draw items as `--items` does: the benchmark with its strata, and the places of the items."""
        parts, strata = draw_items(self.benchmark, {CONFIG: self.items}, number, seed)
        places = self.items["id"].is_in(parts[CONFIG]["id"].to_list()).arg_true().to_numpy().astype(np.int64)
        return self.benchmark.model_copy(update={"strata": strata}), places

    def decisions(self, model: int, places: NDArray[np.int64]) -> pl.DataFrame:
        """Return a model's decisions on some items."""
        outcomes = np.where(self.results[model, places] == 1, "win", "loss")
        rows: pl.DataFrame = self.items[places.tolist()]
        return rows.with_columns(config=pl.lit(CONFIG), cluster="id", outcome=pl.Series(outcomes))


@app.command(help=__doc__)
def command(
    results: Annotated[Path, typer.Argument(help="JSON Lines with `model` and `results`.")],
    items: Annotated[Path, typer.Argument(help="JSON Lines with `subset`.")],
    benchmark: Annotated[str, typer.Option(help="Benchmark whose rule makes the score.")] = "reward-bench",
    numbers: Annotated[str, typer.Option(help="Numbers of items.")] = "50,100,200,500",
    draws: Annotated[int, typer.Option(min=2, help="Number of draws.")] = 20,
    pairs: Annotated[int, typer.Option(min=1, help="Pairs of models to compare for each draw.")] = 300,
    out: Annotated[Path | None, typer.Option("--json", help="File for all numbers. Default: none.")] = None,
) -> None:
    """Measure and print."""
    recorded = read_recorded(results, items, find_benchmark(benchmark))
    sizes = [int(number) for number in numbers.split(",")]
    subsets = recorded.items["subset"].n_unique()
    print(describe_machine(("mirt", "numpy", "scipy", "polars"), ()))
    print(
        f"{len(recorded.results)} models, {recorded.items.height:,} items of {subsets} subsets, {draws} draws. Scores: "
        f"{100 * recorded.scores.min():.1f} to {100 * recorded.scores.max():.1f}, median "
        f"{100 * np.median(recorded.scores):.1f}.\n"
    )
    errors = [row for seed in range(draws) for row in _predictions(recorded, sizes, seed)]
    covered = [row for seed in range(draws) for number in sizes for row in intervals(recorded, number, seed)]
    compared = [row for seed in range(draws) for number in sizes for row in _compared(recorded, number, seed, pairs)]
    print(_error_table(pl.DataFrame(errors), sizes))
    print(_interval_table(pl.DataFrame(covered)))
    print(_compared_table(pl.DataFrame(compared), sizes))
    if out is not None:
        write_text(out, json.dumps({"errors": errors, "intervals": covered, "compared": compared}))


def read_recorded(results: Path, items: Path, benchmark: Benchmark) -> Recorded:
    """Read the recorded results of models that have all items."""
    rows = [[RESULTS[letter] for letter in row["results"]] for row in read_jsonl(results, DataError)]
    subsets = [row["subset"] for row in read_jsonl(items, DataError)]
    complete = [row for row in rows if MISSING not in row]
    print(f"{len(rows)} models, of which {len(rows) - len(complete)} lack items.")
    frame = pl.DataFrame({"id": [str(place) for place in range(len(subsets))], "subset": subsets})
    return Recorded(benchmark, frame, np.array(complete))


def _predictions(recorded: Recorded, sizes: Sequence[int], seed: int) -> Iterator[dict[str, Any]]:
    """Yield the error and Kendall's tau of each method and number of items, for one draw."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(recorded.items.height)
    folds = np.array_split(generator.permutation(len(recorded.results)), FOLDS)
    fitted = [_Fitted(recorded, fold) for fold in folds]
    for number in sizes:
        (benchmark, stratified), random = recorded.draw(number, seed), np.sort(order[:number])
        models = range(len(recorded.results))
        weights = recorded.weights[random]
        predicted = {
            "stratified": np.array([_score(recorded, benchmark, stratified, model) for model in models]),
            "random": recorded.results[:, random] @ weights / weights.sum(),
        }
        for method, places in (("stratified, 2PL", stratified), ("random, 2PL", random), (METHODS[-1], None)):
            predicted[method] = np.empty(len(recorded.results))
            for fold in fitted:
                predicted[method][fold.held_out] = fold.predict(fold.informative(number) if places is None else places)
        for method, values in predicted.items():
            error = 100 * np.abs(values - recorded.scores)
            tau = float(kendalltau(values, recorded.scores).statistic)
            yield {"method": method, "items": number, "seed": seed, "error": float(error.mean()), "tau": tau}


def _score(recorded: Recorded, benchmark: Benchmark, places: NDArray[np.int64], model: int) -> float:
    """Return the overall number of a run on drawn items."""
    decided = Decided(benchmark, recorded.decisions(model, places))
    _, (source,) = linearize_counts(count(decided))
    return float(resampled_accuracies(benchmark, decided.cells, source)[0].values[0])


class _Fitted:
    """A 2PL whose items are fitted on the models outside a fold.

    Attributes:
        held_out: The models of the fold.
    """

    def __init__(self, recorded: Recorded, held_out: NDArray[np.int64]) -> None:
        self.held_out = held_out
        self._recorded = recorded
        others = np.setdiff1d(np.arange(len(recorded.results)), held_out)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # items that all models have right have no finite difficulty
            self._fit = fit_mirt(recorded.results[others], model="2PL", compute_standard_errors=False)
            abilities = fscores(self._fit, recorded.results[others]).theta
        information = self._fit.model.information(abilities)
        self._by_information = np.argsort(-information.mean(0), kind="stable")

    def informative(self, number: int) -> NDArray[np.int64]:
        """Return the items with the most information on the models outside the fold, on average."""
        return np.sort(self._by_information[:number])

    def predict(self, places: NDArray[np.int64]) -> Array:
        """Predict the scores of the held-out models from their results on some items."""
        results = self._recorded.results[self.held_out]
        seen = np.full_like(results, MISSING)
        seen[:, places] = results[:, places]
        abilities = fscores(self._fit, seen).theta
        expected = np.asarray(self._fit.model.probability(abilities))
        expected[:, places] = results[:, places]
        return expected @ self._recorded.weights


def intervals(recorded: Recorded, number: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield for each model whether the interval of its draw contains its score on all items, and its half width."""
    benchmark, places = recorded.draw(number, seed)
    for model, score in enumerate(recorded.scores):
        decided = Decided(benchmark, recorded.decisions(model, places))
        _, estimate = next(iter(accuracy_estimates(decided)))
        assert estimate.low is not None and estimate.high is not None  # noqa: S101, PT018 - there are many clusters
        covered = estimate.low <= score <= estimate.high
        yield {"items": number, "covered": bool(covered), "half": 50 * (estimate.high - estimate.low)}


def _compared(recorded: Recorded, number: int, seed: int, pairs: int) -> Iterator[dict[str, Any]]:
    """Yield for pairs of models whether a draw orders them as all items do, and whether the interval excludes 0."""
    benchmark, places = recorded.draw(number, seed)
    generator = np.random.default_rng([seed, number])
    for _ in range(pairs):
        first, second = (int(model) for model in generator.choice(len(recorded.scores), 2, replace=False))
        sides = [Decided(benchmark, recorded.decisions(model, places)) for model in (first, second)]
        cells = sides[0].cells
        linearized, drawn = linearize_counts(*(count(side, cells) for side in sides))
        ours, theirs = (resampled_accuracies(benchmark, cells, one)[0] for one in drawn)
        estimate = linearized.difference(theirs.values - ours.values, ours.strata, ours.n, ours.clusters)
        assert estimate.value is not None and estimate.low is not None and estimate.high is not None  # noqa: S101, PT018 - the same
        gap = 100 * float(recorded.scores[second] - recorded.scores[first])
        yield {
            "items": number,
            "gap": abs(gap),
            "right": estimate.value * gap > 0,
            "certain": estimate.low > 0 or estimate.high < 0,
            "covered": estimate.low <= gap / 100 <= estimate.high,
        }


def _error_table(errors: pl.DataFrame, sizes: Sequence[int]) -> str:
    lines = ["| method | " + " | ".join(f"{size} items" for size in sizes) + " |", "|---|" + "---:|" * len(sizes)]
    for method in METHODS:
        cells = []
        for size in sizes:
            own = errors.filter(method=method, items=size)
            error, tau = _mean(own, "error"), _mean(own, "tau")
            cells.append(f"{error:.2f} ± {_spread(own, 'error'):.2f} ({tau:.3f} ± {_spread(own, 'tau'):.3f})")
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "Mean absolute error in points, and Kendall's tau; ± standard error over draws\n\n" + "\n".join(lines) + "\n"


def _interval_table(intervals: pl.DataFrame) -> str:
    lines = ["| items | intervals with the score of all items | half width, median |", "|---:|---:|---:|"]
    for size in intervals["items"].unique(maintain_order=True).to_list():
        own = intervals.filter(items=size)
        lines.append(
            f"| {size} | {100 * _mean(own, 'covered'):.1f} % | {float(np.median(own['half'].to_numpy())):.1f} points |"
        )
    return "\n".join(lines) + "\n"


def _compared_table(compared: pl.DataFrame, sizes: Sequence[int]) -> str:
    lines = [
        "| points between two models | pairs | " + " | ".join(f"{size} items" for size in sizes) + " |",
        "|---|---:|" + "---:|" * len(sizes),
    ]
    for low, high in pairwise(GAPS):
        own = compared.filter(pl.col("gap").is_between(low, high, closed="left"))
        cells = []
        for size in sizes:
            some: Mapping[str, float] = {
                name: 100 * _mean(own.filter(items=size), name) for name in ("right", "certain")
            }
            cells.append(f"{some['right']:.0f} % ({some['certain']:.0f} %)")
        title = f"{low:.0f} to {high:.0f}" if high < GAPS[-1] else f"{low:.0f} and more"
        lines.append(f"| {title} | {own.height // len(sizes):,} | {' | '.join(cells)} |")
    covered = ", ".join(f"{100 * _mean(compared.filter(items=size), 'covered'):.1f} %" for size in sizes)
    head = f"Pairs in the right order (with an interval without 0). Intervals with the true difference: {covered}\n\n"
    return head + "\n".join(lines)


def _mean(rows: pl.DataFrame, name: str) -> float:
    return float(rows[name].cast(pl.Float64).to_numpy().mean())


def _spread(rows: pl.DataFrame, name: str) -> float:
    """The standard error of a mean over draws."""
    return float(rows[name].to_numpy().std(ddof=1)) / float(rows.height**0.5)


def main() -> None:
    """Run the command and print errors in one sentence."""
    run(app, "pluralbench")


if __name__ == "__main__":
    main()
