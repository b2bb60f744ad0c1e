"""Questions and drops as a source returns them to the build."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import polars as pl
from pluralbench_release import Source, content_digest
from pluralbench_release.errors import SourceError
from pluralbench_runs import digest
from pluralbench_schemas import MESSAGE, POST, RUBRIC_ASPECT

QUESTIONS = pl.Schema(
    [
        ("config", pl.String),
        ("id", pl.String),
        ("question", pl.String),
        ("category", pl.String),
        ("narrative", pl.String),
        ("rubric_aspects", pl.List(RUBRIC_ASPECT)),
        ("profile", pl.List(POST)),
    ]
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


@contextmanager
def source_error_hint(hint: str) -> Iterator[None]:
    """Add a hint to the message of a `SourceError`."""
    try:
        yield
    except SourceError as error:
        raise SourceError(f"{str(error).removesuffix('.')}; {hint}.") from None


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
    [
        ("config", pl.String),
        ("id", pl.String),
        ("user_id", pl.String),
        ("prompt", pl.List(MESSAGE)),
        ("chosen", pl.String),
        ("rejected", pl.String),
        ("source_id", pl.String),
        ("chosen_source", pl.String),
        ("rejected_source", pl.String),
        ("original_split", pl.String),
    ]
)
POSTS = pl.Schema([("config", pl.String), ("user_id", pl.String), ("post", POST)])


@dataclass(frozen=True)
class Preferences:
    """Preferences that a source returns.

    Attributes:
        pairs: Columns of `PAIRS`; a user's pairs are in order of time.
        posts: Columns of `POSTS`: the questions of each user, in order of time. A conversation gives only its first
            question, since later turns reply to the chosen response. A post's id is the `source_id` of its pairs.
        drops: Rows that were left out, with the reason; columns of `sources.loaded.DROPS`.
        sources: Manifest entries of the sources.
    """

    pairs: pl.DataFrame
    posts: pl.DataFrame
    drops: pl.DataFrame
    sources: list[Source]


def preferences_digest(pairs: pl.DataFrame, posts: pl.DataFrame) -> str:
    """Compute the SHA-256 of pairs and posts; it identifies files that have no revision."""
    return digest([content_digest(pairs), [list(row) for row in posts.rows()]])
