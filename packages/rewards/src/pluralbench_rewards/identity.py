"""Which model a name stands for: the content of a folder, or a commit on the Hub."""

from pathlib import Path
from typing import Any

from pluralbench_runs import digest, file_digest

MODEL_FILES = ("*.safetensors", "*.bin", "*.json", "*.model", "*.jinja", "*.py", "*.txt")
"""What decides what a model computes: weights, configuration, tokenizer, chat template and its own code."""


def model_digest(name: str | Path) -> str | None:
    """SHA-256 over the files of a model folder (names and bytes); None for a model that is not a folder here."""
    folder = Path(name)
    if not folder.is_dir():
        return None
    paths = sorted({path for pattern in MODEL_FILES for path in folder.glob(pattern)})
    return digest({path.name: file_digest(path) for path in paths})


def model_commit(name: str | Path, revision: str | None = None) -> str | None:
    """The commit that a revision of a model on the Hub stands for now; None for a folder.

    Without a network it is the commit of the copy in the cache; None where neither is to be had, and then loading says
    what is wrong.
    """
    if Path(name).exists() or str(name).count("/") != 1:
        return None
    from huggingface_hub import HfApi, errors, try_to_load_from_cache  # noqa: PLC0415 - folders need no Hub

    # Without a network the Hub's client lets its HTTP library's own error through, which `errors` imports.
    unreachable: Any = (
        errors.HfHubHTTPError,
        errors.OfflineModeIsEnabled,
        OSError,
        getattr(errors, "HTTPError", OSError),
    )

    try:
        return HfApi().model_info(str(name), revision=revision, timeout=20).sha
    except errors.HFValidationError:  # a path, such as ./model, that is not there
        return None
    except unreachable:
        cached = try_to_load_from_cache(str(name), "config.json", revision=revision)
        return Path(cached).parent.name if isinstance(cached, str) else None
