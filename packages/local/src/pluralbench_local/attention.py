"""The attention of a packed batch.

Transformers takes part through its attention interface: `attention` is registered under the name `PACKED` together
with a mask function that makes no mask, and `position_ids` are those of the conversations. In the last layer only the
rows that somebody reads (the last token, for a classifier) go through attention and the feed-forward block.
"""

from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers import AttentionInterface, AttentionMaskInterface

from pluralbench_local.autotune import fastest
from pluralbench_local.packing import Packed, Segment, Tokens, pack
from pluralbench_local.varlen import by_varlen

PACKED = "pluralbench_packed"
QUERY_BLOCK = 128  # rows of attention scores at a time: they stay in the cache, and keys after them are left out
FEW_ROWS = 16  # with fewer a matrix product is rounded otherwise (MKL), so that exact would not be exact
SHORT = 256  # rows of a segment, on average, below which the kernels are measured on a short prompt

READ_ONLY = {"mlp", "self_attn.q_proj", "self_attn.o_proj"}  # of the last layer: what only its own row needs


class NotPackable(Exception):
    """The attention of this architecture is not the causal one that a packed batch computes."""


_current: ContextVar[Packed | None] = ContextVar("the batch whose attention is computed", default=None)


@contextmanager
def attending(packed: Packed) -> Iterator[None]:
    """Within this context, attention under the name `PACKED` is that of `packed`."""
    token = _current.set(packed)
    try:
        yield
    finally:
        _current.reset(token)


def computing_fast() -> bool:
    """Whether a batch in mode `fast` is being computed."""
    packed = _current.get()
    return packed is not None and packed.mode == "fast"


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    **further: Any,
) -> tuple[Tensor, None]:
    """Attention of the current batch. query: [1, heads, rows, width], likewise key and value; [1, rows, heads, width].

    Raises `NotPackable` where it is not causal, or has sinks, biases or a mask of its own.
    """
    packed = _current.get()
    odd = {name for name in ("s_aux", "position_bias", "head_mask") if further.get(name) is not None}
    if packed is None or attention_mask is not None or odd or not getattr(module, "is_causal", False):
        raise NotPackable("its attention is not plain causal self-attention")
    packed.attended += 1
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    window = sliding_window if any(segment.seen > (sliding_window or 0) for segment in packed.segments) else None
    last = getattr(module, "layer_idx", None) == getattr(getattr(module, "config", None), "num_hidden_layers", 0) - 1
    if window or softcap:
        output = _blocked(packed, query, key, value, scale, last=last, window=window, cap=softcap)
    elif query.is_cuda and query.element_size() == 2:
        output = by_varlen(packed, query, key, value, scale)
    elif packed.mode == "exact":
        output = _alone(packed, query, key, value, scale)
    elif query.is_cuda:
        output = _blocked(packed, query, key, value, scale, last=last)
    else:
        output = KERNELS[_faster(packed, query, key)](packed, query, key, value, scale, last=last)
    return output, None


def _rows(segment: Segment, last: bool) -> range:
    """The rows whose attention is asked for."""
    return segment.reads if last else range(segment.start, segment.end)


def _alone(packed: Packed, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """Each segment as in a forward pass of it alone: the same kernel on the same numbers, for all its rows."""
    output = query.new_empty(1, query.shape[2], query.shape[1], value.shape[3])
    repeated = query.shape[1] != key.shape[1]
    for segment in packed.segments:
        own = slice(segment.start, segment.end)
        output[:, own] = nn.functional.scaled_dot_product_attention(
            query[:, :, own], key[:, :, own], value[:, :, own], is_causal=True, scale=scale, enable_gqa=repeated
        ).transpose(1, 2)
    return output


def _merged(packed: Packed, query: Tensor, key: Tensor, value: Tensor, scale: float, *, last: bool) -> Tensor:
    """By the library's fused kernel: each segment over itself, and all that continue it over it, merged."""
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu  # noqa: SLF001 - alone gives normalisers
    output = query.new_zeros(1, query.shape[2], query.shape[1], value.shape[3])
    by_head = output.transpose(1, 2)
    norms = query.new_zeros(query.shape[:3], dtype=torch.float32)
    for segment in packed.segments:
        rows, own = _rows(segment, last), slice(segment.start, segment.end)
        if not rows:
            continue
        # A kernel that computes one row sees all keys; one that computes several begins with the segment.
        begin = rows.start if len(rows) == 1 and rows.stop == segment.end else segment.start
        attended, norm = kernel(
            query[:, :, begin : rows.stop], key[:, :, own], value[:, :, own], 0.0, begin == segment.start, scale=scale
        )
        by_head[:, :, rows.start : rows.stop] = attended[:, :, rows.start - begin :]
        norms[:, :, rows.start : rows.stop] = norm[:, :, rows.start - begin :]
    for segment in packed.segments:
        rows_below: Any = slice(segment.end, segment.below)
        if last:
            rows_below = [row for row in packed.read_rows if segment.end <= row < segment.below]
        queries = query[:, :, rows_below]
        if not queries.shape[2]:
            continue
        own = slice(segment.start, segment.end)
        attended, norm = kernel(queries, key[:, :, own], value[:, :, own], 0.0, False, scale=scale)
        known = norms[:, :, rows_below]
        weight = torch.sigmoid(norm - known).unsqueeze(-1).to(attended.dtype)
        by_head[:, :, rows_below] = torch.lerp(by_head[:, :, rows_below], attended, weight)
        norms[:, :, rows_below] = torch.logaddexp(known, norm)
    return output


def _blocked(
    packed: Packed,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float,
    *,
    last: bool,
    window: int | None = None,
    cap: float | None = None,
) -> Tensor:
    """A block of queries at a time, by plain matrix products. It is also what windows and soft caps go through."""
    q, k, v = query[0], key[0], value[0]
    if q.shape[0] != k.shape[0]:
        k, v = (heads.repeat_interleave(q.shape[0] // k.shape[0], 0) for heads in (k, v))
    output = v.new_zeros(v.shape[0], q.shape[1], v.shape[2])
    for segment in packed.segments:
        if rows := _rows(segment, last):
            _block_by_block(output, q, k, v, segment, rows, scale, window, cap)
    return output.transpose(0, 1).unsqueeze(0)


def _block_by_block(
    output: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    segment: Segment,
    rows: range,
    scale: float,
    window: int | None,
    cap: float | None,
) -> None:
    """The rows of one segment into `output` ([heads, rows, width], like q, k and v)."""
    before = sum(map(len, segment.before))
    runs = [*segment.before, range(segment.start, segment.end)]
    keys, values = (torch.cat([heads[:, run.start : run.stop] for run in runs], 1) for heads in (k, v))
    keys = keys.transpose(1, 2)
    first_row = segment.start - before  # the row that key 0 would have, were the prefix right before the segment
    for start in range(rows.start, rows.stop, QUERY_BLOCK):
        end = min(start + QUERY_BLOCK, rows.stop)
        seen = end - first_row
        first = max(0, start - first_row + 1 - window) if window else 0
        unset = q.new_empty(q.shape[0], end - start, seen - first)
        scores = torch.baddbmm(unset, q[:, start:end], keys[:, :, first:seen], beta=0, alpha=scale)
        if cap:
            scores = torch.tanh(scores / cap) * cap
        scores[:, :, start - end :].masked_fill_(_ahead(end - start, q.device), -torch.inf)
        if window:
            distance = torch.arange(start, end, device=q.device).unsqueeze(1) - first_row - first
            scores.masked_fill_(distance - torch.arange(seen - first, device=q.device) >= window, -torch.inf)
        torch.bmm(scores.softmax(-1), values[:, first:seen], out=output[:, start:end])


@lru_cache(maxsize=2 * QUERY_BLOCK)
def _ahead(size: int, device: torch.device) -> Tensor:
    """Which keys of a square block lie ahead of their query."""
    return torch.ones(size, size, dtype=torch.bool, device=device).triu(1)


KERNELS: dict[str, Any] = {"fused": _merged, "blocked": _blocked}
"""What computes a batch in mode `fast` on a CPU. Which is faster depends on processor, precision and length."""


def _faster(packed: Packed, query: Tensor, key: Tensor) -> str:
    rows = 64 if len(packed.ids) < SHORT * len(packed.segments) else 512
    return _measured(query.dtype, query.shape[1], key.shape[1], query.shape[3], rows)


@lru_cache
def _measured(dtype: torch.dtype, heads: int, key_heads: int, width: int, rows: int) -> str:
    """The faster kernel for two answers of so many rows to a prompt of twice as many."""
    ids = [*range(2 * rows)]
    answers = [Tokens(array("i", [*ids, *range(first, first + rows)]), range(3 * rows)) for first in (-rows, -2 * rows)]
    packed = pack([answers], "fast")
    query, key, value = (
        torch.randn(1, many, len(packed.ids), width, dtype=dtype) for many in (heads, key_heads, key_heads)
    )
    ways = {
        name: lambda kernel=kernel: kernel(packed, query, key, value, width**-0.5, last=False)
        for name, kernel in KERNELS.items()
    }
    return fastest(f"attention {dtype} {heads}/{key_heads}x{width}, {rows} rows", ways, rounds=3)


def _no_mask(*_: object, **__: object) -> None:
    return None


AttentionInterface.register(PACKED, attention)
AttentionMaskInterface.register(PACKED, _no_mask)


def read_only_last_rows(layer: nn.Module) -> list[RemovableHandle]:
    """Let the last layer compute its queries, attention outputs and feed-forward block only for rows that are read.

    Returns the hooks that do it.
    """

    def select(_: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        packed = _current.get()
        if packed is None:
            return None
        rows = packed.read_rows
        return (inputs[0][:, rows + rows[-1:] * (FEW_ROWS - len(rows))], *inputs[1:])

    def spread(_: nn.Module, __: object, output: Tensor) -> Tensor | None:
        packed = _current.get()
        if packed is None:
            return None
        whole = output.new_zeros(output.shape[0], len(packed.ids), output.shape[2])
        whole[:, packed.read_rows] = output[:, : len(packed.read_rows)]
        return whole

    blocks = [block for name, block in layer.named_modules() if name in READ_ONLY]
    return [
        hook
        for block in blocks
        for hook in (block.register_forward_pre_hook(select), block.register_forward_hook(spread))
    ]
