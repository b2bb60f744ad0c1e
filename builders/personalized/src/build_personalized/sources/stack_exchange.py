"""A Stack Exchange dump (`Posts.xml`): each user's newest question, with the earlier ones as the profile.

Only the texts of the users that are kept are held at the end.
"""

import sqlite3
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_release import Source
from pluralbench_release.errors import SourceError

from build_personalized.recipe import SourceTable, public_source, site_of
from build_personalized.sources.dump import by_licence, category_of, post_of, posts_of, text_of
from build_personalized.sources.loaded import QUESTIONS, Loaded, drops_frame, rows_digest

BATCH = 200  # users at a time as Python objects, which are several times larger than their rows


def load(paths: Sequence[Path], source: SourceTable, scratch: Path) -> Loaded:
    """People with at least `source.min_questions` questions in a community, a dump each; ids are `SITE-POST`.

    Left out, each counted: posts of deleted users and of the Community user, with an empty body, or with a text
    that was posted before, be it in another of the dumps. Users come in the order of their newest questions, so a later
    dump adds at the end.

    Raises `SourceError` for a dump that is missing, truncated or not XML, and when nobody has enough questions.
    """
    with posts_of(paths, scratch) as (posts, drops):
        parts = [_people(path, posts, source) for path in paths]
    questions = pl.concat([rows for rows, _ in parts])
    return Loaded(questions, drops_frame(drops), [entry for _, entry in parts])


def _people(path: Path, posts: sqlite3.Connection, source: SourceTable) -> tuple[pl.DataFrame, Source]:
    site = site_of(path)
    users = posts.execute(
        "SELECT user FROM post WHERE site = ? GROUP BY user HAVING count(*) >= ? ORDER BY max(date), min(id) LIMIT ?",
        (site, source.min_questions, -1 if source.limit is None else source.limit),
    ).fetchall()
    if not users:
        raise SourceError(f"{path}: no user has {source.min_questions} questions or more; lower `min_questions`.")
    licences = Counter[str]()
    frames = []
    for batch in range(0, len(users), BATCH):
        rows = []
        for (user,) in users[batch : batch + BATCH]:
            query = "SELECT * FROM post WHERE site = ? AND user = ? ORDER BY date DESC, id DESC LIMIT ?"
            most = -1 if source.max_posts is None else source.max_posts + 1
            theirs = posts.execute(query, (site, user, most)).fetchall()
            licences.update(post["licence"] for post in theirs)
            rows.append(_question(theirs, site))
        frames.append(pl.DataFrame(rows, schema=QUESTIONS))
    questions = pl.concat(frames)
    entry = Source(
        name=source.name or f"Stack Exchange dump of {site}",
        location=public_source(f"stack-exchange:{path}"),
        digest=rows_digest(questions),
        rows=questions.height,
        licence=max(licences),
        attribution=source.attribution
        or (
            f"Posts by users of {site}; the post of id `{site}-N` is question N of that community. "
            f"{by_licence(licences)}"
        ),
    )
    return questions, entry


def _question(posts: Sequence[sqlite3.Row], site: str) -> dict[str, Any]:
    """A row from a user's posts, newest first."""
    newest, *earlier = posts
    narrative = text_of(newest)
    return {
        "config": site,
        "id": f"{site}-{newest['id']}",
        "question": newest["title"].strip() or narrative.split("\n")[0],
        "category": category_of(newest["tags"], site),
        "narrative": narrative,
        "rubric_aspects": [],
        "profile": [post_of(post, site) for post in earlier],
    }
