"""Read Stack Exchange dumps (`Posts.xml`): each user's newest question, with the earlier ones as the profile.

Memory holds only the texts of the selected users.
"""

import sqlite3
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_release import Source
from pluralbench_release.errors import SourceError
from pluralbench_runs import plural

from build_personalized.recipe import SourceTable, site_of
from build_personalized.sources.dump import STEP, Drop, dump_entry, first_tag, open_posts, profile_post
from build_personalized.sources.loaded import QUESTIONS, LoadedQuestions, drops_frame, rows_digest
from build_personalized.sources.markup import to_markdown

BATCH = 200  # users converted at a time; Python objects are several times larger than their rows


def load(paths: Sequence[Path], source: SourceTable, scratch: Path) -> LoadedQuestions:
    """Select the users with at least `source.min_questions` questions; ids are `SITE-POST`.

    Dropped and counted are posts of deleted users and of the Community user, posts with an empty body, posts whose text
    was posted before in any of the dumps, and users with fewer questions. Users are ordered by their newest questions,
    so a later version of a dump adds rows at the end.

    Raises:
        SourceError: A dump is missing, truncated or not XML, or no user has enough questions.
    """
    with open_posts(paths, scratch) as (posts, drops):
        few = _users_with_few(posts, source.min_questions)
        parts = [_load_site(path, posts, source) for path in paths]
    questions = pl.concat([rows for rows, _ in parts])
    return LoadedQuestions(questions, drops_frame([*drops, *few]), [entry for _, entry in parts])


def _users_with_few(posts: sqlite3.Connection, least: int) -> list[Drop]:
    query = "SELECT site, user FROM post GROUP BY site, user HAVING count(*) < ?"
    reason = f"user with fewer than {plural(least, 'question')}"
    return [(site, STEP, reason, f"{site}-user-{user}") for site, user in posts.execute(query, (least,))]


def _load_site(path: Path, posts: sqlite3.Connection, source: SourceTable) -> tuple[pl.DataFrame, Source]:
    site = site_of(path)
    users = posts.execute(
        "SELECT user FROM post WHERE site = ? GROUP BY user HAVING count(*) >= ? ORDER BY max(date), min(id) LIMIT ?",
        (site, source.min_questions, -1 if source.limit is None else source.limit),
    ).fetchall()
    if not users:
        raise SourceError(f"{path}: no user has {source.min_questions} questions or more; lower `min_questions`.")
    licenses = Counter[str]()
    frames = []
    for batch in range(0, len(users), BATCH):
        rows = []
        for (user,) in users[batch : batch + BATCH]:
            query = "SELECT * FROM post WHERE site = ? AND user = ? ORDER BY date DESC, id DESC LIMIT ?"
            limit = -1 if source.max_posts is None else source.max_posts + 1
            user_posts = posts.execute(query, (site, user, limit)).fetchall()
            licenses.update(post["license"] for post in user_posts)
            rows.append(_question_row(user_posts, site))
        frames.append(pl.DataFrame(rows, schema=QUESTIONS))
    questions = pl.concat(frames)
    ids = "the post with id `{site}-N` is question N"
    entry = dump_entry(path, source, ids, rows_digest(questions), questions.height, licenses)
    return questions, entry


def _question_row(posts: Sequence[sqlite3.Row], site: str) -> dict[str, Any]:
    newest, *earlier = posts
    narrative = to_markdown(newest["body"])
    return {
        "config": site,
        "id": f"{site}-{newest['id']}",
        "question": newest["title"].strip() or narrative.split("\n")[0],
        "category": first_tag(newest["tags"], site),
        "narrative": narrative,
        "rubric_aspects": [],
        "profile": [profile_post(post, site) for post in earlier],
    }
