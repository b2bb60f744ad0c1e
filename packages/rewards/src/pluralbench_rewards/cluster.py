"""Reward models on a Ray cluster, or on the devices of this machine: each worker loads the model and scores groups."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pkgutil import resolve_name
from typing import Any, Protocol, Self

from pluralbench_runs import progress
from pluralbench_runs.cluster import ClusterConfig, Workers
from pluralbench_runs.workers import NamedWorkers

from pluralbench_rewards.contract import (
    AnyRewardModel,
    Cached,
    Group,
    MeasuresTolerance,
    ModelConfig,
    ModelRecord,
    OnScored,
    RewardModel,
    Scored,
    ScoringConfig,
    sum_work,
)
from pluralbench_rewards.errors import RewardsError
from pluralbench_rewards.tolerance import check_spread, tolerance_sample

GROUPS_PER_CALL = 64
MIN_CALLS = 4  # per worker, so that all workers finish at about the same time

DIFFERENT_MODEL = (
    "A worker of the cluster has another model at {name} than this process ({field}); put the same files on every node."
)
ONE_PROCESS = (
    "{name} compares two responses and gives no score of a single one, which works in one process alone; choose one "
    "`device=...`, and leave out the cluster."
)


@dataclass
class WorkersModel:
    """A reward model that each of several workers loads once.

    A block of groups is scored by one worker, so that its scores are those of one process, to the bit on equal devices.
    Groups of a single block are divided by their prompts: scores of mode "exact" then do not depend on the number of
    workers (in float32 to the bit), and scores of mode "fast" lie within the tolerance of those of one process.

    Attributes:
        start: Makes the workers, with a `Scorer` each.
        devices: Names of all devices, for the record. Default: the device of the worker that finished.
    """

    start: Callable[[], "_Pool"]
    num_workers: int
    model_record: ModelRecord
    devices: Sequence[str] = ()

    def record(self) -> ModelRecord:
        """Return the record of the model; complete after scoring."""
        return self.model_record

    def score(self, groups: Sequence[Group], *, cached: Cached = None, on_scored: OnScored = None) -> Scored:
        """Score every group; see `RewardModel.score`. `work.seconds` is the sum over all workers."""
        result, record = _score_in_parts(self.start(), self.num_workers, groups, cached or {}, on_scored)
        self.model_record = record.model_copy(update={"device": ", ".join(self.devices)} if self.devices else {})
        return result


def on_devices(loads: Mapping[str, Callable[[], AnyRewardModel]], record: ModelRecord) -> WorkersModel:
    """Put a reward model on devices of this machine, a process each.

    `loads` load it, by the name of the device, and can be pickled; `record` is that before loading.
    """
    start = partial(NamedWorkers, {device: partial(Scorer, load) for device, load in loads.items()})
    return WorkersModel(start, len(loads), record, [*loads])


def on_cluster(cluster: ClusterConfig, load: Callable[[], AnyRewardModel], record: ModelRecord) -> WorkersModel:
    """Put a reward model on a cluster; `load` loads it on a worker."""
    return WorkersModel(partial(Workers, cluster, partial(Scorer, load)), cluster.workers, record)


class Scorer:
    """The actor of a worker, with a loaded reward model."""

    def __init__(self, load: Callable[[], AnyRewardModel]) -> None:
        model = load()
        if not isinstance(model, RewardModel):
            raise RewardsError(ONE_PROCESS.format(name=model.record().name))
        self._measured = model if isinstance(model, MeasuresTolerance) else None
        self._model = model.unmeasured() if isinstance(model, MeasuresTolerance) else model

    def score(self, groups: Sequence[Group], cached: Mapping[int, list[float]]) -> Scored:
        """Score groups."""
        return self._model.score(groups, cached=cached)

    def finish(self, groups: Sequence[Group], scored: Scored) -> tuple[ModelRecord, float | None]:
        """Return the record of the model, and the tolerance measured on these groups; None without a group."""
        measured = self._measured if groups else None
        return self._model.record(), None if measured is None else measured.tolerance(groups, scored)


def load_checked(description: ModelConfig, scoring: ScoringConfig, expected: ModelRecord) -> AnyRewardModel:
    """Load a reward model on a worker. Raises `RewardsError` if its record differs from the expected one."""
    actual = description.record()
    fields = [name for name in ModelRecord.model_fields if getattr(actual, name) != getattr(expected, name)]
    if fields:
        raise RewardsError(DIFFERENT_MODEL.format(name=expected.name, field=fields[0]))
    model: AnyRewardModel = resolve_name(description.loader)(description, scoring)
    return model


class _Pool(Protocol):
    """Workers with a `Scorer` each: those of a cluster, or processes of this machine."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    def results(self, method: str, parts: Sequence[tuple[Any, ...]], /) -> Iterator[tuple[int, Any]]: ...


def _score_in_parts(
    pool: _Pool,
    num_workers: int,
    groups: Sequence[Group],
    cached: Mapping[int, list[float]],
    on_scored: OnScored,
) -> tuple[Scored, ModelRecord]:
    parts = _parts(groups, num_workers)
    result = Scored([[] for _ in groups], tokens_cut=[0] * len(groups))
    # Cached groups are sent too: the model reports how many of their tokens it cuts.
    calls = [([groups[index] for index in part], _cached_in(cached, part)) for part in parts]
    with pool as workers, progress("scoring", len(groups), done=len(cached)) as meter:
        for number, scored in workers.results("score", calls):
            _add_part(result, scored, parts[number])
            new = [index for index in parts[number] if index not in cached]
            meter.advance(items=len(new))
            if on_scored is not None:
                on_scored({index: result.scores[index] for index in new if index not in result.dropped})
        sample = tolerance_sample(result, groups)
        sampled = Scored([result.scores[index] for index in sample], work=result.work)
        finished = workers.results("finish", [([groups[index] for index in sample], sampled)])
        [(_, (record, tolerance))] = finished
        result.tolerance = None if tolerance is None else check_spread(result, tolerance)
    return result, record


def _parts(groups: Sequence[Group], num_workers: int) -> list[list[int]]:
    """Divide groups among workers by their blocks.

    In a single block, groups with the same prompt go to the same worker, which computes it once.
    """
    size = max(1, min(GROUPS_PER_CALL, -(-len(groups) // (MIN_CALLS * num_workers))))
    in_blocks = len({group.block for group in groups}) > 1
    alike: dict[int | str, list[int]] = {}
    for index, group in enumerate(groups):
        alike.setdefault(group.block if in_blocks else repr(group.messages), []).append(index)
    parts: list[list[int]] = []
    for same in alike.values():
        longest = len(same) if in_blocks else GROUPS_PER_CALL
        for start in range(0, len(same), longest):
            together = same[start : start + longest]
            if parts and len(parts[-1]) + len(together) <= size:
                parts[-1] += together
            else:
                parts.append(together)
    return parts


def _cached_in(cached: Mapping[int, list[float]], part: Sequence[int]) -> dict[int, list[float]]:
    return {place: cached[index] for place, index in enumerate(part) if index in cached}


def _add_part(result: Scored, scored: Scored, part: Sequence[int]) -> None:
    if scored.tokens:
        result.tokens = result.tokens or [[] for _ in result.scores]
    for place, index in enumerate(part):
        result.scores[index] = scored.scores[place]
        result.tokens_cut[index] = scored.tokens_cut[place] if scored.tokens_cut else 0
        if scored.tokens:
            result.tokens[index] = scored.tokens[place]
    result.dropped |= {part[place]: reason for place, reason in scored.dropped.items()}
    result.reasons += scored.reasons
    result.rendered_identically += scored.rendered_identically
    for name in ("inputs_with_two_bos", "inputs_without_bos", "inputs_ending_in_padding"):
        if (count := getattr(scored, name)) is not None:
            setattr(result, name, (getattr(result, name) or 0) + count)
    result.work = sum_work([work for work in (result.work, scored.work) if work is not None])
