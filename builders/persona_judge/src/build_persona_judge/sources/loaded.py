"""The result of a loader, and functions that the loaders share."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import polars as pl
from pluralbench_release import Source, read_tables
from pluralbench_release.errors import SourceError
from pluralbench_runs import digest
from pluralbench_tables import SPREADSHEET, Dialect, TableFileError, parse_json

from build_persona_judge.pairing import Dropped
from build_persona_judge.persona import Persona, Variable, clean_value, is_empty, render
from build_persona_judge.recipe import SAMPLE, SourceTable

FOLDER = Path(__file__).parents[1] / "sample"
Row = TypeVar("Row")


@dataclass(frozen=True)
class Loaded(Generic[Row]):
    """Rows of one class of `pairing`, the persona of each person, and dropped rows, with reasons."""

    rows: list[Row]
    personas: dict[str, Persona]
    dropped: list[Dropped]
    source: Source


def location_of(table: SourceTable, sample: str) -> str:
    """Return the location of the files; `sample` is their path in the embedded sample."""
    return str(FOLDER / sample) if table.location == SAMPLE else table.location


def read_file(path: Path, columns: Sequence[str], how: str, dialect: Dialect = SPREADSHEET) -> list[dict[str, Any]]:
    """Read the rows of a file; empty cells of a CSV are null. `how` says in errors how to get the file.

    Raises:
        SourceError: The file or a column is missing, or the file cannot be read.
    """
    if path.is_dir():
        raise SourceError(f"{path} is a folder, not a file. {how}")
    if not path.is_file():
        files = sorted(entry.name for entry in path.parent.iterdir()) if path.parent.is_dir() else []
        raise SourceError(
            f"There is no file {path.name} in {path.parent} (it has {', '.join(files[:8]) or 'no files'}). {how}"
        )
    try:
        frame = next(iter(read_tables(str(path), dialect=dialect).frames.values()))
    except SourceError as error:
        raise SourceError(f"{error} {how}") from None
    check_columns(frame, columns, str(path), how)
    return frame.to_dicts()


def check_columns(frame: pl.DataFrame, columns: Sequence[str], where: str, how: str) -> None:
    """Raise `SourceError` for a missing column, including a missing field of an object (`location.birth_country`)."""
    for column in columns:
        head, _, rest = column.partition(".")
        kind = frame.schema.get(head)
        if column in frame.columns or (rest and kind == pl.String):
            continue
        fields = [entry.name for entry in kind.fields] if rest and isinstance(kind, pl.Struct) else None
        if fields is None or rest not in fields:
            content = f"it has {', '.join(frame.columns)}" if fields is None else f"`{head}` has {', '.join(fields)}"
            raise SourceError(f"{where} has no column `{column}`; {content}. Keep the source's own names. {how}")


def get_value(row: Mapping[str, Any], column: str) -> Any:
    """Return a value of a row, or of an object (or its JSON) in the row."""
    if column in row:
        return row[column]
    head, _, rest = column.partition(".")
    return as_object(row.get(head)).get(rest)


def as_object(value: object) -> Mapping[str, Any]:
    """Convert a cell with an object or its JSON to an object; empty for anything else."""
    if isinstance(value, str):
        try:
            value = parse_json(value, "a cell")
        except TableFileError:
            return {}
    return value if isinstance(value, Mapping) else {}


def personas_of(
    people: Mapping[str, Mapping[str, object]], variables: Sequence[Variable], missing: Container[str]
) -> tuple[dict[str, Persona], list[Dropped]]:
    """Render the personas of people; drop those without any value."""
    rendered = {person: render(values, variables, missing) for person, values in people.items()}
    empty = [person for person, persona in rendered.items() if is_empty(persona)]
    dropped = [("person", person, "every variable of the persona is missing") for person in empty]
    return {person: persona for person, persona in rendered.items() if person not in empty}, dropped


def deduplicate(
    rows: Iterable[dict[str, Any]], key: Sequence[str], compared: Sequence[str], where: str
) -> list[tuple[int, dict[str, Any]]]:
    """Number rows, and drop repetitions of a row, by the columns `key`.

    Raises:
        SourceError: A key is missing, or two rows of one key differ in a column of `compared`.
    """
    unique: dict[tuple[str | None, ...], tuple[int, dict[str, Any]]] = {}
    for number, row in enumerate(rows, start=1):
        for column in key:
            if clean_value(row[column]) is None:
                raise SourceError(f"{where}: row {number} has no `{column}`; add one, or remove the row.")
        values = tuple(clean_value(row[column]) for column in key)
        first, earlier = unique.setdefault(values, (number, row))
        differing = [column for column in compared if clean_value(row[column]) != clean_value(earlier[column])]
        if differing:
            name = " and ".join(f"the {column} {value}" for column, value in zip(key, values, strict=True))
            raise SourceError(
                f"{where}: rows {first} and {number} both have {name} but differ in `{differing[0]}`; keep one."
            )
    return list(unique.values())


def merge_people(
    tables: Mapping[str, Iterable[Mapping[str, Any]]], person: str, columns: Sequence[str], missing: Container[str]
) -> dict[str, dict[str, Any]]:
    """Merge the rows of each person. A value that differs between two rows becomes missing.

    Raises:
        SourceError: A row has no id.
    """
    people: dict[str, dict[str, Any]] = {}
    for where, rows in tables.items():
        for number, row in enumerate(rows, start=1):
            name = clean_value(row.get(person))
            if name is None:
                raise SourceError(f"{where}: row {number} has no `{person}`; add one, or remove the row.")
            values = {column: clean_value(get_value(row, column), missing) for column in columns}
            earlier = people.setdefault(name, values)
            people[name] = {column: value if earlier[column] == value else None for column, value in values.items()}
    return people


def source_of(
    table: SourceTable,
    *parts: Iterable[Mapping[str, Any]],
    name: str,
    attribution: str,
    location: str | None = None,
    revision: str | None = None,
    license: str | None = None,
) -> Source:
    """Describe a source for the release, by the rows that were read, whose order does not matter.

    The recipe's `table` has precedence over name and attribution, and the license that the source states over its own.
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
