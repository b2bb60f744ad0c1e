"""Questions and drops as a source returns them to the build."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from pluralbench_release import Source, Tables, content_digest
from pluralbench_release.errors import SourceError
from pluralbench_runs import digest
from pluralbench_schemas import MESSAGE, POST, RUBRIC_ASPECT

from build_personalized.recipe import UserSource

QUESTIONS = pl.Schema(
    dict.fromkeys(("config", "id", "question", "category", "narrative"), pl.String)
    | {"rubric_aspects": pl.List(RUBRIC_ASPECT), "profile": pl.List(POST)}
)
DROPS = pl.Schema({"config": pl.String, "step": pl.String, "reason": pl.String, "id": pl.String})


@dataclass(frozen=True)
class LoadedQuestions:
    """Questions that a source returns.

    Attributes:
        questions: Columns of `QUESTIONS`.
        drops: Rows that were left out, with the reason; columns of `DROPS`.
        sources: Manifest entries of the sources.
    """

    questions: pl.DataFrame
    drops: pl.DataFrame
    sources: list[Source]


def split_location(location: str, kinds: Mapping[str, bool | None], forms: str) -> tuple[str, str]:
    """Split a location into its kind and what follows the colon.

    `kinds` says whether something has to follow each kind (None: both forms are valid), `forms` the valid forms.

    Raises:
        SourceError: The location has none of these forms.
    """
    kind, _, rest = location.partition(":")
    if kind not in kinds or kinds[kind] not in {None, bool(rest)}:
        likely = "stack-exchange" if location.endswith(".xml") else "table"
        is_file = kind not in kinds and likely in kinds and Path(location).suffix
        hint = f"; did you mean `{likely}:{location}`?" if is_file else "."
        raise SourceError(f"Unknown source {location!r}: give {forms}{hint}")
    return kind, rest


def split_locations(
    locations: Sequence[str], kinds: Mapping[str, bool | None], forms: str
) -> tuple[list[tuple[str, str]], list[Path]]:
    """Return the kind and the place of each location that is no dump, and the dumps. Raises `SourceError`."""
    repeated = next((location for location in locations if locations.count(location) > 1), None)
    if repeated is not None:
        raise SourceError(f"The source {repeated} is given twice.")
    split = [split_location(location, kinds, forms) for location in locations]
    dumps = [Path(rest) for kind, rest in split if kind == "stack-exchange"]
    return [(kind, rest) for kind, rest in split if kind != "stack-exchange"], dumps


@contextmanager
def source_error_hint(hint: str) -> Iterator[None]:
    """Add a hint to the message of a `SourceError`."""
    try:
        yield
    except SourceError as error:
        raise SourceError(f"{str(error).removesuffix('.')}; {hint}.") from None


def table_entry(
    tables: Tables, source: UserSource, name: str, attribution: str, shown: str, digest: str, rows: int
) -> Source:
    """Describe tables for the release; the recipe has precedence over name and attribution."""
    return Source(
        name=source.name or name,
        location=shown,
        revision=tables.revision,
        digest=digest,
        rows=rows,
        license=tables.license or source.license or "unknown",
        attribution=source.attribution or attribution,
    )


def drops_frame(rows: Iterable[tuple[str, str, str, str]]) -> pl.DataFrame:
    """Return a frame of drops from rows of (config, step, reason, id)."""
    return pl.DataFrame(list(rows), schema=DROPS, orient="row")


def rows_digest(questions: pl.DataFrame) -> str:
    """Compute the SHA-256 of the rows of all configs, sorted by id; it identifies files that have no revision."""
    return digest({config: content_digest(rows) for config, rows in by_config(questions)})


def by_config(questions: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield each config and its rows without the column `config`; rows are copied one config at a time."""
    configs = questions["config"].unique(maintain_order=True).to_list()
    rows = questions.drop("config")
    for config in configs:
        yield config, rows if len(configs) == 1 else rows.filter(questions["config"] == config)


PAIRS = pl.Schema(
    dict.fromkeys(("config", "id", "user_id"), pl.String)
    | {"prompt": pl.List(MESSAGE)}
    | dict.fromkeys(
        ("chosen", "rejected", "source_id", "chosen_source", "rejected_source", "original_split"), pl.String
    )
)
POSTS = pl.Schema([("config", pl.String), ("user_id", pl.String), ("post", POST)])


@dataclass(frozen=True)
class Preferences:
    """Preferences that a source returns.

    Attributes:
        pairs: Columns of `PAIRS`; a user's pairs are in order of time.
        posts: Columns of `POSTS`: the questions of each user, in order of time. A conversation gives only its first
            question, since later turns reply to the chosen response. A post's id is the `source_id` of its pairs.
        drops: See `LoadedQuestions`, as `sources`.
    """

    pairs: pl.DataFrame
    posts: pl.DataFrame
    drops: pl.DataFrame
    sources: list[Source]


def preferences_digest(pairs: pl.DataFrame, posts: pl.DataFrame) -> str:
    """Compute the SHA-256 of pairs and posts; it identifies files that have no revision."""
    return digest([content_digest(pairs), [list(row) for row in posts.rows()]])
