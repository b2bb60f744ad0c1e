"""Scoring groups: plan batches to a budget of tokens, run them, and shrink the budget when memory runs out."""

import ctypes
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Protocol, Self, TypeVar

import torch
from pluralbench_rewards import Compile, Group, Mode, ModelRecord, OnScored, Overflow, Scored, Scoring, Work
from pluralbench_runs import digest, progress
from torch import Tensor

from pluralbench_local.budgets import usual_budget
from pluralbench_local.conversations import Template, Tokenized, tokenize
from pluralbench_local.description import LocalModel
from pluralbench_local.errors import ConversationError, DeviceError
from pluralbench_local.network import Network, positions_of, read_packed, read_padded, usual_attention
from pluralbench_local.packing import ROWS_FOR_A_TOKEN, Tokens, common_prefix

UNLIMITED = 10**9  # tokenizers without a limit of their own state a far greater one
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")
Read = Callable[[Network, Sequence[Sequence[Tokens]]], tuple[Tensor, list[list[int]], int]]
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h
COMPARED = 16  # conversations that are computed alone to measure the tolerance


@dataclass(frozen=True)
class Options:
    """How a model scores.

    mode, max_length, on_overflow, token_budget, compile: see `Scoring`. described: from what it was loaded, where that
    is known.
    measure_tolerance: measure how far scores of another mode may lie from these (see `tolerance`).
    """

    mode: Mode = "fast"
    max_length: int | None = None
    on_overflow: Overflow = "error"
    token_budget: int | None = None
    compile: Compile = "auto"
    described: LocalModel | None = None
    measure_tolerance: bool = False

    @classmethod
    def of(cls, scoring: Scoring, described: LocalModel) -> Self:
        """The options that a description and the way to run make."""
        told = (scoring.mode, scoring.max_length, scoring.on_overflow, scoring.token_budget, scoring.compile)
        return cls(*told, described)


class Local(Protocol):
    """What a model in this process gives to `score_locally`."""

    @property
    def name(self) -> str:
        """What to call it."""

    @property
    def options(self) -> Options:
        """How it scores."""

    @property
    def kind(self) -> str:
        """ "classifier" or "implicit"."""

    @property
    def template(self) -> Template:
        """How conversations become its tokens."""

    @property
    def networks(self) -> list[Network]:
        """What has to run."""

    @property
    def precision(self) -> torch.dtype:
        """What its scores are rounded to."""

    def rewards(self, groups: Sequence[Sequence[Tokens]], read: Read) -> tuple[list[float], int]:
        """One reward a conversation, in order, and how many tokens were computed for them."""


@dataclass(frozen=True)
class _Unit:
    """Responses of one group that go into the same batch. cost: tokens that are computed for them."""

    group: int
    responses: list[int]
    conversations: list[Tokens]
    cost: int


AnyLocal = TypeVar("AnyLocal", bound="Local")


def score(
    model: AnyLocal,
    groups: Sequence[Group],
    *,
    known: Mapping[int, list[float]] | None = None,
    on_scored: OnScored | None = None,
    **options: Any,
) -> Scored:
    """Score the responses of every group with other `Options` than the model was loaded with, such as mode="exact".

    Raises `ConversationError` for a missing template or overflow, `DeviceError` when one conversation does not fit.
    """
    chosen: Any = replace(model, options=replace(model.options, **options))  # type: ignore[type-var]
    scored: Scored = chosen.score(groups, known=known, on_scored=on_scored)
    return scored


def score_locally(
    model: Local,
    groups: Sequence[Group],
    *,
    known: Mapping[int, list[float]] | None = None,
    on_scored: OnScored | None = None,
) -> Scored:
    """Score with a model in this process; see `pluralbench_rewards.RewardModel.score`."""
    options = model.options
    limit = options.max_length or model_limit(model)
    positions = min(filter(None, map(positions_of, model.networks)), default=limit)
    if limit > positions:
        raise ConversationError(f"A `max_length` of {limit:,} is more than the {positions:,} positions that it has.")
    tokenized = tokenize(groups, model.template, limit, options.on_overflow)
    device = model.networks[0].device.type
    unpackable = next((network.unpackable for network in model.networks if network.unpackable), "")
    strategy = "padded" if unpackable else options.mode
    work = Work(strategy, unpackable, options.token_budget or usual_budget(model.networks[0], strategy), limit)
    if device == "cpu":
        _keep_freed_memory()
    started = time.perf_counter()
    scores = _score_all(model, groups, tokenized, work, known or {}, on_scored)
    work.seconds = time.perf_counter() - started
    scored = Scored(
        scores=scores,
        tokens=[[len(tokens.ids) for tokens in result.conversations] for result in tokenized],
        cut=[result.cut for result in tokenized],
        dropped={place: result.dropped for place, result in enumerate(tokenized) if result.dropped},
        work=work,
    )
    if options.measure_tolerance:
        scored.tolerance = tolerance(model, groups, scored)
    return scored


def record_of(model: Local) -> ModelRecord:
    """What a loaded model is: what its description says, and what loading showed."""
    network, described = model.networks[0], model.options.described
    known = ModelRecord(name=model.name, kind=model.kind) if described is None else described.record()
    return known.model_copy(
        update={
            "commit": getattr(network.model.config, "_commit_hash", None) or known.commit,
            "chat_template_digest": digest(str(model.template.tokenizer.chat_template)),
            "architecture": type(network.model).__name__,
            "parameters": sum(weights.numel() for weights in network.model.parameters()),
            "device": str(network.device),
            "dtype": str(network.dtype).removeprefix("torch."),
        }
    )


def model_limit(model: Local) -> int:
    """The most tokens that the model takes, by its configurations and its tokenizer."""
    limits = [model.template.tokenizer.model_max_length]
    limits += [
        getattr(network.model.config.get_text_config(), "max_position_embeddings", 0) for network in model.networks
    ]
    return min((int(limit) for limit in limits if limit and 0 < limit < UNLIMITED), default=UNLIMITED)


def tolerance(model: Local, groups: Sequence[Group], scored: Scored) -> float:
    """How far scores of another mode, or of one conversation at a time, may lie from these: measured.

    Some conversations, evenly spread over those that were scored, are computed alone under the model's usual attention;
    the tolerance is eight times the root mean square of the differences, and at least four units of the last place of a
    score of usual size. It is an estimate: where a rounding can send a token to another expert, a rare score may lie
    farther off.
    """
    if scored.work is None:
        return 0.0
    limit = scored.work.max_length
    places = [place for place, values in enumerate(scored.scores) if values]
    chosen = [places[len(places) * part // COMPARED] for part in range(min(COMPARED, len(places)))]
    picked = [(place, part % len(scored.scores[place])) for part, place in enumerate(chosen)]
    differences, sizes = [0.0], [0.0]
    for place, response in picked:
        group = groups[place]
        [alone] = tokenize([group], model.template, limit, model.options.on_overflow)
        with torch.inference_mode():
            [reward], _ = model.rewards([[alone.conversations[response]]], _read_alone)
        if math.isfinite(reward):
            differences.append(reward - scored.scores[place][response])
            sizes.append(reward)
    usual = math.sqrt(fmean(size * size for size in sizes))
    spread = math.sqrt(fmean(difference * difference for difference in differences))
    return max(8 * spread, 4 * torch.finfo(model.precision).eps * usual)


def _score_all(
    model: Local,
    groups: Sequence[Group],
    tokenized: Sequence[Tokenized],
    work: Work,
    known: Mapping[int, list[float]],
    on_scored: OnScored | None,
) -> list[list[float]]:
    scores: list[dict[int, float]] = [dict(enumerate(known.get(place, ()))) for place in range(len(groups))]
    # Responses that are the same to the last token are computed once.
    new = [place for place, result in enumerate(tokenized) if not result.dropped and place not in known]
    twins = {place: _twins(tokenized[place]) for place in new}
    left = {place: list(alike) for place, alike in twins.items()}
    for place in new:
        conversations = tokenized[place].conversations
        work.conversations += len(conversations)
        work.unique_tokens += _cost([conversations[response] for response in left[place]], "fast")
    for network in model.networks if work.strategy == "fast" else []:
        names = network.compiled.prepare(work.unique_tokens, model.options.compile)
        work.compiled = sorted({*work.compiled, *names})
    batches = _plan(tokenized, left, work)
    with progress("scoring", len(left)) as meter, torch.inference_mode():
        while batches:
            batch = batches.pop()
            try:
                rewards, computed = model.rewards([unit.conversations for unit in batch], _reader(work))
            except (RuntimeError, MemoryError) as error:
                work.token_budget = _smaller(error, batch, work, groups)
                batches = _plan(tokenized, left, work)
                continue
            work.batches += 1
            work.computed_tokens += computed
            values = iter(rewards)
            for unit in batch:
                for response in unit.responses:
                    scores[unit.group] |= dict.fromkeys(twins[unit.group][response], next(values))
                    left[unit.group].remove(response)
                if not left[unit.group]:
                    meter.advance()
                    if on_scored is not None:
                        on_scored(unit.group, _in_order(scores[unit.group]))
    return [_in_order(values) for values in scores]


def _in_order(values: dict[int, float]) -> list[float]:
    return [values[response] for response in range(len(values))]


def _twins(tokenized: Tokenized) -> dict[int, list[int]]:
    """By the first of each kind, the responses that are the same in tokens."""
    first: dict[bytes, int] = {}
    alike: dict[int, list[int]] = {}
    for response, tokens in enumerate(tokenized.conversations):
        alike.setdefault(first.setdefault(tokens.ids.tobytes(), response), []).append(response)
    return alike


def _plan(tokenized: Sequence[Tokenized], left: dict[int, list[int]], work: Work) -> list[list[_Unit]]:
    """Batches of at most the budget's tokens (or of one response), the dearest last, where they are taken from."""
    units = [unit for group, responses in left.items() for unit in _units(tokenized[group], group, responses, work)]
    if work.strategy != "fast":
        return [batch for _, batch in _filled(sorted(units, key=lambda unit: unit.cost), work)]
    # Prompts that begin alike become neighbours, so that a batch computes their beginning once.
    units.sort(key=lambda unit: unit.conversations[0].ids.tobytes())
    return [batch for _, batch in sorted(_filled(units, work), key=lambda filled: filled[0])]


def _filled(units: Sequence[_Unit], work: Work) -> list[tuple[int, list[_Unit]]]:
    """Batches in the order of their units, each with its cost in tokens."""
    batches: list[tuple[int, list[_Unit]]] = []
    for unit in units:
        taken, batch = batches[-1] if batches else (0, [])
        # Padding makes each row as dear as the longest, which in ascending order is the newest.
        cost = unit.cost * (len(batch) + 1) if work.strategy == "padded" else taken + _further(unit, batch, work)
        if not batch or cost > work.token_budget:
            batches.append((unit.cost, [unit]))
        else:
            batches[-1] = (cost, [*batch, unit])
    return batches


def _further(unit: _Unit, batch: Sequence[_Unit], work: Work) -> int:
    """The tokens that a unit adds to a batch: without the beginning of its last unit, if `pack` shares that."""
    if work.strategy != "fast" or not batch:
        return unit.cost
    shared = common_prefix([batch[-1].conversations[0].ids, unit.conversations[0].ids])
    return unit.cost - shared if shared * ROWS_FOR_A_TOKEN >= unit.cost else unit.cost


def _units(tokenized: Tokenized, group: int, responses: list[int], work: Work) -> list[_Unit]:
    """The responses of a group together as far as the budget allows; each by itself where rows are padded."""
    conversations = tokenized.conversations
    parts: list[list[int]] = []
    for response in responses:
        larger = [*parts[-1], response] if parts else []
        if (
            not larger
            or work.strategy == "padded"
            or _cost([conversations[r] for r in larger], work.strategy) > work.token_budget
        ):
            parts.append([response])
        else:
            parts[-1] = larger
    return [
        _Unit(group, part, chosen := [conversations[r] for r in part], _cost(chosen, work.strategy)) for part in parts
    ]


def _cost(conversations: Sequence[Tokens], strategy: str) -> int:
    total = sum(len(tokens.ids) for tokens in conversations)
    if strategy != "fast" or len(conversations) == 1:
        return total
    return total - (len(conversations) - 1) * common_prefix([tokens.ids for tokens in conversations])


def _reader(work: Work) -> Read:
    if work.strategy == "padded":
        return lambda network, groups: read_padded(network, [tokens for group in groups for tokens in group])
    mode: Mode = "fast" if work.strategy == "fast" else "exact"
    return lambda network, groups: read_packed(network, groups, mode, work.compiled)


def _read_alone(network: Network, groups: Sequence[Sequence[Tokens]]) -> tuple[Tensor, list[list[int]], int]:
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


def _smaller(error: Exception, batch: Sequence[_Unit], work: Work, groups: Sequence[Group]) -> int:
    """A budget of half the tokens. Raises `DeviceError` when one response alone was too much, or what was no lack
    of memory."""
    if not isinstance(error, MemoryError) and not any(words in str(error) for words in OUT_OF_MEMORY):
        raise error
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if len(batch) == 1 and len(batch[0].responses) == 1:
        raise DeviceError(
            f"One conversation of {batch[0].cost:,} tokens (id {groups[batch[0].group].id}) does not fit into memory; "
            "lower `max_length` with `on_overflow`, choose a smaller `dtype`, or another device."
        ) from None
    return max(1, min(work.token_budget, sum(unit.cost for unit in batch)) // 2)
