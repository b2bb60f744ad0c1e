"""The attention of a packed batch.

Transformers calls it through its attention interface: `attention` is registered under the name `PACKED` together with
a mask function that makes no mask, and `position_ids` are those of the conversations. In the last layer only the rows
that are read (the last token, for a classifier) go through attention and the feed-forward block. Keys and values of
inherited rows come before those of the batch.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from pluralbench_local.packing import Packed, Segment, to_device
from pluralbench_local.varlen import has_varlen_kernel, varlen_attention

PACKED = "pluralbench_packed"
QUERY_BLOCK = 128  # rows of attention scores at a time: they fit into the cache, and later keys are left out
MIN_ROWS = 16  # MKL rounds matrix products with fewer rows differently, so that exact would not be exact

READ_ROWS_MODULES = {"mlp", "self_attn.q_proj", "self_attn.o_proj"}  # of the last layer; each row needs only itself


class NotPackable(Exception):
    """The architecture does not use the plain causal attention that a packed batch computes."""


_current: ContextVar[Packed | None] = ContextVar("current_batch", default=None)


@contextmanager
def packed_attention(packed: Packed) -> Iterator[None]:
    """Make `packed` the batch whose attention `PACKED` computes within this context."""
    token = _current.set(packed)
    try:
        yield
    finally:
        _current.reset(token)


def in_fast_mode() -> bool:
    """Return whether a batch in mode `fast` is being computed."""
    packed = _current.get()
    return packed is not None and packed.mode == "fast"


def computes_in_float32(states: Tensor) -> bool:
    """Return whether the current batch converts these states to float32 for matrix products and attention.

    It does in mode `fast` if the states are in bfloat16 on a CPU that is faster in float32. The results are converted
    back. Sums are in float32 in either case.
    """
    return in_fast_mode() and states.dtype == torch.bfloat16 and not states.is_cuda and float32_is_faster()


@cache
def float32_is_faster() -> bool:
    """Return whether this CPU multiplies matrices faster in float32 than in bfloat16.

    So it is on x86-64 without matrix units (AMX): float32 was 1.5 to 1.8 times as fast on a Xeon with `avx512_bf16`,
    and without that, products in bfloat16 are emulated. AMD's `avx512_bf16` multiplies twice as many numbers at a time
    as float32. The decision is by processor, not by timing, so that runs on a machine have the same scores.
    """
    # Older versions of torch do not say what a processor has.
    features: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    amd = "AMD" in str(features.get("cpu_name"))
    native = features.get("amx_bf16") or (amd and features.get("avx512_bf16"))
    return features.get("architecture") == "x86_64" and not native


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
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Compute the attention of the current batch, with transformers' arguments.

    `query` has the shape (1, heads, rows, width), `key` and `value` (1, key heads, rows, width). Returns the output, of
    shape (1, rows, heads, width), and no attention weights.

    Raises:
        NotPackable: If the attention is not causal, or has sinks, biases or a mask.
    """
    packed = _current.get()
    unsupported = any(kwargs.get(name) is not None for name in ("s_aux", "position_bias", "head_mask"))
    if packed is None or attention_mask is not None or unsupported or not getattr(module, "is_causal", False):
        raise NotPackable("its attention is not plain causal self-attention")
    key, value = _with_inherited(packed, key, value)
    packed.attended_layers += 1
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    window = sliding_window if any(segment.num_keys > (sliding_window or 0) for segment in packed.segments) else None
    last = getattr(module, "layer_idx", None) == getattr(getattr(module, "config", None), "num_hidden_layers", 0) - 1
    alone = packed.mode == "exact" and query.dtype == torch.float32  # only there the bits do not depend on the batch
    if alone and sliding_window and not softcap:
        output = _attend_per_segment(packed, query, key, value, scale, sliding_window)
    elif alone and softcap and (eager := _own_eager_attention(module)) is not None:
        output = query.new_empty(1, query.shape[2], query.shape[1], value.shape[3])
        for rows in (slice(segment.start, segment.end) for segment in packed.segments):
            states = query[:, :, rows], key[:, :, rows], value[:, :, rows]
            sees = _sees(states[0].shape[2], sliding_window, query.device)
            mask = torch.where(sees, 0.0, torch.finfo(query.dtype).min)
            output[:, rows] = eager(module, *states, mask, scaling=scale, softcap=softcap)[0]
    elif window or softcap:
        output = attend_blocked(packed, query, key, value, scale, last=last, window=window, cap=softcap)
    elif has_varlen_kernel(query, value):
        output = varlen_attention(packed, query, key, value, scale)
    elif packed.mode == "exact":
        output = _attend_per_segment(packed, query, key, value, scale)
    elif query.is_cuda:
        output = attend_blocked(packed, query, key, value, scale, last=last)
    else:
        output = attend_fused(packed, query, key, value, scale, last=last)
    return output, None


def _with_inherited(packed: Packed, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Put the inherited keys and values of a layer before those of the batch, and keep what the next batch inherits."""
    layers, layer = packed.kept.layers, packed.attended_layers
    if packed.inherited:
        key, value = (torch.cat(pair, 2) for pair in zip(layers[layer], (key, value), strict=True))
    if packed.passed_on and packed.passes_on_more:
        layers[layer : layer + 1] = [(packed.pass_on(key, 2), packed.pass_on(value, 2))]
    return key, value


def _rows(segment: Segment, last: bool) -> range:
    """The rows whose attention is needed: in the last layer those that are read, else all."""
    return segment.reads if last else range(segment.start, segment.end)


def _attend_per_segment(
    packed: Packed, query: Tensor, key: Tensor, value: Tensor, scale: float, window: int | None = None
) -> Tensor:
    """Compute each segment as its own forward pass does: the same kernel on the same numbers."""
    output = query.new_empty(1, query.shape[2], query.shape[1], value.shape[3])
    groups = query.shape[1] // key.shape[1]
    for segment in packed.segments:
        rows = slice(segment.start, segment.end)
        q, k, v = query[:, :, rows], key[:, :, rows], value[:, :, rows]
        # As transformers does: from the length of the window on there is a mask, and with a mask no grouped heads.
        mask = _sees(q.shape[2], window, q.device) if window and q.shape[2] >= window else None
        if mask is not None:
            k, v = (heads.repeat_interleave(groups, 1) for heads in (k, v))
        output[:, rows] = nn.functional.scaled_dot_product_attention(
            q, k, v, mask, is_causal=mask is None, scale=scale, enable_gqa=mask is None and groups > 1
        ).transpose(1, 2)
    return output


def _sees(length: int, window: int | None, device: torch.device) -> Tensor:
    """Mask of the keys that each token of a conversation attends to. Shape (1, 1, length, length)."""
    sees = torch.ones(length, length, dtype=torch.bool, device=device).tril()
    return (sees.triu(1 - window) if window else sees)[None, None]


def _own_eager_attention(module: nn.Module) -> Any:
    """Return the attention of a model's own file, with which transformers computes soft caps; None if it has none."""
    return getattr(sys.modules.get(type(module).__module__), "eager_attention_forward", None)


def attend_fused(packed: Packed, query: Tensor, key: Tensor, value: Tensor, scale: float, *, last: bool) -> Tensor:
    """Use torch's fused kernel: each segment attends to itself, its continuations attend to it, results are merged."""
    dtype = query.dtype
    if computes_in_float32(query):
        query, key, value = query.float(), key.float(), value.float()
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu  # noqa: SLF001 - only it returns normalizers
    output = query.new_zeros(1, query.shape[2], query.shape[1], value.shape[3])
    by_head = output.transpose(1, 2)
    norms = query.new_zeros(query.shape[:3], dtype=torch.float32)
    for segment in packed.segments:
        rows, own = _rows(segment, last), packed.keys_of(segment)
        if not rows:
            continue
        # The last row alone attends to all keys without a causal mask; several rows start at the segment's first.
        begin = rows.start if len(rows) == 1 and rows.stop == segment.end else segment.start
        attended, norm = kernel(
            query[:, :, begin : rows.stop], key[:, :, own], value[:, :, own], 0.0, begin == segment.start, scale=scale
        )
        by_head[:, :, rows.start : rows.stop] = attended[:, :, rows.start - begin :]
        norms[:, :, rows.start : rows.stop] = norm[:, :, rows.start - begin :]
    for segment in (*packed.inherited, *packed.segments):
        after = segment.continued_by
        rows_after: Any = slice(after.start, after.stop)
        if last:
            rows_after = [row for row in packed.read_rows if row in after]
        queries = query[:, :, rows_after]
        if not queries.shape[2]:
            continue
        own = packed.keys_of(segment)
        attended, norm = kernel(queries, key[:, :, own], value[:, :, own], 0.0, False, scale=scale)
        previous = norms[:, :, rows_after]
        weight = torch.sigmoid(norm - previous).unsqueeze(-1).to(attended.dtype)
        by_head[:, :, rows_after] = torch.lerp(by_head[:, :, rows_after], attended, weight)
        norms[:, :, rows_after] = torch.logaddexp(previous, norm)
    return output.to(dtype)


def attend_blocked(
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
    """Use plain matrix products, one block of queries at a time; it also handles windows and soft caps."""
    q, k, v = query[0], key[0], value[0]
    if q.shape[0] != k.shape[0]:
        k, v = (heads.repeat_interleave(q.shape[0] // k.shape[0], 0) for heads in (k, v))
    output = v.new_zeros(v.shape[0], q.shape[1], v.shape[2])
    for segment in packed.segments:
        if rows := _rows(segment, last):
            keys = [packed.keys_of(run) for run in (*segment.prefix, range(segment.start, segment.end))]
            _attend_segment_blocks(output, q, k, v, segment, keys, rows, scale, window, cap)
    return output.transpose(0, 1).unsqueeze(0)


def _attend_segment_blocks(
    output: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    segment: Segment,
    runs: Sequence[slice],
    rows: range,
    scale: float,
    window: int | None,
    cap: float | None,
) -> None:
    """Write the attention of a segment's rows to `output` (shape (heads, rows, width), like q, k and v)."""
    prefix_length = sum(map(len, segment.prefix))
    keys, values = (torch.cat([heads[:, run] for run in runs], 1) for heads in (k, v))
    keys = keys.transpose(1, 2)
    first_row = segment.start - prefix_length  # row of key 0 if the prefix stood right before the segment
    for start in range(rows.start, rows.stop, QUERY_BLOCK):
        end = min(start + QUERY_BLOCK, rows.stop)
        num_keys = end - first_row
        first = max(0, start - first_row + 1 - window) if window else 0
        empty = q.new_empty(q.shape[0], end - start, num_keys - first)
        scores = torch.baddbmm(empty, q[:, start:end], keys[:, :, first:num_keys], beta=0, alpha=scale)
        if cap:
            scores = torch.tanh(scores / cap) * cap
        scores[:, :, start - end :].masked_fill_(_future_mask(end - start, q.device), -torch.inf)
        if window:
            distance = torch.arange(start, end, device=q.device).unsqueeze(1) - first_row - first
            scores.masked_fill_(distance - torch.arange(num_keys - first, device=q.device) >= window, -torch.inf)
        torch.bmm(scores.softmax(-1), values[:, first:num_keys], out=output[:, start:end])


@lru_cache(maxsize=2 * QUERY_BLOCK)
def _future_mask(size: int, device: torch.device) -> Tensor:
    """Mask of the keys of a square block that come after their query."""
    return torch.ones(size, size, dtype=torch.bool, device=device).triu(1)


def _make_no_mask(*_: object, **__: object) -> None:
    return None


def register_attention() -> None:
    """Register `attention` with transformers. Importing its interface takes seconds, so a model is loaded first."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(PACKED, attention)
    AttentionMaskInterface.register(PACKED, _make_no_mask)


def read_index(packed: Packed, device: torch.device, *, at_least: int = 0) -> Tensor:
    """Return the rows that are read as an index, copied to a device once.

    Below `at_least` rows, the last one is repeated.
    """
    cached = (f"{at_least} rows", device)
    if cached not in packed.on_device:
        rows = packed.read_rows
        packed.on_device[cached] = to_device(rows + rows[-1:] * (at_least - len(rows)), device)
    index: Tensor = packed.on_device[cached]
    return index


def mixes_experts(module: nn.Module) -> bool:
    """Return whether a token's experts are chosen: how many rows an expert multiplies depends on the whole batch."""
    return any(weights.dim() == 3 for weights in module.parameters())


def read_only_last_rows(layer: nn.Module) -> list[RemovableHandle]:
    """Restrict the last layer's queries, attention outputs and feed-forward block to the rows that are read.

    Returns the hooks, which undo it when removed.
    """

    experts = mixes_experts(layer)

    def current() -> Packed | None:
        packed = _current.get()
        return None if packed is None or (experts and packed.mode == "exact") else packed

    def gather(_: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        packed = current()
        if packed is None:
            return None
        return (inputs[0][:, read_index(packed, inputs[0].device, at_least=MIN_ROWS)], *inputs[1:])

    def scatter(_: nn.Module, __: object, output: Tensor) -> Tensor | None:
        packed = current()
        if packed is None:
            return None
        all_rows = output.new_zeros(output.shape[0], len(packed.ids), output.shape[2])
        all_rows[:, read_index(packed, output.device)] = output[:, : len(packed.read_rows)]
        return all_rows

    blocks = [block for name, block in layer.named_modules() if name in READ_ROWS_MODULES]
    return [
        hook
        for block in blocks
        for hook in (block.register_forward_pre_hook(gather), block.register_forward_hook(scatter))
    ]
