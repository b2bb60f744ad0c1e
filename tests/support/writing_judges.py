"""Tiny judges that write a few random letters, and a prompt whose verdict is any letter."""

from pathlib import Path
from typing import Any

from reward_models import save_language_model
from safetensors.numpy import load_file, save_file

PROMPT = """\
protocol = "pairwise"

[[messages]]
role = "user"
text = "{question}\\n\\nA: {response_a}\\n\\nB: {response_b}"

[verdict]
regex = '([A-Za-z])'
match = "first"
"""
END = 1  # the id of the end of a message
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def save_judge(folder: Path, **settings: Any) -> str:
    """Save a judge; the folder as text. settings: of `save_language_model`."""
    save_language_model(folder, **settings)
    path = folder / "model.safetensors"
    weights = load_file(path)
    weights["lm_head.weight"][END] *= 8  # otherwise it never ends
    save_file(weights, path, metadata={"format": "pt"})
    return str(folder)


def write_prompt(path: Path) -> Path:
    """Write a prompt that random weights can answer; the path."""
    values = ", ".join(f'{letter} = "{"AB"[place % 2]}"' for place, letter in enumerate(LETTERS))
    path.write_text(f"{PROMPT}values = {{ {values} }}\n", encoding="utf-8")
    return path
