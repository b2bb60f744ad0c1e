"""What a model's `config.json` may ask for, before a library acts on it."""

import json
import re
from pathlib import Path
from typing import Any

from pluralbench_runs.errors import UserError, one_line
from pluralbench_runs.regular_files import open_file

COUNT = re.compile(r"(layers?|labels|heads|experts)$")
MOST = 10_000  # of what is counted so: each takes time, or memory, before any weights are read


def config_error(config: Any) -> str:
    """What in a configuration is not to be loaded, as the end of a sentence that begins with its name; "" for nothing.

    That is code from the Hub (an attention or experts implementation of the form ORG/NAME, which the library `kernels`
    would fetch and run), and counts that take time and memory without end.
    """
    waiting: list[tuple[str, Any]] = [("", config)]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(f"{key} {name}" if "implementation" in key else str(name), one) for name, one in value.items()]
        elif isinstance(value, list):
            waiting += [(key, one) for one in value]
        elif "implementation" in key and "/" in str(value):
            return (
                f"names code on the Hub (`{key}`: {value!r:.80}), which would run with your rights; leave that key out"
            )
        elif COUNT.search(key) and isinstance(value, int | float) and value > MOST:
            return f"asks for {value:,} as `{key}`, and at most {MOST:,} are loaded"
    return ""


def check_model_folder(folder: Path, error: type[UserError]) -> None:
    """Raise `error` for a model's folder that has more in it than files and folders, and for its configurations.

    Those are each `config.json` of the folder and of the folders in it: one that is no JSON, and one with a
    `config_error`.
    """
    strange = next((path for path in sorted(folder.iterdir()) if not (path.is_file() or path.is_dir())), None)
    if strange is not None:
        raise error(f"{strange} is no ordinary file; remove it from the model's folder.")
    for path in (*folder.glob("config.json"), *sorted(folder.glob("*/config.json"))):
        try:
            with open_file(path) as file:
                fault = config_error(json.loads(file.read()))
        except (OSError, ValueError, RecursionError) as problem:
            raise error(f"{path} is not valid JSON: {one_line(problem)}.") from None
        if fault:
            raise error(f"{path} {fault}.")
