"""Output directories of commands: replaced atomically, resumable, and made by one recipe at a time."""

import errno
import filecmp
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from pluralbench_runs.errors import OutputError, RecipeError
from pluralbench_runs.meters import keeping_work, log_status
from pluralbench_runs.recipe import (
    Recipe,
    check_no_secrets,
    describe_difference,
    differing_keys,
    extends,
    read_recipe,
    recipe_values,
    write_recipe,
)
from pluralbench_runs.regular_files import inputs
from pluralbench_runs.toml_files import value_error

LOCK = "lock"
RECIPES = ("recipe.toml", "recipe.json")  # a working directory has one of these, like the finished directory
LEDGERS = ("ledger.parquet", "provenance/ledger.parquet")  # of a run and of a release
WORKING_LEDGER = "ledger.sqlite"  # of a working directory; it may have files of the same name with an end
BATCHES = "ledger.batches"  # beside it: open batches
RELEASE_RECIPE = "provenance/recipe.toml"
STAGED, PREVIOUS = "staged", "previous"
PUBLISHING = "publishing"  # exists while `staged` is moved to the target and the working directory is cleared
DISCARDED = "discarded"  # what `fresh` discards: removed at the end, and put back if no work was done until then
# Files of a working directory in which no work was done, and what a training has beside them before a checkpoint.
NO_WORK = re.compile(rf"{LOCK}|{DISCARDED}|recipe\.(toml|json)(\.\d+\.new)?")
NO_CHECKPOINT = {"log.jsonl", "checkpoint.new", "trl"}


@dataclass
class Output:
    """An output directory that is being made.

    Attributes:
        target: The finished directory. Only `publish` changes it.
        work: `TARGET.work`, the working directory. It survives a killed process; `publish` removes it.
        own: Paths below `target` that may be read and replaced; None: all may.
        published: Whether `publish` was called. From then on `work` may belong to another run.
    """

    target: Path
    work: Path
    own: frozenset[Path] | None = None
    published: bool = False

    def staging(self) -> Path:
        """Create an empty directory to fill before `publish`."""
        staged = self.work / STAGED
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir()
        return staged

    def publish(self, staged: Path) -> None:
        """Move `staged`, a directory from `staging`, to `target`.

        What only the old directory has at its top, such as notes or `.git`, is moved to a new directory beside it,
        `TARGET.kept-...`, and named. If the process is killed meanwhile, the next call that opens `target` restores the
        old directory or finishes the move.

        Raises:
            OutputError: The command has read a file in `target` that is not its own.
        """
        self.check_inputs()
        make_readable(staged)
        (self.work / PUBLISHING).touch()
        if self.target.exists():
            self.target.rename(self.work / PREVIOUS)
        staged.rename(self.target)
        if self.own is not None:
            _keep_calls(self.target, self.work)
        _move_others(self.target, self.work)
        _clear(self.work)
        # The recipe is removed last: it marks the directory as a working directory.
        for name in (*RECIPES, LOCK):
            (self.work / name).unlink(missing_ok=True)
        self.published = True
        self.work.rmdir()

    def check_inputs(self) -> None:
        """Raise `OutputError` if the command has read a file in `target` that is not its own."""
        folder = self.target.resolve()
        read = [path for path in sorted(inputs()) if path.is_relative_to(folder)] if self.own is not None else []
        other = next((path for path in read if path.relative_to(folder) not in (self.own or ())), None)
        if other is not None:
            raise OutputError(
                f"{self.target} has an input of this command ({other.name}) and would be replaced; choose another "
                "output directory."
            )


def make_readable(folder: Path) -> Path:
    """Give the files below `folder` its read and write permissions, and return it.

    safetensors writes files that only the user can read.
    """
    mode = folder.stat().st_mode & 0o666
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(mode)
    return folder


@contextmanager
def output_directory(target: Path, recipe: Recipe, *, recipe_file: str, fresh: bool = False) -> Iterator[Output]:
    """Open `target` for writing under `recipe`. Nothing in `target` changes before `Output.publish`.

    Args:
        target: The output directory. It does not have to exist.
        recipe: The recipe of the run. An unfinished directory of the same recipe is resumed.
        recipe_file: Path of the recipe in a finished directory, relative to `target`; see `read_recipe`.
        fresh: Start over instead of resuming an interrupted run, and replace a directory that another recipe made. The
            files of the interrupted run are removed with `Output.publish`, and stay if no work is done until an error;
            recorded calls are moved to a directory beside `target`.

    Raises:
        RecipeError: The recipe has a secret of the environment.
        OutputError: Another recipe made the directory (the message names values that differ), it has other files,
            another process is writing it, it is or contains the current directory, or `fresh` would replace an input.
    """
    check_no_secrets(recipe, f"of {target}")
    if problem := value_error(recipe_values(recipe)):  # the finished directory could not be read
        raise RecipeError(f"Recipe of {target}: {problem}.")
    try:
        target = resolve_output_path(target)
        work = target.with_name(target.name + ".work")
        work.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise
        raise OutputError(f"Cannot write next to {target}: {error}; choose another output directory.") from None
    with locked(work / LOCK, target):
        # A resumed run reads what is in place; one that starts over may only take the calls that were recorded.
        output = Output(target, work, own=frozenset(map(Path, (recipe_file, *LEDGERS))) if fresh else None)
        try:
            _check_work_directory(work)
            _recover(target, work)
            output.check_inputs()
            _check(target, work, recipe, recipe_file, fresh=fresh)
            write_recipe(recipe, _work_recipe(work, recipe_file))
            with keeping_work(work, lambda: has_work(work)):
                yield output
        finally:
            if not output.published and _is_idle(work):
                _put_back(work)
                if _is_idle(work):
                    shutil.rmtree(work)  # no work was done, so the next run may use any recipe


def locked(lock: Path, target: Path) -> AbstractContextManager[object]:
    """Hold a lock that is of the directory `target`. Raises `OutputError` if another process has it."""
    try:
        return FileLock(lock).acquire(timeout=0)
    except Timeout:
        raise OutputError(
            f"Another process is writing {target}; wait for it or choose another output directory."
        ) from None


def resolve_output_path(target: Path) -> Path:
    """Return the path of an output directory, resolved if it is a link or does not end in a name (`.`, `..`).

    Raises:
        OutputError: `target` is or contains the current directory, which replacing it would remove; or a link to
            itself.
    """
    try:
        resolved, current = target.resolve(), Path.cwd()
    except FileNotFoundError:  # the current directory was removed, so it cannot be in the way
        return target
    except (RuntimeError, OSError):  # a loop of links; which of the two depends on the version of Python
        raise OutputError(f"{target} is a link to itself; remove it, or choose another output directory.") from None
    if resolved == current or resolved in current.parents:
        raise OutputError(
            f"{target} is or contains the current directory, and an output directory is replaced as a whole; "
            "choose another output directory."
        )
    return resolved if target.name in {"", ".."} or target.is_symlink() else target


def _clear(work: Path) -> None:
    """Remove everything except the lock and the recipe, the marker `PUBLISHING` last."""
    paths = sorted(work.iterdir(), key=lambda path: path.name == PUBLISHING)
    for path in paths:
        if path.name not in {LOCK, *RECIPES}:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _keep_calls(target: Path, work: Path) -> None:
    """Move the calls that a fresh start replaces to a new directory beside `target`: they may have cost money."""
    ledgers = [path for name in (f"{WORKING_LEDGER}*", BATCHES) for path in (work / DISCARDED).glob(name)]
    for name in LEDGERS:
        old, new = work / PREVIOUS / name, target / name
        if old.exists() and not (new.exists() and filecmp.cmp(old, new, shallow=False)):
            ledgers.append(old)
    if ledgers:
        kept = move_aside(ledgers, target)
        log_status(f"The recorded calls that were in {target} are in {kept} now.")


def _move_others(target: Path, work: Path) -> None:
    """Move what only the replaced directory has to a new directory beside it: a user may have put it there."""
    previous = work / PREVIOUS
    others = (
        [path for path in previous.iterdir() if not os.path.lexists(target / path.name)] if previous.exists() else []
    )
    if others:
        kept = move_aside(others, target)
        names = ", ".join(sorted(path.name for path in others)[:3]) + (", ..." if len(others) > 3 else "")
        log_status(f"The old {target} had files that the new one has not ({names}); they are in {kept} now.")


def move_aside(paths: Iterable[Path], target: Path) -> Path:
    """Move files and folders, in this order, to a new directory beside `target`, and return it: `TARGET.kept-...`."""
    kept = Path(tempfile.mkdtemp(prefix=f"{target.name}.kept-", dir=target.parent))
    for path in paths:
        path.rename(kept / path.name)
    return kept


def _discard(work: Path) -> None:
    """Move the files of an interrupted run to a folder of the working directory."""
    discarded = work / DISCARDED
    old = [path for path in work.iterdir() if path.name not in {LOCK, DISCARDED}]
    if any(not NO_WORK.fullmatch(path.name) for path in old):
        shutil.rmtree(discarded, ignore_errors=True)
        discarded.mkdir()
        for path in old:
            path.rename(discarded / path.name)


def _put_back(work: Path) -> None:
    """Undo `_discard`."""
    discarded = work / DISCARDED
    if discarded.exists():
        for name in NO_CHECKPOINT & {path.name for path in work.iterdir() if path.is_dir()}:
            shutil.rmtree(work / name)
        for path in discarded.iterdir():
            path.replace(work / path.name)
        discarded.rmdir()


def has_work(folder: Path) -> bool:
    """Whether a directory, or one below it, has a file of finished work."""
    others = (path for path in folder.iterdir() if not NO_WORK.fullmatch(path.name) and path.name not in NO_CHECKPOINT)
    return any(not path.is_dir() or has_work(path) for path in others)


def _is_idle(work: Path) -> bool:
    return work.exists() and not has_work(work)


def _check_work_directory(work: Path) -> None:
    others = any(not NO_WORK.fullmatch(path.name) for path in work.iterdir())
    if others and not any((work / name).exists() for name in RECIPES):
        (work / LOCK).unlink(missing_ok=True)
        raise OutputError(f"{work} has files that no build wrote; choose another output directory.")


def _recover(target: Path, work: Path) -> None:
    """Undo a `publish` that was killed before the new directory was moved, or finish it."""
    previous, publishing = work / PREVIOUS, work / PUBLISHING
    if previous.exists() and not target.exists():
        previous.rename(target)
    elif publishing.exists() and target.exists() and not (work / STAGED).exists():
        _keep_calls(target, work)
        _move_others(target, work)
        _clear(work)  # the new directory is in place
    publishing.unlink(missing_ok=True)
    if _is_idle(work):
        for name in RECIPES:
            (work / name).unlink(missing_ok=True)  # no work was done under this recipe


def _check(target: Path, work: Path, recipe: Recipe, recipe_file: str, *, fresh: bool) -> None:
    if target.exists() and not target.is_dir():
        raise OutputError(f"{target} is a file; choose another output directory.")
    finished = target / recipe_file
    if target.is_dir() and any(target.iterdir()) and not finished.exists():
        raise OutputError(f"{target} has files that no build wrote; choose another output directory.")
    if fresh:
        _discard(work)
        return
    begun = (_work_recipe(work, recipe_file), "An unfinished run in ", work / WORKING_LEDGER, work / WORKING_LEDGER)
    for path, subject, ledger, place in (begun, (finished, "", target / LEDGERS[1], target)):
        if path.exists():
            old = _read_old_recipe(type(recipe), path, target)
            if not extends(recipe, old):
                ways = "choose another output directory, or start over with `fresh=True`"
                if recipe_file == RELEASE_RECIPE and ledger.exists():  # calls that were paid for are not made again
                    ways = (
                        f"or build into another directory with `reuse={str(place)!r}`, which repeats no recorded call"
                    )
                raise OutputError(
                    f"{subject}{target} was made with other settings ({describe_difference(recipe, old)}); use the "
                    f"same settings to resume, {ways}."
                )


def _work_recipe(work: Path, recipe_file: str) -> Path:
    return work / f"recipe{Path(recipe_file).suffix}"


def _read_old_recipe(model: type[Recipe], recipe_file: Path, target: Path) -> Recipe:
    try:
        return read_recipe(model, recipe_file)
    except RecipeError as error:
        reason = str(error).removeprefix(f"Recipe {recipe_file}: ")
        raise RecipeError(
            f"{target} was made with settings that this version does not read: {reason} "
            "Choose another output directory, or start over with `fresh=True`."
        ) from None


def matches_recipe(target: Path, recipe: Recipe, *, recipe_file: str) -> bool | None:
    """Whether `recipe` made `target` or an unfinished run in it; None if there is neither."""
    unfinished = _work_recipe(target.with_name(target.name + ".work"), recipe_file)
    recipes = [path for path in (unfinished, target / recipe_file) if path.exists()]
    if not recipes:
        return False if target.is_file() or (target.is_dir() and any(target.iterdir())) else None
    try:
        return not any(differing_keys(recipe, read_recipe(type(recipe), path)) for path in recipes)
    except RecipeError:
        return False  # a recipe of another version or kind
