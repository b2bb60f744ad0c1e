"""Set up a rating study: what raters see, which pairs they rate, and who rates them (paper, section 3.2).

A rater of a pair rates both of its answers, as two rows in random order, so that a rater's severity affects both. No
file for raters shows which answer is the chosen one, or which row is an attention check.
"""

from pathlib import Path

import polars as pl
from pluralbench_release import content_digest, read_tables
from pluralbench_studies import (
    ASSIGNED,
    Form,
    Question,
    StudyError,
    assign,
    check_annotators,
    draw,
    draw_rows,
    item_ids,
    score,
    write_study,
)

from build_personalized.rating.recipe import RatingRecipe

SIDES = ("chosen", "rejected")
CHECK = "check"
KEY = ("config", "id", "side")
REQUIRED = ("id", "question", "rubric_aspects", *SIDES)
LOWEST, HIGHEST = 1, 5
TITLES = {
    "factuality": "Factuality and correctness",
    "relevance": "Relevance and instruction following",
    "helpfulness": "Helpfulness and harmlessness",
    "rubric": "What this person expects",
}
DIMENSIONS = tuple(TITLES)
RUBRIC = "rubric"
GENERAL = tuple(name for name in DIMENSIONS if name != RUBRIC)
FIELDS = {"question": "The question", "answer": "The answer", "expected": "What this person expects"}

# Label Studio shows the questions on general quality below the answer, before the rubric.
FORM = Form(
    FIELDS,
    [
        *(
            score(name, LOWEST, HIGHEST, title=TITLES[name], about="expected" if name == RUBRIC else "answer")
            for name in DIMENSIONS
        ),
        Question("remark", "Remark", optional=True),
    ],
)

GUIDE = Path(__file__).with_name("guide.md")


def export(folder: Path, settings: RatingRecipe, *, fresh: bool = False) -> str:
    """Write the sheets of a study, and return what the folder has (see `pluralbench_studies.write_study`).

    Raises:
        TablesError: The pairs cannot be read.
        StudyError: The pairs cannot be rated.
    """
    check_annotators(settings.annotators)
    frames = read_pairs(settings.data)
    settings = settings.model_copy(update={"digests": {name: content_digest(frame) for name, frame in frames.items()}})
    drawn = pl.concat(
        draw_rows(frame, settings.limit, settings.seed, "rated", config).with_columns(config=pl.lit(config))
        for config, frame in frames.items()
    ).with_columns(pair=pl.concat_str("config", "id", separator="/"))
    rated = [drawn.with_columns(side=pl.lit(side), answer=pl.col(side)) for side in SIDES]
    items = pl.concat([*rated, _checks(drawn, settings)], how="diagonal")
    items = item_ids(items, ["pair", "side"], settings.seed, sorted(settings.digests.items()))
    assigned_pairs = assign(
        drawn.select(item="pair"),
        settings.annotators,
        seed=settings.seed,
        annotators_per_item=settings.annotators_per_item,
    )
    real, checks = items.filter(pl.col("side") != CHECK), items.filter(side=CHECK)
    assigned = assigned_pairs.rename({"item": "pair"}).join(
        real.select("pair", "item"), on="pair", maintain_order="left_right"
    )
    raters = pl.DataFrame({"annotator": sorted(settings.annotators)})
    assigned_checks = checks.select("item").join(raters, how="cross").with_columns(kind=pl.lit(CHECK))
    assigned = pl.concat([assigned.select(ASSIGNED.names()), assigned_checks.select(ASSIGNED.names())])
    return write_study(folder, settings, items, KEY, FORM, GUIDE, assigned=assigned, fresh=fresh)


def read_pairs(location: str) -> dict[str, pl.DataFrame]:
    """Read the fields of pairs that raters see, by config; `expected` has the aspects of the rubric, one per line.

    Raises:
        TablesError: The tables cannot be read.
        StudyError: A table lacks a column, or a pair has no aspects.
    """
    tables = read_tables(location)
    return {config: _rated_fields(frame, tables.paths[config]) for config, frame in tables.frames.items()}


def _rated_fields(frame: pl.DataFrame, where: str) -> pl.DataFrame:
    missing = [name for name in REQUIRED if name not in frame.columns]
    if missing:
        raise StudyError(
            f"{where} has no column `{missing[0]}`; ratings need {', '.join(REQUIRED)}, as in a release of "
            "build-personalized."
        )
    kind = frame.schema["rubric_aspects"]
    if not (isinstance(kind, pl.List) and isinstance(kind.inner, pl.Struct) and "aspect" in pl.Schema(kind.inner)):
        raise StudyError(f"{where}: `rubric_aspects` is not a list of aspects; its type is {kind}.")
    no_aspects = frame.filter(pl.col("rubric_aspects").list.len().fill_null(0) == 0)
    if no_aspects.height:
        raise StudyError(f"{where}: the pair {no_aspects['id'][0]} has no aspects to rate by; remove it.")
    aspects = pl.col("rubric_aspects").list.eval("• " + pl.element().struct.field("aspect")).list.join("\n")
    return frame.select(pl.col("id").cast(pl.String), "question", *SIDES, expected=aspects)


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
    return pl.DataFrame(checks, schema=pairs.schema | {"answer": pl.String, "side": pl.String})
