"""Per-item scores that others have published, in the shapes of their files."""

import re
from collections.abc import Callable, Mapping, Sequence
from math import isfinite, nan
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pluralbench_runs import did_you_mean
from pluralbench_tables import TableFileError, frame_from_rows, parse_json, read_json

from pluralbench.data.benchmark_entries import find_benchmark
from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.column_types import OUTCOMES
from pluralbench.data.derived import with_derived_columns
from pluralbench.data.fields import parse_changes
from pluralbench.data.labels import FIRST, SECOND, TIE, Labels, label_key
from pluralbench.data.merged_rows import merge_rows
from pluralbench.data.texts import LETTERS, as_texts, first_ids, shortened
from pluralbench.data.verdict_tables import read_single_table
from pluralbench.errors import DataError

IDS = "id pair_id item_id question_id problem_id prompt_id pair_uid bon_uid uid prompt"
OWN_NAMES = "scores score_A score_B label judgments decision_1 decision_2 num_correct response rank outcome"
ALIASES: dict[str, Sequence[str]] = {
    "id": IDS.split(),
    "subset": ("subset", "source", "domain", "category"),
    "score": ("score", "reward"),
    "score_chosen": ("score_chosen", "scores_chosen", "chosen_reward", "chosen_score"),
    "score_rejected": ("score_rejected", "scores_rejected", "rejected_reward", "reject_reward", "rejected_score"),
    "results": ("results", "is_correct"),
    **{name: (name,) for name in OWN_NAMES.split()},
}
"""Columns by the fields that they can be; the first one that a table has is read."""

ITEM_SCORES = pl.Schema(
    {
        **dict.fromkeys(("config", "id", "cluster", "subset", "digest"), pl.String()),
        "response_ids": pl.List(pl.String()),
        "rank": pl.List(pl.Int64()),
        "scores": pl.List(pl.Float64()),
        "compared": pl.List(pl.List(pl.Int64())),
        "outcome": pl.String(),
        "stated": pl.Float64(),
    }
)
"""Columns of `ItemScores.items`. `rank` is null if it is unknown; `scores` is empty for a verdict, which has an
`outcome`; `compared` are the pairs of places that count, null for all; `stated` is the result in the file."""

SIDES = ("chosen", "rejected")
WINS = {1: "win", 0: "tie", -1: "loss"}
PREFERENCE = Labels(
    first=("A>B", "A>>B", "A", "1", "model_a"), second=("B>A", "B>>A", "B", "2", "model_b"), tie=("A=B",)
)
GAME_SCORES = (("score_A", "score_B"), ("score1", "score2"))
Row = Mapping[str, Any]


class ItemScores(NamedTuple):
    """The scores of a model, with the columns `ITEM_SCORES`, and the benchmark whose rule makes the accuracy."""

    where: str
    shape: str
    benchmark: Benchmark
    items: pl.DataFrame


def read_published(
    location: str, *, where: Sequence[str] = (), columns: Sequence[str] = (), argument: str = "where"
) -> ItemScores:
    """Read per-item scores that others have published, from a table or a dataset on the Hub.

    A JSON file may also be an object of columns, as reward-bench writes them. `where` selects rows as COLUMN=VALUE,
    such as those of one model, and `columns` names those that differ from `ALIASES`, as FIELD=COLUMN; `argument` is the
    name of `where` in errors.

    Raises:
        DataError: The table has an unknown shape, ids repeat, a score is not a number, or an argument does not apply.
        TablesError: The file cannot be read.
    """
    frame = _select(_read(location), where, location, argument)
    names = _fields(frame, columns, location)
    frame = with_derived_columns(frame, names.values(), location)
    fields = pl.DataFrame([frame[column].alias(field) for field, column in names.items()])
    shape = next((shape for shape in SHAPES if {"id", *shape.fields} <= {*fields.columns}), None)
    if shape is None:
        known = "; ".join(", ".join(one.fields) for one in SHAPES)
        raise DataError(
            f"{location} has none of the known shapes: its columns are {', '.join(frame.columns)}. Needed are id and "
            f"one of: {known}; name columns with `columns=...`."
        )
    fields = fields.with_columns(id=as_texts(fields["id"]))
    of_responses = shape.fields == ("response", "score")
    _check_ids(fields, frame, location, argument, ["id", "response"] if of_responses else ["id"])
    if of_responses:
        lists = [name for name in ("response", "rank", "score") if name in fields.columns]
        fields = merge_rows(fields, "id", lists)
    items = [_item(shape, row, f"{location}, id {row['id']}") for row in fields.iter_rows(named=True)]
    title, entry = shape.title, shape.benchmark
    if entry == "reward-bench-2" and "results" not in fields.columns:
        title, entry = "a table of lists of scores", None
    if entry == "reward-bench" and any(len(item["response_ids"]) > 2 for item in items):
        entry = "rm-bench"
    benchmark = find_benchmark(entry) if entry else Benchmark(title="Table", credit={"*": "best-of-n"})
    made = pl.DataFrame(items, schema=ITEM_SCORES)
    return ItemScores(location, title, benchmark.fit_to(made["subset"]), made)


def _read(location: str) -> pl.DataFrame:
    path = Path(location)
    if path.suffix == ".json" and path.is_file():
        try:
            values = read_json(path)
        except TableFileError:
            values = None  # JSON Lines, or a file that the other reader refuses in its own words
        columns = values if isinstance(values, dict) else {}
        lists = {name: value for name, value in columns.items() if isinstance(value, list)}
        if len({len(value) for value in lists.values()}) == 1:
            rows = [columns | dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
            return frame_from_rows(rows, location, DataError)
    return read_single_table(location, "scores")


def _select(frame: pl.DataFrame, where: Sequence[str], location: str, argument: str) -> pl.DataFrame:
    for condition in where:
        name, equals, value = condition.partition("=")
        if not equals or name not in frame.columns:
            hint = did_you_mean(name, frame.columns)
            raise DataError(
                f"{location}: `{argument}=[{condition!r}]` is not COLUMN=VALUE with a column of the table; "
                f"{hint}the columns are {', '.join(frame.columns)}."
            )
        texts = as_texts(frame[name])
        rows = frame.filter((texts == value).fill_null(value=False))
        if rows.is_empty():
            seen = [str(text) for text in texts.unique(maintain_order=True)]
            raise DataError(f"{location}: no row has the {name} {value!r}; there are {first_ids(seen)}.")
        frame = rows
    return frame


def _fields(frame: pl.DataFrame, columns: Sequence[str], location: str) -> dict[str, str]:
    names = {
        field: present[0]
        for field, known in ALIASES.items()
        if (present := [name for name in known if name in frame.columns])
    }
    for field, column in parse_changes(columns, ALIASES):
        if column not in frame.columns and not re.search(r"[+*.]", column):
            raise DataError(
                f"{location} has no column `{column}`; {did_you_mean(column, frame.columns)}the columns are "
                f"{', '.join(frame.columns)}."
            )
        names[field] = column
    return names


def _check_ids(fields: pl.DataFrame, frame: pl.DataFrame, location: str, argument: str, key: Sequence[str]) -> None:
    if fields["id"].null_count():
        row = fields["id"].is_null().to_list().index(True) + 1
        raise DataError(f"{location}: row {row} has no id; add it or remove the row.")
    repeated = fields.filter(fields.select(key).is_duplicated())
    if repeated.is_empty():
        return
    sizes = {name: frame[name].n_unique() for name in frame.columns if not frame[name].dtype.is_nested()}
    few = [name for name, size in sizes.items() if 1 < size <= max(2, frame.height // 2)]
    keys = {name: fields.select(key).with_columns(other=as_texts(frame[name])) for name in few}
    several = [name for name in few if not keys[name].is_duplicated().any()] or few
    fix = "keep one row for each"
    if several:
        names, value = " or ".join(several[:3]), frame[several[0]][0]
        fix = f'choose the rows of one {names}, such as `{argument}=["{several[0]}={value}"]`'
    ids = fields["id"].n_unique()
    raise DataError(f"{location} has {fields.height:,} rows for {ids:,} ids (such as {repeated['id'][0]}); {fix}.")


def _item(shape: "Shape", row: Row, where: str) -> dict[str, Any]:
    stated = None if row.get("results") is None else _number(row["results"], "results", where)
    subset = None if row.get("subset") is None else str(row["subset"])
    item = {"config": "default", "id": row["id"], "cluster": row["id"], "subset": subset, "digest": "", "scores": []}
    return dict.fromkeys(ITEM_SCORES) | item | {"stated": stated} | shape.read(row, where)


def _sides(row: Row, where: str) -> dict[str, Any]:
    lists = {side: _numbers(row[f"score_{side}"], f"score_{side}", where) for side in SIDES}
    names = [f"{side} {place}" for side, own in lists.items() for place in range(len(own))]
    ranks = [rank for rank, own in enumerate(lists.values(), 1) for _ in own]
    single = [*map(len, lists.values())] == [1, 1]
    scores = [value for own in lists.values() for value in own]
    return {"response_ids": [*SIDES] if single else names, "rank": ranks, "scores": scores}


def _responses(row: Row, where: str) -> dict[str, Any]:
    ranks = [label_key(rank) for rank in row.get("rank") or ()]
    return {
        "response_ids": [str(name) for name in row["response"]],
        "rank": [_whole(rank, "rank", where) for rank in ranks] if ranks and None not in ranks else None,
        "scores": [_number(score, "score", where) for score in row["score"]],
    }


def _scores(row: Row, where: str) -> dict[str, Any]:
    """Scores in a list: the right responses first, as many as `num_correct`; one, except in the subset Ties."""
    field = "scores" if "scores" in row else "score"
    scores = _numbers(row[field], field, where)
    right = label_key(row.get("num_correct")) or (None if str(row.get("subset")).lower() == "ties" else "1")
    ranks = [1] if len(scores) == 1 else None
    if right is not None and len(scores) > 1:
        count = _whole(right, "num_correct", where)
        if not 0 < count < len(scores):
            raise DataError(f"{where}: `num_correct` is {count}, but {len(scores)} scores have right and wrong ones.")
        ranks = [1 if place < count else 2 for place in range(len(scores))]
    return {"response_ids": [f"score {place}" for place in range(len(scores))], "rank": ranks, "scores": scores}


def _outcome(row: Row, where: str) -> dict[str, Any]:
    if row["outcome"] not in OUTCOMES:
        raise DataError(f"{where}: the outcome {shortened(row['outcome'])} is none of win, loss, tie and invalid.")
    return {"response_ids": [*SIDES], "rank": [1, 2], "outcome": row["outcome"]}


def _label(row: Row, where: str) -> tuple[int, dict[str, Any]]:
    better = PREFERENCE.meaning(row["label"])
    if better is None:
        raise DataError(f"{where}: the label {shortened(row['label'])} is unknown; known are {PREFERENCE.expected}.")
    return better, {"response_ids": [*LETTERS], "rank": {FIRST: [1, 2], SECOND: [2, 1], TIE: [1, 1]}[better]}


def _letters(row: Row, where: str) -> dict[str, Any]:
    _, pair = _label(row, where)
    return pair | {"scores": [_number(row[f"score_{letter}"], f"score_{letter}", where) for letter in LETTERS]}


def _decisions(row: Row, where: str) -> dict[str, Any]:
    better, pair = _label(row, where)
    games = [{"decision": row[name]} for name in ("decision_1", "decision_2") if name in row]
    return pair | {"outcome": _vote(games, better, where)}


def _judgments(row: Row, where: str) -> dict[str, Any]:
    """The scores of the first game, or the vote of the verdicts of all games."""
    better, pair = _label(row, where)
    value = row["judgments"]
    parsed = parse_json(value, where, DataError) if isinstance(value, str) else value
    games = [_flat(game) for game in parsed if isinstance(game, dict)] if isinstance(parsed, list) else []
    if not games:
        raise DataError(f"{where}: `judgments` is not a list of games: {shortened(value)}.")
    scores = _game_scores(games[0], where)
    return pair | ({"scores": scores} if scores else {"outcome": _vote(games, better, where)})


class Shape(NamedTuple):
    """A shape of published files.

    Attributes:
        title: Its name, for readers.
        benchmark: Benchmark whose rule it comes from.
        fields: Fields that it needs beside the id.
        read: Returns the responses of a row with their ranks, and the scores or the outcome.
    """

    title: str
    benchmark: str | None
    fields: tuple[str, ...]
    read: Callable[[Row, str], dict[str, Any]]


SHAPES = (
    Shape("JudgeBench's outputs", "judgebench", ("judgments", "label"), _judgments),
    Shape("scores of responses A and B", "judgebench", ("score_A", "score_B", "label"), _letters),
    Shape("scores of chosen and rejected responses", "reward-bench", ("score_chosen", "score_rejected"), _sides),
    Shape("a table with a row per response", None, ("response", "score"), _responses),
    Shape("reward-bench's scores, version 2", "reward-bench-2", ("scores",), _scores),
    Shape("a table with a score per id", None, ("score",), _scores),
    Shape("verdicts on responses A and B", "judgebench", ("decision_1", "label"), _decisions),
    Shape("a table of outcomes", None, ("outcome",), _outcome),
)
"""The first shape whose fields a table has is read."""


def _flat(game: Row) -> dict[str, Any]:
    """The keys of a game and of its judgment, which may also be the decision itself."""
    judgment = game.get("judgment")
    inner = judgment if isinstance(judgment, dict) else {"decision": judgment}
    return inner | {name: value for name, value in game.items() if value is not None}


def _game_scores(game: Row, where: str) -> list[float]:
    if game.get("scores") is not None:
        return _numbers(game["scores"], "scores", where)
    names = next((pair for pair in GAME_SCORES if game.get(pair[0]) is not None), ())
    return [_number(game[name], name, where) for name in names]


def _vote(games: Sequence[Row], better: int, where: str) -> str:
    """The outcome of verdicts: each is worth 1 if right and -1 if wrong. The second is of the swapped order."""
    votes = []
    for number, game in enumerate(games):
        verdict = game.get("decision")
        if verdict is None:
            continue
        meaning = PREFERENCE.meaning(verdict)
        if meaning is None:
            raise DataError(f"{where}: the decision {shortened(verdict)} is unknown; known are {PREFERENCE.expected}.")
        swapped = {FIRST: SECOND, SECOND: FIRST}.get(meaning, TIE) if number % 2 else meaning
        votes.append(0 if TIE in (swapped, better) else 1 if swapped == better else -1)
    total = sum(votes)
    return WINS[(total > 0) - (total < 0)] if votes else "invalid"


def _whole(value: Any, column: str, where: str) -> int:
    number = _number(value, column, where)
    if not number.is_integer():
        raise DataError(f"{where}: `{column}` is not a whole number: {shortened(value)}.")
    return int(number)


def _numbers(value: Any, column: str, where: str) -> list[float]:
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = parse_json(value, where, DataError)
    return [_number(one, column, where) for one in (value if isinstance(value, list) else [value])]


def _number(value: Any, column: str, where: str) -> float:
    """Return a number, which may be in a list of one; not a number (NaN) if it is missing."""
    if isinstance(value, list) and len(value) == 1:
        return _number(value[0], column, where)
    try:
        number = nan if value is None or value == "" else float(value)
    except (TypeError, ValueError):
        raise DataError(f"{where}: `{column}` is not a number: {shortened(value)}.") from None
    return number if isfinite(number) else nan
