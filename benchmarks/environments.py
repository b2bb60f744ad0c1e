"""Make the environments of other packages that a benchmark compares with."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pluralbench_runs import UserError

ENVIRONMENTS = Path.home() / ".cache" / "pluralbench-benchmarks"


def make_environment(name: str, requirements: Sequence[str], overrides: Sequence[str] = (), *, below: Path) -> Path:
    """Install requirements unless they are installed, and return the Python of their environment.

    Args:
        name: Name of its folder.
        requirements: Requirements with their versions.
        overrides: Requirements that replace those of any package.
        below: Folder of all environments.

    Raises:
        UserError: If uv fails.
    """
    below = below.expanduser().absolute()
    folder = below / name
    python = folder / "bin" / "python"
    print(f"installing {requirements[0]} in {folder}", file=sys.stderr, flush=True)
    try:
        below.mkdir(parents=True, exist_ok=True)
        replaced = below / f"{name}.overrides.txt"
        replaced.write_text("\n".join(overrides) + "\n", encoding="utf-8")
        # In another directory, so that uv does not apply the workspace's settings.
        if not python.exists():
            subprocess.run(["uv", "venv", "--quiet", "--python", "3.11", str(folder)], cwd=below, check=True)
        install = ["uv", "pip", "install", "--quiet", "--python", str(python), "--overrides", str(replaced)]
        subprocess.run([*install, *requirements], cwd=below, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise UserError(
            f"{requirements[0]} cannot be installed in {folder} ({error}); check uv and the package index, or leave it "
            f"out with `--without {name.partition('-')[0]}`."
        ) from error
    return python
