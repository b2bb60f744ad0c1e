"""Checks of a model's configuration files before a library acts on them."""

import json
import re
from pathlib import Path
from typing import Any

from pluralbench_runs.errors import UserError, one_line
from pluralbench_runs.regular_files import read_small, walk_files

COUNT = re.compile(r"(layers?|labels|heads|experts)$")
LAYERS = {"num_hidden_layers", "n_layer", "n_layers"}  # other counts may be 0, such as those of experts
MAX_COUNT = 2_000  # layers and so on; each takes time or memory before any weights are read
MAX_VALUES = 100_000  # a library copies and compares all values several times
CONFIG_FILES = "*config*.json"
MODULES_FILE = "modules.json"  # of a sentence encoder, with the folders of its modules
ADAPTER_FILE = "adapter_config.json"
# Arguments of `from_pretrained` that unpickle weights, run code of the Hub or write files. sentence-transformers takes
# arguments from an encoder's `sentence_bert_config.json`.
UNSAFE_ARGUMENTS = {"weights_only", "use_kernels", "kernel_config", "allow_all_kernels", "offload_folder"}


def config_error(config: Any) -> str:
    """Explain why a model's configuration must not be loaded, as the end of a sentence; "" if it may.

    Refused are code on the Hub (an attention or experts implementation of the form ORG/NAME, which the library
    `kernels` would download and run), arguments that run code or write files (`UNSAFE_ARGUMENTS`), counts and lists
    that would take endless time and memory, and a model without layers.
    """
    stack: list[tuple[str, Any]] = [("", config)]
    values = 0
    while stack:
        key, value = stack.pop()
        values += 1
        if values > MAX_VALUES:
            return f"has more than {MAX_VALUES:,} values; shorten it"
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
        elif key in LAYERS and isinstance(value, int | float) and value < 1:
            return f"sets `{key}` to {value:,}; a model has at least one"
    return ""


def check_model_folder(folder: Path, error: type[UserError], *, name: str | None = None, adapter: bool = False) -> None:
    """Check a model's folder, which errors call `name`, before it is loaded; an adapter's base is checked by itself.

    Raises:
        UserError: Of the type `error`: the folder has a pipe or a device at any depth (see `walk_files`); or there is,
            in the folder itself or, of a sentence encoder, anywhere below it, an adapter without its model or a
            configuration file that is not JSON or has a `config_error`.
    """
    is_encoder = (folder / MODULES_FILE).exists()
    for path in walk_files(folder, error):
        if path.parent != folder and not is_encoder:
            continue
        place = f"{name or folder}/{path.relative_to(folder).as_posix()}"
        if path.name == ADAPTER_FILE and not adapter:
            raise error(
                f"{place} belongs to an adapter, which may load another model; merge the adapter into its model "
                "(PEFT's `merge_and_unload`) and give that."
            )
        if path.match(CONFIG_FILES) and (problem := _file_error(path)):
            raise error(f"{place} {problem}.")


def _file_error(path: Path) -> str:
    try:
        return config_error(json.loads(read_small(path)))
    except OSError as error:
        return f"cannot be read: {one_line(error.strerror)}"
    except (ValueError, RecursionError) as error:
        return f"is not valid JSON: {one_line(error)}"
