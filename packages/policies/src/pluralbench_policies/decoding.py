"""Sample from a language model; the samples of a prompt share its KV cache."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
import torch
from pluralbench_local.network import AGREEMENT
from pluralbench_local.packing import to_device
from torch import Tensor
from transformers import PreTrainedModel, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper
from transformers.cache_utils import DynamicCache, DynamicLayer

PACKING_GAIN = 2.0  # measured: packing is faster if it reads this factor fewer tokens
COMPACT_BELOW = 0.75  # finished samples leave the batch once at most this share is still running


@dataclass(frozen=True)
class DecodingParams:
    """Sampling parameters; a temperature of 0 is greedy, None is all tokens.

    `top_k` applies before `top_p`. Of the likeliest tokens, by the model's own probabilities, `top_logprobs` are
    returned with each token.
    """

    temperature: float
    top_p: float | None = None
    top_k: int | None = None
    top_logprobs: int = 0


class Sample(NamedTuple):
    """A finished sample.

    Attributes:
        place: Its index.
        tokens: Its tokens, without the token that ended it.
        ended: Whether such a token ended it.
        logprobs: For each token, if they are asked for, the natural logarithm of its probability, and those of the
            likeliest tokens in its place.
    """

    place: int
    tokens: list[int]
    ended: bool
    logprobs: list[tuple[float, dict[int, float]]]


def sample_tokens(logits: Tensor, sampling: DecodingParams, uniform: Sequence[float]) -> Tensor:
    """Sample a token for each row of logits, of shape (rows, vocabulary), by inverting the cumulative probability.

    `uniform` has a random number from [0, 1) for each row.
    """
    if sampling.temperature == 0:
        return logits.argmax(-1)
    no_ids: Any = None  # the warpers do not use the earlier tokens
    scores: Tensor = TemperatureLogitsWarper(sampling.temperature)(no_ids, logits.float())
    if sampling.top_k is not None:
        scores = TopKLogitsWarper(sampling.top_k)(no_ids, scores)
    if sampling.top_p is not None and sampling.top_p < 1:
        scores = TopPLogitsWarper(sampling.top_p)(no_ids, scores)
    cumulative = scores.softmax(-1, dtype=torch.float64).cumsum(-1)
    places = to_device(torch.tensor(uniform, dtype=torch.float64), logits.device) * cumulative[:, -1]
    # `right=True` never draws a token of probability 0.
    return torch.searchsorted(cumulative, places.unsqueeze(-1), right=True)[:, 0]


def token_logprobs(logits: Tensor, tokens: Tensor, number: int) -> list[tuple[float, dict[int, float]]]:
    """Return the log-probability of the token of each row, and those of the likeliest tokens; nothing for 0 of them."""
    if number == 0:
        return []
    every = logits.float().log_softmax(-1)
    top = every.topk(min(number, every.shape[-1]))
    own = every.gather(1, tokens.unsqueeze(1))[:, 0].tolist()
    rows = zip(own, top.indices.tolist(), top.values.tolist(), strict=True)
    return [(value, dict(zip(ids, values, strict=True))) for value, ids, values in rows]


class _BatchedSamples:
    """One batch row per sample, each with a copy of the prompt's KV cache. Works for every architecture."""

    def __init__(self, model: Any, cache: Any, samples: int) -> None:
        self._model, self._cache = model, cache
        cache.reorder_cache(torch.zeros(samples, dtype=torch.long, device=model.device))

    def step(self, tokens: Tensor) -> Tensor:
        """Tokens have the shape (samples,), and the next logits (samples, vocabulary)."""
        logits: Tensor = self._model(tokens.unsqueeze(1), past_key_values=self._cache, use_cache=True).logits
        return logits[:, -1]

    def keep(self, places: Tensor) -> None:
        self._cache.reorder_cache(places)


class _PackedSamples:
    """One row for all samples, with an attention mask that limits each to its own prompt and tokens.

    The KV cache holds each prompt once. `owners` has the index of each sample's prompt in `caches`.
    """

    def __init__(self, model: Any, caches: Sequence[Any], owners: Sequence[int]) -> None:
        self._model, self._cache = model, caches[0]
        lengths = [cache.get_seq_length() for cache in caches]
        for layer, *others in zip(*(cache.layers for cache in caches), strict=True):
            layer.keys = torch.cat([layer.keys, *(other.keys for other in others)], dim=-2)
            layer.values = torch.cat([layer.values, *(other.values for other in others)], dim=-2)
        self._positions = to_device([lengths[owner] for owner in owners], model.device)
        belongs = [number for number, length in enumerate(lengths) for _ in range(length)]
        owner, prompt = to_device(owners, model.device), to_device(belongs, model.device)
        self._mask = owner.unsqueeze(1) == prompt.unsqueeze(0)

    def step(self, tokens: Tensor) -> Tensor:
        own = torch.eye(len(tokens), dtype=torch.bool, device=self._mask.device)
        self._mask = torch.cat([self._mask, own], dim=1)
        logits: Tensor = self._model(
            tokens.unsqueeze(0),
            past_key_values=self._cache,
            position_ids=self._positions.unsqueeze(0),
            attention_mask=self._mask[None, None],
            use_cache=True,
        ).logits
        self._positions = self._positions + 1
        return logits[0]

    def keep(self, places: Tensor) -> None:
        self._mask, self._positions = self._mask[places], self._positions[places]
        used = self._mask.any(0).nonzero().flatten()  # indices, since each layer would search a mask again
        self._mask = self._mask[:, used]
        for layer in self._cache.layers:
            layer.keys, layer.values = layer.keys[:, :, used], layer.values[:, :, used]


class Decoder:
    """Samples from a loaded language model. A token of `ends` ends a sample."""

    def __init__(self, model: PreTrainedModel, ends: Sequence[int]) -> None:
        self.model: Any = model
        self._ends = frozenset(ends)
        self.packing = self._supports_packing()

    @torch.inference_mode()
    def samples(
        self,
        prompts: Sequence[Sequence[int]],
        owners: Sequence[int],
        sampling: DecodingParams,
        seeds: Sequence[int],
        max_tokens: Sequence[int],
    ) -> Iterator[Sample]:
        """Draw samples, and yield each as soon as it is finished; `owners` has the index of each one's prompt."""
        last_place = [tokens - 1 for tokens in max_tokens]
        if len(prompts) > 1 and not self.packing:
            for number, prompt in enumerate(prompts):
                own = [place for place, owner in enumerate(owners) if owner == number]
                part = [[values[place] for place in own] for values in (seeds, max_tokens)]
                for sample in self.samples([prompt], [0] * len(own), sampling, part[0], part[1]):
                    yield sample._replace(place=own[sample.place])
            return
        first, rows = self._prefill_all(prompts, owners, max(max_tokens))
        logits = first[to_device(owners, first.device)]
        random = [np.random.default_rng(seed) for seed in seeds]
        drawn: list[list[int]] = [[] for _ in owners]
        logprobs: list[list[tuple[float, dict[int, float]]]] = [[] for _ in owners]
        batch = list(range(len(owners)))  # the sample in each row
        running = set(batch)
        while running:
            tokens = sample_tokens(logits, sampling, [random[place].random() for place in batch])
            likeliest = token_logprobs(logits, tokens, sampling.top_logprobs)
            for row, (place, token) in enumerate(zip(batch, tokens.tolist(), strict=True)):
                if place not in running:
                    continue
                ended = token in self._ends
                if not ended:
                    drawn[place].append(token)
                    logprobs[place] += likeliest[row : row + 1]
                if ended or len(drawn[place]) > last_place[place]:
                    running.discard(place)
                    yield Sample(place, drawn[place], ended, logprobs[place])
            if running and len(running) <= COMPACT_BELOW * len(batch):
                running_rows = [row for row, place in enumerate(batch) if place in running]
                batch = [batch[row] for row in running_rows]
                places = to_device(running_rows, tokens.device)
                rows.keep(places)
                tokens = tokens[places]
            if running:
                logits = rows.step(tokens)

    def _prefill_all(
        self, prompts: Sequence[Sequence[int]], owners: Sequence[int], max_tokens: int
    ) -> tuple[Tensor, _BatchedSamples | _PackedSamples]:
        """Prefill the prompts; return the logits after each, shape (prompts, vocabulary), and the samples."""
        last, caches = zip(*(self._prefill(prompt) for prompt in prompts), strict=True)
        answers = len(owners) * max_tokens
        shared = sum(map(len, prompts)) + answers
        copied = sum(len(prompts[owner]) for owner in owners) + answers
        if len(prompts) > 1 or (self.packing and copied > PACKING_GAIN * shared):
            return torch.stack(last), _PackedSamples(self.model, caches, owners)
        return torch.stack(last), _BatchedSamples(self.model, caches[0], len(owners))

    def _prefill(self, prompt: Sequence[int]) -> tuple[Tensor, Any]:
        cache = DynamicCache(config=self.model.config)
        last = {"logits_to_keep": 1} if "logits_to_keep" in signature(self.model.forward).parameters else {}
        ids = to_device([list(prompt)], self.model.device)
        output = self.model(ids, past_key_values=cache, use_cache=True, **last)
        return output.logits[0, -1], output.past_key_values

    @torch.inference_mode()
    def _supports_packing(self) -> bool:
        """Whether packed samples get the same logits as single ones, tested on a few tokens."""
        size = self.model.config.get_text_config().vocab_size
        prompts = [[7 * token % size for token in range(1, length)] for length in (6, 10)]
        owners, tokens = [0, 1, 1], torch.tensor([11 % size, 12 % size, 13 % size], device=self.model.device)
        caches = [self._prefill(prompt)[1] for prompt in prompts]
        if not all(type(layer) is DynamicLayer for cache in caches for layer in getattr(cache, "layers", [None])):
            return False
        agree = False
        with suppress(TypeError, ValueError, AttributeError, RuntimeError, KeyError, IndexError):
            packed = _PackedSamples(self.model, caches, owners).step(tokens).float()
            single = torch.stack(
                [self._prefill([*prompts[o], t])[0] for o, t in zip(owners, tokens.tolist(), strict=True)]
            ).float()
            agree = bool((packed - single).abs().max() <= AGREEMENT.get(self.model.dtype, 0.15) * single.abs().max())
        return agree
