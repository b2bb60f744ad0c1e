"""The command `pluralbench-release`."""

import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from pluralbench_runs import Program, plural
from pluralbench_runs.console import make_console, terminal_json
from pluralbench_runs.options import Flag
from pluralbench_runs.program import Verb
from pluralbench_schemas import TableError
from rich.table import Table as Grid

import pluralbench_release as releases

if TYPE_CHECKING:
    from pluralbench_release import Rebuild, TableDiff

program = Program(
    "pluralbench-release",
    help="""\
Verify, compare, rebuild and publish dataset releases.

Examples:
    pluralbench-release verify dist/personalized-rewardbench
""",
    verbs={"Verbs": {verb: Verb(f"{__name__}:{verb}") for verb in ("verify", "diff", "rebuild", "publish")}},
    mistakes=(TableError,),
)
console = make_console()
IDS_SHOWN = 5


def main() -> NoReturn:
    """Entry point of the command."""
    program.run()


def verify(release: str, *, digest: Annotated[str | None, Flag(metavar="HEX")] = None) -> None:
    """Check every byte, the content, schemas, row counts, ledger and card; exit 1 at a difference.

    Prints the release digest: the SHA-256 of SHA256SUMS, which identifies every file. The commit and the tag of a
    published release contain it in their messages.

    Args:
        release: A release: a directory, or ORG/NAME@VERSION on the Hub, such as acme/beer@v1.1.0.
        digest: Release digest that is required, to pin a release.

    Examples:
        pluralbench-release verify dist/personalized-rewardbench
    """
    with releases.release_at(release) as directory:
        manifest = releases.read_manifest(directory)
        problems = releases.verify(directory, digest=digest)
        for problem in problems:
            console.print(problem)
        if problems:
            raise typer.Exit(1)
        rows = plural(sum(table.rows for table in manifest.tables), "row")
        tables = plural(len(manifest.tables), "table")
        console.print(f"{release}: {rows} in {tables} match the manifest.")
        console.print(f"Release digest: {releases.release_digest(directory)}")


def diff(a: str, b: str, *, as_json: Annotated[bool, Flag("--json")] = False) -> None:
    """List the rows that were added, removed or changed from A to B; exit 1 if there are any.

    JSON contains all ids, the table the first five of each kind.

    Args:
        a: The older release: a directory, or ORG/NAME@VERSION on the Hub, such as acme/beer@v1.1.0.
        b: The newer release, a directory or on the Hub.
        as_json: Print JSON.

    Examples:
        pluralbench-release diff dist/personalized-rewardbench other/personalized-rewardbench
    """
    with releases.release_at(a) as older, releases.release_at(b) as newer:
        differences = releases.diff(older, newer)
    if as_json:
        typer.echo(terminal_json([asdict(table) for table in differences]))
    else:
        _print_differences(differences)
    if any(differences):
        raise typer.Exit(1)


def rebuild(release: str, *, out: Path | None = None, sources: Annotated[Sequence[str], Flag("--source")] = ()) -> None:
    """Rebuild a release from its recipe and recorded calls, without any model, and compare; exit 1 at a difference.

    No code of the release runs, only its builder if that is installed. Local files are read only if --source names
    them, or if the recipe names them and they are below the current folder.

    Args:
        release: A release: a directory, or ORG/NAME@VERSION on the Hub, such as acme/beer@v1.1.0.
        out: Directory for the rebuilt release. Default: only compare.
        sources: Current location of a moved source, in the builder's form.

    Examples:
        pluralbench-release rebuild dist/personalized-rewardbench
    """
    with (
        releases.release_at(release) as directory,
        tempfile.TemporaryDirectory(prefix="pluralbench-rebuild-") as temporary,
    ):
        _print_plan(releases.rebuild_of(directory))
        target = out or Path(temporary) / directory.resolve().name
        differences = releases.rebuild(directory, target, sources=sources)
    _print_differences(differences)
    if any(differences):
        raise typer.Exit(1)


def publish(
    directory: Annotated[Path, Flag(metavar="DIR")],
    repository: Annotated[str, Flag(metavar="ORG/NAME")],
    *,
    tag: Annotated[str | None, Flag(metavar="VERSION")] = None,
    private: bool = False,
    create: bool = False,
) -> None:
    """Verify DIR and publish it on the Hub as a new version, with one commit and one tag.

    Removed or changed rows since the last version make a major version, added rows a minor one, anything else a patch.
    Text that was written on the card by hand is kept. A source that forbids redistribution is an error.

    Args:
        directory: A release directory.
        repository: The dataset on the Hub.
        tag: Version such as v1.2.0. Default: derived from the changed rows.
        private: Make a new repository private.
        create: Create the repository if it does not exist.

    Examples:
        pluralbench-release publish dist/persona-judge my-organisation/persona-judge --create
    """
    published = releases.publish(directory, repository, tag=tag, private=private, create=create)
    if not published.new:
        console.print(f"{directory} is already published as {published.version.tag}: {published.address}")
    else:
        after = "" if published.before is None else f", after {published.before.tag}"
        console.print(f"{directory} is published as {published.version.tag}{after}: {published.address}")
        for line in published.changes:
            console.print(f"- {line}")
    if published.other_files:
        console.print(f"Kept files that belong to no release: {', '.join(published.other_files)}.")
    console.print(f"Release digest: {published.digest}")


def _print_plan(plan: "Rebuild") -> None:
    builder = plan.recorded
    console.print(f"Rebuilding with {builder.distribution} {plan.installed}, the installed builder.")
    if builder.version != plan.installed:
        console.print(f"The release was built with version {builder.version}, so its rows may differ.")


def _print_differences(differences: "list[TableDiff]") -> None:
    if not any(differences):
        tables = plural(len(differences), "table")
        console.print(f"The content of {tables} is the same: digests are equal.")
        return
    grid = Grid("config/split", "rows", "ids")
    for table in differences:
        kinds = {"added": table.added, "removed": table.removed}
        kinds |= {f"changed in {column}": ids for column, ids in table.changed.items()}
        for kind, ids in kinds.items():
            if ids:
                more = f", … ({len(ids) - IDS_SHOWN:,} more)" if len(ids) > IDS_SHOWN else ""
                first = ", ".join(ids[:IDS_SHOWN])
                grid.add_row(f"{table.config}/{table.split}", f"{len(ids):,} {kind}", first + more)
    console.print(grid)
