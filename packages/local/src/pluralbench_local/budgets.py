"""The default number of tokens that a forward pass computes at once."""

from collections.abc import Iterable

import torch
from pluralbench_rewards import Mode
from torch import Tensor, nn

from pluralbench_local.attention import packed_attention
from pluralbench_local.autotune import cached_choice, fastest, seconds
from pluralbench_local.network import ReadableNetwork
from pluralbench_local.packing import Packed
from pluralbench_local.planning import DEFAULT_BUDGETS, fitting_budget

# On a CPU: from what fits into a core's cache to what its matrix units handle best. Each batch reads and writes the
# keys of the prefix that it continues, so mode fast has no small candidates.
CANDIDATE_BUDGETS: dict[Mode, tuple[int, ...]] = {"exact": (512, 2048, 8192), "fast": (2048, 8192)}
PROBE_ROWS = 512
MAX_PROBE_SECONDS = 0.01  # a model that needs longer for `PROBE_ROWS` rows takes the default budget


def default_budget(network: ReadableNetwork, strategy: str) -> int:
    """Return the tokens of a batch.

    On a CPU it is the fastest number, measured on a feed-forward block of the model; on a GPU the largest that fits.
    """
    kind = network.device.type
    if kind == "cuda":
        return fitting_budget(network)
    layers = getattr(network.body, "layers", None)
    if strategy == "padded" or kind != "cpu" or not isinstance(layers, nn.ModuleList) or len(layers) < 2:
        return DEFAULT_BUDGETS["cpu"]
    norm, block = (getattr(layers[0], name, None) for name in ("input_layernorm", "mlp"))
    if norm is None or block is None:
        return DEFAULT_BUDGETS["cpu"]
    return _measure_budget(norm, block, network.model.config.get_text_config().hidden_size, network.dtype, strategy)


@torch.inference_mode()
def _measure_budget(norm: nn.Module, block: nn.Module, width: int, dtype: torch.dtype, strategy: str) -> int:
    batch = Packed("fast" if strategy == "fast" else "exact", [], [], [], [])
    states = torch.zeros(1, max(CANDIDATE_BUDGETS[batch.mode]), width, dtype=dtype)

    def compute(parts: Iterable[Tensor]) -> None:
        with packed_attention(batch):
            for part in parts:
                block(norm(part))

    sizes = [tuple(weight.shape) for weight in block.parameters()]
    question = f"tokens of a batch, {batch.mode}, {type(block).__name__} {sizes} {dtype}"
    probe = [states[:, :PROBE_ROWS]]
    if cached_choice(question) is None and min(seconds(lambda: compute(probe)) for _ in range(2)) > MAX_PROBE_SECONDS:
        return DEFAULT_BUDGETS["cpu"]
    candidates = {
        str(rows): lambda rows=rows: compute(torch.split(states, rows, 1)) for rows in CANDIDATE_BUDGETS[batch.mode]
    }
    return int(fastest(question, candidates, rounds=3))
