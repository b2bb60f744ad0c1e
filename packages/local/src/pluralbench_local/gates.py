"""Fuse gated feed-forward blocks (SwiGLU, GeGLU) on a CPU: matrix products apply the gate as they write their result.

The operators are oneDNN's, from torch's CPU build; torch's compiler uses them too. A fused block is nearly as fast as
its matrix products alone, since no wide intermediate is read and written again.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from pluralbench_local.attention import in_fast_mode
from pluralbench_local.autotune import fastest

PARTS = ("gate_proj", "up_proj", "down_proj")
# oneDNN's names of activation and algorithm. Activations are recognized by what they compute: their names vary.
ACTIVATIONS: dict[tuple[str, str], Callable[[Tensor], Tensor]] = {
    ("swish", ""): nn.functional.silu,
    ("gelu", "none"): nn.functional.gelu,
    ("gelu", "tanh"): lambda states: nn.functional.gelu(states, approximate="tanh"),
}
PROBE_ROWS = 256


def fuse_gated_mlps(model: nn.Module) -> int:
    """Fuse the gated blocks of a model for batches in mode `fast`, if that is faster.

    Returns:
        The number of fused blocks.
    """
    kinds: dict[str, list[Any]] = {}
    for module in model.modules():
        if _is_gated(module):
            kinds.setdefault(_kind(module), []).append(module)
    faster = [block for kind, blocks in kinds.items() if _is_faster(kind, blocks[0]) for block in blocks]
    for block in faster:
        original, fused = block.forward, _fused_forward(block)
        block.forward = lambda states, original=original, fused=fused: (fused if in_fast_mode() else original)(states)
    return len(faster)


def _is_gated(module: nn.Module) -> bool:
    parts = [getattr(module, name, None) for name in PARTS]
    return (
        all(type(part) is nn.Linear and part.weight.device.type == "cpu" for part in parts)
        and isinstance(getattr(module, "act_fn", None), nn.Module)
        and set(dict(module.named_parameters())) <= {f"{name}.{kind}" for name in PARTS for kind in ("weight", "bias")}
        and _activation(module) is not None
    )


def _kind(block: Any) -> str:
    weight = block.gate_proj.weight
    return f"gated block {type(block).__name__} {weight.dtype} {tuple(weight.shape)} {_activation(block)}"


def _activation(module: Any) -> tuple[str, str] | None:
    values = torch.linspace(-6, 6, 64)
    with torch.inference_mode():
        computed = module.act_fn(values)
        matches = (name for name, act in ACTIVATIONS.items() if torch.allclose(act(values), computed, atol=1e-6))
        return next(matches, None)


def _fused_forward(block: Any) -> Callable[[Tensor], Tensor]:
    gate, up, down = (getattr(block, name) for name in PARTS)
    activation, algorithm = _activation(block) or ("", "")
    linear = torch.ops.mkldnn._linear_pointwise  # noqa: SLF001 - it has no public name

    def forward(states: Tensor) -> Tensor:
        gated = linear(states, gate.weight, gate.bias, activation, [], algorithm)
        inner = linear.binary(states, gated, up.weight, up.bias, "mul")
        result: Tensor = linear(inner, down.weight, down.bias, "none", [], "")
        return result

    return forward


@torch.inference_mode()
def _is_faster(kind: str, block: Any) -> bool:
    """Whether the fused block computes the same faster."""
    weight = block.gate_proj.weight
    states = torch.randn(1, PROBE_ROWS, weight.shape[1], generator=torch.Generator().manual_seed(0)).to(weight.dtype)
    fused = _fused_forward(block)
    try:
        expected, computed = block(states).float(), fused(states).float()
    except (RuntimeError, AttributeError):  # this build or processor does not have the operator
        return False
    if (computed - expected).abs().max() > 8 * torch.finfo(weight.dtype).eps * expected.abs().max():
        return False
    return fastest(kind, {"fused": lambda: fused(states), "own": lambda: block(states)}, rounds=3) == "fused"
