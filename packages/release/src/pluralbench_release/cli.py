"""The command `pluralbench-release`."""

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from pluralbench_runs import Program, plural
from pluralbench_runs.console import make_console, terminal_json
from pluralbench_runs.options import AsJson
from pluralbench_schemas import TableError
from rich.table import Table as Grid

import pluralbench_release as releases

if TYPE_CHECKING:
    from pluralbench_release import Rebuild, TableDiff

program = Program(
    "pluralbench-release",
    help="""\
Verify, compare, rebuild and publish dataset releases.

Example: pluralbench-release verify dist/personalized-rewardbench""",
    verbs={"Verbs": {verb: f"{__name__}:{verb}" for verb in ("verify", "diff", "rebuild", "publish")}},
    mistakes=(TableError,),
)
console = make_console()
IDS_SHOWN = 5

LOCATION = "A release: a directory, or ORG/NAME@VERSION on the Hub, such as acme/beer@v1.1.0."
Release = Annotated[str, typer.Argument(metavar="RELEASE", help=LOCATION)]


def main() -> NoReturn:
    """Entry point of the command."""
    program.run()


def verify(
    release: Release,
    digest: Annotated[
        str | None, typer.Option(metavar="HEX", help="Release digest that is required, to pin a release.")
    ] = None,
) -> None:
    """Check every byte, the content, schemas, row counts, ledger and card; exit 1 at a difference.

    Prints the release digest: the SHA-256 of SHA256SUMS, which identifies every file. The commit and the tag of a
    published release contain it in their messages.

    Example: pluralbench-release verify dist/personalized-rewardbench
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


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help=f"The older release. {LOCATION}")],
    b: Annotated[str, typer.Argument(metavar="B", help="The newer release, a directory or on the Hub.")],
    *,
    as_json: AsJson = False,
) -> None:
    """List the rows that were added, removed or changed from A to B; exit 1 if there are any.

    JSON contains all ids, the table the first five of each kind.

    Example: pluralbench-release diff dist/personalized-rewardbench other/personalized-rewardbench
    """
    with releases.release_at(a) as older, releases.release_at(b) as newer:
        differences = releases.diff(older, newer)
    if as_json:
        typer.echo(terminal_json([asdict(table) for table in differences]))
    else:
        _print_differences(differences)
    if any(differences):
        raise typer.Exit(1)


def rebuild(
    release: Release,
    out: Annotated[Path | None, typer.Option(help="Directory for the rebuilt release. Default: only compare.")] = None,
    sources: Annotated[
        list[str] | None,
        typer.Option("--source", help="Current location of a moved source, in the builder's form."),
    ] = None,
) -> None:
    """Rebuild a release from its recipe and recorded calls, without any model, and compare; exit 1 at a difference.

    No code of the release runs, only its builder if that is installed. Local files are read only if --source names
    them, or if the recipe names them and they are below the current folder.

    Example: pluralbench-release rebuild dist/personalized-rewardbench
    """
    with (
        releases.release_at(release) as directory,
        tempfile.TemporaryDirectory(prefix="pluralbench-rebuild-") as temporary,
    ):
        _print_plan(releases.rebuild_of(directory))
        target = out or Path(temporary) / directory.resolve().name
        differences = releases.rebuild(directory, target, sources=sources or ())
    _print_differences(differences)
    if any(differences):
        raise typer.Exit(1)


def publish(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A release directory.")],
    repository: Annotated[str, typer.Argument(metavar="ORG/NAME", help="The dataset on the Hub.")],
    tag: Annotated[
        str | None,
        typer.Option(metavar="VERSION", help="Version such as v1.2.0. Default: derived from the changed rows."),
    ] = None,
    *,
    private: Annotated[bool, typer.Option("--private", help="Make a new repository private.")] = False,
    create: Annotated[bool, typer.Option("--create", help="Create the repository if it does not exist.")] = False,
) -> None:
    """Verify DIR and publish it on the Hub as a new version, with one commit and one tag.

    Removed or changed rows since the last version make a major version, added rows a minor one, anything else a patch.
    Text that was written on the card by hand is kept. A source that forbids redistribution is an error.

    Example: pluralbench-release publish dist/persona-judge my-organisation/persona-judge --create
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
