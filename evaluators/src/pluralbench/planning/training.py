"""`train-planner`: a language model learns to write what people expect, from the aspects that a benchmark knows."""

from pathlib import Path
from typing import Annotated, Any

from pluralbench_local import LocalModel
from pluralbench_local.config import READING_FIELDS
from pluralbench_policies.planner_options import PlanExample, PlannerConfig, plan_text
from pluralbench_runs import log_status
from pluralbench_runs.options import Flag, Options

from pluralbench.arguments import Out, PlannerItems, ProfileSize
from pluralbench.config import as_data_config
from pluralbench.data.benchmark_entries import benchmark_entries
from pluralbench.errors import DataError
from pluralbench.evaluation.loading import LoadedBenchmark
from pluralbench.evaluation.models import local_model
from pluralbench.evaluation.train import item_clusters, split_by_cluster
from pluralbench.planning.prompts import LEARNED, item_fingerprints, load_planner_items, planner_prompts

TRAIN = "train"


def train_planner(
    base: Annotated[str | Path | LocalModel, Options("Model", READING_FIELDS)],
    out: Out,
    *,
    data: PlannerItems = None,
    benchmark: str = "personalized",
    profile_size: ProfileSize = 10,
    held_out: Annotated[float | None, Flag(metavar="SHARE")] = None,
    options: Annotated[PlannerConfig | None, Options("Training")] = None,
    fresh: bool = False,
) -> Any:
    """Train a language model to infer what a user expects of an answer, from their posts and question.

    The targets are the rubric aspects of a benchmark's items (Personalized RewardBench, section 4.3); responses are not
    read. Training uses LoRA with TRL, of the extra `optimize` (in a clone: uv sync --inexact --package pluralbench
    --extra optimize). Writes a directory with an ordinary language model, a log of the steps, and planner.json with the
    data and options. Repeat it with the same arguments to resume.

    Args:
        base: Language model with a chat template: directory, ORG/NAME on the Hub, or `local` (small embedded model). In
            Python also a `LocalModel`.
        out: Directory of the trained planner.
        data: Location of the items, or a `DataConfig`. Default: the benchmark's data for training planners, never what
            it scores on. The default split is the train split.
        benchmark: Name, such as personalized, multilingual, chinese, reward-bench-2 or pairs (`pluralbench list` shows
            all), or a TOML file.
        profile_size: Maximum posts per user.
        held_out: Measure the loss on this fraction of the users, such as 0.05, drawn by the seed. Default: none.
        options: Training options. Default: `PlannerConfig()`.
        fresh: Start over, and replace existing output.

    Returns:
        The trained planner, a `pluralbench_local.Trained`.

    Raises:
        UserError: An argument or the data is not valid.

    Examples:
        pluralbench train-planner Qwen/Qwen2.5-0.5B-Instruct --held-out 0.05 --out planner
        pluralbench train-planner local --data people.jsonl --max-steps 40 --warmup-steps 4 --batch-size 2
            --learning-rate 3e-3 --out planner
    """
    options = options or PlannerConfig()
    data = as_data_config(data)
    location = data.location or benchmark_entries([benchmark])[benchmark].train_data
    if location is None:
        raise DataError(
            f"The benchmark {benchmark} names no training data for planners, and its own data is for scoring; give "
            "training data as `data=...`."
        )
    data = data.model_copy(update={"location": location, "split": data.split or TRAIN})
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
    source = local_model(base)
    source.check_location()
    from pluralbench_policies.planner import train_planner as train_on

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


def training_examples(loaded: LoadedBenchmark) -> list[PlanExample]:
    """Return a training example for each item. Raises `DataError` for an item without rubric aspects."""
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
