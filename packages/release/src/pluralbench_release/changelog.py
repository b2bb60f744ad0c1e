"""`CHANGELOG.md` of a published release, generated from the differences between the rows of versions."""

from collections.abc import Sequence

from pluralbench_runs import plural

from pluralbench_release.diff import TableDiff
from pluralbench_release.manifest import Manifest
from pluralbench_release.markdown import markdown_code, parts
from pluralbench_release.versions import Version

TITLE = "# Changelog\n\n"
IDS_PER_LINE = 5


def first_lines(manifest: Manifest) -> list[str]:
    """Describe the first version of a dataset."""
    rows = plural(sum(table.rows for table in manifest.tables), "row")
    return [f"The first published version: {rows} in {plural(len(manifest.tables), 'table')}."]


def change_lines(differences: Sequence[TableDiff], before: Version) -> list[str]:
    """Describe the changes since the version `before`, one line per changed table."""
    lines = [f"{markdown_code(f'{table.config}/{table.split}')}: {_rows(table)}." for table in differences if table]
    return lines or [f"The rows are those of {before}; only the card or the provenance changed."]


def with_entry(changelog: str | None, version: Version, lines: Sequence[str]) -> str:
    """Put the entry of a version on top of a changelog, replacing an older entry of the same version.

    Args:
        changelog: Text of the changelog; None if there is none.
        version: The version.
        lines: Lines of the entry.
    """
    _, *entries = parts(changelog or TITLE)
    others = "".join(f"{entry.text.rstrip()}\n\n" for entry in entries if entry.title != str(version))
    items = "".join(f"- {line}\n" for line in lines)
    return f"{TITLE}## {version}\n\n{items}\n{others}".rstrip() + "\n"


def _rows(table: TableDiff) -> str:
    kinds = {"added": table.added, "removed": table.removed}
    added_or_removed = [f"{plural(len(ids), 'row')} {kind} ({_ids(ids)})" for kind, ids in kinds.items() if ids]
    changed = [
        f"{markdown_code(column)} changed in {plural(len(ids), 'row')} ({_ids(ids)})"
        for column, ids in table.changed.items()
    ]
    return ", ".join(added_or_removed + changed)


def _ids(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - IDS_PER_LINE:,} more" if len(ids) > IDS_PER_LINE else ""
    return ", ".join(markdown_code(row_id) for row_id in ids[:IDS_PER_LINE]) + more
