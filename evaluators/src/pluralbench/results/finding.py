"""Where runs are: directories of runs themselves, and folders that have some below them."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pluralbench_runs import log_status

from pluralbench.errors import RunError
from pluralbench.results.downstream import DownstreamRunConfig
from pluralbench.results.evaluations import EvaluationRunConfig
from pluralbench.results.personalize import PersonalizeRunConfig
from pluralbench.results.runs import RUN_FILE, Downstream, Personalized, Run, load_run

UNFINISHED = ".work"


class FoundRuns(NamedTuple):
    """Finished runs, and the directories of `best-of-n` and `optimize`, and of `personalize`, among them."""

    runs: list[Run]
    downstream: list[Downstream]
    personalized: list[Personalized]


def find_runs(paths: Sequence[Path]) -> FoundRuns:
    """The runs at some paths and in the folders below them, each once.

    Working directories of unfinished runs are passed over, and so are shards of runs in folders; a run in a folder that
    cannot be read is left out and named on standard error. Raises `RunError` for a path without a run, for a run that
    is given itself and cannot be read, and for a shard that is given itself or has no run beside it.
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
    found = [one for path in known.values() if (one := _read(path, given=path in paths)) is not None]
    runs: list[Run] = [one for one in found if isinstance(one.config, EvaluationRunConfig)]
    shards = [one.path for one in runs if one.config.data.shard is not None]
    for path in shards[:1] if len(shards) == len(found) else (one for one in shards if one in paths):
        load_run(path)  # which says why it is none
    return FoundRuns(
        [one for one in runs if one.path not in shards],
        [one for one in found if isinstance(one.config, DownstreamRunConfig)],
        [one for one in found if isinstance(one.config, PersonalizeRunConfig)],
    )


def _read(path: Path, *, given: bool) -> Run[Any, Any] | None:
    """What a directory holds. One that cannot be read is left out, and named, where a folder was given and not it; so
    are plans and personas, of which there is no number to report."""
    try:
        run: Run[Any, Any] = load_run(path, part=True)
    except RunError as error:
        if given:
            raise
        log_status(f"Left out: {error}")
        return None
    if isinstance(run.config, EvaluationRunConfig | DownstreamRunConfig | PersonalizeRunConfig):
        return run
    if given:
        raise RunError(f"{path} is of `pluralbench {run.verb}`, and has no numbers to report.")
    return None


def _below(path: Path) -> Iterator[Path]:
    seen = {path.resolve()}
    for folder, inside, files in os.walk(path, followlinks=True):
        if RUN_FILE in files:
            yield Path(folder)
            inside.clear()
        inside[:] = [
            name for name in sorted(inside) if not name.endswith(UNFINISHED) and _is_new(Path(folder, name), path, seen)
        ]


def _is_new(folder: Path, top: Path, seen: set[Path]) -> bool:
    """Whether a walk below `top` goes into a folder: once into each, and out of `top` only to what is a run itself."""
    place = folder.resolve()
    is_run = (place / RUN_FILE).is_file()
    if place in seen or not (is_run or place.is_relative_to(top.resolve())):
        return False
    seen.add(place)
    return True


def _none_at(path: Path) -> str:
    if path.is_file():
        return f"{path} is a file; give the directory of a run, or a folder with some."
    if path.is_dir() and any(inside.suffix == UNFINISHED for inside in path.iterdir()):
        return f"{path} has no finished run in it; run the commands of the unfinished ones again to go on."
    if path.with_name(path.name + UNFINISHED).exists():
        return f"{path} is no finished run: run its command again to go on."
    return f"{path} has no run in it." if path.is_dir() else f"There is no directory {path}."
