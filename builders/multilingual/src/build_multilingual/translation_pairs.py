"""The `translation` config: of each source sentence a better and a worse translation (M-RewardBench, section 3.2).

The least differences are those of the score's scale. On MAPLE's scale the paper asks more of hard pairs (0.50) than
of easy ones (0.25), although hard pairs are said to be close to one another; both can be set, so either reading can
be built.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

import polars as pl
from pluralbench_release.errors import SourceError
from pluralbench_runs import digest, rng_for
from pluralbench_schemas import TranslationPairs

from build_multilingual.rated import RATED, Rated, merged
from build_multilingual.recipe import Scale
from build_multilingual.templates import TEMPLATES

LEVELS = ("easy", "hard")
DECIMALS = 9  # of differences: 1.2 - 0.2 is a point, however floats are rounded

PAIRS = TranslationPairs.row_types()
DRAWN = ("id", "prompt", "subset", "template")
CANDIDATES = pl.Schema({"direction": pl.String} | {name: kind for name, kind in PAIRS.items() if name not in DRAWN})

Row = dict[str, Any]


def candidates(rated: pl.DataFrame, scale: Scale, level: str) -> pl.DataFrame:
    """The pair of each source that has one at `level`; columns of `CANDIDATES`, sources in the order of `rated`.

    rated: columns of `build_multilingual.rated.RATED`, each text of a source once. The scores of the pairs are those
    of the file (`raw_score`).

    - easy: the best and the worst translation, at least `scale.easy` apart.
    - hard: two of those that remain without the best and the worst (the middle three of five): of the pairs that
      are at least `scale.hard` apart the closest, and of equally close ones the better. Two translations leave no
      middle, so of such a source it is these two, when they are at least `scale.hard` and less than `scale.easy`
      apart; three leave one, which makes no pair.

    Translations with the same score come in the order of their digests, which decides who is best or worst.
    """
    pairs = {"easy": _easy, "hard": _hard}[level]
    groups = rated.rows_by_key(["direction", "source"], named=True, include_key=True)
    found = []
    for (direction, source), rows in groups.items():
        pair = pairs(sorted(rows, key=lambda row: (-row["score"], digest(row["translation"]))), scale)
        if pair is not None:
            found.append({"direction": direction, "source": source} | _sides(*pair))
    return pl.DataFrame(found, schema=CANDIDATES)


def draw(rated: Sequence[Rated], *, per_level: int, seed: int, language_name: Callable[[str], str]) -> pl.DataFrame:
    """`per_level` pairs of each direction and level; columns of `PAIRS`, ids from 0 in the order of the subsets.

    language_name: the English name of a language by its code in a direction (`zh`).

    Sources are drawn without replacement, those of the smallest digests of seed and source, and templates with
    replacement, from a stream of each source's own: another source changes no draw but that of a place it takes.

    Raises `SourceError` when there are too few pairs, and when the tables of one direction are rated on several
    scales.
    """
    rows: list[Row] = []
    for direction, frame, scale in _pooled(rated):
        source_code, target_code = direction.split("-")
        languages = {"source_language": language_name(source_code), "target_language": language_name(target_code)}
        for level in LEVELS:
            found = candidates(frame, scale, level)
            if found.height < per_level:
                raise _too_few(direction, level, found.height, per_level, frame, scale)
            pairs = sorted(
                found.drop("direction").iter_rows(named=True),
                key=lambda pair: digest([seed, "translation pairs", direction, level, pair["source"]]),
            )
            for pair in pairs[:per_level]:
                index = rng_for(seed, "template", direction, level, pair["source"]).randrange(len(TEMPLATES))
                prompt = TEMPLATES[index].format(source=pair["source"], **languages)
                subset = f"translation-{direction}-{level}"
                rows.append(pair | {"id": len(rows), "prompt": prompt, "subset": subset, "template": index})
    return pl.DataFrame(rows, schema=PAIRS)


def _easy(rows: Sequence[Row], scale: Scale) -> tuple[Row, Row] | None:
    best, worst = rows[0], rows[-1]
    return (best, worst) if _difference(best, worst) >= scale.easy else None


def _hard(rows: Sequence[Row], scale: Scale) -> tuple[Row, Row] | None:
    if len(rows) == 2:
        return (rows[0], rows[1]) if scale.hard <= _difference(*rows) < scale.easy else None
    apart = [pair for pair in combinations(rows[1:-1], 2) if _difference(*pair) >= scale.hard]
    return min(apart, key=lambda pair: _difference(*pair), default=None)


def _difference(better: Row, worse: Row) -> float:
    return round(float(better["score"] - worse["score"]), DECIMALS)


def _sides(chosen: Row, rejected: Row) -> Row:
    sides = {"chosen": chosen, "rejected": rejected}
    columns = {"": "translation", "_system": "system", "_score": "raw_score"}
    return {f"{side}{end}": row[name] for end, name in columns.items() for side, row in sides.items()}


def _pooled(rated: Sequence[Rated]) -> Iterator[tuple[str, pl.DataFrame, Scale]]:
    """The ratings of each direction, by their names, with their scale."""
    by_direction: dict[str, list[Rated]] = {}
    for table in rated:
        for direction in table.frame["direction"].unique(maintain_order=True):
            by_direction.setdefault(direction, []).append(table)
    for direction, tables in sorted(by_direction.items()):
        first = tables[0]
        for other in tables[1:]:
            where = f"{direction} is rated in {first.source.location} and in {other.source.location}"
            if other.score != first.score:
                raise SourceError(
                    f"{where}, by `{first.score}` and by `{other.score}`; leave one of them out, or give both the "
                    "same `score`."
                )
            if other.scale != first.scale:
                raise SourceError(f"{where}, with another `scale`; give both the same.")
        parts = [table.frame.filter(pl.col("direction") == direction) for table in tables]
        yield direction, parts[0] if len(parts) == 1 else merged(pl.concat(parts).select(RATED.names())), first.scale


def _too_few(direction: str, level: str, found: int, per_level: int, frame: pl.DataFrame, scale: Scale) -> SourceError:
    sizes = frame.group_by("source").len()["len"]
    if (sizes == 1).all():
        return SourceError(
            f"{direction}: each of the {sizes.len()} sources has one translation, and a pair needs two of one source; "
            "give a table that rates several translations of each."
        )
    asked = f"at least {getattr(scale, level):g}"
    if level == "hard" and (sizes <= 2).all():
        asked += f" and less than {scale.easy:g}"
    return SourceError(
        f"{direction} {level}: {found} of the {per_level} pairs asked for can be made ({sizes.len()} sources; a "
        f"difference of {asked} is asked for); lower `per_level` or `scale.{level}`."
    )
