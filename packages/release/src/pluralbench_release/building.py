"""The frame of every build: open the directory, find recorded calls, move the finished release into place."""

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
    """The recorded calls of a finished build, as `pluralbench_calls.recording` has them.

    Attributes:
        extract: Parquet file of the calls that the rows depend on.
        new: Number of calls that were made in this build.
    """

    extract: Path
    new: int


@dataclass(frozen=True)
class Building:
    """A build in progress.

    Attributes:
        recipe: Recipe of the build.
        builder: Builder of the release.
        output: Output directory.
        ledgers: Ledgers with calls that the build reuses.
    """

    recipe: ReleaseRecipe
    builder: Builder
    output: Output
    ledgers: list[Path]

    @property
    def work(self) -> Path:
        """Folder of intermediate files, which survives an interruption and is deleted with the release written."""
        return self.output.work

    def release(self, contents: Contents, calls: Recorded) -> Built:
        """Write the release and replace an older one.

        Args:
            contents: Tables, sources, statistics and card.
            calls: The recorded calls of the build.

        Raises:
            pluralbench_schemas.TableError: Rows break their schema.
            ReleaseError: There are no rows.
        """
        staged = self.output.staging()
        manifest = write(
            staged,
            contents,
            recipe=self.recipe,
            builder=self.builder,
            ledger=calls.extract,
            load_name=self.output.target.resolve().name,
        )
        self.output.publish(staged)
        return Built(manifest, contents.statistics, calls.new)


@contextmanager
def building(
    recipe: ReleaseRecipe, out: Path, builder: Builder, *ledgers: Path | None, fresh: bool
) -> Iterator[Building]:
    """Open the release directory `out` for a build; it changes only when `Building.release` is called.

    Args:
        recipe: Recipe of the build.
        out: Release directory.
        builder: Builder of the release.
        *ledgers: Ledger files or releases whose calls are reused; None is skipped.
        fresh: Discard an interrupted build in `out`, and replace a finished one without reusing its calls.

    Raises:
        pluralbench_runs.OutputError: The directory belongs to another recipe or process, or is not a release.
    """
    with output_directory(out, recipe, recipe_file=RECIPE, fresh=fresh) as output:
        yield Building(recipe, builder, output, reusable_ledgers(out, *ledgers, fresh=fresh))


def reusable_ledgers(out: Path, *locations: Path | None, fresh: bool) -> list[Path]:
    """List the ledgers whose calls a build into `out` reuses.

    Args:
        out: Release directory; the ledger of a finished build there comes first.
        *locations: Further ledger files or releases; None is skipped.
        fresh: Skip the finished build in `out`.
    """
    finished = [out / LEDGER] if not fresh and (out / LEDGER).is_file() else []
    return finished + [path / LEDGER if path.is_dir() else path for path in locations if path is not None]
