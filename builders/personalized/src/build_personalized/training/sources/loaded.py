"""What a source of preferences hands to the build."""

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
    """What people preferred, what they asked, what was left out and why, and where all came from.

    pairs: columns of `PAIRS`, a user's in their order in time. posts: columns of `POSTS`, the questions of each user in
    the same order, of a conversation only the first: what is said later answers the response that was chosen. The id of
    a post is the `source_id` of the pairs that follow from it. drops: columns of `sources.loaded.DROPS`.
    """

    pairs: pl.DataFrame
    posts: pl.DataFrame
    drops: pl.DataFrame
    sources: list[Source]


def preferences_digest(pairs: pl.DataFrame, posts: pl.DataFrame) -> str:
    """SHA-256 of what was read: it pins files that have no revision."""
    return digest([content_digest(pairs), [list(row) for row in posts.rows()]])
