"""Estimate the speed limit of scoring: each unavoidable part, by the fastest known method on this machine.

All unique tokens go through every part, which is timed separately: tokenizing; the projections of attention; attention
(a prompt over itself, its responses over it and over themselves); the gated blocks; norms and rotations; sums. In the
first round of a workload each part runs with every method (the library's operators, fused ones, each attention kernel,
float32 without the time of converting) and several slice sizes; later only the fastest is timed. There is no padding,
no repeated computation and no Python code of a model between the parts. Of the last layer, only its keys and values
count: of the rest, a classifier needs a token of each conversation.
"""

import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from pluralbench_local import LocalRewardModel, load
from pluralbench_local.attention import attend_blocked, attend_fused, packed_attention
from pluralbench_local.packing import Packed, Tokens, pack
from torch import Tensor

from scoring.peers import rendered
from scoring.protocol import Conversations, Outcome, Score, Settings

SLICES = (512, 2048, 8192)
REPETITIONS = 3
BATCH = 16_384  # tokens whose attention is computed at once


def operators(settings: Settings) -> Score:
    """Measure the CPU seconds of each part; there are no scores."""
    models = [
        load(str(Path(settings.folder, "classifier")), device="cpu", dtype=dtype)
        for dtype in dict.fromkeys((settings.dtype, "float32"))
    ]
    networks: list[Any] = [model.network for model in models if isinstance(model, LocalRewardModel)]
    tokenizer = models[0].template.tokenizer

    def ways_of(work: Work, tokens: int) -> list[Callable[[], None]]:
        return [way for network in networks for way in _ways(network, work, tokens)]

    fastest: dict[tuple[str, int], int] = {}

    def least(part: str, tokens: int, ways: Sequence[Callable[[], object]]) -> float:
        if (part, tokens) not in fastest:
            times = [_seconds(way) for way in ways]
            fastest[part, tokens] = times.index(min(times))
        return min(_seconds(ways[fastest[part, tokens]]) for _ in range(REPETITIONS))

    @torch.inference_mode()
    def score(groups: list[Conversations]) -> Outcome:
        def tokens() -> list[list[list[int]]]:
            return [tokenizer(rendered(tokenizer, group))["input_ids"] for group in groups]

        batches = list(_packed(tokens()))
        unique = sum(len(packed.ids) for packed in batches)
        ways: dict[str, Sequence[Callable[[], object]]] = {
            "tokenizing": [tokens],
            "projections": ways_of(_projections, unique),
            "gated blocks": ways_of(_gated, unique),
            "attention": [
                _attention(network, batches, kernel)
                for network in networks
                for kernel in (attend_fused, attend_blocked)
            ],
            "norms and rotations": ways_of(_norms, unique),
            "sums": ways_of(_sums, unique),
        }
        parts = {part: least(part, unique, several) for part, several in ways.items()}
        return Outcome([], unique, parts)

    return score


Work = Callable[[list[Any], Tensor], None]  # of all layers on the states of some tokens [1, tokens, width]


def _ways(network: Any, work: Work, tokens: int) -> list[Callable[[], None]]:
    """The work on all tokens with the model's operators and the fast ones, in slices of each size."""
    layers = list(network.body.layers)
    like = layers[0].mlp.gate_proj.weight
    states = torch.randn(1, tokens, like.shape[1]).to(like.dtype)

    def way(rows: int, *, fast: bool) -> Callable[[], None]:
        def compute() -> None:
            with packed_attention(Packed("fast", [], [], [], [])) if fast else nullcontext():
                for part in torch.split(states, rows, 1):
                    work(layers, part)

        return compute

    return [way(rows, fast=fast) for rows in SLICES for fast in (False, True)]


def _projections(layers: list[Any], states: Tensor) -> None:
    for layer in layers[:-1]:
        attention = layer.self_attn
        for projection in (attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj):
            projection(states)
    for projection in (layers[-1].self_attn.k_proj, layers[-1].self_attn.v_proj):
        projection(states)


def _gated(layers: list[Any], states: Tensor) -> None:
    for layer in layers[:-1]:
        layer.mlp(states)


def _norms(layers: list[Any], states: Tensor) -> None:
    attention = layers[0].self_attn
    rotate = type(attention).forward.__globals__["apply_rotary_pos_emb"]
    heads = states.view(1, states.shape[1], -1, attention.head_dim).transpose(1, 2)
    angles = states[..., : attention.head_dim].contiguous()
    for layer in layers[:-1]:
        layer.input_layernorm(states)
        rotate(heads, heads, angles, angles)
        layer.post_attention_layernorm(states)


def _sums(layers: list[Any], states: Tensor) -> None:
    for _ in layers[:-1]:
        torch.add(states, states)
        torch.add(states, states)


def _packed(groups: list[list[list[int]]]) -> Iterator[Packed]:
    """The groups as packed by fast mode."""
    batch: list[list[Tokens]] = []
    for group in groups:
        batch.append([Tokens(array("i", ids), range(len(ids))) for ids in group])
        if sum(len(tokens.ids) for several in batch for tokens in several) > BATCH:
            yield pack(batch, "fast")
            batch = []
    if batch:
        yield pack(batch, "fast")


def _attention(network: Any, batches: list[Packed], kernel: Callable[..., Tensor]) -> Callable[[], None]:
    config = network.model.config
    width = config.hidden_size // config.num_attention_heads

    def states(heads: int, rows: int) -> Tensor:
        return torch.randn(1, rows, heads, width).to(network.dtype).transpose(1, 2)

    of_batches = [
        [states(heads, len(packed.ids)) for heads in (config.num_attention_heads, *[config.num_key_value_heads] * 2)]
        for packed in batches
    ]

    def attend() -> None:
        for packed, (query, key, value) in zip(batches, of_batches, strict=True):
            for _ in range(config.num_hidden_layers - 1):
                kernel(packed, query, key, value, width**-0.5, last=False)

    return attend


def _seconds(way: Callable[[], object]) -> float:
    started = time.process_time()
    way()
    return time.process_time() - started
