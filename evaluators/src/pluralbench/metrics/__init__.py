"""What decisions and verdicts amount to, as the long frame of `pluralbench.results.metrics_frame`."""

import polars as pl

from pluralbench.data.benchmarks import Benchmark


def measure(benchmark: Benchmark, decisions: pl.DataFrame, *, seed: int) -> pl.DataFrame:
    """All metrics of a run's decisions: accuracies, counts, and what the benchmark's kind adds to them.

    decisions: as `pluralbench.results.decisions.decide` makes them; with `verdict_chosen_first` and
    `verdict_rejected_first` (see `metrics.position`) where a judge compared responses. seed: of the bootstrap.
    """
    raise NotImplementedError
