"""Find run directories at paths and below them."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pluralbench_runs import log_status

from pluralbench.errors import RunError
from pluralbench.results.kinds import BENCHMARKS, RUN_KINDS
from pluralbench.results.run_files import RUN_FILE, UNFINISHED
from pluralbench.results.runs import SUMMARY, Downstream, Personalized, Plans, Run, load_run
from pluralbench.results.suite import SUITE_FILE, SuiteRun, load_suite

STUDY_FILE = "study.toml"
"""Recipe in the directory of a study."""


class FoundRuns(NamedTuple):
    """Runs at some paths, by kind.

    Attributes:
        others: Other runs, by `RunKind.group`.
        suites: Suites, whose runs are among `runs`.
        studies: Directories of studies, whose runs are among the others.
    """

    runs: list[Run]
    others: Mapping[str, list[Run[Any, Any]]] = {}
    suites: Sequence[SuiteRun] = ()
    studies: Sequence[Path] = ()

    @property
    def downstream(self) -> list[Downstream]:
        """Runs of `best-of-n` and `optimize`."""
        return self.others.get("downstream", [])

    @property
    def personalized(self) -> list[Personalized]:
        """Runs of `personalize`."""
        return self.others.get("personalized", [])

    @property
    def plans(self) -> list[Plans]:
        """Runs of `plan`."""
        return self.others.get("plans", [])

    def check_any(self) -> None:
        """Raise `RunError` if there are no runs."""
        if not any(self):
            raise RunError("There are no runs to report; name at least one run directory.")


RunLike = str | Path | Run[Any, Any] | SuiteRun
"""A run or a suite, or the directory of runs."""


def as_found(runs: RunLike | Iterable[RunLike]) -> FoundRuns:
    """Sort runs by kind; directories are read.

    Raises:
        RunError: A directory has no run, or a run has no numbers, such as a shard.
    """
    every: list[Run[Any, Any]] = []
    suites: list[SuiteRun] = []
    for one in [runs] if isinstance(runs, str | Path | Run | SuiteRun) else runs:
        if isinstance(one, Run):
            every.append(one)
        elif isinstance(one, SuiteRun):
            suites.append(one)
            every += one.runs.values()
        else:
            found = find_runs([Path(one)])
            suites += found.suites
            every += chain(found.runs, *found.others.values())
    return _by_group(every, suites)


def _by_group(runs: Sequence[Run[Any, Any]], suites: Sequence[SuiteRun], studies: Sequence[Path] = ()) -> FoundRuns:
    groups: dict[str, list[Run[Any, Any]]] = {kind.group: [] for kind in RUN_KINDS.values()}
    for run in runs:
        groups[run.kind.group].append(run)
    return FoundRuns(groups.pop(BENCHMARKS), {name: found for name, found in groups.items() if found}, suites, studies)


def load_results(folder: str | Path) -> pl.DataFrame:
    """Read the numbers of all benchmark runs in a directory, the best run of a benchmark first.

    Runs of other commands have no overall number; a message on standard error counts them.

    Args:
        folder: Run directory, or a directory that contains some.

    Returns:
        A row for each run: `model`, `benchmark`, `profile` (the user context), `overall` with the 95% interval from
        `low` to `high`, as shares from 0 to 1, `n` and `clusters` (the numbers of items and of prompts or users behind
        it), `coin` (a coin on the same items), the counts `ties`, `invalid`, `dropped`, `equal` and `truncated`, and
        `run`, the directory.

    Raises:
        RunError: The directory has no run, or only shards.
    """
    found = find_runs([Path(folder)])
    others = sum(map(len, found.others.values()))
    if others:
        log_status(f"{others:,} runs in {folder} have no overall number and no row; read them by `load_run`.")
    frames = [run.summary() for run in found.runs]
    return pl.concat(frames or [pl.DataFrame(schema=SUMMARY)]).sort(
        "benchmark", "overall", descending=[False, True], nulls_last=True, maintain_order=True
    )


def find_runs(paths: Sequence[Path]) -> FoundRuns:
    """Find the runs at some paths and in the directories below them, each once.

    Working directories of unfinished runs are skipped, and so are shards below a path. A run below a path that cannot
    be read is skipped with a message on standard error.

    Raises:
        RunError: A path has no run, is a run that cannot be read, or is a shard; or all runs are shards.
    """
    folders: dict[Path, Path] = {}
    studies: dict[Path, Path] = {}
    for path in paths:
        # A shell expands `runs/*` to the working directories of unfinished runs, too.
        if path.suffix == UNFINISHED:
            continue
        below = list(_below(path))
        if not below:
            raise RunError(_no_run_message(path))
        for folder in below:
            folders.setdefault(folder.resolve(), folder)
            for parent in (parent for parent in folder.parents if parent.is_relative_to(path)):
                if (parent / STUDY_FILE).is_file():
                    studies.setdefault(parent.resolve(), parent)
    loaded = [run for path in folders.values() if (run := _load(path, explicit=path in paths)) is not None]
    shards = [run.path for run in loaded if run.config.shard]
    for path in shards[:1] if len(shards) == len(loaded) else (shard for shard in shards if shard in paths):
        load_run(path)  # raises an error for the shard
    suites = _suites(dict.fromkeys(folder.parent for folder in folders.values() if folder not in paths))
    runs = [run for run in loaded if run.path not in shards]
    return _by_group(runs, suites, [*studies.values()])


def _suites(folders: Iterable[Path]) -> list[SuiteRun]:
    """Load the suites of directories that contain runs; one that cannot be read is skipped with a message."""
    suites = []
    for folder in folders:
        if (folder / SUITE_FILE).is_file():
            try:
                suites.append(load_suite(folder))
            except RunError as error:
                log_status(f"Skipped: {error}")
    return suites


def _load(path: Path, *, explicit: bool) -> Run[Any, Any] | None:
    """Load the run of a directory; None for personas, which have no numbers, and for an unreadable run.

    If `explicit`, both raise an error instead.
    """
    try:
        run: Run[Any, Any] = load_run(path, part=True)
    except RunError as error:
        if explicit:
            raise
        log_status(f"Skipped: {error}")
        return None
    if run.kind.group:
        return run
    if explicit:
        raise RunError(f"{path} is a run of `pluralbench {run.verb}`, which has no numbers to report.")
    return None


def _below(path: Path) -> Iterator[Path]:
    entered = set()
    for place, inside, files in os.walk(path, followlinks=True):
        folder = Path(place)
        is_new = folder.resolve() not in entered
        entered.add(folder.resolve())
        if is_new and RUN_FILE in files:
            yield folder
        names = sorted(inside) if is_new and RUN_FILE not in files else []
        inside[:] = [name for name in names if not name.endswith(UNFINISHED) and _is_entered(folder / name, path)]


def _is_entered(folder: Path, top: Path) -> bool:
    """Return whether to enter a directory: a link that leads out of `top` only if it leads to a run itself."""
    if not os.path.islink(folder):  # noqa: PTH114 - `Path.is_symlink` raises for a folder without permission
        return True
    return folder.resolve().is_relative_to(top.resolve()) or (folder / RUN_FILE).is_file()


def _no_run_message(path: Path) -> str:
    if path.is_file():
        return f"{path} is a file; give a run directory, or a directory that contains some."
    if path.is_dir() and any(inside.suffix == UNFINISHED for inside in path.iterdir()):
        return f"{path} contains no finished run; to resume the unfinished ones, run their commands again."
    if Path(f"{path.absolute()}{UNFINISHED}").exists():
        return f"{path} is not finished; to resume the run, run its command again."
    return f"{path} contains no run." if path.is_dir() else f"The directory {path} does not exist."
