"""`train`: a reward model trained on the items of a benchmark."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pluralbench_local import LocalModel, Ranking, Trained, TrainingConfig
from pluralbench_local import train as train_on
from pluralbench_runs import rng_for

from pluralbench.config import DataConfig, PromptConfig
from pluralbench.errors import DataError
from pluralbench.evaluation.loading import LoadedBenchmark, load_benchmark
from pluralbench.evaluation.models import base_model_path

Item = TypeVar("Item")


def train(
    base: str | Path | LocalModel,
    out: str | Path,
    *,
    data: str | Path | DataConfig | None = None,
    benchmark: str = "pairs",
    prompt: PromptConfig | None = None,
    held_out: float | str | Path | None = None,
    label_noise: float = 0.0,
    options: TrainingConfig | None = None,
    fresh: bool = False,
) -> Trained:
    """Train a reward model on the items of a benchmark, each of which is a ranking, into the folder `out`.

    base: a language model, which gets a head, or a classifier of one logit; "local" is the small embedded language
    model. benchmark, data, prompt: as for `score`.
    held_out: to measure accuracy on, a share of the clusters (of those who ask, where the benchmark says so), drawn by
    the seed, so that no cluster is in both parts; or where other items of the same shape are. label_noise: this share
    of the rankings, rounded to a whole number and drawn by the seed, is learned the wrong way round.
    options: how to train; its seed is also that of these draws.

    Training that was interrupted goes on with the same call. `out` holds a classifier, `training.json` with the data
    and the accuracy, and a log. Raises a `UserError` for every mistake of the caller.
    """
    options = options or TrainingConfig()
    if not 0 <= label_noise <= 1:
        raise DataError(f"`label_noise={label_noise}` is not a fraction from 0 to 1.")
    base = base if isinstance(base, LocalModel) else LocalModel(name=str(base))
    loaded = load_benchmark(benchmark, data, prompt, for_training=True)
    learned, judged = items_to_rankings(loaded), None
    origin = data_origin(loaded, learned)
    if isinstance(held_out, float | int):
        learned, judged = split_by_cluster(learned, item_clusters(loaded), held_out, options.seed)
    elif held_out is not None:
        place = loaded.data.model_copy(update={"location": str(held_out), "limit": None})
        judged = items_to_rankings(load_benchmark(benchmark, place, loaded.prompt, for_training=True))
    turned = flip_labels(learned, label_noise, options.seed)
    origin |= {
        "held_out": None if held_out is None else held_out if isinstance(held_out, float | int) else str(held_out),
        "label_noise": label_noise,
        "flipped": [one.id for one, other in zip(learned, turned, strict=True) if one is not other],
    }
    base = base.model_copy(update={"name": base_model_path(base.name)})
    return train_on(base, turned, out, held_out=judged, options=options, origin=origin, fresh=fresh)


def items_to_rankings(loaded: LoadedBenchmark) -> list[Ranking]:
    """The items as rankings, with what the prompt says about the person.

    Where the benchmark names the pairs to train on, a ranking has these, and the responses that are in one.
    """
    rankings = []
    for group, rank, pairs in zip(loaded.groups(), *loaded.frame.select("rank", "pairs"), strict=True):
        inside = range(len(rank)) if pairs is None else sorted({place for pair in pairs for place in pair})
        at = {place: number for number, place in enumerate(inside)}
        rankings.append(
            Ranking(
                group.id,
                group.messages,
                [group.responses[place] for place in inside],
                [rank[place] for place in inside],
                None if pairs is None else [(at[better], at[worse]) for better, worse in pairs],
            )
        )
    return rankings


def data_origin(loaded: LoadedBenchmark, rankings: Sequence[Ranking]) -> dict[str, Any]:
    """Where all rankings of a benchmark come from, for `training.json`, and how much of it is in no pair."""
    return {
        "benchmark": loaded.name,
        "location": loaded.items.location,
        "revision": loaded.items.revision,
        "digest": loaded.items.digest,
        "limit": loaded.data.limit,
        "profile": loaded.prompt.profile,
        "pairs": loaded.benchmark.columns.pairs,
        "without_pair": {
            "items": sum(not one.learned() for one in rankings),
            "responses": int(loaded.frame["responses"].list.len().sum()) - sum(len(one.responses) for one in rankings),
        },
    }


def item_clusters(loaded: LoadedBenchmark) -> list[str]:
    """The cluster of each item, such as its user."""
    return loaded.items.frame["cluster"].to_list()


def split_by_cluster(
    rankings: Sequence[Item], clusters: Sequence[str], share: float, seed: int
) -> tuple[list[Item], list[Item]]:
    """Rankings, or whatever else is in clusters, to learn from and held-out ones; no cluster is in both parts.

    share: of the clusters that is held out. Raises `DataError` where one of the parts would have no cluster.
    """
    chosen = held_out_clusters(clusters, share, seed)
    parts: tuple[list[Item], list[Item]] = ([], [])
    for ranking, cluster in zip(rankings, clusters, strict=True):
        parts[cluster in chosen].append(ranking)
    return parts


def held_out_clusters(clusters: Sequence[str], share: float, seed: int) -> set[str]:
    """This share of the clusters, drawn by the seed. Raises `DataError` where that is none of them, or all."""
    names = sorted(set(clusters), key=lambda cluster: (rng_for(seed, "held out", cluster).random(), cluster))
    number = round(share * len(names)) if 0 < share < 1 else 0
    if not 0 < number < len(names):
        raise DataError(
            f"--held-out {share} of {len(names):,} clusters leaves a part with none; give a share between 0 and 1 of "
            "more items, or a file."
        )
    return set(names[:number])


def flip_labels(rankings: Sequence[Ranking], share: float, seed: int) -> list[Ranking]:
    """The rankings, this share of those with a pair the wrong way round: what was best is worst."""
    paired = [place for place, ranking in enumerate(rankings) if ranking.learned()]
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
