"""Numbers of runs of `best-of-n` and `optimize` from their frames."""

from collections.abc import Callable
from itertools import chain

import polars as pl
from pluralbench_measures.bootstrap import Array

from pluralbench.data.rules import rule_of
from pluralbench.errors import RunError
from pluralbench.metrics.best_of_n import OutcomeTable, candidate_arrays, curve_numbers, index_names, level_numbers
from pluralbench.metrics.cycles import cyclic_numbers
from pluralbench.metrics.frame import metrics_frame
from pluralbench.metrics.metric import START
from pluralbench.metrics.people import people_numbers
from pluralbench.results.downstream import (
    PEOPLE,
    THREAD_KEY,
    BestOfNRunConfig,
    DownstreamResult,
    DownstreamRunConfig,
    OptimizeRunConfig,
)

Frame = Callable[[str], pl.DataFrame]


def best_of_n_numbers(config: BestOfNRunConfig, result: DownstreamResult, frame: Frame, texts: object) -> pl.DataFrame:
    """Compute the metrics of a run of `best-of-n`; see `results.kinds.RunKind.numbers`.

    Raises:
        RunError: The run has no candidates, or its sample numbers are not consecutive.
    """
    by_config = rule_of(config.benchmark.description).by_config
    curves = outcome_table(config, result, frame)
    numbers = curve_numbers(curves, result.sampling.sizes, by_config=by_config)
    by_people = result.outcome is not None and result.outcome.judge.kind == PEOPLE
    compared = [name for name, one in result.rewards.items() if one.compares]
    cycles = (
        cyclic_numbers(frame("candidates"), frame("comparisons"), compared, by_config=by_config) if compared else ()
    )
    return metrics_frame(chain(numbers, cycles, people_numbers(frame("answers")) if by_people else ()))


def optimize_numbers(config: OptimizeRunConfig, result: DownstreamResult, frame: Frame, texts: object) -> pl.DataFrame:
    """Compute the metrics of a run of `optimize`; see `best_of_n_numbers`."""
    if result.outcome is None:
        return metrics_frame(())
    before, after = (outcome_table(config, result, frame, end) for end in (f"_{START}", ""))
    by_config = rule_of(config.benchmark.description).by_config
    return metrics_frame(level_numbers(before, after, by_config=by_config))


def outcome_table(config: DownstreamRunConfig, result: DownstreamResult, frame: Frame, end: str = "") -> OutcomeTable:
    """Build the outcome table of a run; raises `RunError` as `best_of_n_numbers`."""
    candidates = frame(f"candidates{end}").filter(pl.col("sample") < config.sampling.n)
    outcomes = None if result.outcome is None else frame(f"outcomes{end}")
    rewards, selected = frame("rewards"), frame("selected")
    last = candidates["sample"].n_unique() - 1
    for name, one in {"candidates": candidates, "rewards": rewards, "outcomes": outcomes}.items():
        if one is not None and not (last >= 0 and one["sample"].fill_null(-1).is_between(0, last).all()):
            raise RunError(f"{name}.parquet has no candidates, or sample numbers outside 0 to {max(last, 0):,}.")
    names = [*result.rewards] if config.verb == BestOfNRunConfig.verb else []
    items, by_model, values = candidate_arrays(candidates, rewards, outcomes, names)
    places, configs = index_names(items["config"])
    cluster, _ = index_names(items["cluster"])
    if outcomes is None:
        return OutcomeTable(places, cluster, configs, by_model, None, {})
    # A table is complete if each candidate with a text was judged in every conversation with a judged candidate.
    texts = candidates.drop_nulls("text").join(outcomes.select(THREAD_KEY).unique(), on=THREAD_KEY, how="semi")
    complete = result.sampling.turns == 1 and texts.join(outcomes, on=[*THREAD_KEY, "sample"], how="anti").is_empty()
    chosen = _values_of_selected(selected, outcomes, items)
    return OutcomeTable(places, cluster, configs, by_model, values if complete else None, chosen)


def _values_of_selected(
    selected: pl.DataFrame, outcomes: pl.DataFrame, items: pl.DataFrame
) -> dict[tuple[str, int], Array]:
    """Return the outcome of the selected candidate by reward model and k, averaged over turns. Shape (items,)."""
    values = (
        selected.join(outcomes, on=[*THREAD_KEY, "sample"], how="left", maintain_order="left")
        .group_by("model", "k", "config", "id", maintain_order=True)
        # A conversation has no value if one of its turns has none.
        .agg(value=pl.when(pl.col("value").null_count() == 0).then(pl.col("value").mean()))
    )
    return {
        (str(model), int(str(k))): items.join(own, on=["config", "id"], how="left", maintain_order="left")["value"]
        .cast(pl.Float64)
        .fill_null(float("nan"))
        .to_numpy()
        for (model, k), own in values.partition_by("model", "k", as_dict=True, include_key=True).items()
    }
