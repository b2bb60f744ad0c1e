"""The identity of a model behind a name: the digest of a folder, or a commit on the Hub."""

from pathlib import Path

from pluralbench_calls.model_checks import unreachable_errors
from pluralbench_runs import digest, file_digest

MODEL_FILES = ("*.safetensors", "*.bin", "*.json", "*.model", "*.jinja", "*.py", "*.txt")
"""Files that determine a model's output: weights, configuration, tokenizer, chat template and custom code."""


def model_digest(name: str | Path) -> str | None:
    """Compute the SHA-256 of the files of a model folder (names and bytes); None if it is not a local folder."""
    folder = Path(name)
    if not folder.is_dir():
        return None
    paths = sorted({path for pattern in MODEL_FILES for path in folder.glob(pattern)})
    return digest({path.name: file_digest(path) for path in paths})


def model_commit(name: str | Path, revision: str | None = None) -> str | None:
    """Look up the current commit of a revision of a model on the Hub.

    Returns:
        The commit; offline, that of the copy in the cache. None for a folder, or if neither is available; loading then
        reports the problem, as it does another commit than the revision.
    """
    if Path(name).exists() or str(name).count("/") != 1:
        return None
    from huggingface_hub import HfApi, errors, try_to_load_from_cache

    try:
        return HfApi().model_info(str(name), revision=revision, timeout=20).sha
    except (errors.HFValidationError, LookupError, TypeError):  # a missing path such as ./model; no answer of a Hub
        return None
    except unreachable_errors():
        cached = try_to_load_from_cache(str(name), "config.json", revision=revision)
        return Path(cached).parent.name if isinstance(cached, str) else None
