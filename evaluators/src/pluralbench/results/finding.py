"""Where runs are: directories of runs themselves, and folders that have some below them."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pluralbench.errors import RunError
from pluralbench.results.downstream import DOWNSTREAM_FILE, Downstream, read_downstream
from pluralbench.results.personalize import PERSONALIZE_FILE, Personalized, read_personalized
from pluralbench.results.runs import RUN_FILE, Run, read_part, read_run

UNFINISHED = ".work"
READ: dict[str, Callable[[Path], Run | Downstream | Personalized]] = {
    RUN_FILE: read_part,
    DOWNSTREAM_FILE: read_downstream,
    PERSONALIZE_FILE: read_personalized,
}
"""What reads a directory that has this file."""


class Found(NamedTuple):
    """Finished runs, and the directories of `best-of-n` and `optimize`, and of `personalize`, among them."""

    runs: list[Run]
    downstream: list[Downstream]
    personalized: list[Personalized]


def find_runs(paths: Sequence[Path]) -> Found:
    """The runs at some paths and in the folders below them, each once.

    Working directories of unfinished runs are passed over, and so are shards of runs in folders. Raises `RunError` for
    a path without a run, for a run that cannot be read, and for a shard that is given itself or has no run beside it.
    """
    known: dict[Path, Path] = {}
    for path in paths:
        # A shell's `runs/*` has the working directories of unfinished runs among its paths.
        if path.suffix == UNFINISHED:
            continue
        below = list(_below(path))
        if not below:
            raise RunError(_none_at(path))
        for folder in below:
            known.setdefault(folder.resolve(), folder)
    found = [next(read for name, read in READ.items() if (path / name).is_file())(path) for path in known.values()]
    shards = [one.path for one in found if isinstance(one, Run) and one.record.data.shard is not None]
    for path in shards[:1] if len(shards) == len(found) else (one for one in shards if one in paths):
        read_run(path)  # which says why it is none
    return Found(
        [one for one in found if isinstance(one, Run) and one.path not in shards],
        [one for one in found if isinstance(one, Downstream)],
        [one for one in found if isinstance(one, Personalized)],
    )


def _below(path: Path) -> Iterator[Path]:
    for folder, inside, files in os.walk(path, followlinks=True):
        if READ.keys() & set(files):
            yield Path(folder)
            inside.clear()
        inside[:] = sorted(name for name in inside if not name.endswith(UNFINISHED) and not _loops(Path(folder, name)))


def _loops(path: Path) -> bool:
    """Whether a link leads to a folder that holds it, so that a walk would never end."""
    return path.is_symlink() and path.resolve() in path.absolute().parents


def _none_at(path: Path) -> str:
    if path.is_file():
        return f"{path} is a file; give the directory of a run, or a folder with some."
    if path.is_dir() and any(inside.suffix == UNFINISHED for inside in path.iterdir()):
        return f"{path} has no finished run in it; run the commands of the unfinished ones again to go on."
    if path.with_name(path.name + UNFINISHED).exists():
        return f"{path} is no finished run: run its command again to go on."
    return f"{path} has no run in it." if path.is_dir() else f"There is no directory {path}."
