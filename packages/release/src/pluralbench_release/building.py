"""The frame of every build: open the directory, find recorded calls, move the finished release into place."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pluralbench_runs import BuildOptions, Output, output_directory

from pluralbench_release.manifest import LEDGER, Built
from pluralbench_release.recipe import RECIPE, ReleaseRecipe
from pluralbench_release.write import Builder, Contents, write


class Recorded(Protocol):
    """The recorded calls of a finished build, as `pluralbench_calls.recording` has them."""

    extract: Path
    new: int


@dataclass(frozen=True)
class Building:
    """A build in progress, which may reuse the calls of the `ledgers`."""

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
        return Built(self.output.target, manifest, contents.statistics, calls.new)


@contextmanager
def building(
    recipe: ReleaseRecipe, builder: Builder, options: BuildOptions, sample: Path | None = None
) -> Iterator[Building]:
    """Open the release directory for a build; it changes only when `Building.release` is called.

    Args:
        recipe: Recipe of the build.
        builder: Builder of the release.
        options: Directory of the release, and ledgers whose calls are reused.
        sample: Ledger of the builder's sample, if the build reads it.

    Raises:
        pluralbench_runs.OutputError: The directory belongs to another recipe or process, or is not a release.
    """
    out = options.target(recipe.name)
    with output_directory(out, recipe, recipe_file=RECIPE, fresh=options.fresh) as output:
        yield Building(recipe, builder, output, reusable_ledgers(out, options, sample))


def reusable_ledgers(out: Path, options: BuildOptions, sample: Path | None = None) -> list[Path]:
    """List the ledgers whose calls a build into `out` reuses: first that of a finished build there."""
    finished = [out / LEDGER] if not options.fresh and (out / LEDGER).is_file() else []
    locations = (options.replay, options.reuse, sample)
    return finished + [path / LEDGER if path.is_dir() else path for path in locations if path is not None]
