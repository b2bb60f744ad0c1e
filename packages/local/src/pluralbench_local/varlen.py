"""The attention of a packed batch by a kernel for runs of any length, as a GPU has it (Ampere and later)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from pluralbench_local.packing import Packed, Segment


@dataclass(frozen=True)
class Level:
    """Segments of one depth, and the rows that continue them, as runs.

    rows, key_rows: which rows of the batch the runs are of. query_starts, key_starts: where each run begins among
    them, and where the last ends. longest_query, longest_key: rows of the longest run.
    """

    rows: Tensor
    key_rows: Tensor
    query_starts: Tensor
    key_starts: Tensor
    longest_query: int
    longest_key: int


def by_varlen(packed: Packed, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """All segments over themselves in one call, then of each depth all rows that continue a segment over it in another.

    query: [1, heads, rows, width]; the result: [1, rows, heads, width]. The parts are merged by their normalisers.
    """
    from torch.nn.attention.varlen import AuxRequest, varlen_attn  # noqa: PLC0415 - CUDA only

    own_level, *levels = _levels(packed, query.device)
    q, k, v = (heads[0].transpose(0, 1).contiguous() for heads in (query, key, value))
    options: dict[str, Any] = {
        "scale": scale,
        "enable_gqa": q.shape[1] != k.shape[1],
        "return_aux": AuxRequest(lse=True),
    }
    starts, longest = own_level.query_starts, own_level.longest_query
    own, own_norm = varlen_attn(q, k, v, starts, starts, longest, longest, window_size=(-1, 0), **options)
    for level in levels:
        rows, key_rows = level.rows, level.key_rows
        shared, norm = varlen_attn(
            q[rows], k[key_rows], v[key_rows], level.query_starts, level.key_starts,
            level.longest_query, level.longest_key, **options,
        )  # fmt: skip
        known = own_norm[:, rows]
        weight = torch.sigmoid(norm - known).transpose(0, 1).unsqueeze(-1)
        own[rows] = torch.lerp(own[rows].float(), shared.float(), weight).to(own.dtype)
        own_norm[:, rows] = torch.logaddexp(known, norm)
    return own.unsqueeze(0)


def _levels(packed: Packed, device: torch.device) -> list[Level]:
    """First all segments over themselves, then of each depth those that are continued; made once a batch and device."""
    if device not in packed.levels:
        continued = sorted((one for one in packed.segments if one.below > one.end), key=lambda one: len(one.before))
        own = [range(segment.start, segment.end) for segment in packed.segments]
        depths = [list(alike) for _, alike in groupby(continued, key=lambda one: len(one.before))]
        packed.levels[device] = [_level(own, own, device), *(_level(*_runs(depth), device) for depth in depths)]
    return packed.levels[device]


def _runs(depth: Sequence[Segment]) -> tuple[list[range], list[range]]:
    return [range(one.end, one.below) for one in depth], [range(one.start, one.end) for one in depth]


def _level(queries: Sequence[range], keys: Sequence[range], device: torch.device) -> Level:
    def starts(runs: Sequence[range]) -> Tensor:
        return torch.tensor([0, *map(len, runs)], device=device, dtype=torch.int32).cumsum(0, dtype=torch.int32)

    def places(runs: Sequence[range]) -> Tensor:
        return torch.tensor([row for run in runs for row in run], device=device, dtype=torch.long)

    return Level(
        rows=places(queries),
        key_rows=places(keys),
        query_starts=starts(queries),
        key_starts=starts(keys),
        longest_query=max(map(len, queries)),
        longest_key=max(map(len, keys)),
    )
