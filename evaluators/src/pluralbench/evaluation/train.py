"""`train`: train a reward model on the items of a benchmark."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pluralbench_local
from pluralbench_local import LocalModel, TrainingConfig
from pluralbench_runs import rng_for

from pluralbench.config import DataConfig, Profile, PromptConfig
from pluralbench.errors import DataError
from pluralbench.evaluation.loading import LoadedBenchmark, load_benchmark
from pluralbench.evaluation.models import base_model_path

if TYPE_CHECKING:
    from pluralbench_local import Ranking, Trained

Item = TypeVar("Item")


def train(
    base: str | Path | LocalModel,
    out: str | Path,
    *,
    data: str | Path | DataConfig | None = None,
    benchmark: str = "pairs",
    prompt: Profile | PromptConfig | None = None,
    held_out: float | str | Path | None = None,
    label_noise: float = 0.0,
    options: TrainingConfig | None = None,
    fresh: bool = False,
) -> "Trained":
    """See `pluralbench.train`."""
    options = options or TrainingConfig()
    if not 0 <= label_noise <= 1:
        raise DataError(f"`label_noise={label_noise}` is not between 0 and 1.")
    base = base if isinstance(base, LocalModel) else LocalModel(name=str(base))
    loaded = load_benchmark(benchmark, data, prompt, for_training=True)
    training, evaluation = items_to_rankings(loaded), None
    origin = data_origin(loaded, training)
    if isinstance(held_out, float | int):
        training, evaluation = split_by_cluster(training, item_clusters(loaded), held_out, options.seed)
    elif held_out is not None:
        held_out_data = loaded.data.model_copy(update={"location": str(held_out), "limit": None})
        evaluation = items_to_rankings(load_benchmark(benchmark, held_out_data, loaded.prompt, for_training=True))
    flipped = flip_labels(training, label_noise, options.seed)
    origin |= {
        "held_out": None if held_out is None else held_out if isinstance(held_out, float | int) else str(held_out),
        "label_noise": label_noise,
        "flipped": [before.id for before, after in zip(training, flipped, strict=True) if before is not after],
    }
    base = base.model_copy(update={"name": base_model_path(base.name)})
    return pluralbench_local.train(base, flipped, out, held_out=evaluation, options=options, origin=origin, fresh=fresh)


def items_to_rankings(loaded: LoadedBenchmark) -> list["Ranking"]:
    """Convert the items to rankings, with the user context in their messages.

    If the benchmark has a column of training pairs, a ranking has these pairs and only the responses in them.
    """
    rankings = []
    for group, rank, pairs in zip(loaded.groups(), *loaded.frame.select("rank", "pairs"), strict=True):
        inside = range(len(rank)) if pairs is None else sorted({place for pair in pairs for place in pair})
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


def data_origin(loaded: LoadedBenchmark, rankings: Sequence["Ranking"]) -> dict[str, Any]:
    """Describe the data for `training.json`, including the items and responses that are in no training pair."""
    return {
        "benchmark": loaded.name,
        "location": loaded.items.location,
        "revision": loaded.items.revision,
        "digest": loaded.items.digest,
        "limit": loaded.data.limit,
        "profile": loaded.prompt.profile,
        "pairs": loaded.benchmark.columns.pairs,
        "without_pair": {
            "items": sum(not ranking.pairs_to_learn() for ranking in rankings),
            "responses": int(loaded.frame["responses"].list.len().sum())
            - sum(len(ranking.responses) for ranking in rankings),
        },
    }


def item_clusters(loaded: LoadedBenchmark) -> list[str]:
    """Return the cluster of each item, such as its user."""
    return loaded.items.frame["cluster"].to_list()


def split_by_cluster(
    rankings: Sequence[Item], clusters: Sequence[str], share: float, seed: int
) -> tuple[list[Item], list[Item]]:
    """Split items into a training part and a held-out part that share no cluster.

    Args:
        rankings: The items.
        clusters: The cluster of each item.
        share: Fraction of the clusters that is held out, between 0 and 1.
        seed: Seed of the draw.

    Returns:
        The training items and the held-out items, in their order.

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
