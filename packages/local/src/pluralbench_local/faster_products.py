"""Faster matrix products on a CPU: fused gated feed-forward blocks (SwiGLU, GeGLU), and float32 where that is faster.

In a fused block, matrix products apply the gate as they write their result. The operators are oneDNN's, from torch's
CPU build; torch's compiler uses them too. A fused block is nearly as fast as its matrix products alone, since no wide
intermediate is read and written again.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from pluralbench_local.attention import computes_in_float32, in_fast_mode

FLOAT32_ROWS = 128  # of a product; for fewer, converting the weights takes as long as float32 saves
PARTS = ("gate_proj", "up_proj", "down_proj")
# oneDNN's names of activation and algorithm. Activations are recognized by what they compute: their names vary.
ACTIVATIONS: dict[tuple[str, str], Callable[[Tensor], Tensor]] = {
    ("swish", ""): nn.functional.silu,
    ("gelu", "none"): nn.functional.gelu,
    ("gelu", "tanh"): lambda states: nn.functional.gelu(states, approximate="tanh"),
}


def fuse_gated_mlps(model: nn.Module) -> int:
    """Fuse the gated blocks of a model in bfloat16 for batches in mode `fast`; in float32 a model's own are faster.

    Returns:
        The number of fused blocks.
    """
    blocks: list[Any] = [module for module in model.modules() if _is_gated(module)]
    if not blocks or not _computes_the_same(blocks[0]):
        return 0
    for block in blocks:
        original, fused = block.forward, _fused_forward(block)
        block.forward = lambda states, original=original, fused=fused: (fused if in_fast_mode() else original)(states)
    return len(blocks)


def use_faster_products(model: nn.Module) -> None:
    """Let linear layers in bfloat16 multiply in float32, for batches in mode `fast` on a CPU on which that is faster.

    The weights are converted for each product. That takes a few percent of its time, and no copy is kept.
    """
    linear: list[Any] = [module for module in model.modules() if type(module) is nn.Linear]
    for layer in linear:
        if layer.weight.dtype == torch.bfloat16 and layer.weight.device.type == "cpu":
            layer.forward = _faster_forward(layer)


def _faster_forward(layer: nn.Linear) -> Callable[[Tensor], Tensor]:
    own = layer.forward

    def forward(states: Tensor) -> Tensor:
        if not _multiplies_in_float32(states):
            return own(states)
        return nn.functional.linear(states.float(), *_weights(layer, torch.Tensor.float)).to(states.dtype)

    return forward


def _multiplies_in_float32(states: Tensor) -> bool:
    return computes_in_float32(states) and states.numel() >= FLOAT32_ROWS * states.shape[-1]


def _weights(layer: nn.Linear, convert: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor | None]:
    return convert(layer.weight), None if layer.bias is None else convert(layer.bias)


def _is_gated(module: nn.Module) -> bool:
    parts = [getattr(module, name, None) for name in PARTS]
    return (
        all(type(part) is nn.Linear and part.weight.device.type == "cpu" for part in parts)
        and parts[0].weight.dtype == torch.bfloat16  # type: ignore[union-attr]
        and isinstance(getattr(module, "act_fn", None), nn.Module)
        and set(dict(module.named_parameters())) <= {f"{name}.{kind}" for name in PARTS for kind in ("weight", "bias")}
        and _activation(module) is not None
    )


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
        convert = torch.Tensor.float if _multiplies_in_float32(states) else lambda tensor: tensor
        inputs = convert(states)
        gated = linear(inputs, *_weights(gate, convert), activation, [], algorithm)
        inner = linear.binary(inputs, gated, *_weights(up, convert), "mul")
        result: Tensor = linear(inner, *_weights(down, convert), "none", [], "")
        return result.to(states.dtype)

    return forward


@torch.inference_mode()
def _computes_the_same(block: Any) -> bool:
    """Whether this build and processor have the operators, and they compute what the block does."""
    states = torch.linspace(-1, 1, 8 * block.gate_proj.in_features, dtype=block.gate_proj.weight.dtype)
    states = states.view(1, 8, -1)
    try:
        expected, computed = block(states).float(), _fused_forward(block)(states).float()
    except (RuntimeError, AttributeError):
        return False
    return bool((computed - expected).abs().max() <= 8 * torch.finfo(states.dtype).eps * expected.abs().max())
