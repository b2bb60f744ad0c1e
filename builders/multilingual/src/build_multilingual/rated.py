"""Rated translations: for each source sentence several translations, each with a score.

Four shapes are told apart by their columns: a translation a row (MAPLE), an error of a translation a row (MQM as WMT
publishes it), a source a row with a list of candidates (MQM ratings grouped by source), and a source a row with a
machine translation and its post-edit (MLQE-PE).
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from pluralbench_release import Source, content_digest, read_tables
from pluralbench_release.errors import SourceError
from pluralbench_runs import digest, public_location
from pluralbench_tables import Dialect, TableFileError, parse_json

from build_multilingual import mqm
from build_multilingual.detokenized import detokenize
from build_multilingual.recipe import RatedTable, Scale, direction_of
from build_multilingual.source import OF_SAMPLE, SAMPLE

TEXTS = ("translation", "mt", "target", "hypothesis", "text")
SOURCES = ("source", "src", "source_text")
SYSTEMS = ("system", "system_id", "model")
CANDIDATES = ("candidates", "translations")
DIRECTIONS = ("direction", "lp", "language_pair", "lang_pair")
SPLIT_DIRECTIONS = (("source_lang", "target_lang"), ("src_lang", "tgt_lang"), ("src", "tgt"))

TEXT_COLUMNS = ("direction", "source", "system", "translation")
RATED = pl.Schema(dict.fromkeys(TEXT_COLUMNS, pl.String) | dict.fromkeys(("score", "raw_score"), pl.Float64))


# The known columns of scores; where a file has several, the first one here is taken.
SCALES = {
    # MAPLE, Likert: the paper's 5 and 10 % of the range, though hard pairs are the closer ones (section B.6).
    "score": Scale(better="higher", easy=0.25, hard=0.5),
    # MQM: a minor error costs 1, a major one 5, so nearly all differences are sums of these. An easy pair is a major
    # error apart, and a hard one a minor error: below that lie 0.1 for punctuation, and 1.5 leaves 103 of WMT21's 236
    # en-de sources, 2.5 (the paper's 10 %) leaves 83, too few for 100 pairs.
    "mqm_penalty": Scale(better="lower", easy=5.0, hard=1.0),
    # Post-edits leave two candidates, so a hard pair is one of at least 0.15 and less than 0.4. In an easy pair two
    # words in five were changed (of MLQE-PE's 1000 sources, 156 in en-de and 324 in en-zh); below 0.15, one word or
    # the punctuation of a short sentence. From 0.5 on en-de has 90 pairs, too few for 100.
    "hter": Scale(better="lower", easy=0.4, hard=0.15),
    # Direct assessment: the paper's 5 and 10 % of the range.
    "da_mean": Scale(better="higher", easy=5.0, hard=10.0),
}
Row = dict[str, Any]
LIMITS = {"score": (1, 6), "mqm_penalty": (0, math.inf), "hter": (0, math.inf), "da_mean": (0, 100)}


@dataclass(frozen=True)
class Rated:
    """Rated translations, each text of a source once.

    frame: columns of `RATED`; `direction` is such as `zh-en`; in `score` higher is better, `raw_score` is the file's.
    score: the name of the score's column in the file.
    left_out: how many translations are not in `frame`, by reason. Those of a text that its source has already are
    counted as "repeated translation"; the score that is kept is the mean.
    """

    frame: pl.DataFrame
    scale: Scale
    score: str
    source: Source
    left_out: dict[str, int]


def read(table: RatedTable) -> Rated:
    """Read rated translations; every config of the location, one after the other.

    Raises `SourceError` for a location that cannot be read, for columns that are not there, and when the scores or
    the direction are not known and not given.
    """
    dialect = Dialect(table.separator, table.quoting)
    sample = table.location == "sample"
    place = str(SAMPLE / "translations.jsonl") if sample else table.location
    tables = read_tables(place, split=table.split, dialect=dialect)
    score, rows = "", list[Row]()
    for config, frame in tables.frames.items():
        where = tables.paths[config]
        found, candidates = _candidates(frame, table, where)
        if score not in {"", found}:
            raise SourceError(f"{table.location} is rated by `{score}` and by `{found}`; say which in `score`.")
        score = found
        rows += candidates
    scale = table.scale or SCALES[score]
    faults = [_fault(row) for row in rows]
    left_out = Counter(fault for fault in faults if fault)
    good = [row for row, fault in zip(rows, faults, strict=True) if not fault]
    if not good:
        raise SourceError(f"{table.location}: no row has a source, a translation and a number as its `{score}`.")
    if table.scale is None:
        _check_limits(good, score, table.location)
    frame = merged(pl.DataFrame([_scored(row, scale) for row in good], schema=RATED))
    if frame.height < len(good):
        left_out["repeated translation"] = len(good) - frame.height
    name = table.name or public_location(tables.location)
    source = Source(
        name=name,
        location=tables.location,
        revision=tables.revision,
        digest=_rows_digest(frame),
        rows=frame.height,
        license=tables.license or table.license or "unknown",
        attribution=table.attribution or name,
    ).model_copy(update=OF_SAMPLE if sample else {})
    return Rated(frame, scale, score, source, dict(sorted(left_out.items())))


def merged(rated: pl.DataFrame) -> pl.DataFrame:
    """Each text of a source once, where it stands first, with the mean of its scores."""
    groups = rated.rows_by_key(["direction", "source", "translation"], named=True, include_key=True)
    means = (
        rows[0] | {name: math.fsum(row[name] for row in rows) / len(rows) for name in ("score", "raw_score")}
        for rows in groups.values()
    )
    return pl.DataFrame(list(means), schema=RATED)


def _scored(row: Row, scale: Scale) -> Row:
    raw = row["raw_score"]
    return row | {"score": raw if scale.better == "higher" else 0.0 - raw}  # -raw would make -0.0 of 0


def _rows_digest(frame: pl.DataFrame) -> str:
    ids = [digest(list(row)) for row in frame.select("direction", "source", "translation").iter_rows()]
    return content_digest(frame.with_columns(id=pl.Series(ids, dtype=pl.String)))


def _fault(row: Row) -> str | None:
    """Why a row cannot be used."""
    missing = {"direction": "no direction", "source": "no source", "translation": "empty translation"}
    fault = next((reason for name, reason in missing.items() if not row[name]), None)
    return fault or ("no score" if row["raw_score"] is None else None)


def _check_limits(rows: Sequence[Row], score: str, where: str) -> None:
    low, high = LIMITS[score]
    for value in (row["raw_score"] for row in rows):
        if not low <= value <= high:
            known = f"{low} to {high}" if math.isfinite(high) else f"{low} and more"
            raise SourceError(
                f"{where}: `{score}` {value:g} is not on the scale known by that name ({known}); give `scale`."
            )


def _candidates(frame: pl.DataFrame, table: RatedTable, where: str) -> tuple[str, list[Row]]:
    """The score's column, and the translations of a table in whichever of the four shapes."""
    if mqm.is_raw(frame):
        frame = mqm.rated(frame, where)
    directions, used = _directions(frame, table, where)
    columns = [name for name in frame.columns if name not in used]
    source = _column("source", SOURCES, columns, table, where)
    if source is None:
        raise SourceError(f"{where} has no column of source texts ({_listed(SOURCES)}); {_has(columns, 'source')}")
    sources = list(zip(directions, map(_text, frame[source]), strict=True))
    nested = _column("candidates", CANDIDATES, columns, table, where)
    if nested is not None:
        lists = [_objects(value, nested, where) for value in frame[nested].to_list()]
        names = list(dict.fromkeys(name for objects in lists for item in objects for name in item))
        inside = f"{where} (`{nested}`)"
        score, text, system = _columns(names, table, inside)
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
    """The columns of the score, the translation and the system."""
    score = _score(names, table, where)
    text = _column("translation", TEXTS, names, table, where)
    if text is None:
        raise SourceError(
            f"{where} has neither a column of translations ({_listed(TEXTS)}) nor a list of candidates "
            f"({_listed(CANDIDATES)}); {_has(names, 'translation')}"
        )
    return score, text, _column("system", SYSTEMS, names, table, where)


def _numbered(rows: Iterable[tuple[Any, ...]]) -> list[Row]:
    """Rows of plain values; candidates without a system are numbered within their source."""
    seen, named = Counter[tuple[str, str]](), []
    for direction, source, system, text, score in rows:
        seen[direction, source] += 1
        values = (direction, source, _text(system) or str(seen[direction, source]), _text(text), _number(score))
        named.append(dict(zip((*TEXT_COLUMNS, "raw_score"), values, strict=True)))
    return named


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()


def _number(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _objects(value: object, column: str, where: str) -> list[Mapping[str, Any]]:
    """A list of candidates, which in a CSV is a string of JSON."""
    if value is None or value == "":
        return []
    try:
        found = parse_json(value, where) if isinstance(value, str) else value
    except TableFileError:
        found = None
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise SourceError(f"{where}: `{column}` is not a list of objects with a translation and a score.")
    return found


def _column(role: str, known: Sequence[str], columns: Sequence[str], table: RatedTable, where: str) -> str | None:
    """The column of a role: as the recipe names it, else the first known name that is there."""
    named = table.columns.get(role)
    if named is None:
        return next((name for name in known if name in columns), None)
    if named not in columns:
        raise SourceError(f"{where} has no column `{named}`, which `columns` names as the {role}; {_has(columns)}")
    return named


def _score(columns: Sequence[str], table: RatedTable, where: str) -> str:
    if table.score is None:
        score = next((name for name in SCALES if name in columns), None)
        if score is None:
            raise SourceError(
                f"{where} has no known column of scores ({_listed(SCALES)}); it has {_listed(columns)}: "
                "give `score` and `scale`."
            )
        return score
    if table.score not in columns:
        raise SourceError(f"{where} has no column `{table.score}`, which `score` names; {_has(columns)}")
    if table.score not in SCALES and table.scale is None:
        raise SourceError(
            f"{where}: the scale of `{table.score}` is not known (known are {_listed(SCALES)}); "
            "give `scale` with better, easy and hard."
        )
    return table.score


def _has(columns: Sequence[str], role: str | None = None) -> str:
    return f"it has {_listed(columns)}{f': name it in `columns.{role}`' if role else ''}."


def _listed(names: Sequence[str] | Mapping[str, object]) -> str:
    return ", ".join(names) or "none"


def _directions(frame: pl.DataFrame, table: RatedTable, where: str) -> tuple[list[str | None], set[str]]:
    """Each row's direction, and the columns that say it."""
    given = None if table.direction is None else direction_of(table.direction)
    values, used = _stated_directions(frame, table, where)
    directions = []
    for value in values:
        stated = direction_of(value) if value else None
        if value and stated is None:
            raise SourceError(f"{where}: {value!r} is no direction; give codes of languages such as `zh-en`.")
        if given and stated not in {None, given}:
            raise SourceError(
                f"{where} has rows of {stated}, and `direction` says {given}; leave it out for files that say theirs."
            )
        directions.append(stated or given)
    if not used and given is None:
        raise SourceError(
            f"{where} does not say which languages it translates ({_listed(DIRECTIONS)}); give `direction`, "
            "such as `zh-en`."
        )
    return directions, used


def _stated_directions(frame: pl.DataFrame, table: RatedTable, where: str) -> tuple[list[str], set[str]]:
    one = _column("direction", DIRECTIONS, frame.columns, table, where)
    if one is not None:
        return [_text(value) for value in frame[one]], {one}
    for source, target in SPLIT_DIRECTIONS:
        if source in frame.columns and target in frame.columns:
            pairs = [(_text(a), _text(b)) for a, b in frame.select(source, target).iter_rows()]
            # `src` and `tgt` may also be the texts themselves.
            if source != "src" or all(direction_of(f"{a}-{b}") for a, b in pairs if a and b):
                return [f"{a}-{b}" if a and b else "" for a, b in pairs], {source, target}
    return [""] * frame.height, set()
