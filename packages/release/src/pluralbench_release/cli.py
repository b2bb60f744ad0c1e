"""The command `pluralbench-release`."""

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from pluralbench_runs import Program
from pluralbench_runs.console import make_console
from pluralbench_runs.options import AsJson
from pluralbench_schemas import TableError
from rich.table import Table as Grid

import pluralbench_release as releases
from pluralbench_release.files import shown

if TYPE_CHECKING:
    from pluralbench_release import Rebuild, TableDiff

HERE = "pluralbench_release.cli"
program = Program(
    "pluralbench-release",
    help="""\
Verify, compare, rebuild and publish dataset releases.

Example: pluralbench-release verify dist/personalized-rewardbench""",
    verbs={"Verbs": {verb: f"{HERE}:{verb}" for verb in ("verify", "diff", "rebuild", "publish")}},
    mistakes=(TableError,),
)
console = make_console()
IDS_SHOWN = 5

PLACE = "A release: a directory, or ORG/NAME@VERSION on the Hub, such as acme/beer@v1.1.0."
Release = Annotated[str, typer.Argument(metavar="RELEASE", help=PLACE)]


def main() -> NoReturn:
    """Entry point of the command."""
    program.run()


def verify(
    release: Release,
    digest: Annotated[
        str | None, typer.Option(metavar="HEX", help="What the release digest has to be, to pin a release.")
    ] = None,
) -> None:
    """Check every byte, the content, schemas, row counts, ledger and card; exit 1 at a difference.

    The release digest that it prints is the SHA-256 of the release's SHA256SUMS, and so of every file. A publication
    has it in the message of its commit and tag.

    Example: pluralbench-release verify dist/personalized-rewardbench
    """
    with releases.release_at(release) as directory:
        manifest = releases.read_manifest(directory)
        problems = releases.verify(directory, digest=digest)
        for problem in problems:
            console.print(problem)
        if problems:
            raise typer.Exit(1)
        rows = releases.counted(sum(table.rows for table in manifest.tables), "row")
        tables = releases.counted(len(manifest.tables), "table")
        console.print(f"{release}: {rows} in {tables}, as the manifest says.")
        console.print(f"Release digest: {releases.release_digest(directory)}")


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help=f"The older of two. {PLACE}")],
    b: Annotated[str, typer.Argument(metavar="B", help="The newer, a directory or on the Hub.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Say which rows came, went or changed from A to B; exit 1 when any did.

    JSON has every id, the table the first few.

    Example: pluralbench-release diff dist/personalized-rewardbench other/personalized-rewardbench
    """
    with releases.release_at(a) as older, releases.release_at(b) as newer:
        differences = releases.diff(older, newer)
    if as_json:
        typer.echo(json.dumps([asdict(table) for table in differences], ensure_ascii=False, indent=2))
    else:
        _print_differences(differences)
    if any(differences):
        raise typer.Exit(1)


def rebuild(
    release: Release,
    out: Annotated[Path | None, typer.Option(help="Keep the rebuilt release here; without it, only compare.")] = None,
    source: Annotated[
        list[str] | None, typer.Option(help="Where a source is now, if it moved; in the builder's own form.")
    ] = None,
) -> None:
    """Build a release again from its recipe and recorded calls, ask no model, and compare; exit 1 at a difference.

    Nothing that it holds is run: it names its builder, and only one that is installed here runs. Of the files of this
    machine it reads those that --source names, and those below the current folder that the recipe names.

    Example: pluralbench-release rebuild dist/personalized-rewardbench
    """
    with (
        releases.release_at(release) as directory,
        tempfile.TemporaryDirectory(prefix="pluralbench-rebuild-") as temporary,
    ):
        _print_plan(releases.rebuild_of(directory))
        target = out or Path(temporary) / directory.resolve().name
        differences = releases.rebuild(directory, target, sources=source or ())
    _print_differences(differences)
    if any(differences):
        raise typer.Exit(1)


def publish(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A release directory.")],
    repository: Annotated[str, typer.Argument(metavar="ORG/NAME", help="The dataset on the Hub.")],
    tag: Annotated[
        str | None,
        typer.Option(metavar="VERSION", help="Such as v1.2.0, rather than the version that the changes call for."),
    ] = None,
    *,
    private: Annotated[
        bool, typer.Option("--private", help="Make it a private repository, if it is a new one.")
    ] = False,
    create: Annotated[bool, typer.Option("--create", help="Make the repository, if it is not there yet.")] = False,
) -> None:
    """Put DIR on the Hub as a version, one commit and one tag, after it has verified.

    Against the last version there, rows that went or changed make a major one, rows that came a minor one, anything
    else a patch. What people wrote on the card by hand stays. Refused with the clause where a source forbids it.

    Example: pluralbench-release publish dist/persona-judge my-organisation/persona-judge --create
    """
    done = releases.publish(directory, repository, tag=tag, private=private, create=create)
    if not done.new:
        console.print(f"{directory} is published already, as {done.version.tag}: {done.address}")
    else:
        after = "" if done.before is None else f", after {done.before.tag}"
        console.print(f"{directory} is published as {done.version.tag}{after}: {done.address}")
        for line in done.changes:
            console.print(f"- {line}")
    if done.kept:
        console.print(f"Left alone there, since no release names it: {', '.join(map(shown, done.kept))}.")
    console.print(f"Release digest: {done.digest}")


def _print_plan(plan: "Rebuild") -> None:
    builder = plan.recorded
    console.print(f"Rebuilding with {builder.distribution} {plan.installed}, the builder installed here.")
    if builder.version != plan.installed:
        console.print(f"The release was built with version {builder.version}, so its rows may be others.")
    if plan.reads:
        console.print(f"What its recipe names and lies here may be read: {', '.join(plan.reads)}.")


def _print_differences(differences: "list[TableDiff]") -> None:
    if not any(differences):
        tables = releases.counted(len(differences), "table")
        console.print(f"The same content in {tables}: digests are equal.")
        return
    grid = Grid("config/split", "rows", "ids")
    for table in differences:
        kinds = {"added": table.added, "removed": table.removed}
        kinds |= {f"changed in {column}": ids for column, ids in table.changed.items()}
        for kind, ids in kinds.items():
            if ids:
                more = f", … ({len(ids) - IDS_SHOWN:,} more)" if len(ids) > IDS_SHOWN else ""
                first = ", ".join(map(shown, ids[:IDS_SHOWN]))
                grid.add_row(f"{table.config}/{table.split}", f"{len(ids):,} {shown(kind)}", first + more)
    console.print(grid)
