"""Read rated translations: several translations of each source sentence, each with a score.

Four formats are recognized by their columns: a row per translation (MAPLE), a row per error (MQM as published by WMT),
a row per source with a list of candidates (MQM ratings grouped by source), and a row per source with a machine
translation and its post-edit (MLQE-PE).
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import polars as pl
from pluralbench_release import Source, content_digest, read_tables
from pluralbench_release.errors import SourceError
from pluralbench_runs import digest, public_location
from pluralbench_tables import Dialect, TableFileError, parse_json

from build_multilingual import mqm
from build_multilingual.detokenized import detokenize
from build_multilingual.recipe import RatedTable, Scale, parse_direction
from build_multilingual.source import SAMPLE, SAMPLE_SOURCE

TEXTS = ("translation", "mt", "target", "hypothesis", "text")
SOURCES = ("source", "src", "source_text")
SYSTEMS = ("system", "system_id", "model")
CANDIDATES = ("candidates", "translations")
DIRECTIONS = ("direction", "lp", "language_pair", "lang_pair")
SPLIT_DIRECTIONS = (("source_lang", "target_lang"), ("src_lang", "tgt_lang"), ("src", "tgt"))

TEXT_COLUMNS = ("direction", "source", "system", "translation")
RATED = pl.Schema(dict.fromkeys(TEXT_COLUMNS, pl.String) | dict.fromkeys(("score", "raw_score"), pl.Float64))


# Known columns of scores; if a file has several, the first one in this order is used.
SCALES = {
    # MAPLE, Likert: the paper's 5 and 10 % of the range, although hard pairs should be the closer ones (section B.6).
    "score": Scale(better="higher", easy=0.25, hard=0.5),
    # MQM: a minor error costs 1, a major one 5, so nearly all differences are sums of these. An easy pair differs by a
    # major error, a hard one by a minor error. Below that is 0.1 for punctuation; of WMT21's 236 en-de sources, 1.5
    # leaves 103 and 2.5 (the paper's 10 %) leaves 83, too few for 100 pairs.
    "mqm_penalty": Scale(better="lower", easy=5.0, hard=1.0),
    # Post-edits have two candidates, so a hard pair differs by at least 0.15 and less than 0.4. In an easy pair two
    # words in five were changed (of MLQE-PE's 1000 sources, 156 in en-de and 324 in en-zh); below 0.15 it is one word
    # or the punctuation of a short sentence. With 0.5, en-de has 90 pairs, too few for 100.
    "hter": Scale(better="lower", easy=0.4, hard=0.15),
    # Direct assessment: the paper's 5 and 10 % of the range.
    "da_mean": Scale(better="higher", easy=5.0, hard=10.0),
}
Row = dict[str, Any]
LIMITS = {"score": (1, 6), "mqm_penalty": (0, math.inf), "hter": (0, math.inf), "da_mean": (0, 100)}


@dataclass(frozen=True)
class RatedTranslations:
    """Rated translations; each text of a source occurs once.

    Attributes:
        frame: Columns of `RATED`. `direction` has the form `zh-en`; higher is better in `score`, and `raw_score` is the
            score in the file.
        scale: Scale of the scores.
        score: Name of the score's column in the file.
        source: Manifest entry of the source.
        left_out: Number of translations that are not in `frame`, by reason. A text that its source already has counts
            as "repeated translation"; the scores of equal texts are averaged.
    """

    frame: pl.DataFrame
    scale: Scale
    score: str
    source: Source
    left_out: dict[str, int]


def read(table: RatedTable) -> RatedTranslations:
    """Read the rated translations of all configs of a location.

    Raises:
        SourceError: The location cannot be read, columns are missing, or the scale or the direction is unknown.
    """
    dialect = Dialect(table.separator, table.quoting)
    sample = table.location == "sample"
    location = str(SAMPLE / "translations.jsonl") if sample else table.location
    tables = read_tables(location, split=table.split, dialect=dialect)
    score, rows = "", list[Row]()
    for config, frame in tables.frames.items():
        where = tables.paths[config]
        own_score, candidates = _candidates(frame, table, where)
        if score not in {"", own_score}:
            raise SourceError(
                f"{table.location} is rated by `{score}` and by `{own_score}`; choose one with `score=...`."
            )
        score = own_score
        rows += candidates
    scale = table.scale or SCALES[score]
    reasons = [_drop_reason(row) for row in rows]
    left_out = Counter(reason for reason in reasons if reason)
    usable = [row for row, reason in zip(rows, reasons, strict=True) if not reason]
    if not usable:
        raise SourceError(f"{table.location}: no row has a source, a translation and a number as its `{score}`.")
    if table.scale is None:
        _check_limits(usable, score, table.location)
    frame = merge_repeated(pl.DataFrame([_with_score(row, scale) for row in usable], schema=RATED))
    if frame.height < len(usable):
        left_out["repeated translation"] = len(usable) - frame.height
    name = table.name or public_location(tables.location)
    source = Source(
        name=name,
        location=tables.location,
        revision=tables.revision,
        digest=_rows_digest(frame),
        rows=frame.height,
        license=tables.license or table.license or "unknown",
        attribution=table.attribution or name,
    ).model_copy(update=SAMPLE_SOURCE if sample else {})
    return RatedTranslations(frame, scale, score, source, dict(sorted(left_out.items())))


def merge_repeated(rated: pl.DataFrame) -> pl.DataFrame:
    """Keep one of equal translations of a source: the first by system, with the mean of their scores."""
    groups = rated.rows_by_key(["direction", "source", "translation"], named=True, include_key=True)
    means = (
        min(rows, key=itemgetter("system"))
        | {name: math.fsum(row[name] for row in rows) / len(rows) for name in ("score", "raw_score")}
        for rows in groups.values()
    )
    return pl.DataFrame(list(means), schema=RATED)


def _with_score(row: Row, scale: Scale) -> Row:
    raw = row["raw_score"]
    return row | {"score": raw if scale.better == "higher" else 0.0 - raw}  # -raw would make -0.0 of 0


def _rows_digest(frame: pl.DataFrame) -> str:
    ids = [digest(list(row)) for row in frame.select("direction", "source", "translation").iter_rows()]
    return content_digest(frame.with_columns(id=pl.Series(ids, dtype=pl.String)))


def _drop_reason(row: Row) -> str | None:
    missing = {"direction": "no direction", "source": "no source", "translation": "empty translation"}
    reason = next((reason for name, reason in missing.items() if not row[name]), None)
    return reason or ("no score" if row["raw_score"] is None else None)


def _check_limits(rows: Sequence[Row], score: str, where: str) -> None:
    low, high = LIMITS[score]
    for value in (row["raw_score"] for row in rows):
        if not low <= value <= high:
            limits = f"{low} to {high}" if math.isfinite(high) else f"{low} and more"
            raise SourceError(
                f"{where}: `{score}` {value:g} is outside of the scale of that name ({limits}); set `scale=...`."
            )


def _candidates(frame: pl.DataFrame, table: RatedTable, where: str) -> tuple[str, list[Row]]:
    """Return the name of the score's column, and the translations of a table in any of the four formats."""
    if set(frame.columns) >= mqm.COLUMNS:
        frame = mqm.score_translations(frame, where)
    directions, used = _directions(frame, table, where)
    columns = [name for name in frame.columns if name not in used]
    source = _column("source", SOURCES, columns, table, where)
    if source is None:
        raise SourceError(
            f"{where} has no column of source texts ({_join_names(SOURCES)}); {_column_list(columns, 'source')}"
        )
    sources = list(zip(directions, map(_text, frame[source]), strict=True))
    nested = _column("candidates", CANDIDATES, columns, table, where)
    if nested is not None:
        lists = [_objects(value, nested, where) for value in frame[nested].to_list()]
        names = list(dict.fromkeys(name for objects in lists for item in objects for name in item))
        score, text, system = _columns(names, table, f"{where} (`{nested}`)")
        return score, _numbered(
            (*source, item.get(system or ""), item.get(text), item.get(score))
            for source, objects in zip(sources, lists, strict=True)
            for item in objects or [{}]  # a source without candidates is counted as an empty translation
        )
    post_edited = {"mt_tok", "post_edit_tok"} <= set(columns) and "translation" not in table.columns
    if post_edited and _score(columns, table, where) == "hter":
        texts = frame.select("mt_tok", "post_edit_tok", "hter").iter_rows()
        return "hter", _numbered(
            (direction, source, system, detokenize(_text(tokens), direction), score)
            for (direction, source), (mt, post_edit, hter) in zip(sources, texts, strict=True)
            for system, tokens, score in (("mt", mt, hter), ("post_edit", post_edit, 0.0))
        )
    score, text, system = _columns(columns, table, where)
    systems = [None] * frame.height if system is None else frame[system]
    return score, _numbered(
        (*source, *rest) for source, *rest in zip(sources, systems, frame[text], frame[score], strict=True)
    )


def _columns(names: Sequence[str], table: RatedTable, where: str) -> tuple[str, str, str | None]:
    """Return the columns of the score, the translation and the system."""
    score = _score(names, table, where)
    text = _column("translation", TEXTS, names, table, where)
    if text is None:
        raise SourceError(
            f"{where} has neither a column of translations ({_join_names(TEXTS)}) nor a list of candidates "
            f"({_join_names(CANDIDATES)}); {_column_list(names, 'translation')}"
        )
    return score, text, _column("system", SYSTEMS, names, table, where)


def _numbered(rows: Iterable[tuple[Any, ...]]) -> list[Row]:
    """Convert rows to plain values; candidates without a system are numbered within their source."""
    counts, plain = Counter[tuple[str, str]](), []
    for direction, source, system, text, score in rows:
        counts[direction, source] += 1
        values = (direction, source, _text(system) or str(counts[direction, source]), _text(text), _number(score))
        plain.append(dict(zip((*TEXT_COLUMNS, "raw_score"), values, strict=True)))
    return plain


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()


def _number(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _objects(value: object, column: str, where: str) -> list[Mapping[str, Any]]:
    """Parse a list of candidates, which is a string of JSON in a CSV."""
    if value is None or value == "":
        return []
    try:
        objects = parse_json(value, where) if isinstance(value, str) else value
    except TableFileError:
        objects = None
    if not isinstance(objects, list) or not all(isinstance(item, dict) for item in objects):
        raise SourceError(f"{where}: `{column}` is not a list of objects with a translation and a score.")
    return objects


def _column(role: str, usual: Sequence[str], columns: Sequence[str], table: RatedTable, where: str) -> str | None:
    """Return the column of a role: the recipe's, else the first of the usual names that the table has."""
    column = table.columns.get(role)
    if column is None:
        return next((name for name in usual if name in columns), None)
    if column not in columns:
        raise SourceError(f"{where} has no column `{column}`, which `columns` sets for {role}; {_column_list(columns)}")
    return column


def _score(columns: Sequence[str], table: RatedTable, where: str) -> str:
    if table.score is None:
        score = next((name for name in SCALES if name in columns), None)
        if score is None:
            raise SourceError(
                f"{where} has no known column of scores ({_join_names(SCALES)}); it has {_join_names(columns)}: "
                "set `score=...` and `scale=...`."
            )
        return score
    if table.score not in columns:
        raise SourceError(f"{where} has no column `{table.score}`, which `score` sets; {_column_list(columns)}")
    if table.score not in SCALES and table.scale is None:
        raise SourceError(
            f"{where}: the scale of `{table.score}` is unknown (known: {_join_names(SCALES)}); set `scale=...`."
        )
    return table.score


def _column_list(columns: Sequence[str], role: str | None = None) -> str:
    hint = f': name it with `columns=["{role}=COLUMN"]`' if role else ""
    return f"it has {_join_names(columns)}{hint}."


def _join_names(names: Sequence[str] | Mapping[str, object]) -> str:
    return ", ".join(names) or "none"


def _directions(frame: pl.DataFrame, table: RatedTable, where: str) -> tuple[list[str | None], set[str]]:
    """Return each row's direction, and the columns that it was read from."""
    configured = None if table.direction is None else parse_direction(table.direction)
    values, used = _column_directions(frame, table, where)
    directions = []
    for value in values:
        direction = parse_direction(value) if value else None
        if value and direction is None:
            raise SourceError(f"{where}: {value!r} is not a direction; give language codes such as `zh-en`.")
        if configured and direction not in {None, configured}:
            raise SourceError(
                f"{where} has rows of {direction}, but `direction` is {configured}; remove `direction=...`."
            )
        directions.append(direction or configured)
    if not used and configured is None:
        raise SourceError(
            f'{where} has no column of directions ({_join_names(DIRECTIONS)}); set `direction=...`, such as "zh-en".'
        )
    return directions, used


def _column_directions(frame: pl.DataFrame, table: RatedTable, where: str) -> tuple[list[str], set[str]]:
    column = _column("direction", DIRECTIONS, frame.columns, table, where)
    if column is not None:
        return [_text(value) for value in frame[column]], {column}
    for source, target in SPLIT_DIRECTIONS:
        if source in frame.columns and target in frame.columns:
            pairs = [(_text(a), _text(b)) for a, b in frame.select(source, target).iter_rows()]
            # `src` and `tgt` may be the texts themselves instead.
            if source != "src" or all(parse_direction(f"{a}-{b}") for a, b in pairs if a and b):
                return [f"{a}-{b}" if a and b else "" for a, b in pairs], {source, target}
    return [""] * frame.height, set()
