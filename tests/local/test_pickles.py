"""A pickle runs nothing: neither as a model's weights nor as a checkpoint."""

import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from pluralbench_local import LocalError, load, score, train
from pluralbench_local.training_job import checkpoints
from reward_models import Folders, load_classifier, make_groups, save_adapter
from safetensors.torch import load_file
from training_runs import RANKINGS, options


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
    for kind in (None, "implicit"):
        with pytest.raises(LocalError, match=r"^The model of .* cannot be loaded: .* more than tensors, which may run"):
            load(str(folder), kind=kind, device="cpu")
    assert not trace.exists()


def test_an_adapter_in_a_pickle(language_models: Folders, tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="needs the extra `lora`")
    folder, trace = save_adapter(tmp_path / "it", language_models(), task_type="SEQ_CLS"), tmp_path / "ran"
    groups = make_groups(1, number=2)
    expected = score(load_classifier(str(folder)), groups).scores
    weights = load_file(folder / "adapter_model.safetensors")
    (folder / "adapter_model.safetensors").unlink()
    torch.save(weights, folder / "adapter_model.bin")
    assert score(load_classifier(str(folder)), groups).scores == expected
    torch.save(weights | {"more": Evil(trace)}, folder / "adapter_model.bin")
    with pytest.raises(LocalError, match=r"cannot be read \(adapter_model\.bin: a pickle of more than tensors"):
        load(str(folder), device="cpu")
    assert not trace.exists()
    (folder / "adapter_model.bin").unlink()
    with pytest.raises(LocalError, match=r"adapter without weights: it has no adapter_model\.safetensors"):
        load(str(folder), device="cpu")


def test_code_in_a_checkpoint_is_not_run(small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen, trace = options(epochs=1, save_steps=2), tmp_path / "ran"
    with monkeypatch.context() as patch:
        patch.setattr("pluralbench_local.training.saved_network", None)
        with pytest.raises(TypeError):
            train(small, RANKINGS, tmp_path / "out", options=chosen, device="cpu")
    [(_, checkpoint)] = checkpoints(tmp_path / "out.work")
    for path in checkpoint.iterdir():
        if path.suffix != ".safetensors":
            torch.save(Evil(trace), path)
    with pytest.raises(pickle.UnpicklingError):
        train(small, RANKINGS, tmp_path / "out", options=chosen, device="cpu")
    assert not trace.exists()
