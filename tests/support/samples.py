"""The samples of the builders, each built once a session, where there is no torch and only this machine is reached."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

from commands import command
from filelock import FileLock
from session_folder import session_folder

BARE = """
import sys
from importlib import import_module

HEAVY = {"torch", "transformers", "sentence_transformers", "pluralbench_local"}

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HEAVY:
            raise ModuleNotFoundError(f"{name} is not installed", name=name)

sys.meta_path.insert(0, Missing())
sys.argv = sys.argv[1:]
import_module(sys.argv[0].replace("-", "_") + ".cli").main()
"""


class Sample(NamedTuple):
    """A release in `dist` of a folder of its own, not to be changed, and what the command wrote."""

    release: Path
    said: str


@cache
def sample(builder: str, *verb: str) -> Sample:
    """What the bare command of a builder, such as `build-personalized`, or a verb of it makes."""
    folder = session_folder("-".join([builder, *verb]))
    said = folder / "said.txt"
    with FileLock(folder.with_suffix(".lock")):
        if not said.exists():
            folder.mkdir()
            built = command("python", "-c", BARE, builder, *verb, cwd=folder, env={"PATH": str(folder)})
            assert built.returncode == 0, built.stderr
            said.write_text(built.stdout, encoding="utf-8")
    [manifest] = folder.glob("dist/*/provenance/manifest.json")
    return Sample(manifest.parents[1], said.read_text(encoding="utf-8"))
