"""What every build does around its method: open the directory, find known calls, put the release in its place."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pluralbench_runs import Output, output_directory

from pluralbench_release.manifest import LEDGER, Built
from pluralbench_release.recipe import RECIPE, ReleaseRecipe
from pluralbench_release.write import Builder, Contents, write


class Recorded(Protocol):
    """The calls of a build that is done, as `pluralbench_calls.recording` has them.

    extract: Parquet of those that the rows depend on. new: how many were made for this build.
    """

    extract: Path
    new: int


@dataclass(frozen=True)
class Building:
    """A release in the making. known: the ledgers that the build starts from."""

    recipe: ReleaseRecipe
    builder: Builder
    output: Output
    known: list[Path]

    @property
    def work(self) -> Path:
        """The folder of what has to outlive an interruption; it goes once the release is there."""
        return self.output.work

    def release(self, contents: Contents, calls: Recorded) -> Built:
        """Write the release and put it in the place of an older one.

        Raises `pluralbench_schemas.TableError` for rows that break their schema and `ReleaseError` for no rows at all.
        """
        staged = self.output.staging()
        manifest = write(
            staged,
            contents,
            recipe=self.recipe,
            builder=self.builder,
            ledger=calls.extract,
            place=self.output.target.resolve().name,
        )
        self.output.publish(staged)
        return Built(manifest, contents.statistics, calls.new)


@contextmanager
def building(
    recipe: ReleaseRecipe, out: Path, builder: Builder, *ledgers: Path | None, fresh: bool
) -> Iterator[Building]:
    """Build `recipe` into the release directory `out`, which changes only when `Building.release` is called.

    ledgers: further ledger files or releases with calls that are known; None is none. fresh: forget an interrupted
    build in `out`, and replace a finished one without taking its calls.

    Raises `pluralbench_runs.OutputError` for a directory of another recipe, of something else or of another process.
    """
    with output_directory(out, recipe, recipe_file=RECIPE, fresh=fresh) as output:
        yield Building(recipe, builder, output, known_ledgers(out, *ledgers, fresh=fresh))


def known_ledgers(out: Path, *given: Path | None, fresh: bool) -> list[Path]:
    """The ledgers that a build into `out` starts from: that of a finished build there, and those that are given.

    given: ledger files or releases. fresh: leave the finished build alone.
    """
    finished = [out / LEDGER] if not fresh and (out / LEDGER).is_file() else []
    return finished + [path / LEDGER if path.is_dir() else path for path in given if path is not None]
