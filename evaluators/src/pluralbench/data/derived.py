"""Columns that a table does not have but that can be made of its columns: paths, numbered columns and joined ones."""

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import polars as pl

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.fields import LISTS, Columns
from pluralbench.data.texts import MESSAGE_KEYS, as_texts, first_ids, shortened
from pluralbench.errors import DataError

NUMBERED, JOINED, PATH = "*", "+", "."
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def with_derived_columns(frame: pl.DataFrame, names: Iterable[str], where: str) -> pl.DataFrame:
    """Add the columns that `names` describe and the table lacks, in place of those that they are made of.

    Names that cannot be made of the table's columns are left out, so that the check of columns reports them.

    Raises:
        DataError: If an object on a path has no such key, or a numbered column is missing or has no texts.
    """
    kept = list(names)
    added: dict[str, pl.Series] = {}
    sources: set[str] = set()
    for name in kept:
        if name not in frame.columns:
            used = source_columns(frame, name)
            if used:
                added[name] = _derived(frame, name, used, where).alias(name)
                sources.update(used)
    return frame.with_columns(added.values()).drop(sources - set(kept)) if added else frame


def named_columns(benchmark: Benchmark, columns: Columns) -> list[str]:
    """Return all names of columns that a benchmark's description has for a config."""
    single = columns.model_dump(exclude={*LISTS}).values()
    history = benchmark.history.column if benchmark.history else None
    votes = benchmark.annotations.table_columns if benchmark.annotations else ()
    names = (*single, *columns.prompt, *columns.labels, *benchmark.rows, history, *votes)
    return list(dict.fromkeys(name for name in names if name))


def needed_columns(benchmark: Benchmark) -> Callable[[str], object]:
    """Return a function that says whether a benchmark needs the values of a column, or may derive others of it."""
    described = [benchmark.columns, *map(benchmark.columns_of, benchmark.excluded_configs)]
    names = {name for columns in described for name in named_columns(benchmark, columns)}
    names |= {*benchmark.reference.columns.values()} if benchmark.reference else set()
    parts = {part for name in names for part in (name, *name.split(JOINED))}
    people = benchmark.annotations.people if benchmark.annotations else None
    if people is not None:  # whose table is read in the same way
        parts |= {part.removeprefix(f"{people.table}{PATH}") for part in parts} | {people.id}
    forms = parts | {part.partition(PATH)[0] for part in parts} | ({NUMBERED} if benchmark.turns else set())
    return re.compile("|".join(re.escape(form).replace(re.escape(NUMBERED), ".*") for form in forms)).fullmatch


def source_columns(frame: pl.DataFrame, name: str) -> list[str]:
    """Return the columns that a derived column is made of; none if the table lacks one of them."""
    if JOINED in name:
        parts = [[part] if part in frame.columns else source_columns(frame, part) for part in name.split(JOINED)]
        return [column for part in parts for column in part] if all(parts) else []
    if NUMBERED in name:
        before, _, after = name.partition(NUMBERED)
        numbers = _numbers(frame, before, "[0-9]+", after)
        if numbers:
            return [numbers[number] for number in sorted(numbers, key=int)]
        letters = _numbers(frame, before, "[a-z]", after)
        return [letters[letter] for letter in sorted(letters)]
    root, separator, _ = name.partition(PATH)
    return [root] if separator and root in frame.columns else []


def _numbers(frame: pl.DataFrame, before: str, numbers: str, after: str) -> dict[str, str]:
    pattern = re.compile(f"{re.escape(before)}({numbers}){re.escape(after)}")
    return {match[1]: column for column in frame.columns if (match := pattern.fullmatch(column))}


def missing_source(frame: pl.DataFrame, name: str) -> str:
    """Return the first column that a derived column is made of and the table lacks; the name itself if it is none."""
    if JOINED in name:
        lacking = (part for part in name.split(JOINED) if part not in frame.columns and not source_columns(frame, part))
        return next((missing_source(frame, part) for part in lacking), name)
    if NUMBERED in name:
        return name.replace(NUMBERED, "1")
    return name.partition(PATH)[0]


def _derived(frame: pl.DataFrame, name: str, sources: list[str], where: str) -> pl.Series:
    if JOINED in name:
        parts = name.split(JOINED)
        frame = with_derived_columns(frame, [*parts, *sources], where)
        texts = [as_texts(frame[part]).alias(str(place)) for place, part in enumerate(parts)]
        return pl.DataFrame(texts).select(pl.concat_str(pl.all(), separator="/")).to_series()
    if NUMBERED in name:
        _check_numbered(frame, name, sources, where)
        return frame.select(pl.concat_list(sources)).to_series()
    root, *keys = name.split(PATH)
    rows = enumerate(frame[root].to_list(), start=1)
    return pl.Series([_follow(value, keys, f"{where}: `{root}`, row {row}") for row, value in rows])


def _check_numbered(frame: pl.DataFrame, name: str, sources: list[str], where: str) -> None:
    first = name.replace(NUMBERED, "0") not in frame.columns
    numbers: Iterable[int | str] = range(first, first + len(sources))
    if sources[0] in {name.replace(NUMBERED, letter) for letter in LETTERS}:
        numbers = LETTERS
    present = [name.replace(NUMBERED, str(number)) for number, _ in zip(numbers, sources, strict=False)]
    gap = next((column for column in present if column not in sources), None)
    if gap is not None:
        raise DataError(f"{where} has {first_ids(sources)} and no `{gap}`; number the columns without a gap.")
    other = [column for column in sources if frame.schema[column] not in {pl.String(), pl.Null()}]
    if other:
        raise DataError(f"{where}: `{other[0]}` does not have texts, but `{name}` needs one text in each column.")


def _follow(value: Any, keys: list[str], where: str) -> Any:
    """Follow keys through objects, lists of objects, and objects that are JSON texts."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise DataError(f"{where} is a text and not an object: {shortened(value)}.") from None
    for place, key in enumerate(keys):
        if value is None:
            return None
        if isinstance(value, list):
            names = {name for one in value if isinstance(one, dict) for name in one}
            if any(set(pair) <= names for pair in MESSAGE_KEYS):
                raise DataError(
                    f"{where} is a list of messages, whose roles `.{key}` would lose; name the list itself."
                )
            return [_follow(one, keys[place:], where) for one in value]
        if not isinstance(value, dict) or key not in value:
            has = f"it has {first_ids([*value])}" if isinstance(value, dict) else f"it is {shortened(value)}"
            raise DataError(f"{where} has no key {key!r}; {has}.")
        value = value[key]
    return value
