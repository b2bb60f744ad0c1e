"""`train-planner`: a language model learns to write what people expect, from the aspects that a benchmark knows."""

from pathlib import Path
from typing import Any

from pluralbench_local import LocalModel
from pluralbench_policies.planner_options import PlanExample, PlannerConfig
from pluralbench_policies.planner_prompts import plan_text
from pluralbench_runs import log_status

from pluralbench.config import DataConfig, as_data_config
from pluralbench.data.benchmarks import benchmark_entries
from pluralbench.errors import DataError
from pluralbench.evaluation.loading import LoadedBenchmark
from pluralbench.evaluation.models import base_model_path
from pluralbench.evaluation.train import item_clusters, split_by_cluster
from pluralbench.planning.prompts import LEARNED, item_fingerprints, load_planner_items, planner_prompts

TRAIN = "train"


def train_planner(
    base: str | Path | LocalModel,
    out: str | Path,
    *,
    data: str | Path | DataConfig | None = None,
    benchmark: str = "personalized",
    profile_size: int = 10,
    held_out: float | None = None,
    options: PlannerConfig | None = None,
    fresh: bool = False,
) -> Any:
    """See `pluralbench.train_planner`."""
    options = options or PlannerConfig()
    data = _training_data(benchmark, as_data_config(data))
    source = base if isinstance(base, LocalModel) else LocalModel(name=str(base))
    loaded = load_planner_items(benchmark, data, profile_size)
    train, test = list(zip(training_examples(loaded), item_fingerprints(loaded), strict=True)), None
    if held_out is not None:
        train, test = split_by_cluster(train, item_clusters(loaded), held_out, options.seed)
    origin: dict[str, Any] = {
        "benchmark": loaded.name,
        "location": loaded.items.location,
        "revision": loaded.items.revision,
        "digest": loaded.items.digest,
        "split": data.split,
        "limit": loaded.data.limit,
        "profile_size": profile_size,
        "held_out": held_out,
        LEARNED: sorted(fingerprint for _, fingerprints in train for fingerprint in fingerprints),
    }
    from pluralbench_policies.planner import train_planner as train_on

    source = source.model_copy(update={"name": base_model_path(source.name)})
    examples, test_examples = ([example for example, _ in part] for part in (train, test or []))
    epochs = options.max_steps * options.batch_size / max(len(examples), 1)
    log_status(
        f"{options.max_steps:,} steps of {options.batch_size:,} items: each of the {len(examples):,} items "
        f"{epochs:,.1f} times."
    )
    return train_on(
        source,
        examples,
        out,
        held_out=None if test is None else test_examples,
        options=options,
        origin=origin,
        fresh=fresh,
    )


def _training_data(benchmark: str, data: DataConfig) -> DataConfig:
    """The data with its location and split filled in. Raises `DataError` if there is no location."""
    location = data.location or benchmark_entries([benchmark])[benchmark].train_data
    if location is None:
        raise DataError(
            f"The benchmark {benchmark} names no training data for planners, and its own data is for scoring; give "
            "training data as `data=...`."
        )
    return data.model_copy(update={"location": location, "split": data.split or TRAIN})


def training_examples(loaded: LoadedBenchmark) -> list[PlanExample]:
    """Return a training example for each item.

    Raises:
        DataError: An item has no rubric aspects.
    """
    items = loaded.items.frame
    aspects_by_item = items["aspects"].to_list()
    for item, aspects in zip(items["id"], aspects_by_item, strict=True):
        if not aspects:
            raise DataError(
                f"The item {item} has no rubric aspects to learn from; name their column with "
                '`columns=["aspects=COLUMN"]`.'
            )
    return [
        PlanExample(group.id, messages, plan_text([aspect["aspect"] for aspect in aspects]))
        for group, messages, aspects in zip(loaded.groups(), planner_prompts(loaded), aspects_by_item, strict=True)
    ]
