"""Reward models on a Ray cluster: each worker loads the model and scores whole groups."""

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

GROUPS_PER_CALL = 64
MIN_CALLS = 4  # per worker, so that all workers finish at about the same time

DIFFERENT_MODEL = (
    "A worker of the cluster has another model at {name} than this process ({field}); put the same files on every node."
)


@dataclass
class ClusterModel:
    """A reward model that each worker of a cluster loads once.

    Scores of mode "exact" do not depend on the number of workers (in float32 to the bit). Scores of mode "fast" lie
    within the tolerance of those of one process.

    Attributes:
        cluster: The cluster.
        load: Loads the model on a worker.
        model_record: Record of the model before loading, replaced by a worker's record after scoring.
    """

    cluster: ClusterConfig
    load: Callable[[], RewardModel]
    model_record: ModelRecord

    def record(self) -> ModelRecord:
        """Return the record of the model; complete after scoring."""
        return self.model_record

    def score(
        self,
        groups: Sequence[Group],
        *,
        cached: Mapping[int, list[float]] | None = None,
        on_scored: OnScored | None = None,
    ) -> Scored:
        """Score every group; see `RewardModel.score`. `work.seconds` is the sum over all workers.

        Raises:
            ClusterError: The cluster or a worker fails.
        """
        cached = cached or {}
        size = max(1, min(GROUPS_PER_CALL, -(-len(groups) // (MIN_CALLS * self.cluster.workers))))
        parts = [range(start, min(start + size, len(groups))) for start in range(0, len(groups), size)]
        result = Scored([[] for _ in groups], tokens_cut=[0] * len(groups))
        # Cached groups are sent too: the model reports how many of their tokens it cuts.
        calls = [([groups[index] for index in part], _cached_in(cached, part)) for part in parts]
        with (
            Workers(self.cluster, partial(Scorer, self.load)) as workers,
            progress("scoring", len(groups), done=len(cached)) as meter,
        ):
            for number, scored in workers.results("score", calls):
                _add_part(result, scored, parts[number])
                for index in parts[number]:
                    if index in cached:
                        continue
                    meter.advance()
                    if on_scored is not None and index not in result.dropped:
                        on_scored(index, result.scores[index])
            sample = tolerance_sample(result)
            sampled = Scored([result.scores[index] for index in sample], work=result.work)
            finished = workers.results("finish", [([groups[index] for index in sample], sampled)])
            [(_, (self.model_record, result.tolerance))] = finished
        return result


def on_cluster(cluster: ClusterConfig, description: ModelConfig, scoring: ScoringConfig) -> ClusterModel:
    """Put a configured reward model on a cluster."""
    record = description.record()
    return ClusterModel(cluster, partial(load_checked, description, scoring, record), record)


class Scorer:
    """The actor of a worker, with a loaded reward model."""

    def __init__(self, load: Callable[[], RewardModel]) -> None:
        model = load()
        self._measured = model if isinstance(model, MeasuresTolerance) else None
        self._model = model.unmeasured() if isinstance(model, MeasuresTolerance) else model

    def score(self, groups: Sequence[Group], cached: Mapping[int, list[float]]) -> Scored:
        """Score groups."""
        return self._model.score(groups, cached=cached)

    def finish(self, groups: Sequence[Group], scored: Scored) -> tuple[ModelRecord, float | None]:
        """Return the record of the model, and the tolerance measured on these groups; None without a group."""
        measured = self._measured if groups else None
        return self._model.record(), None if measured is None else measured.tolerance(groups, scored)


def load_checked(description: ModelConfig, scoring: ScoringConfig, expected: ModelRecord) -> RewardModel:
    """Load a reward model on a worker. Raises `RewardsError` if its record differs from the expected one."""
    actual = description.record()
    fields = [name for name in ModelRecord.model_fields if getattr(actual, name) != getattr(expected, name)]
    if fields:
        raise RewardsError(DIFFERENT_MODEL.format(name=expected.name, field=fields[0]))
    model: RewardModel = resolve_name(description.loader)(description, scoring)
    return model


def _cached_in(cached: Mapping[int, list[float]], part: range) -> dict[int, list[float]]:
    return {index - part.start: cached[index] for index in part if index in cached}


def _add_part(result: Scored, scored: Scored, part: range) -> None:
    start = part.start
    result.scores[start : part.stop] = scored.scores
    result.tokens_cut[start : part.stop] = scored.tokens_cut or [0] * len(part)
    if scored.tokens:
        result.tokens = result.tokens or [[] for _ in result.scores]
        result.tokens[start : part.stop] = scored.tokens
    result.dropped |= {start + index: reason for index, reason in scored.dropped.items()}
    result.reasons += scored.reasons
    result.rendered_identically += scored.rendered_identically
    if scored.inputs_with_two_bos is not None and scored.inputs_without_bos is not None:
        result.inputs_with_two_bos = (result.inputs_with_two_bos or 0) + scored.inputs_with_two_bos
        result.inputs_without_bos = (result.inputs_without_bos or 0) + scored.inputs_without_bos
    result.work = sum_work([work for work in (result.work, scored.work) if work is not None])
