"""What a source hands to the build, and what the loaders share."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import polars as pl
from pluralbench_release import Source, read_tables
from pluralbench_release.errors import SourceError
from pluralbench_runs import digest
from pluralbench_tables import SPREADSHEET, Dialect, TableFileError, parse_json

from build_persona_judge.pairing import LeftOut
from build_persona_judge.persona import Rendered, Variable, known, nothing_known, render
from build_persona_judge.recipe import SAMPLE, SourceTable

FOLDER = Path(__file__).parents[1] / "sample"
Row = TypeVar("Row")


@dataclass(frozen=True)
class Loaded(Generic[Row]):
    """Rows of one kind of `pairing`, the personas of everybody in them, what was left out, and where all came from."""

    rows: list[Row]
    personas: dict[str, Rendered]
    left_out: list[LeftOut]
    source: Source


def location_of(table: SourceTable, sample: str) -> str:
    """Where the files are. sample: their place in the sample."""
    return str(FOLDER / sample) if table.location == SAMPLE else table.location


def read_file(path: Path, columns: Sequence[str], how: str, dialect: Dialect = SPREADSHEET) -> list[dict[str, Any]]:
    """The rows of a file with these columns, in which what a CSV leaves empty is null.

    how: how to get the file, for the error. dialect: of a CSV. Raises `SourceError` for what is missing, naming what
    there is.
    """
    if path.is_dir():
        raise SourceError(f"{path} is a folder, not a file. {how}")
    if not path.is_file():
        beside = sorted(entry.name for entry in path.parent.iterdir()) if path.parent.is_dir() else []
        there = f"it holds {', '.join(beside[:8]) or 'nothing'}" if path.parent.is_dir() else "it is not there either"
        raise SourceError(f"There is no file {path.name} in {path.parent} ({there}). {how}")
    try:
        frame = next(iter(read_tables(str(path), dialect=dialect).frames.values()))
    except SourceError as error:
        raise SourceError(f"{error} {how}") from None
    check_columns(frame, columns, str(path), how)
    return frame.to_dicts()


def check_columns(frame: pl.DataFrame, columns: Sequence[str], where: str, how: str) -> None:
    """Raise `SourceError` for a column that is not there, also in an object (`location.birth_country`)."""
    for column in columns:
        head, _, rest = column.partition(".")
        kind = frame.schema.get(head)
        if column in frame.columns or (rest and kind == pl.String):
            continue
        fields = [entry.name for entry in kind.fields] if rest and isinstance(kind, pl.Struct) else None
        if fields is None or rest not in fields:
            there = f"it has {', '.join(frame.columns)}" if fields is None else f"`{head}` has {', '.join(fields)}"
            raise SourceError(f"{where} has no column `{column}`; {there}. Name it as its owner does. {how}")


def flat(row: Mapping[str, Any], column: str) -> Any:
    """A value of a row, also from inside an object or the JSON of one."""
    if column in row:
        return row[column]
    head, _, rest = column.partition(".")
    return as_object(row.get(head)).get(rest)


def as_object(value: object) -> Mapping[str, Any]:
    """An object that stands in a row as such or as JSON; an empty one for anything else."""
    if isinstance(value, str):
        try:
            value = parse_json(value, "a cell")
        except TableFileError:
            return {}
    return value if isinstance(value, Mapping) else {}


def personas_of(
    people: Mapping[str, Mapping[str, object]], variables: Sequence[Variable], missing: Container[str]
) -> tuple[dict[str, Rendered], list[LeftOut]]:
    """The persona of everybody of whom anything is known; the others are left out. missing: see `known`."""
    rendered = {person: render(values, variables, missing) for person, values in people.items()}
    unknown = [person for person, persona in rendered.items() if nothing_known(persona)]
    left_out = [("person", person, "every variable of the persona is missing") for person in unknown]
    return {person: persona for person, persona in rendered.items() if person not in unknown}, left_out


def joined(
    rows: Iterable[dict[str, Any]], columns: Sequence[str], said: Sequence[str], where: str
) -> list[tuple[int, dict[str, Any]]]:
    """The rows with their numbers; one that says the same as an earlier row of its name is joined with that.

    columns: what names a row. said: the columns that count. Raises `SourceError` for two rows of one name that differ
    in these, and for a row without a name.
    """
    kept: dict[tuple[str | None, ...], tuple[int, dict[str, Any]]] = {}
    for number, row in enumerate(rows, start=1):
        for column in columns:
            if known(row[column]) is None:
                raise SourceError(f"{where}: row {number} has no `{column}`; give one, or take the row out.")
        name = tuple(known(row[column]) for column in columns)
        first, before = kept.setdefault(name, (number, row))
        differing = [column for column in said if known(row[column]) != known(before[column])]
        if differing:
            named = " and ".join(f"the {column} {value}" for column, value in zip(columns, name, strict=True))
            raise SourceError(
                f"{where}: rows {first} and {number} are both of {named} and differ in `{differing[0]}`; keep one."
            )
    return list(kept.values())


def merged(
    tables: Mapping[str, Iterable[Mapping[str, Any]]], person: str, columns: Sequence[str], missing: Container[str]
) -> dict[str, dict[str, Any]]:
    """The values of each person; what two rows of a person say differently is missing.

    tables: rows by file, a person may be in several. missing: see `known`. Raises `SourceError` for a row that names
    nobody.
    """
    found: dict[str, dict[str, Any]] = {}
    for where, rows in tables.items():
        for number, row in enumerate(rows, start=1):
            name = known(row.get(person))
            if name is None:
                raise SourceError(f"{where}: row {number} has no `{person}`; give one, or take the row out.")
            values = {column: known(flat(row, column), missing) for column in columns}
            before = found.setdefault(name, values)
            found[name] = {column: value if before[column] == value else None for column, value in values.items()}
    return found


def source_of(
    table: SourceTable,
    *parts: Iterable[Mapping[str, Any]],
    name: str,
    attribution: str,
    location: str | None = None,
    revision: str | None = None,
    license: str | None = None,
) -> Source:
    """The entry of a source. parts: what was read of it, as plain rows; their order does not matter.

    license: as the source itself states it.
    """
    sample = table.location == SAMPLE
    digests = [sorted(digest(dict(row)) for row in part) for part in parts]
    return Source(
        name=f"PluralBench sample in the shape of {name}" if sample else table.name or name,
        location=SAMPLE if sample else location or table.location,
        revision=revision,
        digest=digest(digests),
        rows=len(digests[0]),
        license="apache-2.0" if sample else license or table.license or "unknown",
        attribution="Written for PluralBench." if sample else table.attribution or attribution,
        redistribution=None if sample else table.redistribution or None,
    )
