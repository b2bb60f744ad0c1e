"""Drawing tokens from a language model: a prompt is computed once, its samples go on from there together."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import torch
from pluralbench_local.network import AGREEMENT
from torch import Tensor
from transformers import PreTrainedModel, TemperatureLogitsWarper, TopPLogitsWarper
from transformers.cache_utils import DynamicCache, DynamicLayer

CROWDED = 2.0  # measured: beside each other is faster where it reads the fewer tokens by this factor
STRAGGLERS = 0.75  # samples that ended are taken out of the batch once no more than this share is left


@dataclass(frozen=True)
class DecodingParams:
    """How tokens are drawn. temperature: 0 takes the likeliest. top_p: from the likeliest of this total probability."""

    temperature: float
    top_p: float | None = None


def sample_tokens(logits: Tensor, sampling: DecodingParams, uniform: Sequence[float]) -> Tensor:
    """A token for each row [rows] of logits [rows, vocabulary], by a number from [0, 1) for each row.

    The token in whose part of the cumulative probability the number lies; the likeliest at temperature 0.
    """
    if sampling.temperature == 0:
        return logits.argmax(-1)
    nothing: Any = None  # the library's rules do not look at the tokens before
    scores: Tensor = TemperatureLogitsWarper(sampling.temperature)(nothing, logits.float())
    if sampling.top_p is not None and sampling.top_p < 1:
        scores = TopPLogitsWarper(sampling.top_p)(nothing, scores)
    cumulative = scores.softmax(-1, dtype=torch.float64).cumsum(-1)
    places = torch.tensor(uniform, dtype=torch.float64, device=logits.device) * cumulative[:, -1]
    # On the right, so that a token of probability 0 is never drawn.
    return torch.searchsorted(cumulative, places.unsqueeze(-1), right=True)[:, 0]


class _Separate:
    """A row of the batch for each sample, each with a copy of the prompt's memory. Every architecture can do this."""

    def __init__(self, model: Any, cache: Any, samples: int) -> None:
        self._model, self._cache = model, cache
        cache.reorder_cache(torch.zeros(samples, dtype=torch.long))

    def step(self, tokens: Tensor) -> Tensor:
        """Logits [samples, vocabulary] after another token of each sample [samples]."""
        logits: Tensor = self._model(tokens.unsqueeze(1), past_key_values=self._cache, use_cache=True).logits
        return logits[:, -1]

    def keep(self, places: Tensor) -> None:
        """Forget all samples but these [some]."""
        self._cache.reorder_cache(places)


class _Together:
    """The same as one row for all samples, in which each attends to its own prompt and its own tokens alone.

    So the memory holds each prompt once. caches: of each prompt. owners: the prompt of each sample.
    """

    def __init__(self, model: Any, caches: Sequence[Any], owners: Sequence[int]) -> None:
        self._model, self._cache = model, caches[0]
        lengths = torch.tensor([cache.get_seq_length() for cache in caches])
        for layer, *others in zip(*(cache.layers for cache in caches), strict=True):
            layer.keys = torch.cat([layer.keys, *(other.keys for other in others)], dim=-2)
            layer.values = torch.cat([layer.values, *(other.values for other in others)], dim=-2)
        owner = torch.tensor(owners)
        self._positions = lengths[owner].to(model.device)
        belongs = torch.arange(len(caches)).repeat_interleave(lengths)
        self._mask = (owner.unsqueeze(1) == belongs.unsqueeze(0)).to(model.device)

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
        used = self._mask.any(0)
        self._mask = self._mask[:, used]
        for layer in self._cache.layers:
            layer.keys, layer.values = layer.keys[:, :, used], layer.values[:, :, used]


class Decoder:
    """A loaded language model that draws samples. ends: the ids of the tokens that end one."""

    def __init__(self, model: PreTrainedModel, ends: Sequence[int]) -> None:
        self.model: Any = model
        self._ends = torch.tensor(sorted(ends), device=model.device)
        self.together = self._can_be_together()

    @torch.inference_mode()
    def samples(
        self,
        prompts: Sequence[Sequence[int]],
        owners: Sequence[int],
        sampling: DecodingParams,
        seeds: Sequence[int],
        most: Sequence[int],
    ) -> Iterator[tuple[int, list[int], bool]]:
        """Draw samples; gives each one's place in what was asked, its tokens, and whether it ended, as soon as it does.

        prompts: token ids. owners: the prompt of each sample. seeds, most: by sample, the seed of its random numbers
        and how many tokens it may have. The token that ends a sample is not among its tokens.
        """
        reached = [tokens - 1 for tokens in most]
        if len(prompts) > 1 and not self.together:
            for number, prompt in enumerate(prompts):
                own = [place for place, owner in enumerate(owners) if owner == number]
                part = [[values[place] for place in own] for values in (seeds, most)]
                for place, alone, end in self.samples([prompt], [0] * len(own), sampling, part[0], part[1]):
                    yield own[place], alone, end
            return
        first, rows = self._started(prompts, owners, max(most))
        logits = first[torch.tensor(owners, device=first.device)]
        random = [np.random.default_rng(seed) for seed in seeds]
        drawn: list[list[int]] = [[] for _ in owners]
        batch = list(range(len(owners)))  # the sample in each row
        live = set(batch)
        while live:
            tokens = sample_tokens(logits, sampling, [random[place].random() for place in batch])
            ended = torch.isin(tokens, self._ends).tolist()
            for row, (place, token) in enumerate(zip(batch, tokens.tolist(), strict=True)):
                if place not in live:
                    continue
                if not ended[row]:
                    drawn[place].append(token)
                if ended[row] or len(drawn[place]) > reached[place]:
                    live.discard(place)
                    yield place, drawn[place], ended[row]
            if live and len(live) <= STRAGGLERS * len(batch):
                kept = [row for row, place in enumerate(batch) if place in live]
                batch = [batch[row] for row in kept]
                places = torch.tensor(kept, device=tokens.device)
                rows.keep(places)
                tokens = tokens[places]
            if live:
                logits = rows.step(tokens)

    def _started(
        self, prompts: Sequence[Sequence[int]], owners: Sequence[int], most: int
    ) -> tuple[Tensor, _Separate | _Together]:
        """Logits after each prompt [prompts, vocabulary], and the samples in memory."""
        last, caches = zip(*(self._prefilled(prompt) for prompt in prompts), strict=True)
        answers = len(owners) * most
        shared = sum(map(len, prompts)) + answers
        copied = sum(len(prompts[owner]) for owner in owners) + answers
        if len(prompts) > 1 or (self.together and copied > CROWDED * shared):
            return torch.stack(last), _Together(self.model, caches, owners)
        return torch.stack(last), _Separate(self.model, caches[0], len(owners))

    def _prefilled(self, prompt: Sequence[int]) -> tuple[Tensor, Any]:
        cache = DynamicCache(config=self.model.config)
        last = {"logits_to_keep": 1} if "logits_to_keep" in signature(self.model.forward).parameters else {}
        ids = torch.tensor([list(prompt)], device=self.model.device)
        output = self.model(ids, past_key_values=cache, use_cache=True, **last)
        return output.logits[0, -1], output.past_key_values

    @torch.inference_mode()
    def _can_be_together(self) -> bool:
        """Whether samples beside each other get the logits that each gets alone; tried on a few tokens."""
        size = self.model.config.get_text_config().vocab_size
        prompts = [[7 * token % size for token in range(1, length)] for length in (6, 10)]
        owners, tokens = [0, 1, 1], torch.tensor([11 % size, 12 % size, 13 % size], device=self.model.device)
        caches = [self._prefilled(prompt)[1] for prompt in prompts]
        if not all(type(layer) is DynamicLayer for cache in caches for layer in getattr(cache, "layers", [None])):
            return False
        agree = False
        with suppress(TypeError, ValueError, AttributeError, RuntimeError, KeyError, IndexError):
            together = _Together(self.model, caches, owners).step(tokens).float()
            alone = torch.stack(
                [self._prefilled([*prompts[o], t])[0] for o, t in zip(owners, tokens.tolist(), strict=True)]
            ).float()
            agree = bool((together - alone).abs().max() <= AGREEMENT.get(self.model.dtype, 0.15) * alone.abs().max())
        return agree
