"""The attention of a packed batch by torch's variable-length kernel (NVIDIA GPUs from Ampere on)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from inspect import signature
from itertools import accumulate, groupby
from typing import Any

import torch
from torch import Tensor

from pluralbench_local.packing import Packed, Segment, to_device

AMPERE = (8, 0)  # oldest compute capability that the kernel is built for
MAX_WIDTH = 256  # largest width of a head


@dataclass(frozen=True)
class Level:
    """Segments of one depth as runs of keys, and the rows that continue them as runs of queries.

    `rows` and `key_rows` are rows of the batch, these counted from the first inherited one. The starts are the offsets
    of the runs within them, and the end of the last.
    """

    rows: Tensor
    key_rows: Tensor
    query_starts: Tensor
    key_starts: Tensor
    longest_query: int
    longest_key: int


def has_varlen_kernel(query: Tensor, value: Tensor) -> bool:
    """Return whether the kernel computes these heads: 16-bit numbers on an NVIDIA GPU from Ampere on."""
    width = query.shape[3]
    return (
        query.is_cuda
        and query.dtype in {torch.float16, torch.bfloat16}
        and value.shape[3] == width <= MAX_WIDTH
        and width % 8 == 0
        and torch.cuda.get_device_capability(query.device) >= AMPERE
        and _torch_has_kernel()
    )


@cache
def _torch_has_kernel() -> bool:
    """Whether this torch has the kernel with fewer key heads than query heads; torch before 2.12 does not."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return False
    return "enable_gqa" in signature(varlen_attn).parameters


def varlen_attention(packed: Packed, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """Compute the attention of a packed batch on a GPU; shapes as of `pluralbench_local.attention.attention`.

    One call covers all segments over themselves; one more call for each depth covers the rows that continue a segment
    over that segment. The results are merged by their normalizers. Keys and values begin with the inherited rows.
    """
    from torch.nn.attention.varlen import AuxRequest, varlen_attn

    own_level, *levels = _levels(packed, query.device)
    q, k, v = (heads[0].transpose(0, 1).contiguous() for heads in (query, key, value))
    own = slice(packed.num_inherited, None)
    options: dict[str, Any] = {
        "scale": scale,
        "enable_gqa": q.shape[1] != k.shape[1],
        "return_aux": AuxRequest(lse=True),
    }
    starts, longest = own_level.query_starts, own_level.longest_query
    output, output_norm = varlen_attn(
        q, k[own], v[own], starts, starts, longest, longest, window_size=(-1, 0), **options
    )
    for level in levels:
        rows, key_rows = level.rows, level.key_rows
        shared, norm = varlen_attn(
            q[rows], k[key_rows], v[key_rows], level.query_starts, level.key_starts,
            level.longest_query, level.longest_key, **options,
        )  # fmt: skip
        previous = output_norm[:, rows]
        weight = torch.sigmoid(norm - previous).transpose(0, 1).unsqueeze(-1)
        output[rows] = torch.lerp(output[rows].float(), shared.float(), weight).to(output.dtype)
        output_norm[:, rows] = torch.logaddexp(previous, norm)
    return output.unsqueeze(0)


def _levels(packed: Packed, device: torch.device) -> list[Level]:
    """First all segments over themselves, then by depth those that are continued; cached by device."""
    cached = ("levels", device)
    if cached not in packed.on_device:
        continued = [segment for segment in (*packed.inherited, *packed.segments) if segment.continued_by]
        continued.sort(key=_depth)
        runs = [range(segment.start, segment.end) for segment in packed.segments]
        depths = [_runs(packed, list(segments)) for _, segments in groupby(continued, key=_depth)]
        packed.on_device[cached] = [_level(runs, runs, device), *(_level(*depth, device) for depth in depths)]
    levels: list[Level] = packed.on_device[cached]
    return levels


def _depth(segment: Segment) -> int:
    return len(segment.prefix)


def _runs(packed: Packed, segments: Sequence[Segment]) -> tuple[list[range], list[range]]:
    keys = [packed.keys_of(segment) for segment in segments]
    return [segment.continued_by for segment in segments], [range(run.start, run.stop) for run in keys]


def _level(queries: Sequence[range], keys: Sequence[range], device: torch.device) -> Level:
    def starts(runs: Sequence[range]) -> Tensor:
        return to_device(torch.tensor([0, *accumulate(map(len, runs))], dtype=torch.int32), device)

    def rows(runs: Sequence[range]) -> Tensor:
        return to_device([row for run in runs for row in run], device)

    return Level(
        rows=rows(queries),
        key_rows=rows(keys),
        query_starts=starts(queries),
        key_starts=starts(keys),
        longest_query=max(map(len, queries)),
        longest_key=max(map(len, keys)),
    )
