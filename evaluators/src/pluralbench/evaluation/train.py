"""`train`: train a reward model on the items of a benchmark."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import pluralbench_local
from pluralbench_local import LocalModel, TrainingConfig
from pluralbench_local.config import READING_FIELDS
from pluralbench_measures.rankings import pairs_of
from pluralbench_runs import rng_for
from pluralbench_runs.options import Options

from pluralbench.arguments import HeldOut, Out, Undrawn
from pluralbench.config import Profile, PromptConfig, as_data_config
from pluralbench.errors import DataError
from pluralbench.evaluation.loading import LoadedBenchmark, benchmark_of, load_benchmark
from pluralbench.evaluation.models import local_model

if TYPE_CHECKING:
    from pluralbench_local import Ranking, Trained

DEFAULT = "pairs"
Item = TypeVar("Item")


def train(
    base: Annotated[str | Path | LocalModel, Options("Model", ("dtype", *READING_FIELDS))],
    out: Out,
    *,
    data: Undrawn = None,
    benchmark: str | None = None,
    prompt: Profile | PromptConfig | None = None,
    held_out: HeldOut = None,
    label_noise: float = 0.0,
    options: Annotated[TrainingConfig | None, Options("Training")] = None,
    fresh: bool = False,
) -> "Trained":
    """Train a reward model on the items of a benchmark.

    Writes a directory with a sequence classifier, a log of the steps, and training.json with the data, the options and
    the held-out accuracy. Repeat it with the same arguments to resume.

    Args:
        base: Language model (gets a new head) or classifier with one logit: directory, ORG/NAME on the Hub, or `local`
            (small embedded language model). In Python also a `LocalModel`.
        out: Directory of the trained model.
        data: Location of the dataset, or a `DataConfig`, which also selects configs, columns and a limit. Default: the
            benchmark's dataset on the Hub, if it has one. The default split is `train` if the data has it, else the one
            that `score` reads.
        benchmark: Name, such as personalized-training, chinese or pairs (`pluralbench list` shows all), or a TOML file.
            Default: the benchmark in the manifest of `data`, else pairs.
        prompt: User context in the prompt, such as "raw", or a `PromptConfig`. Default: none.
        held_out: Measure accuracy on this fraction of the clusters (prompts or users), such as 0.2, drawn by the seed,
            or on the items of a file or of the split that `score` reads of a dataset. Default: none.
        label_noise: Reverse the order of this fraction of the training items, drawn by the seed. Held-out items are
            never reversed.
        options: Training options such as epochs and learning rate. Its seed also draws `held_out` and `label_noise`.
            Default: `TrainingConfig()`.
        fresh: Start over, and replace existing output.

    Returns:
        The directory, the training record and the held-out accuracy.

    Raises:
        UserError: If an argument, the data, the model or the directory cannot be used. The message names the fix.

    Examples:
        pluralbench train ./base --data pairs.jsonl --held-out 0.2 --learning-rate 5e-5 --out my-model
        pluralbench train ./base --data pairs.jsonl --trainable head --epochs 20 --learning-rate 0.01 --out my-model
        pluralbench train ORG/NAME --profile raw --data dist/personalized-training --lora 16/32 --out my-model
    """
    options = options or TrainingConfig()
    if not 0 <= label_noise <= 1:
        raise DataError(f"`label_noise={label_noise}` is not between 0 and 1.")
    data = as_data_config(data)
    benchmark = benchmark or benchmark_of(data.location) or DEFAULT
    loaded = load_benchmark(benchmark, data, prompt, for_training=True)
    start = local_model(base)
    start.check_location()  # before the libraries are imported, which takes seconds
    training, evaluation = items_to_rankings(loaded), None
    origin = data_origin(loaded, training)
    if isinstance(held_out, float | int):
        training, evaluation = split_by_cluster(training, item_clusters(loaded), held_out, options.seed)
    elif held_out is not None:
        other = {"location": str(held_out), "limit": None, "split": data.split or loaded.benchmark.split}
        measured = load_benchmark(benchmark, data.model_copy(update=other), loaded.prompt, for_training=True)
        _check_held_out(loaded, measured)
        evaluation = items_to_rankings(measured)
    flipped = flip_labels(training, label_noise, options.seed)
    origin |= {
        "held_out": None if held_out is None else held_out if isinstance(held_out, float | int) else str(held_out),
        "label_noise": label_noise,
        "flipped": [before.id for before, after in zip(training, flipped, strict=True) if before is not after],
    }
    return pluralbench_local.train(
        start, flipped, out, held_out=evaluation, options=options, origin=origin, fresh=fresh
    )


def _check_held_out(loaded: LoadedBenchmark, measured: LoadedBenchmark) -> None:
    learned = measured.items.frame.join(loaded.items.frame.select("digest").unique(), on="digest", how="semi")
    if learned.height:
        raise DataError(
            f"{learned.height:,} of the {measured.items.frame.height:,} held-out items of {measured.items.location} "
            f"are also trained on, such as {learned['id'][0]}; hold out other items."
        )


def items_to_rankings(loaded: LoadedBenchmark) -> list["Ranking"]:
    """Convert the items to rankings, with the user context in their messages.

    If the benchmark has a column of training pairs, a ranking has these pairs and only the responses in them. Two
    identical responses are no pair.
    """
    rankings = []
    for group, rank, named in zip(loaded.groups(), *loaded.frame.select("rank", "pairs"), strict=True):
        ordered = pairs_of(rank) if named is None else named
        different = [pair for pair in ordered if group.responses[pair[0]] != group.responses[pair[1]]]
        pairs = None if named is None and len(different) == len(ordered) else different
        inside = range(len(rank)) if named is None else sorted({place for pair in different for place in pair})
        at = {place: number for number, place in enumerate(inside)}
        rankings.append(
            pluralbench_local.Ranking(
                group.id,
                group.messages,
                [group.responses[place] for place in inside],
                [rank[place] for place in inside],
                None if pairs is None else [(at[better], at[worse]) for better, worse in pairs],
            )
        )
    return rankings


def count_unusual_pairs(loaded: LoadedBenchmark, rankings: Sequence["Ranking"]) -> dict[str, int]:
    """Count the pairs of identical responses, which are not learned, and those that repeat an earlier pair."""
    identical = 0
    for texts, rank, named in loaded.frame.select("responses", "rank", "pairs").iter_rows():
        ordered = pairs_of(rank) if named is None else named
        identical += sum(texts[better] == texts[worse] for better, worse in ordered)
    learned: set[int] = set()  # hashes, which take little memory for many pairs
    count = 0
    for ranking in rankings:
        prompt = hash(tuple((message["role"], message["content"]) for message in ranking.prompt))
        for better, worse in ranking.pairs_to_learn():
            learned.add(hash((prompt, ranking.responses[better], ranking.responses[worse])))
            count += 1
    return {"identical_pairs": identical, "repeated_pairs": count - len(learned)}


def data_origin(loaded: LoadedBenchmark, rankings: Sequence["Ranking"]) -> dict[str, Any]:
    """Describe the data for `training.json`, including the items and responses that are in no training pair."""
    return {
        "benchmark": loaded.name,
        "location": loaded.items.location,
        "revision": loaded.items.revision,
        "split": loaded.items.split,
        "digest": loaded.items.digest,
        "limit": loaded.data.limit,
        "profile": loaded.prompt.profile,
        "pairs": loaded.benchmark.columns.pairs,
        "without_pair": {
            "items": sum(not ranking.pairs_to_learn() for ranking in rankings),
            "responses": int(loaded.frame["responses"].list.len().sum())
            - sum(len(ranking.responses) for ranking in rankings),
        },
        **count_unusual_pairs(loaded, rankings),
    }


def item_clusters(loaded: LoadedBenchmark) -> list[str]:
    """Return the cluster of each item, such as its user."""
    return loaded.items.frame["cluster"].to_list()


def split_by_cluster(
    rankings: Sequence[Item], clusters: Sequence[str], share: float, seed: int
) -> tuple[list[Item], list[Item]]:
    """Split items into a training part and a held-out share of the clusters, each in order.

    Raises:
        DataError: If one of the parts would be empty.
    """
    chosen = held_out_clusters(clusters, share, seed)
    parts: tuple[list[Item], list[Item]] = ([], [])
    for ranking, cluster in zip(rankings, clusters, strict=True):
        parts[cluster in chosen].append(ranking)
    return parts


def held_out_clusters(clusters: Sequence[str], share: float, seed: int) -> set[str]:
    """Draw a fraction of the clusters; see `split_by_cluster`."""
    names = sorted(set(clusters), key=lambda cluster: (rng_for(seed, "held out", cluster).random(), cluster))
    number = round(share * len(names)) if 0 < share < 1 else 0
    if not 0 < number < len(names):
        raise DataError(
            f"`held_out={share}` of {len(names):,} clusters leaves one part empty; choose a share between 0 and 1, add "
            "items, or pass a file."
        )
    return set(names[:number])


def flip_labels(rankings: Sequence["Ranking"], share: float, seed: int) -> list["Ranking"]:
    """Reverse the order of a fraction of the rankings that have a pair, drawn by the seed."""
    paired = [place for place, ranking in enumerate(rankings) if ranking.pairs_to_learn()]
    paired.sort(key=lambda place: (rng_for(seed, "flipped", rankings[place].id).random(), place))
    chosen = set(paired[: round(share * len(paired))])
    return [
        replace(
            ranking,
            rank=[max(ranking.rank) + min(ranking.rank) - rank for rank in ranking.rank],
            pairs=None if ranking.pairs is None else [(worse, better) for better, worse in ranking.pairs],
        )
        if place in chosen
        else ranking
        for place, ranking in enumerate(rankings)
    ]
