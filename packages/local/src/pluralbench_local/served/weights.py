"""The local weights of a served model: whether they fit into memory, and the head alone."""

from collections.abc import Callable
from pathlib import Path

import psutil
import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import LocalEntryNotFoundError
from pluralbench_rewards.served.engine import ServerError
from pluralbench_runs import check_model_folder
from safetensors import safe_open

from pluralbench_local.config import LocalModel
from pluralbench_local.errors import LocalError
from pluralbench_local.models import REWARD_HEADS, resolve_device

WEIGHTS = ("*.safetensors", "*.bin")
MEMORY_FACTOR = 1.5  # memory for a few forward passes, as a multiple of the weights


def weight_files(name: str, revision: str | None = None) -> list[Path]:
    """Return a model's weight files on this machine: those of a folder, or of the Hub's cache.

    Raises:
        LocalError: If the folder is not safe to read.
    """
    folder = Path(name)
    if not folder.is_dir():
        try:
            folder = Path(snapshot_download(name, revision=revision, local_files_only=True))
        except (LocalEntryNotFoundError, ValueError, OSError):  # not in the cache, or not a name on the Hub
            return []
    check_model_folder(folder, LocalError)
    return next((files for pattern in WEIGHTS if (files := sorted(folder.glob(pattern)))), [])


def weights_fit(model: LocalModel) -> bool:
    """Return whether the weights of a model and its reference are on this machine and fit into its device's memory."""
    files = [weight_files(model.name, model.revision)]
    if model.reference is not None:
        files.append(weight_files(model.reference))
    needed = sum(path.stat().st_size for paths in files for path in paths) * MEMORY_FACTOR
    if model.device == "spread":
        free = sum(torch.cuda.mem_get_info(device)[0] for device in range(torch.cuda.device_count()))
    else:
        device = resolve_device(model.device)
        free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else psutil.virtual_memory().available
    return all(files) and needed < free


def load_head(model: LocalModel, url: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """Load the head of a classifier, without the rest of its weights.

    Args:
        model: The model.
        url: Address of the server that returns its hidden states, for errors.

    Returns:
        A function from hidden states of shape (n, width) to logits of shape (n, labels). It raises `ServerError` for
        states of another width.

    Raises:
        LocalError: If the model has no head of one linear layer.
    """
    weight, bias = (_tensor(model, {f"{head}.{part}" for head in REWARD_HEADS}) for part in ("weight", "bias"))
    if weight is None or weight.dim() != 2:
        raise LocalError(
            f"{model.name} has no head of one linear layer (score.weight in *.safetensors) for the hidden states of "
            f"{url}; serve it with vLLM or SGLang, or score locally."
        )

    def logits(states: torch.Tensor) -> torch.Tensor:
        if states.shape[1] != weight.shape[1]:
            raise ServerError(
                f"{url} returns hidden states of width {states.shape[1]:,}, but the head of {model.name} has "
                f"{weight.shape[1]:,}, so it serves another model; give the server of {model.name}."
            )
        return torch.nn.functional.linear(states, weight, bias)

    return logits


def _tensor(model: LocalModel, names: set[str]) -> torch.Tensor | None:
    """The tensor with one of these names in the model's files, in float64; None if there is none."""
    for path in weight_files(model.name, model.revision):
        if path.suffix == ".safetensors":
            with safe_open(path, framework="pt") as file:
                matching = names & set(file.keys())
                if matching:
                    tensor: torch.Tensor = file.get_tensor(matching.pop())
                    return tensor.double()
    return None
