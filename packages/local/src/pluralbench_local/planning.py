"""What scoring on a GPU needs: memory, by arithmetic from a configuration, before anything is loaded."""

import json
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from pluralbench_runs import UserError, check_file, read_small
from safetensors import SafetensorError, safe_open
from transformers import PretrainedConfig

from pluralbench_local.config import LocalModel
from pluralbench_local.errors import LocalError
from pluralbench_local.network import ReadableNetwork

DEFAULT_BUDGETS = {"cpu": 2048, "cuda": 32768}
SMALLEST_BUDGET = 512  # tokens of a batch; a GPU without room for them is refused
VOCABULARY_ROWS = 256  # hidden states projected to the vocabulary at a time, to bound memory
BYTES_OF_A_LOGIT = 12  # float32, together with its scaled copy and its logarithm
KEPT_TOKENS = 4096  # of the path of prefixes whose keys and values wait for the next batch; few prompts are longer
RESERVE = 0.5e9  # bytes for workspaces of the kernels and for fragments
GB = 1e9


@dataclass(frozen=True)
class Needs:
    """Memory of scoring, in bytes.

    Attributes:
        weights: Weights that are not loaded yet.
        activations: Intermediate results of one batch.
        prefixes: Keys and values of prefixes that are kept between batches.
        logits: Hidden states that are projected at a time, as rewards or as log-probabilities of the vocabulary.
        token_budget: Tokens of a batch.
    """

    weights: int
    activations: int
    prefixes: int
    logits: int
    token_budget: int

    @property
    def total(self) -> float:
        """All of it, with a reserve for what arithmetic does not know."""
        return self.weights + 1.1 * self.activations + self.prefixes + self.logits + RESERVE


def needs_of(
    config: PretrainedConfig,
    token_budget: int,
    *,
    itemsize: int,
    num_logits: int,
    weights: int = 0,
    prefix_tokens: int = 0,
) -> Needs:
    """Return the memory that scoring with a decoder needs, where logits are as many as labels, or the vocabulary.

    The activations are largest in the gated feed-forward block: the embedded tokens, the residual stream, its norm, the
    block's result and the states that are read (5 vectors of the hidden size), the gate, the other factor and their
    product (3 of the inner size), and the rotations. Encoders need less. `itemsize` is in bytes, as are `weights`,
    those that are not loaded yet; `prefix_tokens` are those whose keys and values are kept between batches.
    """
    text = config.get_text_config()
    width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    key_heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    inner_size = getattr(text, "intermediate_size", None) or 4 * text.hidden_size
    vectors = 5 * text.hidden_size + 3 * inner_size + 2 * width
    return Needs(
        weights=weights,
        activations=token_budget * vectors * itemsize,
        prefixes=prefix_tokens * text.num_hidden_layers * 2 * key_heads * width * itemsize,
        logits=VOCABULARY_ROWS * num_logits * BYTES_OF_A_LOGIT,
        token_budget=token_budget,
    )


def largest_fitting(needs: Callable[[int], Needs], free: float, token_budget: int = DEFAULT_BUDGETS["cuda"]) -> Needs:
    """Return the needs with the largest budget that fits, halved from `token_budget` down to `SMALLEST_BUDGET`."""
    planned = needs(token_budget)
    while planned.total > free and planned.token_budget > SMALLEST_BUDGET:
        planned = needs(max(SMALLEST_BUDGET, planned.token_budget // 2))
    return planned


def check_memory(name: str, planned: Needs, free: float, device: str) -> None:
    """Raise `LocalError` if the needs with the smallest budget that is worth trying exceed the free bytes."""
    if planned.total > free:
        raise LocalError(
            f"{name} needs about {planned.total / GB:.1f} GB ({planned.weights / GB:.1f} GB of weights, the rest for "
            f"batches of {planned.token_budget:,} tokens), and {device} has {free / GB:.1f} GB free; set "
            '`device="spread"`, or choose a smaller `dtype=...` or model.'
        )


def free_memory(device: torch.device) -> float | None:
    """Return the bytes of a GPU that are free or cached by this process; None for other devices."""
    if device.type != "cuda":
        return None
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return float(torch.cuda.mem_get_info(device)[0] + cached)


def saved_parameters(name: str) -> int:
    """Return the number of parameters in the safetensors files of a folder.

    It is 0 if there are none to be read, or they are quantized, which packs several into a number.
    """
    size = 0
    if Path(name).is_dir() and not _is_quantized(Path(name)):
        with suppress(OSError, SafetensorError):
            for path in Path(name).glob("*.safetensors"):
                check_file(path)
                with safe_open(path, "pt") as weights:
                    size += sum(math.prod(weights.get_slice(key).get_shape()) for key in weights.keys())  # noqa: SIM118
    return size


def _is_quantized(folder: Path) -> bool:
    with suppress(OSError, ValueError, UserError):
        return "quantization_config" in json.loads(read_small(folder / "config.json"))
    return False


def check_before_loading(
    kind: Any, model: LocalModel, load_config: Callable[[LocalModel], PretrainedConfig], device: torch.device
) -> None:
    """Raise `LocalError` if a model of this class and a small batch do not fit into a GPU."""
    free = free_memory(device)
    if free is None:
        return
    config = load_config(model)
    quantized = getattr(config, "quantization_config", None) is not None
    if not _is_plannable(config) or (quantized and not Path(model.name).is_dir()):
        return
    saved = config.dtype if model.dtype == "auto" else getattr(torch, model.dtype)
    itemsize = saved.itemsize if isinstance(saved, torch.dtype) else torch.float32.itemsize
    if quantized:
        weights = sum(path.stat().st_size for path in Path(model.name).glob("*.safetensors"))
    else:
        weights = itemsize * (saved_parameters(model.name) or _parameters(kind, config))
    num_logits = config.get_text_config().vocab_size if "CausalLM" in kind.__name__ else config.num_labels or 1
    needs = partial(
        needs_of, config, itemsize=itemsize, num_logits=num_logits, weights=weights, prefix_tokens=KEPT_TOKENS
    )
    check_memory(model.name, largest_fitting(needs, free), free, str(device))


def default_budget(network: ReadableNetwork) -> int:
    """Return the tokens of a batch: on a CPU what was fastest where it was measured, on a GPU the most that fit."""
    free, config = free_memory(network.device), network.model.config
    if free is None or not _is_plannable(config):
        return DEFAULT_BUDGETS["cpu" if free is None else "cuda"]
    num_logits = getattr(network.head, "out_features", 1)
    itemsize = network.dtype.itemsize
    needs = partial(needs_of, config, itemsize=itemsize, num_logits=num_logits, prefix_tokens=KEPT_TOKENS)
    return largest_fitting(needs, free).token_budget


def _parameters(kind: Any, config: PretrainedConfig) -> int:
    """By building it without memory."""
    with torch.device("meta"):
        model = kind.from_config(config)
    return sum(weights.numel() for weights in model.parameters())


def _is_plannable(config: PretrainedConfig) -> bool:
    """Those of some models' own code do not have the sizes that the arithmetic needs."""
    text = config.get_text_config()
    sizes = ("hidden_size", "num_attention_heads", "num_hidden_layers", "vocab_size")
    return all(isinstance(getattr(text, name, None), int) for name in sizes)
