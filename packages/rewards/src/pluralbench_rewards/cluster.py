"""A reward model on a Ray cluster: each worker loads it, and scores whole groups."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pkgutil import resolve_name

from pluralbench_runs import progress
from pluralbench_runs.cluster import ClusterConfig, Workers

from pluralbench_rewards.contract import (
    Group,
    MeasuresTolerance,
    ModelConfig,
    ModelRecord,
    OnScored,
    RewardModel,
    Scored,
    ScoringConfig,
    sum_work,
    tolerance_sample,
)
from pluralbench_rewards.errors import RewardsError

AT_ONCE = 64  # groups that a worker is given in one call
PARTS = 4  # of the work of each worker, at least, so that all are done at about the same time

ANOTHER = (
    "A worker of the cluster finds another model at {name} than this process ({field}); have the same files there on "
    "every node."
)


@dataclass
class OnCluster:
    """A reward model that workers on a cluster load, each once.

    load: gives it there. known: what is known of it here, and afterwards what a worker's says.

    What is scored does not depend on the number of workers where each conversation is computed by itself
    (`ScoringConfig(mode="exact")`, in float32 to the bit); in mode fast they lie within the tolerance of one process's.
    """

    cluster: ClusterConfig
    load: Callable[[], RewardModel]
    known: ModelRecord

    def record(self) -> ModelRecord:
        """What it is; with what loading showed once it has scored."""
        return self.known

    def score(
        self,
        groups: Sequence[Group],
        *,
        known: Mapping[int, list[float]] | None = None,
        on_scored: OnScored | None = None,
    ) -> Scored:
        """Score every group; see `RewardModel.score`. `work` is that of all workers together, in seconds of each.

        Raises `ClusterError`, and what the model raises.
        """
        known = known or {}
        size = max(1, min(AT_ONCE, -(-len(groups) // (PARTS * self.cluster.workers))))
        parts = [range(start, min(start + size, len(groups))) for start in range(0, len(groups), size)]
        whole = Scored([[] for _ in groups], cut=[0] * len(groups))
        # Known groups travel too: the model says how much of them it cut.
        calls = [([groups[place] for place in part], _within(known, part)) for part in parts]
        with (
            Workers(self.cluster, partial(Scorer, self.load)) as workers,
            progress("scoring", len(groups) - len(known)) as meter,
        ):
            for number, scored in workers.results("score", calls):
                _join(whole, scored, parts[number])
                for place in parts[number]:
                    if place in known:
                        continue
                    meter.advance()
                    if on_scored is not None and place not in whole.dropped:
                        on_scored(place, whole.scores[place])
            chosen = tolerance_sample(whole.scores)
            few = Scored([whole.scores[place] for place in chosen], work=whole.work)
            ends = workers.results("end", [([groups[place] for place in chosen], few)])
            [(_, (self.known, whole.tolerance))] = ends
        return whole


def on_cluster(cluster: ClusterConfig, description: ModelConfig, scoring: ScoringConfig) -> OnCluster:
    """A described reward model on a cluster."""
    known = description.record()
    return OnCluster(cluster, partial(loaded, description, scoring, known), known)


class Scorer:
    """What a worker has: the reward model, loaded."""

    def __init__(self, load: Callable[[], RewardModel]) -> None:
        model = load()
        self._measured = model if isinstance(model, MeasuresTolerance) else None
        self._model = model.unmeasured() if isinstance(model, MeasuresTolerance) else model

    def score(self, groups: Sequence[Group], known: Mapping[int, list[float]]) -> Scored:
        """Score some groups."""
        return self._model.score(groups, known=known)

    def end(self, groups: Sequence[Group], scored: Scored) -> tuple[ModelRecord, float]:
        """What the model is, and the tolerance of scores of these groups."""
        return self._model.record(), 0.0 if self._measured is None else self._measured.tolerance(groups, scored)


def loaded(description: ModelConfig, scoring: ScoringConfig, here: ModelRecord) -> RewardModel:
    """A described reward model, where it is the one that is described here. Raises `RewardsError` for another."""
    there = description.record()
    fields = [name for name in ModelRecord.model_fields if getattr(there, name) != getattr(here, name)]
    if fields:
        raise RewardsError(ANOTHER.format(name=here.name, field=fields[0]))
    model: RewardModel = resolve_name(description.loader)(description, scoring)
    return model


def _within(known: Mapping[int, list[float]], part: range) -> dict[int, list[float]]:
    return {place - part.start: known[place] for place in part if place in known}


def _join(whole: Scored, scored: Scored, part: range) -> None:
    """Add to the whole what was scored of a part."""
    start = part.start
    whole.scores[start : part.stop] = scored.scores
    whole.cut[start : part.stop] = scored.cut or [0] * len(part)
    if scored.tokens:
        whole.tokens = whole.tokens or [[] for _ in whole.scores]
        whole.tokens[start : part.stop] = scored.tokens
    whole.dropped |= {start + place: why for place, why in scored.dropped.items()}
    whole.reasons += scored.reasons
    whole.alike += scored.alike
    whole.work = sum_work([work for work in (whole.work, scored.work) if work is not None])
