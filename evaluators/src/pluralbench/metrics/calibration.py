"""Whether rewards are the log-odds that they stand for in a Bradley-Terry model.

The measure is that of CHEEMS's own code: pairs in five bins by the difference of their rewards, and in each bin how far
the accuracy is from the sigmoid of the mean difference.
"""

from typing import Any

import numpy as np
import polars as pl
from pluralbench_measures.bootstrap import estimate, interval_of, resample

from pluralbench.data.benchmarks import Benchmark
from pluralbench.metrics.accuracy import numbered


def measure_calibration(benchmark: Benchmark, decisions: pl.DataFrame, *, seed: int) -> dict[str, Any]:
    """`{"calibration": ...}` for a benchmark of rankings by category, else nothing.

    overall, and configs by name: the expected calibration error of the pairs that have a margin, with its interval,
    and the bins that are not empty: pairs, mean difference of rewards, the probability that it stands for, and the
    accuracy with its interval. largest: where the largest difference is: in the last bin, or by the legacy rules in
    none. Resamples have the bins of the data itself.
    """
    if not benchmark.by_category:
        return {}
    ours = decisions.filter(~pl.col("config").is_in(sorted(benchmark.outside)))
    parts = ours.partition_by("config", as_dict=True)
    return {
        "calibration": {
            "largest": "in the last bin" if benchmark.strict else "in no bin",
            "overall": _calibration(benchmark, ours, seed),
            "configs": {str(config): _calibration(benchmark, part, seed) for (config,), part in parts.items()},
        }
    }


def _calibration(benchmark: Benchmark, decisions: pl.DataFrame, seed: int) -> dict[str, Any]:
    from pluralbench_measures import rankings  # noqa: PLC0415 - torch comes with it

    scored = decisions.filter(pl.col("margin").is_not_null())
    bins = rankings.bins_of(scored["margin"].abs().to_numpy(), legacy=not benchmark.strict)
    scored, bins = scored.filter(bins >= 0), bins[bins >= 0]
    if not len(bins):
        return {"error": None, "interval": None, "pairs": 0, "bins": []}
    cluster, apart = numbered(scored["cluster"]), scored["margin"].abs().to_numpy()
    pairs = resample(bins, cluster, (scored["outcome"] == "win").to_numpy().astype(np.float64), seed)
    differences = resample(bins, cluster, apart, seed).wins
    errors = rankings.calibration_error(pairs.wins, pairs.counts, differences)
    return {
        "error": float(errors[0]),
        "interval": interval_of(errors),
        "pairs": len(bins),
        "bins": [
            {
                "pairs": int(pairs.counts[0, place]),
                "difference": float(mean := differences[0, place] / pairs.counts[0, place]),
                "probability": float(1 / (1 + np.exp(-mean))),
            }
            | estimate(pairs.pooled([place]), pairs.clusters([place]))
            for place in np.unique(bins).tolist()
        ],
    }
