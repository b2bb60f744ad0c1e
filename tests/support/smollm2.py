"""SmolLM2-135M as a transformers folder, to show that real weights go through.

Reading the 4-bit file takes a few seconds, so a session does it once, in `CACHE`.
"""

from pathlib import Path

from session_folder import CACHE, session_folder


def in_bfloat16() -> Path:
    """The embedded model as a transformers folder, not to be changed."""
    from pluralbench_policies import embedded_folder

    return embedded_folder(session_folder(CACHE) / "pluralbench" / "SmolLM2-135M-Instruct")
