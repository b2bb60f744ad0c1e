"""Read raw MQM ratings as published by WMT: one row for each error that a rater marked in a translation.

The penalty of a translation is the sum over its errors, averaged over its raters (Freitag et al., 2021, section 3.1).
"""

import polars as pl
from pluralbench_release.errors import SourceError
from pluralbench_runs import one_line
from polars.exceptions import PolarsError

COLUMNS = {"system", "rater", "source", "target", "category", "severity"}
SEGMENTS = ("doc", "doc_id", "docSegId", "seg_id", "globalSegId")
MARKS = "</?v>"  # around the error, in the translation or the source
WEIGHTS = {"major": 5.0, "minor": 1.0, "neutral": 0.0, "no-error": 0.0}
NON_TRANSLATION, PUNCTUATION = 25.0, 0.1


def score_translations(frame: pl.DataFrame, where: str) -> pl.DataFrame:
    """Aggregate errors to one row per translation of a segment, with its `mqm_penalty`.

    A segment is identified by its columns of `SEGMENTS`, or by its texts if there are none.

    Raises:
        SourceError: A severity has no weight, or a segment has several texts.
    """
    try:
        frame = frame.with_columns(pl.col(*COLUMNS).cast(pl.String))
    except PolarsError as error:
        raise SourceError(f"{where} is not a table of MQM errors: {one_line(error)}.") from None
    severity, category = (pl.col(name).str.strip_chars().str.to_lowercase() for name in ("severity", "category"))
    has_weight = severity.is_in([*WEIGHTS]).fill_null(value=False)
    if (unknown := frame.filter(~has_weight)).height:
        values = ", ".join(repr(value) for value in unknown["severity"].unique(maintain_order=True).head(3))
        raise SourceError(
            f"{where} has {unknown.height:,} errors of unknown severity ({values}); remove these rows. Severities are "
            "Major, Minor, Neutral and No-error."
        )
    weight = (
        pl.when((severity == "major") & category.str.starts_with("non-translation"))
        .then(NON_TRANSLATION)
        .when((severity == "minor") & (category == "fluency/punctuation"))
        .then(PUNCTUATION)
        .otherwise(severity.replace_strict(WEIGHTS, default=None, return_dtype=pl.Float64))
    )
    unmarked = pl.col("source", "target").str.replace_all(MARKS, "").str.replace_all(" {2,}", " ").str.strip_chars()
    rows = frame.with_columns(unmarked, weight.alias("mqm_penalty"))
    segment = ["system", *(name for name in SEGMENTS if name in frame.columns)]
    if len(segment) == 1:
        segment += ["source", "target"]
    else:
        texts = rows.group_by(segment, maintain_order=True).agg(pl.col("source", "target").n_unique())
        several = texts.filter((pl.col("source") > 1) | (pl.col("target") > 1)).select(segment)
        if several.height:
            values = ", ".join(f"{name} {value}" for name, value in several.row(0, named=True).items())
            raise SourceError(f"{where} has several texts for one translation ({values}); fix or remove its rows.")
    others = [name for name in frame.columns if name not in {*segment, "rater", "category", "severity"}]
    by_rater = rows.group_by([*segment, "rater"], maintain_order=True).agg(
        pl.col(others).first(), pl.col("mqm_penalty").sum()
    )
    return by_rater.group_by(segment, maintain_order=True).agg(pl.col(others).first(), pl.col("mqm_penalty").mean())
