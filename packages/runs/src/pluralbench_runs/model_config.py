"""Checks of a model's `config.json` before a library acts on it."""

import json
import re
from pathlib import Path
from typing import Any

from pluralbench_runs.errors import UserError, one_line
from pluralbench_runs.regular_files import open_file

COUNT = re.compile(r"(layers?|labels|heads|experts)$")
MAX_COUNT = 10_000  # layers and so on; each takes time or memory before any weights are read


def config_error(config: Any) -> str:
    """Explain why a model's configuration must not be loaded.

    Two things are refused: code on the Hub (an attention or experts implementation of the form ORG/NAME, which the
    library `kernels` would download and run), and counts that would take endless time and memory.

    Returns:
        The end of a sentence that begins with the configuration's name; "" if nothing is wrong.
    """
    stack: list[tuple[str, Any]] = [("", config)]
    while stack:
        key, value = stack.pop()
        if isinstance(value, dict):
            stack += [(f"{key} {name}" if "implementation" in key else str(name), part) for name, part in value.items()]
        elif isinstance(value, list):
            stack += [(key, part) for part in value]
        elif "implementation" in key and "/" in str(value):
            return f"names code on the Hub (`{key}`: {value!r:.80}), which would run on this machine; remove that key"
        elif COUNT.search(key) and isinstance(value, int | float) and value > MAX_COUNT:
            return f"sets `{key}` to {value:,}; the maximum is {MAX_COUNT:,}"
    return ""


def check_model_folder(folder: Path, error: type[UserError]) -> None:
    """Check a model's folder before it is loaded.

    Args:
        folder: The folder of the model.
        error: The type of the errors.

    Raises:
        UserError: Of the type `error`: the folder has a pipe or a device, or a `config.json` in it or one level below
            is not JSON or has a `config_error`.
    """
    irregular = next((path for path in sorted(folder.iterdir()) if not (path.is_file() or path.is_dir())), None)
    if irregular is not None:
        raise error(f"{irregular} is not a regular file; remove it from the model's folder.")
    for path in (*folder.glob("config.json"), *sorted(folder.glob("*/config.json"))):
        try:
            with open_file(path) as file:
                problem = config_error(json.loads(file.read()))
        except (OSError, ValueError, RecursionError) as cause:
            raise error(f"{path} is not valid JSON: {one_line(cause)}.") from None
        if problem:
            raise error(f"{path} {problem}.")
