"""`train-planner`: a language model learns to write what people expect, from the aspects that a benchmark knows."""

from pathlib import Path
from typing import Any

from pluralbench_local import LocalModel
from pluralbench_policies.planner_options import PlanExample, PlannerOptions
from pluralbench_policies.planner_prompts import plan_text

from pluralbench.descriptions import Data
from pluralbench.errors import DataError
from pluralbench.evaluation.models import to_begin_with
from pluralbench.evaluation.settings import Loaded
from pluralbench.evaluation.train import clusters_of, split
from pluralbench.planning.prompts import load_people, prompts_of


def train_planner(
    base: str | Path | LocalModel,
    out: str | Path,
    *,
    data: str | Path | Data | None = None,
    benchmark: str = "personalized",
    posts: int = 10,
    held_out: float | None = None,
    options: PlannerOptions | None = None,
    fresh: bool = False,
) -> Any:
    """Train a planner on the items of a benchmark that have a profile and rubric aspects, into the folder `out`.

    Personalized RewardBench, section 4.3.

    base: a language model with a chat template; "local" is the small embedded one. data: the items; responses that come
    with them are not read. posts: of a profile, at most. held_out: this share of the clusters (of those who ask, where
    the benchmark says so), drawn by the seed of `options`, to measure the loss on.

    Returns `pluralbench_policies.TrainedPlanner`. Training that was interrupted goes on with the same call. Raises a
    `UserError` for every mistake of the caller.
    """
    options = options or PlannerOptions()
    data = data if isinstance(data, Data) else Data(location=None if data is None else str(data))
    source = base if isinstance(base, LocalModel) else LocalModel(name=str(base))
    loaded = load_people(benchmark, data, posts)
    learned, judged = examples_of(loaded), None
    if held_out is not None:
        learned, judged = split(learned, clusters_of(loaded), held_out, options.seed)
    origin: dict[str, Any] = {
        "benchmark": loaded.name,
        "location": loaded.items.location,
        "revision": loaded.items.revision,
        "digest": loaded.items.digest,
        "limit": loaded.data.limit,
        "posts": posts,
        "held_out": held_out,
    }
    from pluralbench_policies.planner import train_planner as train_on  # noqa: PLC0415 - needs torch

    source = source.model_copy(update={"name": to_begin_with(source.name)})
    return train_on(source, learned, out, held_out=judged, options=options, origin=origin, fresh=fresh)


def examples_of(loaded: Loaded) -> list[PlanExample]:
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
