"""What the variable-length kernel of a GPU is told, held against the attention of a CPU.

The kernel itself needs a GPU; a plain computation stands in for it here, so that its boundaries and the merging of its
two results are proven, and its speed and rounding are not.
"""

from array import array
from typing import Any

import pytest
import torch
from pluralbench_local.attention import attention, packed_attention
from pluralbench_local.packing import Kept, Tokens, pack, plan
from pluralbench_local.varlen import varlen_attention
from pluralbench_rewards import Mode
from torch import Tensor, nn


def plain_kernel(
    query: "Tensor",
    key: "Tensor",
    value: "Tensor",
    query_starts: "Tensor",
    key_starts: "Tensor",
    longest_query: int,
    longest_key: int,
    *,
    scale: float,
    enable_gqa: bool,
    return_aux: Any,
    window_size: tuple[int, int] = (-1, -1),
) -> "tuple[Tensor, Tensor]":
    """Attention of each run of queries to its run of keys: [rows, heads, width], and normalisers [heads, rows]."""
    assert return_aux.lse
    assert enable_gqa == (query.shape[1] != key.shape[1])
    key, value = (heads.repeat_interleave(query.shape[1] // key.shape[1], 1) for heads in (key, value))
    output, norms = torch.empty_like(query), torch.empty(query.shape[1], query.shape[0])
    runs = zip(query_starts.unfold(0, 2, 1).tolist(), key_starts.unfold(0, 2, 1).tolist(), strict=True)
    for (start, end), (first, last) in runs:
        assert end - start <= longest_query
        assert last - first <= longest_key
        scores = torch.einsum("qhd,khd->hqk", query[start:end], key[first:last]) * scale
        if window_size == (-1, 0):
            scores = scores.masked_fill(torch.ones(scores.shape[1:], dtype=torch.bool).triu(1), -torch.inf)
        output[start:end] = torch.einsum("hqk,khd->qhd", scores.softmax(-1), value[first:last])
        norms[:, start:end] = scores.logsumexp(-1)
    return output, norms


@pytest.mark.parametrize("mode", ["fast", "exact"])
@pytest.mark.parametrize("key_heads", [4, 2])
def test_a_kernel_for_runs_of_any_length_computes_the_same(
    monkeypatch: pytest.MonkeyPatch, mode: Mode, key_heads: int
) -> None:
    monkeypatch.setattr("torch.nn.attention.varlen.varlen_attn", plain_kernel)
    # Three prompts of which two begin alike, and the answers to one of these go on alike.
    rules = [*range(90, 99)]
    texts: list[list[list[int]]] = [
        [[*rules, *range(9), 1], [*rules, *range(9), 2, 2], [*rules, *range(9), 2, 3]],
        [[*rules, *range(50, 57)]],
        [[1, 2, 3], [1, 2, 4, 5]],
    ]
    groups = [[Tokens(array("i", ids), range(len(ids) - 1, len(ids))) for ids in group] for group in texts]
    conversations = [tokens for group in groups for tokens in group]
    batches = [pack(groups, mode)] + [packed for packed, _ in plan(conversations, 8) if mode == "fast"]
    assert (mode == "fast") == any(packed.inherited for packed in batches)
    torch.manual_seed(0)
    module: Any = nn.Module()
    module.is_causal = True
    for packed in batches:
        inherited, rows = packed.num_inherited, len(packed.ids)
        query, key, value = (torch.randn(1, heads, inherited + rows, 8) for heads in (4, key_heads, key_heads))
        query = query[:, :, inherited:]
        packed.kept = Kept([(key[:, :, :inherited], value[:, :, :inherited])])
        with packed_attention(packed):
            expected, _ = attention(module, query, key[:, :, inherited:], value[:, :, inherited:], None)
        computed = varlen_attention(packed, query, key, value, 8**-0.5)
        assert torch.allclose(computed, expected, atol=1e-5)
