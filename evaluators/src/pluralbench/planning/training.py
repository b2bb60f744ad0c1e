"""`train-planner`: a language model learns to write what people expect, from the aspects that a benchmark knows."""

from pathlib import Path
from typing import Any

from pluralbench_local import LocalModel
from pluralbench_policies.planner_options import PlanExample, PlannerConfig
from pluralbench_policies.planner_prompts import plan_text

from pluralbench.config import DataConfig
from pluralbench.data.benchmarks import benchmark_entries
from pluralbench.errors import DataError
from pluralbench.evaluation.loading import LoadedBenchmark, as_data_config
from pluralbench.evaluation.models import base_model_path
from pluralbench.evaluation.train import item_clusters, split_by_cluster
from pluralbench.planning.prompts import LEARNED, load_people, marks_of, prompts_of

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
    """Train a planner: a language model that infers what a user expects of a response, from posts and a question.

    Trains on items with a profile and rubric aspects (Personalized RewardBench, section 4.3). Responses of the items
    are not read. Repeating the call resumes an interrupted training.

    Args:
        base: Language model with a chat template: a folder or ORG/NAME on the Hub, "local" for the small embedded
            model, or a `LocalModel`.
        out: Folder of the trained planner.
        data: Location of the items, or a `DataConfig`. Default: the benchmark's data for training planners, never what
            it scores on. The default split is the train split.
        benchmark: Name of the benchmark, or a TOML file that describes one.
        profile_size: Maximum number of posts per user, in the order of the profile.
        held_out: Fraction of the clusters to measure the loss on, drawn by the seed of `options`. Default: none.
        options: Training options. Default: `PlannerConfig()`.
        fresh: Replace the folder and start over.

    Returns:
        The trained planner, a `pluralbench_local.Trained`.

    Raises:
        UserError: An argument or the data is not valid.
    """
    options = options or PlannerConfig()
    data = _to_learn(benchmark, as_data_config(data))
    source = base if isinstance(base, LocalModel) else LocalModel(name=str(base))
    loaded = load_people(benchmark, data, profile_size)
    learned, judged = list(zip(examples_of(loaded), marks_of(loaded), strict=True)), None
    if held_out is not None:
        learned, judged = split_by_cluster(learned, item_clusters(loaded), held_out, options.seed)
    origin: dict[str, Any] = {
        "benchmark": loaded.name,
        "location": loaded.items.location,
        "revision": loaded.items.revision,
        "digest": loaded.items.digest,
        "split": data.split,
        "limit": loaded.data.limit,
        "profile_size": profile_size,
        "held_out": held_out,
        LEARNED: sorted(mark for _, marks in learned for mark in marks),
    }
    from pluralbench_policies.planner import train_planner as train_on  # noqa: PLC0415 - needs torch

    source = source.model_copy(update={"name": base_model_path(source.name)})
    examples, measured = ([one for one, _ in part] for part in (learned, judged or []))
    return train_on(
        source,
        examples,
        out,
        held_out=None if judged is None else measured,
        options=options,
        origin=origin,
        fresh=fresh,
    )


def _to_learn(benchmark: str, data: DataConfig) -> DataConfig:
    """The data with its location and split spelled out. Raises `DataError` where nobody says where it is."""
    place = data.location or benchmark_entries([benchmark])[benchmark].train_data
    if place is None:
        raise DataError(
            f"The benchmark {benchmark} names no data for planners to learn from, and its own is what it scores by; "
            "say where `data` to learn from is."
        )
    return data.model_copy(update={"location": place, "split": data.split or TRAIN})


def examples_of(loaded: LoadedBenchmark) -> list[PlanExample]:
    """What a planner learns of each item. Raises `DataError` where one has no aspects."""
    items = loaded.items.frame
    known = items["aspects"].to_list()
    for item, aspects in zip(items["id"], known, strict=True):
        if not aspects:
            raise DataError(
                f"The item of id {item} has no rubric aspects to learn from; name their column (--column "
                "aspects=COLUMN)."
            )
    return [
        PlanExample(group.id, messages, plan_text([aspect["aspect"] for aspect in aspects]))
        for group, messages, aspects in zip(loaded.groups(), prompts_of(loaded), known, strict=True)
    ]
