"""The members of the workspace, as their own `pyproject.toml` describes them."""

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MEMBERS = sorted(
    path.parent
    for path in [
        *ROOT.glob("packages/*/pyproject.toml"),
        *ROOT.glob("builders/*/pyproject.toml"),
        *ROOT.glob("schemas/pyproject.toml"),
        *ROOT.glob("evaluators/pyproject.toml"),
    ]
)


def load(folder: Path) -> dict[str, Any]:
    """What the `pyproject.toml` in this folder says."""
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
