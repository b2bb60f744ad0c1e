"""Quantized models: loaded with what transformers needs for them, and scored as their own forward pass scores."""

import json
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from pluralbench_local import LocalError, load, score
from pluralbench_local.planning import saved_parameters
from reward_models import (
    Folders,
    change_config,
    classifier_alone,
    load_classifier,
    make_groups,
    make_tokenizer,
    save_adapter,
)
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification, BitsAndBytesConfig, TorchAoConfig

GROUPS = make_groups(3, number=3, longest=12)
SIZES = {"hidden_size": 128, "intermediate_size": 256, "head_dim": 32}  # blocks of 128 are quantized together
PACKED = {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}}


def with_library(base: str, folder: Path, config: Any) -> None:
    """Save a model as transformers quantizes it."""
    auto: Any = AutoModelForSequenceClassification
    auto.from_pretrained(base, quantization_config=config, dtype=torch.bfloat16, device_map="cpu").save_pretrained(
        folder
    )
    make_tokenizer().save_pretrained(folder)


def with_float8(base: str, folder: Path, scale: str, block: int, **settings: Any) -> None:
    """Save a model whose rows, or square blocks, are divided by their largest number and stored in 8 bits."""
    shutil.copytree(base, folder)
    weights = {name: tensor.to(torch.bfloat16) for name, tensor in load_file(folder / "model.safetensors").items()}
    for name in [name for name in weights if "proj.weight" in name]:
        tensor = weights[name].float()
        rows, columns = tensor.shape
        size = (block, block) if block else (1, columns)
        blocks = tensor.reshape(rows // size[0], size[0], columns // size[1], size[1])
        scales = blocks.abs().amax((1, 3)) / 448
        divided = blocks / scales[:, None, :, None]
        weights[name] = divided.reshape(rows, columns).to(torch.float8_e4m3fn)
        weights[name + scale] = scales
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    change_config(str(folder), quantization_config=settings, dtype="bfloat16")


def fp8(base: str, folder: Path) -> None:
    settings = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [32, 32]}
    with_float8(base, folder, "_scale_inv", 32, **settings)


def compressed(base: str, folder: Path) -> None:
    settings = {"format": "float-quantized", "quantization_status": "compressed", "config_groups": PACKED}
    with_float8(base, folder, "_scale", 0, quant_method="compressed-tensors", ignore=["score"], **settings)


def bits(number: int) -> Callable[[str, Path], None]:
    config: Any = BitsAndBytesConfig  # untyped
    settings = {f"load_in_{number}bit": True}
    return lambda base, folder: with_library(base, folder, config(**settings))


def torchao(base: str, folder: Path) -> None:
    library = pytest.importorskip("torchao.quantization", reason="needs torchao")
    with_library(base, folder, TorchAoConfig(library.Int8WeightOnlyConfig()))


METHODS: dict[str, tuple[str, Callable[[str, Path], None], str]] = {
    "4 bits": ("bitsandbytes", bits(4), "bitsandbytes"),
    "8 bits": ("bitsandbytes", bits(8), "bitsandbytes"),
    "torchao": ("torchao", torchao, "torchao"),
    "fp8": ("torch", fp8, "fp8, dequantized"),
    "compressed": ("compressed_tensors", compressed, "compressed-tensors, dequantized"),
}
"""By a name: the package that it needs, how such a model is made, and what a run on the CPU records."""


@pytest.mark.filterwarnings("ignore")  # of the libraries
@pytest.mark.parametrize("method", METHODS)
def test_exact_scores_are_those_of_the_own_forward_pass(method: str, classifiers: Folders, tmp_path: Path) -> None:
    package, make, recorded = METHODS[method]
    pytest.importorskip(package, reason=f"needs {package}")
    folder = tmp_path / "model"
    make(classifiers(**SIZES), folder)
    model = load_classifier(str(folder))
    record = model.record()
    assert (record.settings["quantization"], record.parameters, saved_parameters(str(folder))) == (recorded, None, 0)
    exact, fast = (score(model, GROUPS, mode=mode).scores for mode in ("exact", "fast"))
    for ours, theirs in zip(fast, exact, strict=True):
        assert ours == pytest.approx(theirs, abs=0.5)
    if method != "compressed":  # compressed layers compute on GPUs alone
        assert exact == classifier_alone(str(folder), GROUPS, "auto")


@pytest.mark.skipif(find_spec("bitsandbytes") is not None, reason="bitsandbytes is installed")
def test_a_missing_package_is_named(classifiers: Folders, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(classifiers(**SIZES), folder)
    change_config(str(folder), quantization_config={"quant_method": "bitsandbytes", "load_in_4bit": True})
    with pytest.raises(LocalError, match=r"requires bitsandbytes: `pip install"):
        load(str(folder), device="cpu")


@pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="needs bitsandbytes")
def test_an_adapter_of_a_quantized_base_is_not_merged(
    language_models: Folders, classifiers: Folders, tmp_path: Path
) -> None:
    pytest.importorskip("peft", reason="needs the extra `lora`")
    folder = save_adapter(tmp_path / "adapter", language_models(**SIZES), task_type="SEQ_CLS")
    bits(4)(classifiers(**SIZES), tmp_path / "base")
    path = folder / "adapter_config.json"
    named = {"base_model_name_or_path": str(tmp_path / "base")}
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | named), encoding="utf-8")
    with pytest.raises(LocalError, match=r"has a quantized base .* give the base in its original precision as"):
        load(str(folder), device="cpu")
