"""Checks of a model's configuration files before a library acts on them."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pluralbench_runs.errors import UserError, one_line
from pluralbench_runs.regular_files import open_file

COUNT = re.compile(r"(layers?|labels|heads|experts)$")
MAX_COUNT = 10_000  # layers and so on; each takes time or memory before any weights are read
CONFIG_FILES = "*config*.json"
MODULES_FILE = "modules.json"  # of a sentence encoder, with the folders of its modules
ADAPTER_FILE = "adapter_config.json"
# Arguments of `from_pretrained` that unpickle weights, run code of the Hub or write files. sentence-transformers takes
# arguments from an encoder's `sentence_bert_config.json`.
UNSAFE_ARGUMENTS = {"weights_only", "use_kernels", "kernel_config", "allow_all_kernels", "offload_folder"}


def config_error(config: Any) -> str:
    """Explain why a model's configuration must not be loaded.

    Three things are refused: code on the Hub (an attention or experts implementation of the form ORG/NAME, which the
    library `kernels` would download and run), arguments that run code or write files (`UNSAFE_ARGUMENTS`), and counts
    that would take endless time and memory.

    Returns:
        The end of a sentence that begins with the configuration's name; "" if nothing is wrong.
    """
    stack: list[tuple[str, Any]] = [("", config)]
    while stack:
        key, value = stack.pop()
        if key in UNSAFE_ARGUMENTS:
            return f"sets `{key}`, with which a model could run code or write files on this machine; remove that key"
        if isinstance(value, dict):
            stack += [(f"{key} {name}" if "implementation" in key else str(name), part) for name, part in value.items()]
        elif isinstance(value, list):
            stack += [(key, part) for part in value]
        elif "implementation" in key and "/" in str(value):
            return f"names code on the Hub (`{key}`: {value!r:.80}), which would run on this machine; remove that key"
        elif COUNT.search(key) and isinstance(value, int | float) and value > MAX_COUNT:
            return f"sets `{key}` to {value:,}; the maximum is {MAX_COUNT:,}"
    return ""


def check_model_folder(folder: Path, error: type[UserError], *, name: str | None = None) -> None:
    """Check a model's folder before it is loaded: the folder itself and, of a sentence encoder, all below it.

    Args:
        folder: The folder of the model.
        error: The type of the errors.
        name: What errors call the folder. Default: its path.

    Raises:
        UserError: Of the type `error`: the folder has a pipe or a device, an adapter without its model, or a
            configuration file that is not JSON or has a `config_error`.
    """
    for path in sorted(_files(folder)):
        place = f"{name or folder}/{path.relative_to(folder).as_posix()}"
        if not path.is_file():
            raise error(f"{place} is not a regular file; remove it from the model's folder.")
        if path.name == ADAPTER_FILE:
            raise error(
                f"{place} belongs to an adapter, which may load another model; merge the adapter into its model "
                "(PEFT's `merge_and_unload`) and give that."
            )
        if path.match(CONFIG_FILES):
            try:
                with open_file(path) as file:
                    problem = config_error(json.loads(file.read()))
            except (OSError, ValueError, RecursionError) as cause:
                raise error(f"{place} is not valid JSON: {one_line(cause)}.") from None
            if problem:
                raise error(f"{place} {problem}.")


def _files(folder: Path) -> Iterator[Path]:
    """Everything in a folder that a library may open, and no folder twice, where links lead to others."""
    waiting, seen, is_encoder = [folder], set(), (folder / MODULES_FILE).exists()
    while waiting:
        here = waiting.pop()
        if (real := os.path.realpath(here)) in seen:
            continue
        seen.add(real)
        for path in here.iterdir():
            if not path.is_dir():
                yield path
            elif is_encoder:
                waiting.append(path)
