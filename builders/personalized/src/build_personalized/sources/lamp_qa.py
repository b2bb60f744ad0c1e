"""Read LaMP-QA (`alireza7/LaMP-QA`): questions with profiles, narratives and rubrics."""

import polars as pl
from pluralbench_release import read_tables
from pluralbench_release.errors import SourceError
from pluralbench_runs import one_line
from polars.exceptions import PolarsError

from build_personalized.recipe import SourceTable
from build_personalized.sources.loaded import QUESTIONS, LoadedQuestions, drops_frame, rows_digest, table_entry

HUB_ID = "alireza7/LaMP-QA"
ATTRIBUTION = "LaMP-QA (Salemi and Zamani, 2025), whose texts come from Stack Exchange communities."


def load(
    location: str,
    source: SourceTable,
    *,
    name: str = "LaMP-QA",
    shown: str | None = None,
    attribution: str = ATTRIBUTION,
) -> LoadedQuestions:
    """Read a local directory or a pinned Hub repository (see `pluralbench_release.read_tables`).

    The license is that of the data's card (`README.md`), else the recipe's, else unknown. `name` and `attribution` are
    those in the release, unless the recipe has others.

    Raises:
        SourceError: The tables cannot be read or lack a column of LaMP-QA.
    """
    tables = read_tables(location, split=source.split)
    rows = pl.concat([_rows(config, frame, tables.paths[config], source) for config, frame in tables.frames.items()])
    place = shown or tables.location
    entry = table_entry(tables, source, name, attribution, place, rows_digest(rows), rows.height)
    return LoadedQuestions(rows, drops_frame([]), [entry])


def is_original(location: str) -> bool:
    """Return whether a location, the rest of `lamp-qa:...`, is LaMP-QA itself and not other data in its format."""
    return location.partition("@")[0] in {"", HUB_ID}


def _rows(config: str, frame: pl.DataFrame, where: str, source: SourceTable) -> pl.DataFrame:
    missing = [name for name in QUESTIONS if name not in {"config", *frame.columns}]
    if missing:
        raise SourceError(f"{where} has no column `{missing[0]}`; LaMP-QA rows have {', '.join(list(QUESTIONS)[1:])}.")
    if source.limit is not None:
        frame = frame.head(source.limit)
    try:
        return frame.with_columns(config=pl.lit(config)).select(
            pl.col(name).cast(kind).alias(name) for name, kind in QUESTIONS.items()
        )
    except PolarsError as error:
        raise SourceError(f"{where} does not have LaMP-QA's format: {one_line(error, 300)}.") from None
