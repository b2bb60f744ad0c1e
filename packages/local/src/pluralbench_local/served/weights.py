"""What is here of a served model's weights: whether they fit, and the head alone for an engine that gives states."""

from collections.abc import Callable
from pathlib import Path

import psutil
import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import LocalEntryNotFoundError
from safetensors import safe_open

from pluralbench_local.description import LocalModel
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


def head_of(model: LocalModel) -> Callable[[torch.Tensor], torch.Tensor]:
    """From hidden states to logits by the model's own head, read alone of its files. Raises `ModelError`."""
    found: dict[str, torch.Tensor] = {}
    for path in weight_files(model.name, model.revision):
        if path.suffix == ".safetensors":
            with safe_open(path, framework="pt") as file:
                names = [name for name in file.keys() if name.split(".")[0] in REWARD_HEADS]  # noqa: SIM118 - no dict
                found |= {name.rpartition(".")[2]: file.get_tensor(name).double() for name in names}
    if "weight" not in found:
        raise ModelError(
            f"{model.name} holds no head (score.weight in *.safetensors), which this engine needs to be applied here."
        )
    weight, bias = found["weight"], found.get("bias")
    return lambda states: torch.nn.functional.linear(states, weight, bias)
