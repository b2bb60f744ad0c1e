"""Preferences and posts as a source returns them to the build."""

from dataclasses import dataclass

import polars as pl
from pluralbench_release import Source, content_digest
from pluralbench_runs import digest
from pluralbench_schemas import MESSAGE, POST

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
