"""A rating study: which pairs, who rates them, and what the sheets show.

A rater who gets a pair rates both of its answers, as two rows of an order that is drawn, so that a severe rater is as
severe on the one as on the other. No file for raters says which answer is chosen, or which row is a check.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import polars as pl
from pluralbench_release import content_digest, read_tables
from pluralbench_runs import Location, UserError, digest
from pluralbench_studies import ASSIGNED, StudyRecipe, annotator_names, assign, draw, write_study
from pydantic import Field

from build_personalized.rating.form import FORM, GUIDE

SIDES = ("chosen", "rejected")
CHECK = "check"
KEY = pl.Schema(dict.fromkeys(("item", "config", "id", "side"), pl.String))
NEEDED = ("id", "question", "rubric_aspects", *SIDES)


class RatingError(UserError):
    """A release that cannot be rated, or a study that is none of ratings."""


class RatingRecipe(StudyRecipe):
    """The settings of a rating study, said before it starts.

    data: where the pairs were read from. digests: of what the sheets show of them, by config. limit: at most so many
    pairs of each config, drawn; all without it. checks: answers to another question that every rater gets, whose
    relevance is poor. margin: mean ratings are equivalent where they differ by less. alpha: the level of every test.
    """

    operational: ClassVar[frozenset[str]] = StudyRecipe.operational | {"data"}

    data: Location
    digests: dict[str, str] = Field(default_factory=dict)
    limit: int | None = Field(None, ge=1)
    checks: int = Field(4, ge=0)
    margin: float = Field(gt=0, lt=4)
    alpha: float = Field(0.05, gt=0, lt=0.5)


def export(folder: Path, settings: RatingRecipe, *, fresh: bool = False) -> tuple[RatingRecipe, bool]:
    """Write the study's sheets to `folder`; the settings with the digests, and whether it was not there before.

    See `pluralbench_studies.write_study`. Raises also `TablesError` and `RatingError` for pairs that cannot be rated.
    """
    annotator_names(settings.annotators)
    frames = pairs_of(settings.data)
    settings = settings.model_copy(update={"digests": {name: content_digest(frame) for name, frame in frames.items()}})
    drawn = _drawn(frames, settings.limit, settings.seed)
    given = assign(
        drawn.select(item="pair"), sorted(settings.annotators), seed=settings.seed, each=settings.each, check_share=0.0
    )
    rated = pl.concat([_answers(drawn, side, settings) for side in SIDES])
    assigned = given.rename({"item": "pair"}).join(rated.select("pair", "item"), on="pair", maintain_order="left_right")
    checks = _checks(drawn, settings)
    everybody = pl.DataFrame({"annotator": sorted(settings.annotators)})
    also = checks.select("item").join(everybody, how="cross").with_columns(kind=pl.lit(CHECK))
    items = pl.concat([rated, checks])
    new = write_study(
        folder,
        settings,
        pl.concat([assigned.select(ASSIGNED.names()), also.select(ASSIGNED.names())]),
        items.select(KEY.names()),
        items.select("item", *FORM.fields),
        FORM,
        GUIDE,
        fresh=fresh,
    )
    return settings, new


def pairs_of(location: str) -> dict[str, pl.DataFrame]:
    """What raters are to see of the pairs at a location that `read_tables` takes, by config.

    Columns `id`, `question`, `expected` (the rubric's aspects, a line each), `chosen` and `rejected`. Raises
    `TablesError`, and `RatingError` for a table without these or with a pair without aspects.
    """
    read = read_tables(location)
    return {config: _shown(frame, read.paths[config]) for config, frame in read.frames.items()}


def _shown(frame: pl.DataFrame, where: str) -> pl.DataFrame:
    missing = [name for name in NEEDED if name not in frame.columns]
    if missing:
        raise RatingError(
            f"{where} has no column `{missing[0]}`; ratings need {', '.join(NEEDED)}, as a release of "
            "build-personalized has them."
        )
    kind = frame.schema["rubric_aspects"]
    if not (isinstance(kind, pl.List) and isinstance(kind.inner, pl.Struct) and "aspect" in pl.Schema(kind.inner)):
        raise RatingError(f"{where}: `rubric_aspects` is no list of aspects; it is {kind}.")
    bare = frame.filter(pl.col("rubric_aspects").list.len().fill_null(0) == 0)
    if bare.height:
        raise RatingError(f"{where}: the pair {bare['id'][0]} has no aspects to be rated by; leave it out.")
    aspects = pl.col("rubric_aspects").list.eval("• " + pl.element().struct.field("aspect")).list.join("\n")
    return frame.select(pl.col("id").cast(pl.String), "question", *SIDES, expected=aspects)


def _drawn(frames: Mapping[str, pl.DataFrame], limit: int | None, seed: int) -> pl.DataFrame:
    """The pairs that are rated, with `config` and `pair`, which names them."""
    parts = []
    for config, frame in frames.items():
        ids: Sequence[str] = frame["id"].to_list()
        kept = draw(ids, len(ids) if limit is None else limit, seed, "rated", config)
        parts.append(frame.filter(pl.col("id").is_in(kept)).with_columns(config=pl.lit(config)))
    return pl.concat(parts).with_columns(pair=pl.concat_str("config", "id", separator="/"))


def _answers(pairs: pl.DataFrame, side: str, settings: RatingRecipe) -> pl.DataFrame:
    return pairs.select(
        "pair",
        _name(pairs, side, settings),
        "config",
        "id",
        "question",
        "expected",
        side=pl.lit(side),
        answer=pl.col(side),
    )


def _checks(pairs: pl.DataFrame, settings: RatingRecipe) -> pl.DataFrame:
    """Questions with the answer to another one, of another config where there are several."""
    order = draw(pairs["pair"].to_list(), pairs.height, settings.seed, "checks")
    rows = pairs.rows_by_key("pair", named=True, unique=True, include_key=True)
    found = []
    for place, pair in enumerate(order[: settings.checks]):
        asked = rows[pair]
        others = [rows[name] for name in [*order[place + 1 :], *order[:place]]]
        elsewhere = [row for row in others if row["config"] != asked["config"]] or others
        if elsewhere:
            found.append(asked | {"answer": elsewhere[0]["chosen"], "side": CHECK})
    frame = pl.DataFrame(found, schema=pairs.schema | {"answer": pl.String, "side": pl.String})
    return frame.select("pair", _name(frame, CHECK, settings), "config", "id", "question", "expected", "side", "answer")


def _name(pairs: pl.DataFrame, side: str, settings: RatingRecipe) -> pl.Series:
    """Names that say nothing of the answer, and that no other study has."""
    digests = sorted(settings.digests.items())
    names = [digest([settings.seed, digests, pair, side])[:12] for pair in pairs["pair"]]
    return pl.Series("item", names, dtype=pl.String)
