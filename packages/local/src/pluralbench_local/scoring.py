"""Scoring groups: plan batches to a budget of tokens, run them, and shrink the budget when memory runs out."""

import ctypes
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Protocol, Self, TypeVar

import torch
from pluralbench_rewards import (
    Group,
    Mode,
    ModelRecord,
    OnScored,
    Overflow,
    RewardModel,
    Scored,
    ScoringConfig,
    Work,
    tolerance_sample,
)
from pluralbench_runs import digest
from torch import Tensor
from transformers import PretrainedConfig, PreTrainedTokenizerBase

from pluralbench_local.batches import Read, Tally, in_batches
from pluralbench_local.budgets import usual_budget
from pluralbench_local.config import LocalModel
from pluralbench_local.conversations import Template, tokenize
from pluralbench_local.errors import ConversationError
from pluralbench_local.network import ReadableNetwork, positions_of, read_padded, usual_attention
from pluralbench_local.packing import Tokens

UNLIMITED = 10**9  # tokenizers without a limit of their own state a far greater one
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h


@dataclass(frozen=True)
class RunOptions:
    """How a model scores.

    mode, max_length, on_overflow, token_budget: see `ScoringConfig`. described: from what it was loaded, where that
    is known.
    measure_tolerance: measure how far scores of another mode may lie from these (see `tolerance`).
    """

    mode: Mode = "fast"
    max_length: int | None = None
    on_overflow: Overflow = "error"
    token_budget: int | None = None
    described: LocalModel | None = None
    measure_tolerance: bool = False

    @classmethod
    def of(cls, scoring: ScoringConfig, described: LocalModel) -> Self:
        """The options that a description and the way to run make."""
        told = (scoring.mode, scoring.max_length, scoring.on_overflow, scoring.token_budget)
        return cls(*told, described)


class Runnable(Protocol):
    """Networks in this process that read conversations."""

    @property
    def name(self) -> str:
        """What to call it."""

    @property
    def options(self) -> RunOptions:
        """How it runs."""

    @property
    def template(self) -> Template:
        """How conversations become its tokens."""

    @property
    def networks(self) -> list[ReadableNetwork]:
        """What has to run."""


class LocalRewardModel(Runnable, Protocol):
    """What a model in this process gives to `score_locally`."""

    @property
    def kind(self) -> str:
        """ "classifier" or "implicit"."""

    @property
    def precision(self) -> torch.dtype:
        """What its scores are rounded to."""

    def rewards(self, groups: Sequence[Sequence[Tokens]], read: Read) -> tuple[list[float], int]:
        """One reward a conversation, in order, and how many tokens were computed for them."""


class Scorer(RewardModel, Protocol):
    """A loaded reward model that can be run in other ways than it was loaded for."""

    @property
    def options(self) -> RunOptions:
        """How it scores."""


AnyScorer = TypeVar("AnyScorer", bound=Scorer)


def score(
    model: AnyScorer,
    groups: Sequence[Group],
    *,
    known: Mapping[int, list[float]] | None = None,
    on_scored: OnScored | None = None,
    **options: Any,
) -> Scored:
    """Score the responses of every group with other `RunOptions` than the model was loaded with, such as mode="exact".

    Raises `ConversationError` for a missing template or overflow, `DeviceError` when one conversation does not fit.
    """
    chosen: Any = replace(model, options=replace(model.options, **options))  # type: ignore[type-var]
    scored: Scored = chosen.score(groups, known=known, on_scored=on_scored)
    return scored


def score_locally(
    model: LocalRewardModel,
    groups: Sequence[Group],
    *,
    known: Mapping[int, list[float]] | None = None,
    on_scored: OnScored | None = None,
) -> Scored:
    """Score with a model in this process; see `pluralbench_rewards.RewardModel.score`."""
    limit = limit_of(model)
    tally = Tally(groups, model.template, limit, model.options.on_overflow, known or {})
    work = work_of(model, limit)
    started = time.perf_counter()
    left = {place: list(first) for place, first in tally.twins.items()}
    with tally.taking(on_scored) as take:
        for place, values in in_batches(model.rewards, tally.tokenized, left, work, [group.id for group in groups]):
            take(place, values)
    work.seconds = time.perf_counter() - started
    scored = tally.scored(work=work)
    if model.options.measure_tolerance:
        scored.tolerance = tolerance(model, groups, scored)
    return scored


def limit_of(model: Runnable) -> int:
    """The most tokens of a conversation: what was asked for, or what the model takes. Raises `ConversationError`."""
    configs = [network.model.config for network in model.networks]
    limit = model.options.max_length or token_limit(model.template.tokenizer, configs)
    positions = min(filter(None, map(positions_of, model.networks)), default=limit)
    if limit > positions:
        raise ConversationError(f"A `max_length` of {limit:,} is more than the {positions:,} positions that it has.")
    return limit


def work_of(model: Runnable, limit: int) -> Work:
    """How a model will compute; nothing is computed yet."""
    network = model.networks[0]
    unpackable = next((network.unpackable for network in model.networks if network.unpackable), "")
    strategy = "padded" if unpackable else model.options.mode
    if network.device.type == "cpu":
        _keep_freed_memory()
    return Work(strategy, unpackable, model.options.token_budget or usual_budget(network, strategy), limit)


def record_of(model: LocalRewardModel) -> ModelRecord:
    """What a loaded model is: what its description says, and what loading showed."""
    described = model.options.described
    known = ModelRecord(name=model.name, kind=model.kind) if described is None else described.record()
    shown = shown_by(model)
    return known.model_copy(update=shown | {"commit": shown["commit"] or known.commit})


def shown_by(model: Runnable) -> dict[str, Any]:
    """What loading a model showed, as fields of `ModelRecord`."""
    network = model.networks[0]
    return {
        "commit": getattr(network.model.config, "_commit_hash", None),
        "chat_template_digest": digest(str(model.template.tokenizer.chat_template)),
        "architecture": type(network.model).__name__,
        "parameters": sum(weights.numel() for weights in network.model.parameters()),
        "device": str(network.device),
        "dtype": str(network.dtype).removeprefix("torch."),
    }


def token_limit(tokenizer: PreTrainedTokenizerBase, configs: Sequence[PretrainedConfig]) -> int:
    """The most tokens that models of these configurations take, and their tokenizer."""
    limits: list[Any] = [tokenizer.model_max_length]
    limits += [getattr(config.get_text_config(), "max_position_embeddings", 0) for config in configs]
    wrong = next((limit for limit in limits if not isinstance(limit, int | float | None)), None)
    if wrong is not None:
        raise ConversationError(f"{wrong!r:.80} stands where a model says how many tokens it takes; write a number.")
    return min((int(limit) for limit in limits if limit and 0 < limit < UNLIMITED), default=UNLIMITED)


def tolerance(model: LocalRewardModel, groups: Sequence[Group], scored: Scored) -> float:
    """How far scores of another mode, or of one conversation at a time, may lie from these: measured.

    Some conversations, evenly spread over those that were scored, are computed alone under the model's usual attention;
    the tolerance is eight times the root mean square of the differences, and at least four units of the last place of a
    score of usual size. It is an estimate: where a rounding can send a token to another expert, a rare score may lie
    farther off.
    """
    if scored.work is None:
        return 0.0
    limit = scored.work.max_length
    picked = [(place, part % len(scored.scores[place])) for part, place in enumerate(tolerance_sample(scored.scores))]
    differences, sizes = [0.0], [0.0]
    for place, response in picked:
        group = groups[place]
        [alone] = tokenize([group], model.template, limit, model.options.on_overflow)
        with torch.inference_mode():
            [reward], _ = model.rewards([[alone.conversations[response]]], _read_alone)
        if math.isfinite(reward):
            differences.append(reward - scored.scores[place][response])
            sizes.append(reward)
    return bound(differences, sizes, model.precision)


def unmeasured(model: AnyScorer) -> AnyScorer:
    """The model, which measures no tolerance when it scores."""
    chosen: Any = replace(model, options=replace(model.options, measure_tolerance=False))  # type: ignore[type-var]
    found: AnyScorer = chosen
    return found


def bound(differences: Sequence[float], sizes: Sequence[float], precision: torch.dtype) -> float:
    """The tolerance that these differences of some scores make. sizes: what these scores are, in any order."""
    usual = math.sqrt(fmean(size * size for size in sizes))
    spread = math.sqrt(fmean(difference * difference for difference in differences))
    return max(8 * spread, 4 * torch.finfo(precision).eps * usual)


def _read_alone(network: ReadableNetwork, groups: Sequence[Sequence[Tokens]]) -> tuple[Tensor, list[list[int]], int]:
    with usual_attention(network):
        return read_padded(network, [tokens for group in groups for tokens in group])


def _keep_freed_memory() -> None:
    """Let the C library (glibc) keep what is freed for what comes next.

    It would give the large blocks of every layer back to the system and take them anew page by page, which costs
    some 5 % of the time. The process holds its peak until it ends; other C libraries are left as they are.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL("libc.so.6").mallopt
        for parameter in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD):
            mallopt(parameter, 1 << 30)
