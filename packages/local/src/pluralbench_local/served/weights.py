"""What is here of a served model's weights: whether they fit, and the head alone for an engine that gives states."""

from collections.abc import Callable
from pathlib import Path

import psutil
import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import LocalEntryNotFoundError
from pluralbench_rewards.served import ServerError
from safetensors import safe_open

from pluralbench_local.config import LocalModel
from pluralbench_local.errors import ModelError
from pluralbench_local.models import REWARD_HEADS, device_of

WEIGHTS = ("*.safetensors", "*.bin")
ROOM = 1.5  # times the weights' bytes: what a few forward passes need besides


def weight_files(name: str, revision: str | None = None) -> list[Path]:
    """The files of a model's weights that are on this machine: of a folder, or of the Hub's cache."""
    folder = Path(name)
    if not folder.is_dir():
        try:
            folder = Path(snapshot_download(name, revision=revision, local_files_only=True))
        except (LocalEntryNotFoundError, ValueError, OSError):  # not in the cache, or no name of the Hub
            return []
    return next((files for pattern in WEIGHTS if (files := sorted(folder.glob(pattern)))), [])


def fits(model: LocalModel) -> bool:
    """Whether the weights of a model, and of its reference, are here and fit into the free memory of its device."""
    files = [weight_files(model.name, model.revision)]
    if model.reference is not None:
        files.append(weight_files(model.reference))
    wanted = sum(path.stat().st_size for paths in files for path in paths) * ROOM
    if model.device == "spread":
        free = sum(torch.cuda.mem_get_info(device)[0] for device in range(torch.cuda.device_count()))
    else:
        device = device_of(model.device)
        free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else psutil.virtual_memory().available
    return all(files) and wanted < free


def head_of(model: LocalModel, url: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """From the hidden states of the server at a URL to logits, by the model's own head, read alone of its files.

    Raises `ModelError` for a model without a head of one linear layer; the function `ServerError` for other states.
    """
    weight, bias = (_tensor(model, {f"{head}.{part}" for head in REWARD_HEADS}) for part in ("weight", "bias"))
    if weight is None or weight.dim() != 2:
        raise ModelError(
            f"{model.name} holds no head of one linear layer (score.weight in *.safetensors), which is applied here to "
            f"the hidden states of {url}; serve it by vLLM or SGLang, or score in this process."
        )

    def logits(states: torch.Tensor) -> torch.Tensor:
        if states.shape[1] != weight.shape[1]:
            raise ServerError(
                f"{url} gives hidden states of {states.shape[1]:,} numbers, but the head of {model.name} takes "
                f"{weight.shape[1]:,}, so it serves another model; give the server of {model.name}."
            )
        return torch.nn.functional.linear(states, weight, bias)

    return logits


def _tensor(model: LocalModel, names: set[str]) -> torch.Tensor | None:
    """The one of these that the model's files hold, in float64."""
    for path in weight_files(model.name, model.revision):
        if path.suffix == ".safetensors":
            with safe_open(path, framework="pt") as file:
                found = names & set(file.keys())
                if found:
                    tensor: torch.Tensor = file.get_tensor(found.pop())
                    return tensor.double()
    return None
