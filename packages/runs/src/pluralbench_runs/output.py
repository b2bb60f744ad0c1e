"""The directory a command writes: whole or not at all, resumable, and under one recipe at a time."""

import errno
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from pluralbench_runs.errors import OutputError, RecipeError
from pluralbench_runs.recipe import (
    Recipe,
    check_no_secrets,
    describe_difference,
    differing_keys,
    read_recipe,
    recipe_values,
    write_recipe,
)
from pluralbench_runs.toml_files import value_error

LOCK = "lock"
RECIPES = ("recipe.toml", "recipe.json")  # of which a working directory has one, like the finished one
STAGED, PREVIOUS = "staged", "previous"
PUBLISHING = "publishing"  # there while `staged` is put in place and what is left of the work is removed
NOTHING = re.compile(
    rf"{LOCK}|recipe\.(toml|json)(\.\d+\.new)?"
)  # what lies in a working directory before anything is done


@dataclass
class Output:
    """A directory that is being made.

    target: the finished directory. Only `publish` changes it.
    work: `TARGET.work`, which holds everything until then. It survives a killed process and is removed by `publish`.
    published: whether `publish` was called; from then on `work` may belong to another run.
    """

    target: Path
    work: Path
    published: bool = False

    def staging(self) -> Path:
        """An empty directory to fill before `publish`."""
        staged = self.work / STAGED
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir()
        return staged

    def publish(self, staged: Path) -> None:
        """Move `staged`, which `staging` gave, to `target`.

        A process that is killed meanwhile leaves the old directory, none, or the new one; the next call that opens
        `target` puts back the old one, or removes what is left of the work.
        """
        make_readable(staged)
        (self.work / PUBLISHING).touch()
        if self.target.exists():
            self.target.rename(self.work / PREVIOUS)
        staged.rename(self.target)
        _clear(self.work)
        # The recipe is removed last: a work directory is recognised as ours by its recipe.
        for name in (*RECIPES, LOCK):
            (self.work / name).unlink(missing_ok=True)
        self.published = True
        self.work.rmdir()


def make_readable(folder: Path) -> Path:
    """`folder`, with files for all who may read it: safetensors writes its own for the user alone."""
    mode = folder.stat().st_mode & 0o666
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(mode)
    return folder


@contextmanager
def output_directory(target: Path, recipe: Recipe, *, recipe_file: str, fresh: bool = False) -> Iterator[Output]:
    """Open `target` for writing under `recipe`.

    recipe_file: where a finished directory keeps its recipe, relative to `target`; see `read_recipe`.
    fresh: discard what an interrupted run left, and replace a directory that another recipe made.

    Raises `RecipeError` when the recipe holds a secret of the environment, and `OutputError` when another recipe made
    the directory (the sentence names values that differ), when it holds other files, when another process is writing
    it, or when it is or holds the current directory. Nothing in `target` changes before `publish`.
    """
    check_no_secrets(recipe, f"of {target}")
    if fault := value_error(recipe_values(recipe)):  # or the finished directory could not be read
        raise RecipeError(f"Recipe of {target}: {fault}.")
    target = resolve_output_path(target)
    try:
        work = target.with_name(target.name + ".work")
        work.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise
        raise OutputError(f"Cannot write beside {target}: {error}; choose another output directory.") from None
    lock = FileLock(work / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise OutputError(
            f"Another process is writing {target}; wait for it or choose another output directory."
        ) from None
    output = Output(target, work)
    try:
        _refuse_foreign(work)
        _settle(target, work)
        _check(target, work, recipe, recipe_file, fresh=fresh)
        write_recipe(recipe, _begun(work, recipe_file))
        yield output
    finally:
        if not output.published and _is_idle(work):
            shutil.rmtree(work)  # nothing was done, so the next run may use any recipe
        lock.release()


def resolve_output_path(target: Path) -> Path:
    """`target`, by a path that ends in a name, as a directory to be written needs one.

    Raises `OutputError` for the current directory and those that hold it: a finished directory takes the place of the
    old one, and whoever works in the old one would find it gone.
    """
    try:
        place, here = target.resolve(), Path.cwd()
    except FileNotFoundError:  # the current directory was removed, so it cannot be in the way
        return target
    if place == here or place in here.parents:
        raise OutputError(
            f"{target} is or holds the current directory, and an output directory is replaced as a whole; "
            "choose another output directory."
        )
    return place if target.name in {"", ".."} else target


def _clear(work: Path) -> None:
    """Remove everything but the lock and the recipe; that it is being done is removed last."""
    paths = sorted(work.iterdir(), key=lambda path: path.name == PUBLISHING)
    for path in paths:
        if path.name not in {LOCK, *RECIPES}:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _is_idle(work: Path) -> bool:
    return work.exists() and all(NOTHING.fullmatch(path.name) for path in work.iterdir())


def _refuse_foreign(work: Path) -> None:
    if not any((work / name).exists() for name in RECIPES) and not _is_idle(work):
        (work / LOCK).unlink(missing_ok=True)
        raise OutputError(f"{work} holds files that no build wrote; choose another output directory.")


def _settle(target: Path, work: Path) -> None:
    """Undo a `publish` that was killed before the new directory was in place, or finish it."""
    previous, publishing = work / PREVIOUS, work / PUBLISHING
    if previous.exists() and not target.exists():
        previous.rename(target)
    elif publishing.exists() and target.exists() and not (work / STAGED).exists():
        _clear(work)  # what it was made from, which it replaces
    publishing.unlink(missing_ok=True)
    if _is_idle(work):
        for name in RECIPES:
            (work / name).unlink(missing_ok=True)  # nothing was done under it


def _check(target: Path, work: Path, recipe: Recipe, recipe_file: str, *, fresh: bool) -> None:
    if target.exists() and not target.is_dir():
        raise OutputError(f"{target} is a file; choose another output directory.")
    finished = target / recipe_file
    if target.is_dir() and any(target.iterdir()) and not finished.exists():
        raise OutputError(f"{target} holds files that no build wrote; choose another output directory.")
    if fresh:
        _clear(work)
        return
    for made, what in ((_begun(work, recipe_file), "An unfinished run in "), (finished, "")):
        if made.exists():
            differs = describe_difference(recipe, _made_by(type(recipe), made, target))
            if differs:
                raise OutputError(
                    f"{what}{target} was made with other settings ({differs}); give the same again to go on, choose "
                    "another output directory, or start over with `fresh`."
                )


def _begun(work: Path, recipe_file: str) -> Path:
    """Where a working directory keeps its recipe."""
    return work / f"recipe{Path(recipe_file).suffix}"


def _made_by(model: type[Recipe], recipe_file: Path, target: Path) -> Recipe:
    try:
        return read_recipe(model, recipe_file)
    except RecipeError as error:
        said = str(error).removeprefix(f"Recipe {recipe_file}: ")
        raise RecipeError(
            f"{target} was made with settings that this version does not read: {said} "
            "Choose another output directory, or start over with `fresh`."
        ) from None


def matches_recipe(target: Path, recipe: Recipe, *, recipe_file: str) -> bool | None:
    """Whether this recipe made `target`, or began to; None where there is nothing yet, or an empty directory."""
    begun = _begun(target.with_name(target.name + ".work"), recipe_file)
    made = [path for path in (begun, target / recipe_file) if path.exists()]
    if not made:
        return False if target.is_file() or (target.is_dir() and any(target.iterdir())) else None
    try:
        return not any(differing_keys(recipe, read_recipe(type(recipe), path)) for path in made)
    except RecipeError:
        return False  # of another version, or of another kind
