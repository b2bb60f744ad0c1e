"""How many tokens a forward pass computes at once, where nobody says."""

from collections.abc import Iterable

import torch
from pluralbench_rewards import Mode
from torch import Tensor, nn

from pluralbench_local.attention import attending
from pluralbench_local.autotune import fastest, remembered, seconds
from pluralbench_local.network import ReadableNetwork
from pluralbench_local.packing import Packed

USUAL = {"cpu": 2048, "cuda": 32768}
# On a CPU: from what a core's own cache holds to what its matrix units are at their best with. A group that is more
# than a batch has its prompt computed again, so that in mode fast there are no small ones.
TRIED: dict[Mode, tuple[int, ...]] = {"exact": (512, 2048, 8192), "fast": (2048, 8192)}
PROBED = 512
BRIEF = 0.01  # seconds that so few may take; of a model for which they take longer the usual budget is good enough


def usual_budget(network: ReadableNetwork, strategy: str) -> int:
    """Tokens of a batch: on a CPU as many as are fastest there, measured on a feed-forward block of the model."""
    kind = network.device.type
    layers = getattr(network.body, "layers", None)
    if strategy == "padded" or kind != "cpu" or not isinstance(layers, nn.ModuleList) or len(layers) < 2:
        return USUAL.get(kind, USUAL["cpu"])
    norm, block = (getattr(layers[0], name, None) for name in ("input_layernorm", "mlp"))
    if norm is None or block is None:
        return USUAL["cpu"]
    return _measured(norm, block, network.model.config.get_text_config().hidden_size, network.dtype, strategy)


@torch.inference_mode()
def _measured(norm: nn.Module, block: nn.Module, width: int, dtype: torch.dtype, strategy: str) -> int:
    batch = Packed("fast" if strategy == "fast" else "exact", [], [], [], [])
    states = torch.zeros(1, max(TRIED[batch.mode]), width, dtype=dtype)

    def compute(parts: Iterable[Tensor]) -> None:
        with attending(batch):
            for part in parts:
                block(norm(part))

    sizes = [tuple(weight.shape) for weight in block.parameters()]
    question = f"tokens of a batch, {batch.mode}, {type(block).__name__} {sizes} {dtype}"
    few = [states[:, :PROBED]]
    if remembered(question) is None and min(seconds(lambda: compute(few)) for _ in range(2)) > BRIEF:
        return USUAL["cpu"]
    ways = {str(rows): lambda rows=rows: compute(torch.split(states, rows, 1)) for rows in TRIED[batch.mode]}
    return int(fastest(question, ways, rounds=3))
