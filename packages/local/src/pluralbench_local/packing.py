"""Packing: many conversations in one row of tokens, without padding and without computing a shared prompt twice.

The layout of a batch, here of two groups, the first a prompt with three responses, the second one with two:

    tokens    prompt 1  answer A   answer B   answer C   prompt 2  answer D   answer E
    position  0 ... p   p ...      p ...      p ...      0 ... q   q ...      q ...
    attends   itself    prompt 1   prompt 1   prompt 1   itself    prompt 2   prompt 2
                        + itself   + itself   + itself             + itself   + itself

A *segment* is a run of rows (`prompt 1`, `answer A`, ...). Its tokens attend, causally, to themselves and to all of the
segment that they continue. "Prompt" is the longest common token prefix of the group's conversations, so a template's
opening words of the answer are in it too. In mode `exact` every conversation is one segment of its own that attends to
nothing else: what is computed is what a forward pass of that conversation alone computes.

Transformers takes part through its attention interface: `attention` is registered under the name `PACKED` together
with a mask function that makes no mask, and `position_ids` start anew in each group. In the last layer only the rows
that somebody reads (the last token, for a classifier) go through attention and the feed-forward block.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import torch
from pluralbench_rewards import Mode
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers import AttentionInterface, AttentionMaskInterface

if TYPE_CHECKING:
    from array import array  # not to be subscripted before Python 3.12

PACKED = "pluralbench_packed"
QUERY_BLOCK = 128  # rows of attention scores at a time: they stay in the cache, and keys after them are left out

READ_ONLY = {"mlp", "self_attn.q_proj", "self_attn.o_proj"}  # of the last layer: what only its own row needs


class NotPackable(Exception):
    """The attention of this architecture is not the causal one that a packed batch computes."""


@dataclass(frozen=True)
class Tokens:
    """A conversation in tokens. reads: positions whose last hidden state is asked for, without a gap."""

    ids: "array[int]"
    reads: range


@dataclass(frozen=True)
class Segment:
    """Rows [start, end) of a batch, which continue the rows [prefix_start, prefix_end); reads: those that are read."""

    start: int
    end: int
    prefix_start: int
    prefix_end: int
    reads: range

    @property
    def seen(self) -> int:
        """How many keys its last row attends to."""
        return self.prefix_end - self.prefix_start + self.end - self.start


@dataclass
class Packed:
    """A batch in one row: token ids and positions of its rows, and for each conversation the rows of its `reads`.

    attended: in how many layers its attention was computed.
    """

    mode: Mode
    ids: list[int]
    positions: list[int]
    segments: list[Segment]
    rows: list[list[int]]
    attended: int = 0

    @cached_property
    def read_rows(self) -> list[int]:
        """The rows that are read, each once, ascending."""
        return sorted({row for segment in self.segments for row in segment.reads})

    def varlen(self, device: torch.device) -> "Varlen":
        """Boundaries as variable-length kernels take them; made once a batch and device."""
        if device not in self._varlen:
            self._varlen[device] = Varlen.of(self.segments, device)
        return self._varlen[device]

    @cached_property
    def _varlen(self) -> "dict[torch.device, Varlen]":
        return {}


def common_prefix(sequences: "Sequence[array[int]]") -> int:
    """How many tokens all sequences begin with alike, at most one less than the shortest has; 0 for one sequence."""
    if len(sequences) == 1:
        return 0
    first, last = min(sequences), max(sequences)
    limit = min(map(len, sequences)) - 1
    return next((place for place in range(limit) if first[place] != last[place]), limit)


def pack(groups: Sequence[Sequence[Tokens]], mode: Mode) -> Packed:
    """Lay groups end to end; `rows` follows the order of all their conversations."""
    packed = Packed(mode, [], [], [], [])
    apart = [[tokens] for group in groups for tokens in group]
    for together in groups if mode == "fast" else apart:
        _lay(packed, together, common_prefix([tokens.ids for tokens in together]))
    return packed


def _lay(packed: Packed, group: Sequence[Tokens], shared: int) -> None:
    start = len(packed.ids)
    packed.ids.extend(group[0].ids[:shared])
    packed.positions.extend(range(shared))
    first_read = min([shared, *(tokens.reads.start for tokens in group if tokens.reads)])
    if shared:
        packed.segments.append(Segment(start, start + shared, start, start, range(start + first_read, start + shared)))
    for tokens in group:
        tail = len(packed.ids)
        packed.ids.extend(tokens.ids[shared:])
        packed.positions.extend(range(shared, len(tokens.ids)))
        rows = [(start if place < shared else tail - shared) + place for place in tokens.reads]
        own = [row for row in rows if row >= tail] or [tail]
        packed.rows.append(rows)
        packed.segments.append(Segment(tail, len(packed.ids), start, start + shared, range(own[0], own[-1] + 1)))


_current: ContextVar[Packed | None] = ContextVar("the batch whose attention is computed", default=None)


@contextmanager
def attending(packed: Packed) -> Iterator[None]:
    """Within this context, attention under the name `PACKED` is that of `packed`."""
    token = _current.set(packed)
    try:
        yield
    finally:
        _current.reset(token)


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
    plain = not window and not softcap
    if plain and query.is_cuda and query.element_size() == 2:
        return _by_kernel(packed, query, key, value, scale), None
    q, k, v = query[0], key[0], value[0]
    if q.shape[0] != k.shape[0]:
        k, v = (heads.repeat_interleave(q.shape[0] // k.shape[0], 0) for heads in (k, v))
    last = getattr(module, "layer_idx", None) == getattr(getattr(module, "config", None), "num_hidden_layers", 0) - 1
    output = v.new_zeros(v.shape[0], q.shape[1], v.shape[2])
    for segment in packed.segments:
        rows = segment.reads if last else range(segment.start, segment.end)
        if plain and packed.mode == "exact":
            output[:, rows.start : rows.stop] = _alone(q, k, v, segment, rows, scale)
        elif rows:
            _blocked(output, q, k, v, segment, rows, scale, window, softcap)
    return output.transpose(0, 1).unsqueeze(0), None


def _alone(q: Tensor, k: Tensor, v: Tensor, segment: Segment, rows: range, scale: float) -> Tensor:
    """As in a forward pass of the segment alone: the same kernel on the same numbers."""
    own = slice(segment.start, segment.end)
    only_last = len(rows) == 1 and rows.stop == segment.end
    queries = q[None, :, rows.start : rows.stop] if only_last else q[None, :, own]
    attended = nn.functional.scaled_dot_product_attention(
        queries, k[None, :, own], v[None, :, own], is_causal=not only_last, scale=scale
    )[0]
    return attended if only_last else attended[:, rows.start - segment.start : rows.stop - segment.start]


def _blocked(
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
    """A block of queries at a time, by plain matrix products, into `output` ([heads, rows, width], like q, k and v).

    On a CPU in bfloat16 this took two thirds to three quarters of the fused kernel's time; in float32 it was about as
    fast for hundreds of tokens and slower for thousands. It is also what windows and soft caps go through.
    """
    before = segment.prefix_end - segment.prefix_start
    runs = [slice(segment.prefix_start, segment.prefix_end)] * (before > 0) + [slice(segment.start, segment.end)]
    keys, values = (torch.cat([heads[:, run] for run in runs], 1) for heads in (k, v))
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


@dataclass(frozen=True)
class Varlen:
    """Segment boundaries for a kernel: of all segments, and of the continuing rows with the prefixes they continue."""

    starts: Tensor
    longest: int
    rows: Tensor
    query_starts: Tensor
    key_starts: Tensor
    key_rows: Tensor
    longest_query: int
    longest_key: int

    @classmethod
    def of(cls, segments: Sequence[Segment], device: torch.device) -> "Varlen":
        """The boundaries of these segments, on `device`. Segments that continue one prefix follow one another."""
        groups: dict[tuple[int, int], list[Segment]] = {}
        for segment in segments:
            if segment.prefix_end > segment.prefix_start:
                groups.setdefault((segment.prefix_start, segment.prefix_end), []).append(segment)
        queries = [range(tails[0].start, tails[-1].end) for tails in groups.values()]
        keys = [range(*prefix) for prefix in groups]

        def starts(runs: Sequence[Sequence[int]]) -> Tensor:
            return torch.tensor([0, *map(len, runs)], device=device, dtype=torch.int32).cumsum(0, dtype=torch.int32)

        def places(runs: Sequence[range]) -> Tensor:
            return torch.tensor([row for run in runs for row in run], device=device, dtype=torch.long)

        runs = [range(segment.start, segment.end) for segment in segments]
        return cls(
            starts=starts(runs),
            longest=max(map(len, runs)),
            rows=places(queries),
            query_starts=starts(queries),
            key_starts=starts(keys),
            key_rows=places(keys),
            longest_query=max(map(len, queries), default=0),
            longest_key=max(map(len, keys), default=0),
        )


def _by_kernel(packed: Packed, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """All segments in one call of a variable-length kernel, all prefixes in a second; merged by their normalisers."""
    from torch.nn.attention.varlen import AuxRequest, varlen_attn  # noqa: PLC0415 - CUDA only

    layout = packed.varlen(query.device)
    q, k, v = (heads[0].transpose(0, 1).contiguous() for heads in (query, key, value))
    options: dict[str, Any] = {
        "scale": scale,
        "enable_gqa": q.shape[1] != k.shape[1],
        "return_aux": AuxRequest(lse=True),
    }
    longest = layout.longest
    own, own_norm = varlen_attn(q, k, v, layout.starts, layout.starts, longest, longest, window_size=(-1, 0), **options)
    if layout.longest_key:
        rows, key_rows = layout.rows, layout.key_rows
        shared, norm = varlen_attn(
            q[rows], k[key_rows], v[key_rows], layout.query_starts, layout.key_starts,
            layout.longest_query, layout.longest_key, **options,
        )  # fmt: skip
        weight = torch.sigmoid(norm - own_norm[:, rows]).transpose(0, 1).unsqueeze(-1)
        own[rows] = torch.lerp(own[rows].float(), shared.float(), weight).to(own.dtype)
    return own.unsqueeze(0)


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
        return None if packed is None else (inputs[0][:, packed.read_rows], *inputs[1:])

    def spread(_: nn.Module, __: object, output: Tensor) -> Tensor | None:
        packed = _current.get()
        if packed is None:
            return None
        whole = output.new_zeros(output.shape[0], len(packed.ids), output.shape[2])
        whole[:, packed.read_rows] = output
        return whole

    blocks = [block for name, block in layer.named_modules() if name in READ_ONLY]
    return [
        hook
        for block in blocks
        for hook in (block.register_forward_pre_hook(select), block.register_forward_hook(spread))
    ]
