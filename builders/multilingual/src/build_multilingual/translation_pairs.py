"""Build the config `translation`: a better and a worse translation of each sentence (M-RewardBench, section 3.2).

The minimum differences are those of the score's scale. On MAPLE's scale the paper's minimum is larger for hard pairs
(0.50) than for easy ones (0.25), although hard pairs should be close to each other. Both can be set.
"""

import tomllib
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_release.errors import SourceError
from pluralbench_runs import digest, rng_for
from pluralbench_schemas import TRANSLATION_PAIRS, language_of

from build_multilingual.rated import RATED, RatedTranslations, merge_repeated
from build_multilingual.recipe import Scale

TEMPLATES: list[str] = tomllib.loads(Path(__file__).with_name("templates.toml").read_text(encoding="utf-8"))[
    "templates"
]
LEVELS = ("easy", "hard")
DECIMALS = 9  # of differences, so that 1.2 - 0.2 equals 1

PAIRS = TRANSLATION_PAIRS.columns
DRAWN = ("id", "prompt", "subset", "template")
CANDIDATES = pl.Schema({"direction": pl.String} | {name: kind for name, kind in PAIRS.items() if name not in DRAWN})

Row = dict[str, Any]


def candidates(rated: pl.DataFrame, scale: Scale, level: str) -> pl.DataFrame:
    """Choose the pair of each source at a level, in the order of `rated` (columns of `rated.RATED`).

    - easy: the best and the worst translation, if they are at least `scale.easy` apart.
    - hard: two translations without the best and the worst (the middle three of five): the closest pair that is at
    least `scale.hard` apart, and the better one of equally close pairs. A source with two translations has these two,
    if they are at least `scale.hard` and less than `scale.easy` apart; a source with three has none.

    Translations with equal scores are ordered by their digests.

    Returns:
        Columns of `CANDIDATES` with the scores of the file (`raw_score`); sources without a pair are left out.
    """
    choose_pair = {"easy": _easy, "hard": _hard}[level]
    groups = rated.rows_by_key(["direction", "source"], named=True, include_key=True)
    pairs = []
    for (direction, source), rows in groups.items():
        pair = choose_pair(sorted(rows, key=lambda row: (-row["score"], digest(row["translation"]))), scale)
        if pair is not None:
            pairs.append({"direction": direction, "source": source} | _sides(*pair))
    return pl.DataFrame(pairs, schema=CANDIDATES)


def draw(rated: Sequence[RatedTranslations], *, per_level: int, seed: int) -> pl.DataFrame:
    """Draw pairs for each direction and level (columns of `PAIRS`), with ids from 0 in the order of the subsets.

    Sources are drawn without replacement, by the smallest digests of seed and source; templates with replacement, from
    a random stream per source. An additional source changes only the draw that it replaces.

    Raises:
        SourceError: There are too few pairs, a direction has an unknown language, or tables of one direction have
            different scores or scales.
    """
    rows: list[Row] = []
    for direction, frame, scale in _pool_tables(rated):
        codes = zip(("source_language", "target_language"), direction.split("-"), strict=True)
        languages = {name: _language_name(code) for name, code in codes}
        for level in LEVELS:
            available = candidates(frame, scale, level)
            if available.height < per_level:
                raise _too_few(direction, level, available.height, per_level, frame, scale)
            pairs = sorted(
                available.drop("direction").iter_rows(named=True),
                key=lambda pair: digest([seed, "translation pairs", direction, level, pair["source"]]),
            )
            for pair in pairs[:per_level]:
                index = rng_for(seed, "template", direction, level, pair["source"]).randrange(len(TEMPLATES))
                prompt = TEMPLATES[index].format(source=pair["source"], **languages)
                subset = f"translation-{direction}-{level}"
                rows.append(pair | {"id": len(rows), "prompt": prompt, "subset": subset, "template": index})
    return pl.DataFrame(rows, schema=PAIRS)


def _language_name(code: str) -> str:
    language = language_of(code)
    if language is None:
        raise SourceError(f"The direction of the rated translations has an unknown language: {code!r}.")
    return language.short_name


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


def _pool_tables(rated: Sequence[RatedTranslations]) -> Iterator[tuple[str, pl.DataFrame, Scale]]:
    """Yield each direction, in order of name, with its ratings and their scale."""
    by_direction: dict[str, list[RatedTranslations]] = {}
    for table in rated:
        for direction in table.frame["direction"].unique(maintain_order=True):
            by_direction.setdefault(direction, []).append(table)
    for direction, tables in sorted(by_direction.items()):
        first = tables[0]
        for other in tables[1:]:
            where = f"{direction} is rated in {first.source.location} and in {other.source.location}"
            if other.score != first.score:
                raise SourceError(
                    f"{where}, by `{first.score}` and by `{other.score}`; remove one table, or set the same `score`."
                )
            if other.scale != first.scale:
                raise SourceError(f"{where}, with different scales; set the same `scale`.")
        parts = [table.frame.filter(pl.col("direction") == direction) for table in tables]
        pooled = parts[0] if len(parts) == 1 else merge_repeated(pl.concat(parts).select(RATED.names()))
        yield direction, pooled, first.scale


def _too_few(
    direction: str, level: str, available: int, per_level: int, frame: pl.DataFrame, scale: Scale
) -> SourceError:
    sizes = frame.group_by("source").len()["len"]
    if (sizes == 1).all():
        return SourceError(
            f"{direction}: each of the {sizes.len()} sources has one translation, but a pair needs two; use a table "
            "with several rated translations per source."
        )
    below = f", and less than {scale.easy:g}" if level == "hard" and (sizes <= 2).all() else ""
    return SourceError(
        f"{direction} {level}: only {available} of {per_level} pairs are available ({sizes.len()} sources; least "
        f"difference: {getattr(scale, level):g}{below}); lower `translation.per_level=...`, or `{level}` in "
        "`scale=...`."
    )
