"""Prompts of judges from files: those of this package by name, others by path."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pluralbench_runs import RecipeError, check_recipe, did_you_mean
from pluralbench_runs.toml_files import read_toml

from pluralbench_rewards.prompts.prompt import JudgePrompt

SHIPPED = Path(__file__).with_name("shipped")


def shipped_prompts() -> list[str]:
    """Return the names of the prompts that come with this package."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def load_prompt(name: str | Path) -> JudgePrompt:
    """Read a prompt.

    Args:
        name: Name of a shipped prompt, or path of a TOML file.

    Raises:
        RecipeError: There is no such prompt, or the file describes none.
    """
    shipped = SHIPPED / f"{name}.toml"
    path = shipped if str(name) in shipped_prompts() else Path(name)
    if not path.is_file():
        hint = did_you_mean(str(name), shipped_prompts()).strip() or f"give one of {', '.join(shipped_prompts())}"
        raise RecipeError(f"There is no prompt {str(name)!r}; {hint.rstrip('.')}, or the path of a TOML file.")
    return as_prompt(read_toml(path, "prompt"), path.stem, str(path))


def as_prompt(values: Mapping[str, Any], name: str, origin: str) -> JudgePrompt:
    """Check the values of a prompt's file.

    Raises:
        RecipeError: They do not describe a prompt.
    """
    return check_recipe(JudgePrompt, {"name": name, **values}, origin)
