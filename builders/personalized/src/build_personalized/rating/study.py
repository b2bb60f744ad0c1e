"""Set up a rating study: draw pairs, assign raters, write sheets.

A rater of a pair rates both of its answers, as two rows in random order, so that a rater's severity affects both. No
file for raters shows which answer is the chosen one, or which row is an attention check.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import polars as pl
from pluralbench_release import content_digest, read_tables
from pluralbench_runs import Location, UserError, digest
from pluralbench_studies import ASSIGNED, StudyRecipe, assign, check_annotators, draw, write_study
from pydantic import Field

from build_personalized.rating.form import FORM, GUIDE

SIDES = ("chosen", "rejected")
CHECK = "check"
KEY = pl.Schema(dict.fromkeys(("item", "config", "id", "side"), pl.String))
REQUIRED = ("id", "question", "rubric_aspects", *SIDES)


class RatingError(UserError):
    """Release that cannot be rated, or damaged or insufficient results of a rating study."""


class RatingRecipe(StudyRecipe):
    """Settings of a rating study, fixed before it starts.

    Attributes:
        data: Location of the pairs.
        digests: Content digest of the fields that the sheets show, by config.
        limit: Maximum number of pairs per config, drawn by the seed. Default: all.
        checks: Number of attention checks in every rater's sheet: answers to another question.
        margin: Mean ratings that differ by less are equivalent.
        alpha: Level of every test.
    """

    runtime_only: ClassVar[frozenset[str]] = StudyRecipe.runtime_only | {"data"}

    data: Location
    digests: dict[str, str] = Field(default_factory=dict)
    limit: int | None = Field(None, ge=1)
    checks: int = Field(4, ge=0)
    margin: float = Field(gt=0, lt=4)
    alpha: float = Field(0.05, gt=0, lt=0.5)


def export(folder: Path, settings: RatingRecipe, *, fresh: bool = False) -> tuple[RatingRecipe, bool]:
    """Write the sheets of a study to `folder` (see `pluralbench_studies.write_study`).

    Args:
        folder: Directory of the study.
        settings: Settings without digests.
        fresh: Replace a study whose sheets are still empty.

    Returns:
        The settings with the digests, and whether the study is new.

    Raises:
        TablesError: The pairs cannot be read.
        RatingError: The pairs cannot be rated.
    """
    check_annotators(settings.annotators)
    frames = read_pairs(settings.data)
    settings = settings.model_copy(update={"digests": {name: content_digest(frame) for name, frame in frames.items()}})
    drawn = _draw_pairs(frames, settings.limit, settings.seed)
    assigned_pairs = assign(
        drawn.select(item="pair"),
        sorted(settings.annotators),
        seed=settings.seed,
        annotators_per_item=settings.annotators_per_item,
        check_share=0.0,
    )
    rated = pl.concat([_answers(drawn, side, settings) for side in SIDES])
    assigned = assigned_pairs.rename({"item": "pair"}).join(
        rated.select("pair", "item"), on="pair", maintain_order="left_right"
    )
    checks = _checks(drawn, settings)
    raters = pl.DataFrame({"annotator": sorted(settings.annotators)})
    assigned_checks = checks.select("item").join(raters, how="cross").with_columns(kind=pl.lit(CHECK))
    items = pl.concat([rated, checks])
    new = write_study(
        folder,
        settings,
        pl.concat([assigned.select(ASSIGNED.names()), assigned_checks.select(ASSIGNED.names())]),
        items.select(KEY.names()),
        items.select("item", *FORM.fields),
        FORM,
        GUIDE,
        fresh=fresh,
    )
    return settings, new


def read_pairs(location: str) -> dict[str, pl.DataFrame]:
    """Read the fields of pairs that raters see.

    Args:
        location: Location of the pairs, as in `pluralbench_release.read_tables`.

    Returns:
        For each config the columns `id`, `question`, `expected` (the aspects of the rubric, one per line), `chosen` and
        `rejected`.

    Raises:
        TablesError: The tables cannot be read.
        RatingError: A table lacks a column, or a pair has no aspects.
    """
    tables = read_tables(location)
    return {config: _rated_fields(frame, tables.paths[config]) for config, frame in tables.frames.items()}


def _rated_fields(frame: pl.DataFrame, where: str) -> pl.DataFrame:
    missing = [name for name in REQUIRED if name not in frame.columns]
    if missing:
        raise RatingError(
            f"{where} has no column `{missing[0]}`; ratings need {', '.join(REQUIRED)}, as in a release of "
            "build-personalized."
        )
    kind = frame.schema["rubric_aspects"]
    if not (isinstance(kind, pl.List) and isinstance(kind.inner, pl.Struct) and "aspect" in pl.Schema(kind.inner)):
        raise RatingError(f"{where}: `rubric_aspects` is not a list of aspects; its type is {kind}.")
    no_aspects = frame.filter(pl.col("rubric_aspects").list.len().fill_null(0) == 0)
    if no_aspects.height:
        raise RatingError(f"{where}: the pair {no_aspects['id'][0]} has no aspects to rate by; remove it.")
    aspects = pl.col("rubric_aspects").list.eval("• " + pl.element().struct.field("aspect")).list.join("\n")
    return frame.select(pl.col("id").cast(pl.String), "question", *SIDES, expected=aspects)


def _draw_pairs(frames: Mapping[str, pl.DataFrame], limit: int | None, seed: int) -> pl.DataFrame:
    """Draw the pairs to rate, with the columns `config` and `pair` (their name)."""
    parts = []
    for config, frame in frames.items():
        ids: Sequence[str] = frame["id"].to_list()
        drawn = draw(ids, len(ids) if limit is None else limit, seed, "rated", config)
        parts.append(frame.filter(pl.col("id").is_in(drawn)).with_columns(config=pl.lit(config)))
    return pl.concat(parts).with_columns(pair=pl.concat_str("config", "id", separator="/"))


def _answers(pairs: pl.DataFrame, side: str, settings: RatingRecipe) -> pl.DataFrame:
    return pairs.select(
        "pair",
        _item_ids(pairs, side, settings),
        "config",
        "id",
        "question",
        "expected",
        side=pl.lit(side),
        answer=pl.col(side),
    )


def _checks(pairs: pl.DataFrame, settings: RatingRecipe) -> pl.DataFrame:
    """Pair questions with the answer to another question, of another config if there are several."""
    order = draw(pairs["pair"].to_list(), pairs.height, settings.seed, "checks")
    rows = pairs.rows_by_key("pair", named=True, unique=True, include_key=True)
    checks = []
    for place, pair in enumerate(order[: settings.checks]):
        question = rows[pair]
        others = [rows[name] for name in [*order[place + 1 :], *order[:place]]]
        elsewhere = [row for row in others if row["config"] != question["config"]] or others
        if elsewhere:
            checks.append(question | {"answer": elsewhere[0]["chosen"], "side": CHECK})
    frame = pl.DataFrame(checks, schema=pairs.schema | {"answer": pl.String, "side": pl.String})
    return frame.select(
        "pair", _item_ids(frame, CHECK, settings), "config", "id", "question", "expected", "side", "answer"
    )


def _item_ids(pairs: pl.DataFrame, side: str, settings: RatingRecipe) -> pl.Series:
    """Return ids that do not reveal the answer and are unique to the study."""
    digests = sorted(settings.digests.items())
    ids = [digest([settings.seed, digests, pair, side])[:12] for pair in pairs["pair"]]
    return pl.Series("item", ids, dtype=pl.String)
