"""An estimate of how fast scoring could be: the operators that no strategy can leave out, each timed by itself.

All unique tokens go through each operator in slices of 2,048, on the model's own weights: the matrix products;
attention (a prompt over itself, each response over its prompt and itself); what works element by element (norms,
rotations, gates, sums). Tokenising is timed too. Of three times the least counts. No padding, nothing computed twice,
no Python of a model between the operators.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import linear, scaled_dot_product_attention
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from scoring.peers import rendered
from scoring.protocol import Conversations, Outcome, Score, Settings
from scoring.workloads import shared_and_rests

MATRIX_PRODUCTS = "matrix products"
SLICE = 2048
REPETITIONS = 3


def operators(settings: Settings) -> Score:
    """CPU seconds of each kind of operator; there are no scores."""
    folder = Path(settings.folder, "classifier")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    dtype = getattr(torch, settings.dtype)
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=dtype).eval().model

    @torch.no_grad()
    def score(groups: list[Conversations]) -> Outcome:
        def tokens() -> list[list[list[int]]]:
            return [tokenizer(rendered(tokenizer, group))["input_ids"] for group in groups]

        lengths = [shared_and_rests(conversations) for conversations in tokens()]
        unique = sum(shared + sum(rests) for shared, rests in lengths)
        parts = {
            "tokenising": _least(tokens),
            MATRIX_PRODUCTS: _least(_matrix_products(model, unique)),
            "attention": _least(_attention(model, lengths)),
            "element by element": _least(_elements(model, unique)),
        }
        return Outcome([], unique, parts)

    return score


def _matrix_products(model: Any, tokens: int) -> Callable[[], None]:
    narrow = torch.split(torch.randn(tokens, model.config.hidden_size, dtype=model.dtype), SLICE)
    wide = torch.split(torch.randn(tokens, model.config.intermediate_size, dtype=model.dtype), SLICE)

    def products() -> None:
        for layer in model.layers:
            attention, mlp = layer.self_attn, layer.mlp
            states = [attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj]
            for part, wide_part in zip(narrow, wide, strict=True):
                for projection in [*states, mlp.gate_proj, mlp.up_proj]:
                    linear(part, projection.weight)
                linear(wide_part, mlp.down_proj.weight)

    return products


def _attention(model: Any, lengths: list[tuple[int, list[int]]]) -> Callable[[], None]:
    heads = model.config.num_attention_heads
    longest = max(shared + max(rests) for shared, rests in lengths)
    states = torch.randn(1, heads, longest, model.config.hidden_size // heads, dtype=model.dtype)

    def attention() -> None:
        for _ in model.layers:
            for shared, rests in lengths:
                prompt = states[:, :, :shared]
                scaled_dot_product_attention(prompt, prompt, prompt, is_causal=True)
                for rest in rests:
                    keys = states[:, :, : shared + rest]
                    scaled_dot_product_attention(states[:, :, :rest], keys, keys)

    return attention


def _elements(model: Any, tokens: int) -> Callable[[], None]:
    heads = model.config.num_attention_heads
    narrow = torch.split(torch.randn(tokens, model.config.hidden_size, dtype=model.dtype), SLICE)
    wide = torch.split(torch.randn(tokens, model.config.intermediate_size, dtype=model.dtype), SLICE)
    angles = [model.rotary_emb(part, torch.arange(len(part))[None]) for part in narrow]

    def elements() -> None:
        for layer in model.layers:
            for part, gate, (cos, sin) in zip(narrow, wide, angles, strict=True):
                layer.input_layernorm(part)
                states = part.view(1, len(part), heads, -1).transpose(1, 2)
                apply_rotary_pos_emb(states, states, cos, sin)
                torch.add(part, part)
                layer.post_attention_layernorm(part)
                torch.mul(layer.mlp.act_fn(gate), gate)
                torch.add(part, part)

    return elements


def _least(work: Callable[[], object]) -> float:
    times = []
    for _ in range(REPETITIONS):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)
