"""How many tokens a forward pass computes at once, where nobody says."""

import torch
from torch import nn

from pluralbench_local.attention import attending
from pluralbench_local.measured import fastest
from pluralbench_local.network import Network
from pluralbench_local.packing import Packed

USUAL = {"cpu": 2048, "cuda": 32768}
TRIED = (
    512,
    2048,
    8192,
)  # on a CPU: what a core's own cache holds, or as many as its matrix units are at their best with


def usual_budget(network: Network, strategy: str) -> int:
    """Tokens of a batch: on a CPU as many as are fastest there, measured on a feed-forward block of the model."""
    kind = network.device.type
    layers = getattr(network.body, "layers", None)
    if strategy == "padded" or kind != "cpu" or not isinstance(layers, nn.ModuleList) or len(layers) < 2:
        return USUAL.get(kind, USUAL["cpu"])
    norm, block = (getattr(layers[0], name, None) for name in ("input_layernorm", "mlp"))
    if norm is None or block is None:
        return USUAL["cpu"]
    return _measured(norm, block, network.model.config.get_text_config().hidden_size, network.dtype, strategy)


def _measured(norm: nn.Module, block: nn.Module, width: int, dtype: torch.dtype, strategy: str) -> int:
    batch = Packed("fast" if strategy == "fast" else "exact", [], [], [], [])
    states = torch.zeros(1, max(TRIED), width, dtype=dtype)

    def compute(rows: int) -> None:
        with torch.inference_mode(), attending(batch):
            for part in torch.split(states, rows, 1):
                block(norm(part))

    ways = {str(rows): lambda rows=rows: compute(rows) for rows in TRIED}
    sizes = [tuple(weight.shape) for weight in block.parameters()]
    return int(fastest(f"tokens of a batch, {batch.mode}, {type(block).__name__} {sizes} {dtype}", ways, rounds=3))
