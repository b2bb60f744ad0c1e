"""`CHANGELOG.md` of a published release: what each version changed, written from the rows themselves."""

from collections.abc import Sequence

from pluralbench_release.card import counted
from pluralbench_release.diff import TableDiff
from pluralbench_release.files import shown
from pluralbench_release.manifest import Manifest
from pluralbench_release.markdown import parts
from pluralbench_release.versions import Version

TITLE = "# Changelog\n\n"
NAMED = 5  # ids of a line


def first_lines(manifest: Manifest) -> list[str]:
    """What is to be said of a dataset's first version."""
    rows = counted(sum(table.rows for table in manifest.tables), "row")
    return [f"The first published version: {rows} in {counted(len(manifest.tables), 'table')}."]


def change_lines(differences: Sequence[TableDiff], before: Version) -> list[str]:
    """What changed since the version `before`: a line for each table with other rows."""
    lines = [f"`{table.config}/{table.split}`: {_rows(table)}." for table in differences if table]
    return lines or [f"The rows are those of {before}; the card or the provenance is another."]


def with_entry(changelog: str | None, version: Version, lines: Sequence[str]) -> str:
    """A changelog that says these lines of a version, in front of the others, in place of what it said of it."""
    _, *entries = parts(changelog or TITLE)
    others = "".join(f"{entry.text.rstrip()}\n\n" for entry in entries if entry.title != str(version))
    said = "".join(f"- {line}\n" for line in lines)
    return f"{TITLE}## {version}\n\n{said}\n{others}".rstrip() + "\n"


def _rows(table: TableDiff) -> str:
    kinds = {"added": table.added, "removed": table.removed}
    came = [f"{counted(len(ids), 'row')} {what} ({_ids(ids)})" for what, ids in kinds.items() if ids]
    changed = [
        f"`{shown(column)}` changed in {counted(len(ids), 'row')} ({_ids(ids)})"
        for column, ids in table.changed.items()
    ]
    return ", ".join(came + changed)


def _ids(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - NAMED:,} more" if len(ids) > NAMED else ""
    return ", ".join(f"`{shown(one)}`" for one in ids[:NAMED]) + more
