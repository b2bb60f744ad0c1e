"""A pickle runs nothing: neither as a model's weights nor as a checkpoint."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from pluralbench_local import LocalError, load
from reward_models import Folders
from safetensors.torch import load_file


class Evil:
    """What leaves a folder behind where its pickle is loaded without care."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return os.mkdir, (str(self.folder),)


def test_weights_in_a_pickle_are_read_and_code_in_it_is_not_run(classifiers: Folders, tmp_path: Path) -> None:
    folder, trace = tmp_path / "model", tmp_path / "ran"
    shutil.copytree(classifiers(), folder)
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    load(str(folder), device="cpu")
    torch.save(weights | {"more": Evil(trace)}, folder / "pytorch_model.bin")
    with pytest.raises(LocalError, match=r"^The model of .* cannot be loaded: "):
        load(str(folder), device="cpu")
    assert not trace.exists()
