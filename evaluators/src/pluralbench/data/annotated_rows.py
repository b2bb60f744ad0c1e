"""Read votes of people from the rows of a table: the four forms, what a vote means, and the items of single votes."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import polars as pl
from pluralbench_runs import plural
from pluralbench_tables import typed_frame

from pluralbench.data.annotations import VOTE
from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.derived import JOINED
from pluralbench.data.fields import ID, ROW_NUMBER, VOTE_COLUMN, Annotations, Columns
from pluralbench.data.labels import FIRST, SECOND, TIE, label_key
from pluralbench.data.texts import first_ids, shortened, value_of
from pluralbench.errors import DataError

VOTES = "#votes"
"""Column of the votes on a row, as a list of `VOTE`; places are those of the row's responses."""
PLACES = {TIE: None, FIRST: 0, SECOND: 1}


class _Raw(NamedTuple):
    annotator: Any
    vote: Any
    attributes: tuple[Any, ...]


class Voted(NamedTuple):
    """The items of a table, and what is not among their votes.

    Attributes:
        frame: One row per item, with the column `VOTES`.
        missing: Number of missing votes.
        repeated: Number of votes that are left out because their person has voted on the item before.
        items_without: Number of items without a vote, which are left out.
        same_responses: Number of responses that are left out because the item has their text already.
    """

    frame: pl.DataFrame
    missing: int = 0
    repeated: int = 0
    items_without: int = 0
    same_responses: int = 0

    @property
    def left_out(self) -> dict[str, int]:
        """The counts by name."""
        return {name: value for name, value in self._asdict().items() if name != "frame"}


def read_votes(benchmark: Benchmark, columns: Columns, frame: pl.DataFrame, where: str) -> Voted:
    """Read the votes of a table, and merge its rows with one vote each into items.

    Raises:
        DataError: If a vote is unknown, a person votes twice on an item, or no item has a vote.
    """
    annotations = benchmark.annotations
    if annotations is None:
        return Voted(frame)
    ids = frame[columns.id].to_list() if columns.id in frame.columns else range(frame.height)
    names = [str(row_id) for row_id in ids]
    raw, single = _raw_votes(benchmark, annotations, frame, names, where)
    texts = _response_cells(columns, frame, names, where)
    votes = _read_meanings(benchmark, raw, texts, names, where)
    missing = sum(len(one) for one in raw) - sum(len(one) for one in votes)
    if single and not annotations.by_person:
        keys = _item_keys(columns, frame, texts)
        frame, texts, votes, names = _merge_rows(frame, columns, keys, texts, votes, where)
    repeated = 0
    for place, own in enumerate(votes):
        votes[place] = _once_each(annotations, own, names[place], where)
        repeated += len(own) - len(votes[place])
    with_votes = [bool(own) for own in votes]
    if not any(with_votes):
        raise DataError(f"{where} has no vote in {_named(annotations)}; name the columns of the votes.")
    same = sum(len(own) - len(dict.fromkeys(own)) for own in texts) if columns.responses else 0
    series = typed_frame({VOTES: votes}, pl.Schema({VOTES: pl.List(VOTE)})).to_series()
    kept = frame.with_columns(series).filter(pl.Series(with_votes))
    return Voted(kept, missing, repeated, with_votes.count(False), same)


def _named(annotations: Annotations) -> str:
    return " or ".join(f"`{name}`" for name in annotations.columns or (annotations.vote,))


def _raw_votes(
    benchmark: Benchmark, annotations: Annotations, frame: pl.DataFrame, ids: Sequence[str], where: str
) -> tuple[list[list[_Raw]], bool]:
    """Return the votes of each row as the table has them, and whether each row has one in a column of its own."""
    read = _from_columns if annotations.columns else _from_row
    marked = _are_marks(benchmark, annotations)
    votes: list[list[_Raw]] = []
    lists: set[bool] = set()
    try:
        for row in frame.select(annotations.table_columns).iter_rows(named=True):
            cells = {name: _parsed(value) for name, value in row.items()}
            if not annotations.columns and cells[str(annotations.vote)] is not None:
                lists.add(isinstance(cells[str(annotations.vote)], list))
            votes.append([*(_from_marks(benchmark, annotations, cells) if marked else read(annotations, cells))])
    except (TypeError, ValueError) as error:
        raise DataError(f"{where} does not have the benchmark's votes at id {ids[len(votes)]}: {error}.") from None
    if len(lists) > 1:
        raise DataError(f"{where}: `{annotations.vote}` has a list of votes in some rows and one vote in others.")
    return votes, not annotations.columns and True not in lists


def _parsed(value: Any) -> Any:
    """Return a cell; a list or an object that is written as JSON is parsed."""
    if isinstance(value, str) and value.lstrip()[:1] in {"[", "{"}:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _from_row(annotations: Annotations, row: Mapping[str, Any]) -> Iterator[_Raw]:
    names = [str(annotations.vote), *([annotations.annotator] if annotations.annotator else [])]
    names += annotations.attributes.values()
    cells = [name if name == VOTE_COLUMN else row[name] for name in names]
    if isinstance(cells[0], list):
        for name, cell in zip(names[1:], cells[1:], strict=True):
            if not isinstance(cell, list) or len(cell) != len(cells[0]):
                raise ValueError(f"`{name}` is not a list of {len(cells[0])} values, one for each vote in `{names[0]}`")
        rows: Iterable[Sequence[Any]] = zip(*cells, strict=True)
    else:
        rows = [cells]
    for vote, *others in rows:
        annotator = others.pop(0) if annotations.annotator else None
        yield _Raw(annotator, vote, tuple(others))


def _are_marks(benchmark: Benchmark, annotations: Annotations) -> bool:
    return not annotations.columns and annotations.vote == benchmark.columns.right


def _from_marks(benchmark: Benchmark, annotations: Annotations, row: Mapping[str, Any]) -> Iterator[_Raw]:
    """Yield a vote, by its place, for each response that the row marks as right, or a missing vote."""
    marks, labels = row[str(annotations.vote)], benchmark.labels
    unknown = [mark for mark in marks or () if labels.meaning(mark) is None]
    if unknown:
        raise ValueError(f"`{annotations.vote}` has {shortened(unknown[0])}; expected: {labels.right_or_wrong}")
    person = row[str(annotations.annotator)] if annotations.annotator else None
    attributes = tuple(row[name] for name in annotations.attributes.values())
    picked = [place for place, mark in enumerate(marks or ()) if labels.meaning(mark) == FIRST]
    yield from (_Raw(person, place, attributes) for place in picked)
    if not picked:
        yield _Raw(person, None, attributes)


def _from_columns(annotations: Annotations, row: Mapping[str, Any]) -> Iterator[_Raw]:
    for column in annotations.columns:
        if annotations.vote is None:
            attributes = (column,) * len(annotations.attributes)
            yield _Raw(column if annotations.same_people else None, row[column], attributes)
            continue
        objects = row[column]
        for one in objects if isinstance(objects, list) else [objects]:
            if one is None:
                yield _Raw(None, None, ())
                continue
            person = None if annotations.annotator is None else _field(one, annotations.annotator, column)
            attributes = tuple(_field(one, field, column) for field in annotations.attributes.values())
            yield _Raw(person, value_of(one, annotations.vote, column), attributes)


def _field(one: Any, field: str, column: str) -> Any:
    """Return the value of a field of an object in a column; of several, joined by "+", their values with slashes."""
    values = [column if name == VOTE_COLUMN else value_of(one, name, column) for name in field.split(JOINED)]
    return values[0] if len(values) == 1 or None in values else "/".join(map(str, values))


def _response_cells(columns: Columns, frame: pl.DataFrame, ids: Sequence[str], where: str) -> list[list[str]]:
    """Return the responses of each row, each as a text to compare."""
    if columns.responses is None:
        pairs = frame.select(str(columns.first), str(columns.second)).iter_rows()
        return [[_text(cell) for cell in pair] for pair in pairs]
    texts = []
    for row_id, cell in zip(ids, frame[columns.responses], strict=True):
        responses = cell.to_list() if isinstance(cell, pl.Series) else _parsed(cell)
        if not isinstance(responses, list):
            raise DataError(f"{where}: `{columns.responses}` is not a list of responses at id {row_id}.")
        texts.append([_text(response) for response in responses])
    return texts


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _read_meanings(
    benchmark: Benchmark,
    raw: Sequence[Sequence[_Raw]],
    texts: Sequence[Sequence[str]],
    ids: Sequence[str],
    where: str,
) -> list[list[dict[str, Any]]]:
    """Return the votes with the places of responses; missing votes are left out. Raises `DataError` for others."""
    annotations = benchmark.annotations or Annotations()
    missing, marked = {None, *annotations.missing}, _are_marks(benchmark, annotations)
    votes: list[list[dict[str, Any]]] = []
    unknown: dict[str, str] = {}
    for row_id, responses, own in zip(ids, texts, raw, strict=True):
        votes.append([])
        for one in own:
            key = label_key(one.vote)
            if key in missing:
                continue
            place, grade = (int(str(key)), None) if marked else _meaning(benchmark, key, responses)
            if place == UNKNOWN:
                unknown.setdefault(shortened(one.vote), row_id)
            person = label_key(one.annotator)
            attributes = [None if label_key(value) in missing else str(value).strip() for value in one.attributes]
            votes[-1].append(
                {
                    "annotator": None if person in missing else str(one.annotator).strip(),
                    "response": place,
                    "grade": grade,
                    "attributes": attributes,
                }
            )
    if unknown:
        examples = [f"{vote} at id {row_id}" for vote, row_id in unknown.items()]
        raise DataError(
            f"{where} has unknown votes in {_named(annotations)} ({first_ids(examples)}); expected: "
            f"{_expected(benchmark)}."
        )
    return votes


UNKNOWN = -1
"""Place of the response that an unknown vote names."""


def _meaning(benchmark: Benchmark, key: str | None, responses: Sequence[str]) -> tuple[int | None, float | None]:
    annotations, labels = benchmark.annotations or Annotations(), benchmark.labels
    if benchmark.columns.responses is None:
        meaning = labels.meaning(key)
        if meaning is None:
            return UNKNOWN, None
        if not annotations.grades:
            return PLACES[meaning], labels.strength(key)
        grade = 0.0 if meaning == TIE else annotations.grades.get(str(key))
        return (UNKNOWN if grade is None else PLACES[meaning]), grade
    if key in labels.tie:
        return None, None
    if annotations.picks:
        place = annotations.picks.index(key) if key in annotations.picks else UNKNOWN
        return (place if place < len(responses) else UNKNOWN), None
    return next((place for place, text in enumerate(responses) if label_key(text) == key), UNKNOWN), None


def _expected(benchmark: Benchmark) -> str:
    annotations = benchmark.annotations or Annotations()
    if benchmark.columns.responses is None:
        grades = f", with a grade for each in `grades` ({', '.join(annotations.grades)})" if annotations.grades else ""
        return f"{benchmark.labels.expected}{grades}. Define them in `labels`, or values without a vote in `missing`"
    known = ", ".join(annotations.picks) or "the text of a response"
    return f"{known}. Define them in `picks`, or values without a vote in `missing`"


def _item_keys(columns: Columns, frame: pl.DataFrame, texts: Sequence[Sequence[str]]) -> list[str]:
    """Return a digest of prompt and responses of each row; the order of the responses does not change it."""
    names = [name for name in (*columns.prompt, columns.system) if name in frame.columns]
    prompts = frame.select(names).iter_rows()
    contents = (
        [[_text(cell) for cell in prompt], sorted(responses)] for prompt, responses in zip(prompts, texts, strict=True)
    )
    return [sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()[:16] for content in contents]


def _merge_rows(
    frame: pl.DataFrame,
    columns: Columns,
    keys: Sequence[str],
    texts: Sequence[list[str]],
    votes: Sequence[list[dict[str, Any]]],
    where: str,
) -> tuple[pl.DataFrame, list[list[str]], list[list[dict[str, Any]]], list[str]]:
    """Merge the rows of one item: those with the same prompt and responses.

    The item's responses are in the first order by text that one of its rows has, and other columns have the values of
    that row, so that the order of the table changes nothing but the order of the items.
    """
    own_id = columns.id if columns.id != ROW_NUMBER and columns.id in frame.columns else None
    rows_of: dict[str, list[int]] = defaultdict(list)
    for row, key in enumerate(keys):
        rows_of[key].append(row)
    ids = frame[own_id].to_list() if own_id else None
    first, merged = [], []
    for rows in rows_of.values():
        if ids is not None and len({str(ids[row]) for row in rows}) > 1:
            several = first_ids(list(dict.fromkeys(str(ids[row]) for row in rows)))
            raise DataError(
                f"{where}: rows with the same prompt and responses have different `{own_id}` ({several}); with one "
                'vote a row, the id is that of the item: name its column, or leave it to the texts (`id = "#"`).'
            )
        chosen = min(rows, key=lambda row: (texts[row], json.dumps(frame.row(row), default=str)))
        first.append(chosen)
        of_item: list[dict[str, Any]] = []
        for row in rows:
            place_of = {text: place for place, text in reversed([*enumerate(texts[chosen])])}
            of_item += [
                vote if vote["response"] is None else vote | {"response": place_of[texts[row][vote["response"]]]}
                for vote in votes[row]
            ]
        merged.append(of_item)
    names = [str(ids[row]) for row in first] if ids is not None else [*rows_of]
    kept = frame[first]
    if ids is None:
        kept = kept.with_columns(pl.Series(ID, names, dtype=pl.String))
    return kept, [texts[row] for row in first], merged, names


def _once_each(
    annotations: Annotations, votes: Sequence[dict[str, Any]], item: str, where: str
) -> list[dict[str, Any]]:
    """Return one vote of each person on an item, by person and vote. Raises `DataError` for a contradiction."""
    by_person: dict[str, dict[str, Any]] = {}
    changed = set()
    for vote in votes:
        person = vote["annotator"]
        if person is None:
            continue
        kept = by_person.setdefault(person, vote)
        if any(kept[name] != vote[name] for name in ("response", "grade")):
            changed.add(person)
    if changed and annotations.repeated == "error":
        raise DataError(
            f"{where}: {plural(len(changed), 'person', 'people')} voted twice on id {item} with different answers "
            f"({first_ids(sorted(changed))}); remove one of the votes, or set `repeated` of the annotations to "
            '"first" or "drop".'
        )
    left = [vote for vote in votes if vote["annotator"] is None]
    left += [vote for person, vote in by_person.items() if person not in changed or annotations.repeated == "first"]
    return sorted(left, key=_order)


def _order(vote: Mapping[str, Any]) -> tuple[Any, ...]:
    person, place = vote["annotator"], vote["response"]
    attributes = [value or "" for value in vote["attributes"]]
    return person is None, person or "", place is None, place or 0, vote["grade"] or 0.0, attributes
