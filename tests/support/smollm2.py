"""SmolLM2-135M as transformers folders.

Reading the 4-bit file takes a few seconds, so a session does it once, in `CACHE`. They show that real weights go
through.
"""

from pathlib import Path
from typing import Any

from filelock import FileLock
from session_folder import CACHE, session_folder


def in_bfloat16() -> Path:
    """The embedded model as a transformers folder, not to be changed."""
    from pluralbench_policies import embedded_folder

    return embedded_folder(session_folder(CACHE) / "pluralbench" / "SmolLM2-135M-Instruct")


def language_model() -> Path:
    """The same in float32, not to be changed."""
    folder, base = session_folder("smollm2"), in_bfloat16()
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            from transformers import AutoModelForCausalLM, AutoTokenizer

            model: Any = AutoModelForCausalLM.from_pretrained(base, dtype="float32")
            _save(model, AutoTokenizer.from_pretrained(base), folder)
    return folder


def _save(model: Any, tokenizer: Any, folder: Path) -> None:
    """The folder appears once it is whole."""
    made = folder.with_name(f"{folder.name}.made")
    model.save_pretrained(made)
    tokenizer.save_pretrained(made)
    made.rename(folder)
